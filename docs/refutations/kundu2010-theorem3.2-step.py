#!/usr/bin/env python3
"""Refutes kundu2010-theorem3.2-step: Kundu et al. (2010), Theorem 3.2, Proposition 3.2.
Claim: Put sigma = 1/(m tau) and B = m tau log n in (15): the step is sqrt(2 log n / (m t)) /
Lip.
Premise: two similarities or more.
What holds: sigma B = log n: the step has no m. Then (15), with T for t, gives tau m Lip sqrt(2
log n / T).
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
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
    def log(x):  # log(x / 2**e) + e log 2, each by the series of artanh
        if x.a <= 0: raise ValueError("undecided: the logarithm of what may be 0")
        e, s = x.b.bit_length() - BITS, ball(0)
        m = x * Fraction(2) ** -e
        for z, c in (((m - 1) / (m + 1), 2), (ball(Fraction(1, 3)), 2 * e)):
            p, n = z, 1
            while p.size() > 2: s = s + p * Fraction(c, n); p, n = p * z * z, n + 2
            s = s + Ball(-9 * abs(c), 9 * abs(c))  # the rest
        return s
class Array(list): pass
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[['5/8', '1/4'], ['1/4', '3/8']], [['5/8', '1/4'], ['1/4', '3/8']]]),
    'y': F([1, -1]),
}
def sides(case):
    return ((2 * ball(len(case['y'])).log()).sqrt(), (2 * ball(len(case['y'])).log() / len(case['S'])).sqrt())
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
