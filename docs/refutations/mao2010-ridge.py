#!/usr/bin/env python3
"""Refutes mao2010-ridge: Mao and Tsang (2010), section 4.4.
Claim: The ridge guarantees that Kbar_ll is well defined (invertible).
What holds: It needs as many eigenvectors that the labels see as there are labels.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'y': F([1, 1]),
}
def sides(case):
    return (Fraction(1, 10 ** 12), ((case['y'][0] ** 2 - case['y'][1] ** 2) / 2) ** 2)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
