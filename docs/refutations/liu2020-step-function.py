#!/usr/bin/env python3
"""Refutes liu2020-step-function: Liu et al. (2020), section 6.3.1.
Claim: The test function with s = 3, w = 2, a = 0.05 has steps: a quarter along a step it has
not risen by s / 10.
What holds: It is the straight line sx/w up to 2e-4; steps need a of 20 or more.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __rsub__ = lambda x, y: -x + y
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
    tanh = lambda x: 1 - 2 / ((x * 2).exp() + 1)
F = Fraction
CASE = {
    's': F(3),
    'a': F('3602879701896397/72057594037927936'),
}
def exact_step(case):
    a = ball(case['a'])
    return (-a / 4).tanh() / (2 * (a / 2).tanh()) + ball(1) / 2
def sides(case): return (ball(case['s']) * exact_step(case), ball(case['s'] / 10))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
