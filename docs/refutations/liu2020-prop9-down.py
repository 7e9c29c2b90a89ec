#!/usr/bin/env python3
"""Refutes liu2020-prop9-down: Liu et al. (2020), Proposition 9, (25), second line.
Claim: The derivative of h by down is -epsilon 1 - (F o K)(up - down) - y.
What holds: The kernel term has a plus sign; and epsilon I means epsilon 1.
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
def exact_gradient(case):
    if case['tau']: raise ValueError('decided exactly for tau = 0 only')
    up = case['up']
    down = case['down']
    y = case['y']
    K = case['K']
    n = len(case['y'])
    beta = [up[i] - down[i] for i in range(n)]
    F = [[1 + beta[i] * beta[j] * K[i, j] / (4 * case['eta']) for j in range(n)] for i in range(n)]
    fitted = sum((F[0][j] * K[0, j] * beta[j] for j in range(n)))
    printed = -case['epsilon'] - fitted - y[0]
    def h(step):
        moved = [beta[i] - step * (i == 0) for i in range(n)]
        fit = sum((moved[i] * y[i] for i in range(n)))
        tube = case['epsilon'] * (sum(up) + sum(down) + step)
        return exact_value(case, moved, fit - tube)
    derivative = (h(-2) - 8 * h(-1) + 8 * h(1) - h(2)) / 12
    return (abs(printed - derivative), 0)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_gradient(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
