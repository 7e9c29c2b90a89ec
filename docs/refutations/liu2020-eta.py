#!/usr/bin/env python3
"""Refutes liu2020-eta: Liu et al. (2020), Remark after Lemma 1, 6.1.1.
Claim: eta = |alpha|^2, of the order n, makes tr Gamma grow like tr 11' = n: it is n times what
it is for n = 1.
What holds: tr Gamma = sum alpha_i^2 K_ii / (4 |alpha|^2) lies between min K_ii / 4 and max K_ii
/ 4 for every n: F stays 11' up to rounding. eta = kappa C^2 / (4 delta) lets entries move by
delta.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0], [0, 1]]),
    'y': F([1, -1]),
    'alpha': F([1, 1]),
}
def trace(case, x):
    scaled = x[:, None] * case['K'] * x[None, :]
    return sum(((scaled @ case['F'])[i, i] for i in range(len(x))))
def exact_trace(case):
    n = len(case['y'])
    K = case['K']
    alpha = case['alpha']
    trace = sum((alpha[i] ** 2 * K[i, i] for i in range(n))) / (4 * sum((alpha[i] ** 2 for i in range(n))))
    return (n * min((K[i, i] for i in range(n))) / 4, trace)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_trace(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
