#!/usr/bin/env python3
"""Refutes kundu2010-steps: Kundu et al. (2010), section 3.4.
Claim: The number of steps grows like log n / eps^2: Lip(f) does not grow with n. Here at K =
(tau/n) I, n even.
What holds: Lip grows like n: at this K the gradient has the norm n C^2 / 2, for C <= n / tau,
and T is of the order n^2 log n / eps^2.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
F = Fraction
CASE = {
    'n': 4,
    'C': F(1),
    'tau': F(1),
}
def gradient_norms(case):
    def norm(n):
        amount = min(case['C'], Fraction(n) / case['tau'])
        return n * amount * amount / 2
    return (norm(int(case['n'])), norm(2))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = gradient_norms(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
