#!/usr/bin/env python3
"""Refutes xie2017-theorem3: Xie et al. (2017), Theorem 3.
Claim: A point that the update (33) leaves where it is satisfies the KKT conditions (30): no
xi_i is negative.
What holds: Only limits from a positive start: zeros stay zero, whatever their multiplier.
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
    'F': array([[F(1), F(0)], [F(0), F(1)]]),
    'b': array([F(1), F(1)]),
    'a': array([F(1), F(0)]),
}
def exact_dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)))
def exact_objective(F, a):
    return exact_dot(a, [exact_dot(row, a) for row in F])
def sides(case):
    return (2 * exact_objective(case['F'], case['a']) * case['b'][1], 2 * exact_dot(case['F'][1], case['a']))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
