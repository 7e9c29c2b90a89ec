#!/usr/bin/env python3
"""Refutes liu2020-lemma3-factors: Liu et al. (2020), proof of Lemma 3.
Claim: A difference of squares factorises: D_x K D_x - D_z K D_z = D_{x+z} K D_{x-z}.
What holds: It is the symmetric part of the right hand side. The bound of the lemma survives.
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
    __add__ = lambda x, y: each(operator.add, x, y)
    __sub__ = lambda x, y: each(operator.sub, x, y)
    __mul__ = lambda x, y: each(operator.mul, x, y)
    __abs__ = lambda x: Array(map(abs, x))
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
    max = lambda x: max(x.ravel())
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 1], [1, 1]]),
    'x': F([1, 0]),
    'z': F([0, 1]),
}
def factors(case):
    K = case['K']
    x = case['x']
    z = case['z']
    left = x[:, None] * K * x[None, :] - z[:, None] * K * z[None, :]
    return (left, (x + z)[:, None] * K * (x - z)[None, :])
def sides(case): return (abs(factors(case)[0] - factors(case)[1]).max(), 0)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
