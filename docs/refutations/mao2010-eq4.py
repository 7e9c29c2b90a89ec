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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1]]),
    'y': F([1]),
    'C': F(1),
}
def sides(case):
    return (case['y'][0] ** 2 / (10 ** 4 * case['K'][0, 0] + 1 / case['C']), case['y'][0] ** 2 / (10 ** 8 * case['K'][0, 0] + 1 / case['C']))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
