#!/usr/bin/env python3
"""Refutes mao2010-eq4: Mao and Tsang (2010), (4).
Claim: Multiple kernel learning for RLS over mu >= 0 alone has a solution: from some weight on
nothing is gained.
What holds: The weights need a bound, sum_d mu_d tr K_d = c: ever larger weights give ever
smaller values.
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
    'K': array([[F(1)]]),
    'y': array([F(1)]),
    'C': F(1),
}
def sides(case):
    return (case['y'][0] ** 2 / (10 ** 4 * case['K'][0, 0] + 1 / case['C']), case['y'][0] ** 2 / (10 ** 8 * case['K'][0, 0] + 1 / case['C']))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
