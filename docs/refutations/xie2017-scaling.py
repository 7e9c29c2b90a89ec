#!/usr/bin/env python3
"""Refutes xie2017-scaling: Xie et al. (2017), (12), (27).
Claim: C and C'FC can be used as they are for sigma > 1: their condition leaves digits to work
with.
What holds: Scale alpha_i = sigma^-(i-1) beta_i: the sigma-order becomes the plain one, of
condition 4m / pi.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
F = Fraction
CASE = {
    'm': 100,
    'sigma': F('5404319552844595/4503599627370496'),
}
def sides(case): return (case['sigma'] ** (2 * (case['m'] - 1)), 2 ** 52)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
