#!/usr/bin/env python3
"""Refutes pan2016-separation: Pan et al. (2016), after (10).
Claim: Minimal loss separates the classes: no kernel that ignores the labels has a smaller loss
than the ideal one.
What holds: All weights are positive, so all pairs attract: the loss alone is least, 0, at qq',
q = D^1/2 1.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
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
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __eq__ = lambda x, y: each(operator.eq, x, y)
where = lambda c, a, b: Array(where(x, a, b) for x in c) if isinstance(c, Array) else a if c else b
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'labels': F([0, 1, 0, 1]),
}
def _graph(T):
    W = [[ball(entry).exp() for entry in row] for row in T]
    return (W, [sum(row, ball(0)) for row in W])
def _flat(W, D):
    degrees = sum(D, ball(0))
    weights = sum((sum(row, ball(0)) for row in W), ball(0))
    return (degrees - weights) / degrees
def exact_separation(case):
    same = case['labels'][:, None] == case['labels']
    W, D = _graph(where(same, 1.0, -1.0))
    n = len(W)
    pairs = [(i, j) for i in range(n) for j in range(n) if same[i, j]]
    inside = [W[i][j] / (D[i] * D[j]).sqrt() for i, j in pairs]
    return (1 - sum(inside, ball(0)) / n, _flat(W, D))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_separation(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
