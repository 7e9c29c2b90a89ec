#!/usr/bin/env python3
"""Refutes pan2016-eq24: Pan et al. (2016), (23), (24).
Claim: Best alignment (23) is best inner product on the unit ball (24), for every convex set of
kernels.
What holds: The set must be a cone, and the best alignment not negative.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
F = Fraction
CASE = {
    't': F(0),
}
def sides(case): return (Fraction(1), (1 + case['t']) ** 2 / (2 * (1 + case['t'] ** 2)))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
