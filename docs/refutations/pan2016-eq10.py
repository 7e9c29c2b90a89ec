#!/usr/bin/env python3
"""Refutes pan2016-eq10: Pan et al. (2016), (10).
Claim: The scg-loss, summed over ordered pairs, is <K, S>.
What holds: It is 2 <K, S>; harmless in the LP, it rescales gamma in (27).
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
    __rsub__ = lambda x, y: -x + y
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    T = property(lambda x: Array(map(Array, zip(*x))) if isinstance(x[0], Array) else x)
    tolist = lambda x: x
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'T': F([[0, 0], [0, 0]]),
    'Phi': F([[1, 0]]),
}
def _inner(a, b): return sum((x * y for x, y in zip(a, b, strict=True)), ball(0))
def exact_scg(case):
    n = len(case['T'])
    points = [[ball(entry) for entry in column] for column in case['Phi'].T.tolist()]
    W = [[ball(entry).exp() for entry in row] for row in case['T'].tolist()]
    roots = [sum(row, ball(0)).sqrt() for row in W]
    scaled = [[entry / root for entry in x] for x, root in zip(points, roots, strict=True)]
    loss = ball(0)
    trace = ball(0)
    for i in range(n):
        for j in range(n):
            difference = [a - b for a, b in zip(scaled[i], scaled[j], strict=True)]
            loss += W[i][j] * _inner(difference, difference)
            S_ij = (i == j) - W[i][j] / (roots[i] * roots[j])
            trace += _inner(points[i], points[j]) * S_ij
    return (loss, trace)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_scg(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
