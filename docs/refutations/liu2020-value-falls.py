#!/usr/bin/env python3
"""Refutes liu2020-value-falls: Liu et al. (2020), after (4).
Claim: The value of the machine falls whatever tau is.
What holds: A large tau makes F* = 0, the kernel vanish and every point violate its margin.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0], [0, 1]]),
    'y': F([1, -1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(10),
}
def exact_vanishing(case):
    n = len(case['y'])
    C = case['C']
    K = case['K']
    trace_gamma = C * C * sum((K[i, i] for i in range(n))) / (4 * case['eta'])
    vanishes = n + trace_gamma <= case['tau'] / 2
    identity = all((K[i, j] == (i == j) for i in range(n) for j in range(n)))
    if not vanishes or sum(case['y']) or (not identity):
        raise ValueError('decided exactly where F vanishes and K = I only')
    s = min(C, 1)
    return (n * C, n * (s - s ** 2 / 2))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_vanishing(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
