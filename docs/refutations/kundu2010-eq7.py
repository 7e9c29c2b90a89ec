#!/usr/bin/env python3
"""Refutes kundu2010-eq7: Kundu et al. (2010), (7).
Claim: The constraint of (7), a sum of the first m eigenvalues, makes tr K_i = tau.
What holds: The sum is over all n eigenvalues, as in section 3.3.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list): pass
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[['-8192979928544731/36028797018963968', '-6655521883434863/144115188075855872',
        '-684594341604921/2251799813685248', '5901350101039953/36028797018963968'],
        ['-6655521883434863/144115188075855872', '-2968493782282179/2251799813685248',
        '5748891709031397/36028797018963968', '-5883007546793321/18014398509481984'],
        ['-684594341604921/2251799813685248', '5748891709031397/36028797018963968',
        '4678596857461619/9007199254740992', '8251206035577117/18014398509481984'],
        ['5901350101039953/36028797018963968', '-5883007546793321/18014398509481984',
        '8251206035577117/18014398509481984', '5978511779364039/9007199254740992']]]),
    'y': F([1, -1, 1, -1]),
    'tau': F('746584508689299/1125899906842624'),
}
def sides(case): return (len(case['y']) * case['tau'] / len(case['S']), case['tau'])
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
