#!/usr/bin/env python3
"""Refutes pan2016-eq2: Pan et al. (2016), (2).
Claim: (2) can be solved as a QCQP: some ordered spectrum has a positive inner product with the
target.
What holds: Only if some prefix sum of b is positive; else the alignment is best, and negative,
at one prefix.
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
    'b': array([F(-1)]),
}
def sides(case):
    return (Fraction(1, 10 ** 12), max((sum(case['b'][:k + 1]) for k in range(len(case['b'])))))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
