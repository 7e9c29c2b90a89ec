#!/usr/bin/env python3
"""Refutes liu2020-step-function: Liu et al. (2020), section 6.3.1.
Claim: The test function with s = 3, w = 2, a = 0.05 has steps: a quarter along a step it has
not risen by s / 10.
What holds: It is the straight line sx/w up to 2e-4; steps need a of 20 or more.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import factorial
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __rsub__ = lambda x, y: -x + y
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
    tanh = lambda x: 1 - 2 / ((x * 2).exp() + 1)
    def gamma_lower(s, x, regularized):  # of a whole s: 1 - e**-x times the sum of x**k / k! below s
        if s.a != s.b or s.a % (1 << BITS): raise ValueError("undecided: this is no whole number")
        return 1 - sum((x**k * Fraction(1, factorial(k)) for k in range(s.a >> BITS)), ball(0)) / x.exp()
F = Fraction
CASE = {
    's': F(3),
    'a': F(3602879701896397, 72057594037927936),
}
def exact_step(case):
    a = ball(case['a'])
    return (-a / 4).tanh() / (2 * (a / 2).tanh()) + ball(1) / 2
def sides(case):
    return (ball(case['s']) * exact_step(case), ball(case['s'] / 10))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
