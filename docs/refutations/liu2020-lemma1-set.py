#!/usr/bin/env python3
"""Refutes liu2020-lemma1-set: Liu et al. (2020), Lemma 1.
Claim: The set of F with that bound is not empty and holds the best F, whatever tau is.
What holds: The bound must be max(0, .): for a large tau the best F is 0 and the bound printed
is negative.
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
def exact_bound(case):
    n = len(case['y'])
    K = case['K']
    if any((K[i, j] != 0 for i in range(n) for j in range(n) if i != j)):
        raise ValueError('decided exactly for a diagonal K only')
    return n - case['tau'] / 2 + n * case['C'] ** 2 / (4 * case['eta']) * max((K[i, i] for i in range(n)))
def sides(case):
    return (0, exact_bound(case))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
