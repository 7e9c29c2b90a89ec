#!/usr/bin/env python3
"""Refutes liu2020-margin: Liu et al. (2020), after (4).
Claim: Learning F lowers the objective of the primal, which in turn enlarges the margin 1 / |w|.
What holds: The value of the machine falls if tau = 0, omega(F* o K) <= omega(K); the norm of w
may grow.
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
    'C': F('1/2'),
    'eta': F(1),
    'tau': F(0),
}
def exact_gradient(case, alpha):
    y = case['y']
    K = case['K']
    eta = case['eta']
    points = range(len(alpha))
    a = [y[i] * alpha[i] for i in points]
    def weight(i, j): return 1 + a[i] * a[j] * K[i, j] / (4 * eta)
    return [1 - y[i] * sum((weight(i, j) * K[i, j] * a[j] for j in points)) for i in points]
def exact_margin(case):
    n = len(case['y'])
    C = case['C']
    K = case['K']
    y = case['y']
    a = [C * y[i] for i in range(n)]
    plain = [1 - y[i] * sum((K[i, j] * a[j] for j in range(n))) for i in range(n)]
    if case['tau'] or sum(y) or min(*plain, *exact_gradient(case, [C] * n)) < 0:
        raise ValueError('decided exactly where every multiplier is C only')
    terms = [a[i] * a[j] * K[i, j] for i in range(n) for j in range(n)]
    adapted = sum((term * (1 + term / (4 * case['eta'])) for term in terms))
    return (adapted, sum(terms))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_margin(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
