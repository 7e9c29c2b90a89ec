#!/usr/bin/env python3
"""Refutes mao2010-eq5: Mao and Tsang (2010), (5).
Claim: The manifold regulariser, summed over ordered pairs, is tr(KL).
What holds: It is 2 tr(KL): every edge is counted twice. This rescales mu.
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
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __pow__ = lambda x, k: each(operator.pow, x, k)
    def __matmul__(x, y):
        if isinstance(x[0], Array): return Array(row @ y for row in x)
        return Array(x @ z for z in y.T) if isinstance(y[0], Array) else sum(map(operator.mul, x, y))
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[0, 1], [1, 0]]),
    'V': F([[1], [0]]),
}
def exact_regulariser(case):
    S = case['S']
    V = case['V']
    assert all((sum(row) == 1 for row in S))
    points = range(len(S))
    pairs = [(i, j) for i in points for j in points]
    left = sum((S[i, j] * sum((V[i] - V[j]) ** 2) for i, j in pairs))
    right = sum((((i == j) - S[i, j]) * (V[i] @ V[j]) for i, j in pairs))
    return (left, right)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_regulariser(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
