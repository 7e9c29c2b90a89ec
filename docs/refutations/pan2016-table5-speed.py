#!/usr/bin/env python3
"""Refutes pan2016-table5-speed: Pan et al. (2016), section 6.4, Table 5.
Claim: SCG-LDK is 2 to 12 times faster than the other algorithms of Table 5.
What holds: The ratios of Table 5 run from 1.34 to 12.2.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
F = Fraction
CASE = {
    'other': F('8834619909645271/17592186044416'),
    'own': F('6608856531305759/17592186044416'),
}
def sides(case): return (2, case['other'] / case['own'])
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
