#!/usr/bin/env python3
"""Refutes kundu2010-prop3.2: Kundu et al. (2010), Algorithm 3, Proposition 3.2.
Claim: REKL as printed reaches g* within tau m Lip sqrt(2 log n / T) after T steps; the loss is
|mu - lambda|^2.
What holds: With rho before the gradient of the loss; the step is right, for all matrices
commute.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import isqrt
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
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'S': array([[[F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)]]]),
    'C': F(8),
    'rho': F(16),
    'tau': F(1),
    'L': F(32),
    'steps': 400,
    'near': F(1, 4),
}
def exact_svm(C, k):
    roots = [one.sqrt() for one in k]
    s = sum(roots[1:], roots[0])
    amount = C.min(2 / (s * s))
    return (2 * amount - amount * amount * s * s / 2, amount, [root / s for root in roots])
def spectral_run(case):
    S, = case['S']
    total = int(case['steps'])
    assert S[0, 0] == S[1, 1]
    C, rho, tau, lip = (ball(Fraction(case[name])) for name in ('C', 'rho', 'tau', 'L'))
    lam = (ball(S[0, 0] - S[0, 1]), ball(S[0, 0] + S[0, 1]))

    def g(mu):
        value, _, _ = exact_svm(C, [2 * mu])
        return value + rho * ((mu - lam[0]) ** 2 + (tau - mu - lam[1]) ** 2)
    w = ball(0)
    best = None
    for t in range(1, total + 1):
        mu = tau / (1 + (-w).exp())
        value = g(mu)
        _, amount, _ = exact_svm(C, [2 * mu])
        best = value if best is None else best.min(value)
        fit = -amount * amount
        losses = (2 * (mu - lam[0]), 2 * (tau - mu - lam[1]))
        if not (abs(fit + rho * losses[0]) <= lip and abs(rho * losses[1]) <= lip):
            raise ValueError('the run meets a gradient above the Lipschitz constant')
        w = w - (2 * ball(2).log() / t).sqrt() / lip * (fit + losses[0] - losses[1])
    bound = tau * lip * (2 * ball(2).log() / total).sqrt()
    return (best, g(ball(Fraction(case['near']))) + bound)
left, right = spectral_run(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
