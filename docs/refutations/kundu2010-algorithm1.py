#!/usr/bin/env python3
"""Refutes kundu2010-algorithm1: Kundu et al. (2010), Algorithm 1.
Claim: A step of ESKL is a step of mirror descent: it minimises eta <f', K> + B(K, K_t).
What holds: K_(t+1) = tau exp(log K_t - eta f') / tr: eigenvalues of K_t do not belong to
eigenvectors of f'.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any, NamedTuple
BITS = 300  # of intervals, behind the point
ball = lambda x: x if isinstance(x, Ball) else Ball(floor(Fraction(x) * 2**BITS), ceil(Fraction(x) * 2**BITS))
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + ball(y).a, x.b + ball(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -ball(y)
    __rsub__ = lambda x, y: -x + y
    __mul__ = __rmul__ = lambda x, y: Ball(min(e := [p * q for p in (x.a, x.b) for q in (ball(y).a, ball(y).b)]) >> BITS, -(-max(e) >> BITS))
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball(floor(Fraction(4**BITS, x.b)), ceil(Fraction(4**BITS, x.a)))
    __truediv__ = lambda x, y: x * ball(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > ball(y).b
    __lt__ = lambda x, y: x.b < ball(y).a
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    size = lambda x: max(abs(x.a), abs(x.b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
    def log(x):  # log(x / 2**e) + e log 2, each by the series of artanh
        if x.a <= 0: raise ValueError("undecided: the logarithm of what may be 0")
        e, s = x.b.bit_length() - BITS, ball(0)
        m = x * Fraction(2) ** -e
        for z, c in (((m - 1) / (m + 1), 2), (ball(Fraction(1, 3)), 2 * e)):
            p, n = z, 1
            while p.size() > 2: s = s + p * Fraction(c, n); p, n = p * z * z, n + 2
            s = s + Ball(-9 * abs(c), 9 * abs(c))  # the rest
        return s
    tanh = lambda x: 1 - 2 / ((x * 2).exp() + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'S': F([[['3/4', '3/8'], ['3/8', '1/4']]]),
    'C': F(1),
    'rho': F(3),
    'tau': F(1),
    'loss': 'l1',
    'L': F(7),
    'K': F([[['5/8', '-1/8'], ['-1/8', '3/8']]]),
}
class TracelessPart(NamedTuple):
    x: Any
    z: Any
    def size(self): return (self.x * self.x + self.z * self.z).sqrt()
    def times(self, factor): return TracelessPart(factor * self.x, factor * self.z)
def pair_of(M): return TracelessPart(ball((M[0, 0] - M[1, 1]) / 2), ball(M[0, 1]))
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def sign(number):
    if not (number > 0 or number < 0):
        raise ValueError('a ball contains zero: more bits are needed')
    return 1 if number > 0 else -1
class TwoPointProblem(NamedTuple):
    S: Any
    C: Any
    rho: Any
    tau: Any
    @classmethod
    def of(cls, case):
        assert case['loss'] == 'l1'
        assert all((S[0, 0] + S[1, 1] == case['tau'] for S in case['S']))
        assert all((S[0, 0] * S[1, 1] >= S[0, 1] ** 2 for S in case['S']))
        return cls(tuple(map(pair_of, case['S'])), *(ball(Fraction(case[name])) for name in ('C', 'rho', 'tau')))
    def value(self, kernels):
        apart = [2 * abs(K.x - S.x) + 2 * abs(K.z - S.z) for K, S in zip(kernels, self.S, strict=True)]
        value, _, _ = exact_svm(self.C, self.squares(kernels))
        return value + self.rho * sum(apart, ball(0))
    def squares(self, kernels): return [self.tau - 2 * K.z for K in kernels]
    def gradients(self, kernels, weight):
        _, amount, gamma = exact_svm(self.C, self.squares(kernels))
        push = [amount * amount / (2 * one) for one in gamma]
        signs = [(sign(K.x - S.x), sign(K.z - S.z)) for K, S in zip(kernels, self.S, strict=True)]
        return [TracelessPart(weight * u, p + weight * v) for p, (u, v) in zip(push, signs, strict=True)]
def _half_log(r, tau): return ((tau / 2 + r).log() - (tau / 2 - r).log()) / 2
def _prox(K, g, log_K, eta, tau):
    high = tau / 2 + K.size()
    low = tau / 2 - K.size()
    inner = 2 * (K.x * (eta * g.x - log_K.x) + K.z * (eta * g.z - log_K.z))
    return inner + high * high.log() + low * low.log()
def printed_prox(case):
    problem = TwoPointProblem.of(case)
    K = pair_of(case['K'][0])
    eta = 1 / ball(Fraction(case['L']))
    assert case['K'][0][0, 0] + case['K'][0][1, 1] == case['tau']
    tau = problem.tau
    g = problem.gradients([K], problem.rho)[0]
    r = g.size()
    half = _half_log(K.size(), problem.tau)
    log_K = K.times(half / K.size())
    moved = TracelessPart(log_K.x - eta * g.x, log_K.z - eta * g.z)
    right = moved.times(tau / 2 * moved.size().tanh() / moved.size())
    printed = [g.times(tau / 2 * (turn * half - eta * r).tanh() / r) for turn in (1, -1)]
    costs = [_prox(point, g, log_K, eta, tau) for point in printed]
    return (costs[0].min(costs[1]), _prox(right, g, log_K, eta, tau))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = printed_prox(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
