#!/usr/bin/env python3
"""Refutes kundu2010-eq6-lipschitz: Kundu et al. (2010), before Lemma 3.1, section 3.3.
Claim: F is Lipschitz on the kernels of trace tau: some number L is a constant.
What holds: No L is if m >= 2: gradients grow without bound as gamma_i falls to 0. True for m =
1, or gamma_i >= c.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor, isqrt
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __abs__ = lambda x: x.max(-x)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
F = Fraction
CASE = {
    'L': F(1000),
    'C': F(2),
    'tau': F(1),
}
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def unbounded_gradient(case):
    C, tau, L = (ball(case[name]) for name in ('C', 'tau', 'L'))
    thin = tau / L * (tau / L)
    zero = ball(0)
    apart = exact_svm(C, [tau, zero])[0] - exact_svm(C, [tau, thin])[0]
    return (abs(apart), L * thin / ball(2).sqrt())
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = unbounded_gradient(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
