#!/usr/bin/env python3
"""Refutes kundu2010-eq7: Kundu et al. (2010), (7).
Claim: The constraint of (7), a sum of the first m eigenvalues, makes tr K_i = tau.
What holds: The sum is over all n eigenvalues, as in section 3.3.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list): pass
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[[F(-8192979928544731, 36028797018963968), F(-6655521883434863,
        144115188075855872), F(-684594341604921, 2251799813685248), F(5901350101039953,
        36028797018963968)], [F(-6655521883434863, 144115188075855872), F(-2968493782282179,
        2251799813685248), F(5748891709031397, 36028797018963968), F(-5883007546793321,
        18014398509481984)], [F(-684594341604921, 2251799813685248), F(5748891709031397,
        36028797018963968), F(4678596857461619, 9007199254740992), F(8251206035577117,
        18014398509481984)], [F(5901350101039953, 36028797018963968), F(-5883007546793321,
        18014398509481984), F(8251206035577117, 18014398509481984), F(5978511779364039,
        9007199254740992)]]]),
    'y': array([F(1), F(-1), F(1), F(-1)]),
    'tau': F(746584508689299, 1125899906842624),
}
def sides(case):
    return (len(case['y']) * case['tau'] / len(case['S']), case['tau'])
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
