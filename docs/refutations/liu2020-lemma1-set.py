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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0], [0, 1]]),
    'y': F([1, -1]),
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
def sides(case): return (0, exact_bound(case))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
