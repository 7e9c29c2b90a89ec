#!/usr/bin/env python3
"""Refutes kundu2010-eq5: Kundu et al. (2010), (5) in (6).
Claim: Omega of (5) can be used in (6), whose objective is convex.
Premise: two kernels or more.
What holds: (5) is the machine with max_i a'K_i a and is not convex in the kernels: only (10)
may stand in (6).
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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    __add__ = lambda x, y: each(operator.add, x, y)
    __truediv__ = lambda x, y: each(operator.truediv, x, y)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[[1, 0], [0, 1]], [[1, '3/4'], ['3/4', 1]]]),
    'other': F([[[1, '3/4'], ['3/4', 1]], [[1, 0], [0, 1]]]),
    'C': F(2),
}
def value_at(C, square):
    amount = min(C, 2 / square)
    return 2 * amount - amount * amount * square / 2
def squared_distances(kernels): return [K[0, 0] + K[1, 1] - 2 * K[0, 1] for K in kernels]
def block_l1(case, kernels):
    return value_at(Fraction(case['C']), max(squared_distances(kernels)))
def sides(case):
    return (block_l1(case, (case['K'] + case['other']) / 2), (block_l1(case, case['K']) + block_l1(case, case['other'])) / 2)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
