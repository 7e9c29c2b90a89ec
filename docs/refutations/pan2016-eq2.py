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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'b': F([-1]),
}
def sides(case):
    return (Fraction(1, 10 ** 12), max((sum(case['b'][:k + 1]) for k in range(len(case['b'])))))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
