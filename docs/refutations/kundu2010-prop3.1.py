#!/usr/bin/env python3
"""Refutes kundu2010-prop3.1: Kundu et al. (2010), Proposition 3.1.
Claim: ESKL as printed reaches f* within tau Lip sqrt(2 log n / T) after T steps.
What holds: It stalls. Mirror descent with these steps keeps to the bound in all runs;
prop3.1-fixed is proved.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import isqrt
from typing import Any, NamedTuple
BITS = 300  # of intervals, behind the point
def ball(x):  # a rational number as an interval
    n, d = Fraction(x).numerator << BITS, Fraction(x).denominator
    return Ball(n // d, -(-n // d))
lift = lambda y: y if isinstance(y, Ball) else ball(y)
class Ball:  # a number between a / 2**BITS and b / 2**BITS; every step rounds outwards
    def __init__(self, a, b): self.a, self.b = a, b
    __add__ = __radd__ = lambda x, y: Ball(x.a + lift(y).a, x.b + lift(y).b)
    __neg__ = lambda x: Ball(-x.b, -x.a)
    __sub__ = lambda x, y: x + -lift(y)
    __rsub__ = lambda x, y: -x + y
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __rtruediv__ = lambda x, y: x.inverse() * y
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __abs__ = lambda x: x.max(-x)
    __gt__ = lambda x, y: x.a > lift(y).b
    __lt__ = lambda x, y: x.b < lift(y).a
    __le__ = lambda x, y: x.b <= lift(y).a
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, lift(y).a), max(x.b, lift(y).b))
    min = lambda x, y: Ball(min(x.a, lift(y).a), min(x.b, lift(y).b))
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
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[[F(3, 4), F(3, 8)], [F(3, 8), F(1, 4)]]]),
    'C': F(1),
    'rho': F(3),
    'tau': F(1),
    'loss': 'l1',
    'L': F(7),
    'steps': 400,
}
class TracelessPart(NamedTuple):
    x: Any
    z: Any

    def size(self):
        return (self.x * self.x + self.z * self.z).sqrt()

    def times(self, factor):
        return TracelessPart(factor * self.x, factor * self.z)
def pair_of(M):
    return TracelessPart(ball((M[0, 0] - M[1, 1]) / 2), ball(M[0, 1]))
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

    def squares(self, kernels):
        return [self.tau - 2 * K.z for K in kernels]

    def gradients(self, kernels, weight):
        _, amount, gamma = exact_svm(self.C, self.squares(kernels))
        push = [amount * amount / (2 * one) for one in gamma]
        signs = [(sign(K.x - S.x), sign(K.z - S.z)) for K, S in zip(kernels, self.S, strict=True)]
        return [TracelessPart(weight * u, p + weight * v) for p, (u, v) in zip(push, signs, strict=True)]

    def gradient_norms_at(self, kernels):
        _, amount, gamma = exact_svm(self.C, self.squares(kernels))
        traces = [amount * amount / one for one in gamma]
        parts = self.gradients(kernels, self.rho)
        return [(t * t / 2 + 2 * p.size() ** 2).sqrt() for t, p in zip(traces, parts, strict=True)]
def printed_run(case, L, *, omits_rho):
    problem = TwoPointProblem.of(case)
    lip = ball(L)
    m = len(case['S'])
    total = int(case['steps'])
    kernels = [TracelessPart(ball(0), ball(0))] * m
    w = [ball(0)] * m
    best = None
    for t in range(1, total + 1):
        value = problem.value(kernels)
        best = value if best is None else best.min(value)
        if not all((norm <= lip for norm in problem.gradient_norms_at(kernels))):
            raise ValueError('the run meets a gradient above the Lipschitz constant')
        eta = (2 * ball(2).log() / (m * t)).sqrt() / lip
        weight = ball(1) if omits_rho else problem.rho
        for i, g in enumerate(problem.gradients(kernels, weight)):
            r = g.size()
            w[i] = w[i] - 2 * eta * r
            kernels[i] = g.times(problem.tau / 2 * (w[i] / 2).tanh() / r)
    bound = problem.tau * m * lip * (2 * ball(2).log() / total).sqrt()
    return (best, problem.value(problem.S) + bound)
def sides(case):
    return printed_run(case, Fraction(case['L']), omits_rho=False)
left, right = sides(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
