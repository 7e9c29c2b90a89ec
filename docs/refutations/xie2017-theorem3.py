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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'F': F([[1, 0], [0, 1]]),
    'b': F([1, 1]),
    'a': F([1, 0]),
}
def exact_dot(a, b): return sum((x * y for x, y in zip(a, b, strict=True)))
def exact_objective(F, a): return exact_dot(a, [exact_dot(row, a) for row in F])
def sides(case):
    return (2 * exact_objective(case['F'], case['a']) * case['b'][1], 2 * exact_dot(case['F'][1], case['a']))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
