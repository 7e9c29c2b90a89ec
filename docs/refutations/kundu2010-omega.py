#!/usr/bin/env python3
"""Refutes kundu2010-omega: Kundu et al. (2010), after (6).
Claim: Omega can be obtained by any standard formulation of MKL: (5) and (10) are the same.
Premise: two kernels or more.
What holds: (5) is the larger: max_i q_i <= (sum_i sqrt q_i)^2, q_i = a'K_i a.
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
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[[1, 0], [0, 1]], [[1, 0], [0, 1]]]),
    'C': F(2),
}
def value_at(C, square):
    amount = min(C, 2 / square)
    return 2 * amount - amount * amount * square / 2
def squared_distances(kernels): return [K[0, 0] + K[1, 1] - 2 * K[0, 1] for K in kernels]
def block_l1(case, kernels):
    return value_at(Fraction(case['C']), max(squared_distances(kernels)))
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def block_linf(case, kernels):
    return exact_svm(ball(case['C']), [ball(k) for k in squared_distances(kernels)])[0]
def sides(case): return (ball(block_l1(case, case['K'])), block_linf(case, case['K']))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
