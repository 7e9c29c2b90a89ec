#!/usr/bin/env python3
"""Refutes pan2016-eq10: Pan et al. (2016), (10).
Claim: The scg-loss, summed over ordered pairs, is <K, S>.
What holds: It is 2 <K, S>; harmless in the LP, it rescales gamma in (27).
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import isqrt
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
    __rsub__ = lambda x, y: -x + y
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __gt__ = lambda x, y: x.a > lift(y).b
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
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    T = property(lambda x: Array(map(Array, zip(*x))) if isinstance(x[0], Array) else x)
    tolist = lambda x: x
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'T': array([[F(0), F(0)], [F(0), F(0)]]),
    'Phi': array([[F(1), F(0)]]),
}
def _inner(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), ball(0))
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
left, right = exact_scg(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
