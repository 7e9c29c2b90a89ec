#!/usr/bin/env python3
"""Refutes liu2020-value-falls: Liu et al. (2020), after (4).
Claim: The value of the machine falls whatever tau is.
What holds: A large tau makes F* = 0, the kernel vanish and every point violate its margin.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'K': array([[F(1), F(0)], [F(0), F(1)]]),
    'y': array([F(1), F(-1)]),
    'C': F(1),
    'eta': F(1),
    'tau': F(10),
}
def exact_vanishing(case):
    n = len(case['y'])
    C = case['C']
    K = case['K']
    trace_gamma = C * C * sum((K[i, i] for i in range(n))) / (4 * case['eta'])
    vanishes = n + trace_gamma <= case['tau'] / 2
    identity = all((K[i, j] == (i == j) for i in range(n) for j in range(n)))
    if not vanishes or sum(case['y']) or (not identity):
        raise ValueError('decided exactly where F vanishes and K = I only')
    s = min(C, 1)
    return (n * C, n * (s - s ** 2 / 2))
left, right = exact_vanishing(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
