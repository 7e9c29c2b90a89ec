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
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'K': array([[F(1), F(0), F(0)], [F(0), F(1), F(0)], [F(0), F(0), F(1)]]),
    'y': array([F(1), F(-1), F(-1)]),
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
left, right = exact_diagonal(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
