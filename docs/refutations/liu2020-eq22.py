#!/usr/bin/env python3
"""Refutes liu2020-eq22: Liu et al. (2020), (22).
Claim: (22) under (up - down)'y = 0 is the dual of regression: its optimum is that of the
primal.
What holds: The constraint is 1'(up - down) = 0. As printed the linear term vanishes, alpha = 0
is optimal whatever the data, and the optimum is 0.
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
    'eta': F(1),
    'tau': F(0),
    'epsilon': F('1/8'),
    'up': F(['1/2', 0]),
    'down': F([0, '1/2']),
}
def exact_value(case, a, gain):
    points = range(len(a))
    K = case['K']
    eta = case['eta']
    square = sum((a[i] * a[j] * K[i, j] for i in points for j in points))
    fourth = sum(((a[i] * a[j] * K[i, j]) ** 2 for i in points for j in points))
    return gain - square / 2 - fourth / (16 * eta)
def exact_constraint(case):
    up = case['up']
    down = case['down']
    y = case['y']
    n = len(case['y'])
    beta = [up[i] - down[i] for i in range(n)]
    if case['tau'] or sum(beta):
        raise ValueError("decided exactly for tau = 0 and 1'(up - down) = 0 only")
    gain = sum((beta[i] * y[i] for i in range(n))) - case['epsilon'] * (sum(up) + sum(down))
    return (exact_value(case, beta, gain), exact_value(case, [0 * b for b in beta], 0))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_constraint(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
