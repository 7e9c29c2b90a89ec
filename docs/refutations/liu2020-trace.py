#!/usr/bin/env python3
"""Refutes liu2020-trace: Liu et al. (2020), proof of Lemma 1.
Claim: Half the quadratic form of F o K is the trace of D_a K D_a F.
What holds: Half the trace. (7) to (9) agree with that, so Gamma keeps its factor 1 / (4 eta).
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
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    __mul__ = lambda x, y: each(operator.mul, x, y)
    def __matmul__(x, y):
        if isinstance(x[0], Array): return Array(row @ y for row in x)
        return Array(x @ z for z in y.T) if isinstance(y[0], Array) else sum(map(operator.mul, x, y))
    T = property(lambda x: Array(map(Array, zip(*x))) if isinstance(x[0], Array) else x)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'F': F([[1]]),
    'K': F([[1]]),
    'x': F([1]),
}
def form(case, x, z):
    F = case['F']
    K = case['K']
    pairs = [(i, j) for i in range(len(x)) for j in range(len(z))]
    return sum((x[i] * F[i, j] * K[i, j] * z[j] for i, j in pairs))
def trace(case, x):
    scaled = x[:, None] * case['K'] * x[None, :]
    return sum(((scaled @ case['F'])[i, i] for i in range(len(x))))
def sides(case): return (abs(form(case, case['x'], case['x']) / 2 - trace(case, case['x'])), 0)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
