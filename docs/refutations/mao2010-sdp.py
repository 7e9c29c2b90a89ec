#!/usr/bin/env python3
"""Refutes mao2010-sdp: Mao and Tsang (2010), SDP after (6).
Claim: (6) is the SDP min tau + mu tr(KL) with the Schur complement of tau.
What holds: The objective is tau/2 + mu tr(KL).
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
from fractions import Fraction
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __pow__ = lambda x, k: each(operator.pow, x, k)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'y': F([1, -1]),
    'C': F(2),
    'mu': F(100),
    'ridge': F('3602879701896397/36028797018963968'),
}
def exact_schur(case):
    square = sum(case['y'] ** 2)
    C = case['C']
    if C * C * square > case['mu'] * case['ridge']:
        raise ValueError("decided exactly where mu is at least C^2 y'y / ridge only")
    return (C * square, C * square / 2)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_schur(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
