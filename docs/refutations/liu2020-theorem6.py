#!/usr/bin/env python3
"""Refutes liu2020-theorem6: Liu et al. (2020), Theorem 6.
Claim: The value of the clusters differs from the optimum by at most (B2 - B1) C^2 Q / 2, B1 and
B2 bounding F.
Premise: F is 1 between clusters (liu2020-lemma5), and (4) means (18).
What holds: -(C^4 / 16 eta) sum K_ij^2 <= h* - H <= C^2 Q / 2, the sum between clusters: B2
would do, B2 - B1 not.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    union = lambda x, y: Ball(min(x.a, y.a), max(x.b, y.b))
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'K': F([[1, '1/2'], ['1/2', 1]]),
    'y': F([1, 1]),
    'C': F(1),
    'eta': F(128),
    'tau': F(0),
    'bias': False,
    'groups': F([0, 1]),
    'alpha': F(['5/8', '5/8']),
}
def _require_two_points(case, *, together=False):
    two_points = len(case['y']) == 2
    if not two_points or case['tau'] or case.get('bias', True) or (min(case['K'][0, 0], case['K'][1, 1]) <= 0):
        raise ValueError('decided exactly for two points without tau and bias only')
    if (case['groups'][0] == case['groups'][1]) is not together:
        where = 'one cluster' if together else 'two clusters'
        raise ValueError(f'decided exactly for two points in {where} only')
def _stationary_point(case, linear, cubic):
    eta = case['eta']
    low = 0 * case['C']
    high = case['C']
    def rises(s): return bool(1 - linear * s - cubic * s ** 3 / (4 * eta) >= 0)
    if rises(high): return ball(high)
    for _ in range(60):
        middle = (low + high) / 2
        if rises(middle): low = middle
        else: high = middle
    return ball(low).union(ball(high))
def single_point_optimum(case, i):
    k = case['K'][i, i]
    return _stationary_point(case, k, k * k)
def _single_point_optima(case):
    return [single_point_optimum(case, 0), single_point_optimum(case, 1)]
def exact_value(case, a, gain):
    points = range(len(a))
    K = case['K']
    eta = case['eta']
    square = sum((a[i] * a[j] * K[i, j] for i in points for j in points))
    fourth = sum(((a[i] * a[j] * K[i, j]) ** 2 for i in points for j in points))
    return gain - square / 2 - fourth / (16 * eta)
def exact_lagrangian(case, alpha, F, K):
    y = case['y']
    points = range(len(alpha))
    pairs = [(i, j) for i in points for j in points]
    square = sum((alpha[i] * alpha[j] * F[i][j] * ball(y[i] * y[j] * K[i, j]) for i, j in pairs))
    distance = sum(((F[i][j] - 1) ** 2 for i, j in pairs))
    return sum(alpha) - square / 2 + ball(case['eta']) * distance
def _concatenated_weights(case, alpha, between):
    diagonal = [1 + alpha[i] ** 2 * ball(case['K'][i, i] / (4 * case['eta'])) for i in range(2)]
    return [[diagonal[0], ball(between)], [ball(between), diagonal[1]]]
def exact_theorem6(case):
    _require_two_points(case)
    K = case['K']
    C = case['C']
    eta = case['eta']
    y = case['y']
    feasible = case['alpha']
    if not all((0 <= s <= C for s in feasible)):
        raise ValueError('alpha of the case is not feasible')
    alpha = _single_point_optima(case)
    value = exact_value(case, [y[i] * feasible[i] for i in range(2)], sum(feasible))
    own = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 1), K)
    entries = [K[0, 0], K[1, 1], y[0] * y[1] * K[0, 1]]
    B = C * C / (4 * eta) * (max(*entries, 0) - min(*entries, 0))
    return (ball(value) - own, ball(B * C * C * abs(K[0, 1])))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_theorem6(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
