#!/usr/bin/env python3
"""Refutes liu2020-eq17: Liu et al. (2020), (17).
Claim: The bound of Lemma 1, n - tau/2 + n C^2 lambda_max(K) / (4 eta), is a Lipschitz constant
of the gradient.
What holds: It bounds F, not the gradient, and does not grow with kappa. That of liu2020-sharp-
constant serves.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'y': F([1, -1]),
    'C': F(1),
    'eta': F(1),
    'tau': F(0),
    'K': F([[8, 0], [0, 8]]),
    'alpha': F([1, 1]),
    'other': F(['1/2', '1/2']),
}
def exact_gradient(case, alpha):
    y = case['y']
    K = case['K']
    eta = case['eta']
    points = range(len(alpha))
    a = [y[i] * alpha[i] for i in points]
    def weight(i, j): return 1 + a[i] * a[j] * K[i, j] / (4 * eta)
    return [1 - y[i] * sum((weight(i, j) * K[i, j] * a[j] for j in points)) for i in points]
def exact_constant17(case):
    one = case['alpha']
    two = case['other']
    n = len(case['y'])
    K = case['K']
    pairs = [(i, j) for i in range(n) for j in range(n)]
    if case['tau'] or any((K[i, j] != K[0, 0] * (i == j) for i, j in pairs)):
        raise ValueError('decided exactly for a multiple of I and tau = 0 only')
    gradients = zip(exact_gradient(case, one), exact_gradient(case, two), strict=True)
    left = sum(((p - q) ** 2 for p, q in gradients))
    L = n + n * case['C'] ** 2 / (4 * case['eta']) * K[0, 0]
    right = L * L * sum(((one[i] - two[i]) ** 2 for i in range(n)))
    return (left, right)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_constant17(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
