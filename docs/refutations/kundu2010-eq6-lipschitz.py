#!/usr/bin/env python3
"""Refutes kundu2010-eq6-lipschitz: Kundu et al. (2010), before Lemma 3.1, section 3.3.
Claim: F is Lipschitz on the kernels of trace tau: some number L is a constant.
What holds: No L is if m >= 2: gradients grow without bound as gamma_i falls to 0. True for m =
1, or gamma_i >= c.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import factorial, isqrt
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -lift(y)
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __abs__ = lambda x: x.max(-x)
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, lift(y).a), max(x.b, lift(y).b))
    min = lambda x, y: Ball(min(x.a, lift(y).a), min(x.b, lift(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
    def gamma_lower(s, x, regularized):  # of a whole s: 1 - e**-x times the sum of x**k / k! below s
        if s.a != s.b or s.a % (1 << BITS): raise ValueError("undecided: this is no whole number")
        return 1 - sum((x**k * Fraction(1, factorial(k)) for k in range(s.a >> BITS)), ball(0)) / x.exp()
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
left, right = unbounded_gradient(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
