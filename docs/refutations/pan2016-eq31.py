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
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'T': array([[F(0), F(-1)], [F(-1), F(0)]]),
}
def sides(case):
    return (len(case['T']) + 2, len(case['T']))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
