#!/usr/bin/env python3
"""Refutes liu2020-eq14: Liu et al. (2020), (14).
Claim: The learned kernel is a mixture of Gaussians exp(-xi |x - x'|^2), so its diagonal is
constant.
What holds: The diagonal of F* o K is (1 + alpha_i^2 K_ii / (4 eta)) K_ii without tau, larger
where alpha_i is.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    'y': F([1, -1, -1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
}
def exact_value(case, a, gain):
    points = range(len(a))
    K = case['K']
    eta = case['eta']
    square = sum((a[i] * a[j] * K[i, j] for i in points for j in points))
    fourth = sum(((a[i] * a[j] * K[i, j]) ** 2 for i in points for j in points))
    return gain - square / 2 - fourth / (16 * eta)
def exact_diagonal(case):
    n = len(case['y'])
    y = case['y']
    one = n == 3 and y[0] == -y[1] == -y[2]
    if not one or case['tau'] or any((case['K'][i, j] != (i == j) for i in range(n) for j in range(n))):
        raise ValueError('decided exactly for K = I, one point against two, only')
    s = min(case['C'], 1) / 4
    better = exact_value(case, [2 * s * y[0], s * y[1], s * y[2]], 4 * s)
    return (better, exact_value(case, [0 * s, 0 * s, 0 * s], 0))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_diagonal(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
