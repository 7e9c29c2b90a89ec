#!/usr/bin/env python3
"""Refutes liu2020-projection: Liu et al. (2020), after (16).
Claim: Alternating projections on box and plane compute the projection on A.
What holds: They find some point of A. The nearest is clip(v - l y), l the root of a piecewise
linear function.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'y': F([1, -1]),
    'C': F(1),
    'v': F([3, -1]),
}
def exact_alternating(case):
    v = case['v']
    y = case['y']
    C = case['C']
    n = len(case['y'])
    if n != 2 or y[0] + y[1] != 0:
        raise ValueError('decided exactly for two points of different classes only')
    point = list(v)
    for _ in range(100):
        point = [min(max(x, 0), C) for x in point]
        inside = sum((y[i] * point[i] for i in range(n)))
        if inside == 0: break
        point = [point[i] - inside / n * y[i] for i in range(n)]
    if inside != 0: raise ValueError('the sweeps have no exact limit after 100')
    middle = min(max((v[0] + v[1]) / 2, 0), C)
    of_limit = sum(((v[i] - point[i]) ** 2 for i in range(n)))
    of_projection = sum(((v[i] - middle) ** 2 for i in range(n)))
    return (of_limit, of_projection)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_alternating(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
