#!/usr/bin/env python3
"""Refutes liu2020-prop2: Liu et al. (2020), Proposition 2.
Claim: A random projection to c log(1 / (epsilon delta)) dimensions keeps a distance within 1 +-
epsilon with probability 1 - delta, for margin 1 and one constant c for all epsilon.
What holds: The dimension needs a factor epsilon^-2: 8 epsilon^-2 log(2 / delta) do.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import math
from fractions import Fraction
from math import ceil, factorial, floor
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __rsub__ = lambda x, y: -x + y
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
    def gamma_lower(s, x, regularized):  # of a whole s: 1 - e**-x times the sum of x**k / k! below s
        if s.a != s.b or s.a % (1 << BITS): raise ValueError("undecided: this is no whole number")
        return 1 - sum((x**k * Fraction(1, factorial(k)) for k in range(s.a >> BITS)), ball(0)) / x.exp()
F = Fraction
CASE = {
    'constant': F(2),
    'epsilon': F('5764607523034235/576460752303423488'),
    'delta': F('3602879701896397/36028797018963968'),
}
def exact_lost(case):
    epsilon = case['epsilon']
    delta = case['delta']
    d = math.ceil(float(case['constant']) * math.log(1 / (epsilon * delta)))
    high, low = (ball(Fraction(d, 2)).gamma_lower(ball(d * (1 + e) / 2), regularized=1) for e in (epsilon, -epsilon))
    return (1 - (high - low), ball(delta))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_lost(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
