#!/usr/bin/env python3
"""Refutes liu2020-theorem6-step: Liu et al. (2020), proof of Theorem 6.
Claim: H(abar, F*) <= H(abar, Fbar).
What holds: Fbar is the best for abar and Kbar, F* for alpha* and K; neither is best for abar
and K.
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
    'eta': F(1),
    'tau': F(0),
    'bias': False,
    'groups': F([0, 1]),
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
def exact_proof_step(case):
    _require_two_points(case)
    K = case['K']
    y = case['y']
    if K[0, 0] != K[1, 1]: raise ValueError('decided exactly for two points alike only')
    k = K[0, 0]
    between = y[0] * y[1] * K[0, 1]
    s = _stationary_point(case, k + between, k * k + between * between)
    gains = [ball(entry / (4 * case['eta'])) * s * s for entry in (k, between)]
    best = [[1 + gains[i != j] for j in range(2)] for i in range(2)]
    alpha = _single_point_optima(case)
    left = exact_lagrangian(case, alpha, best, K)
    right = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 1), K)
    return (left, right)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_proof_step(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
