#!/usr/bin/env python3
"""Refutes liu2020-eq21: Liu et al. (2020), (21), second inequality.
Claim: The second inequality of (21) holds: |K|_1 <= |Kbar_i|_1 for a column i.
What holds: It is the other way round: a column of Kbar is part of one of K.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
from fractions import Fraction
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __add__ = lambda x, y: each(operator.add, x, y)
    __radd__ = lambda x, y: each(operator.add, y, x)
    __mul__ = lambda x, y: each(operator.mul, x, y)
    __abs__ = lambda x: Array(map(abs, x))
    __eq__ = lambda x, y: each(operator.eq, x, y)
    sum = lambda x, axis=None: sum(x[1:], x[0]) if axis == 0 else sum(x.ravel())
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, '1/2'], ['1/2', 1]]),
    'groups': F([0, 1]),
}
def block_kernel(case): return array(case['K'] * (case['groups'][:, None] == case['groups']))
def sides(case): return (max(sum(abs(case['K']))), min(abs(block_kernel(case)).sum(axis=0)))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
