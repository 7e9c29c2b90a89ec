#!/usr/bin/env python3
"""Refutes pan2016-eq29-floats: Pan et al. (2016), (29) in floats.
Claim: (29) can be evaluated as printed: K + gamma K S K0 = K0 to eight digits, for cond(K0) =
1e18.
What holds: As K0 (I + gamma S K0)^-1, which needs no inverse of K0.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
import operator
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
    __rsub__ = lambda x, y: -x + y
    def __mul__(x, y):
        ends = [p * q for p in (x.a, x.b) for q in (lift(y).a, lift(y).b)]
        return Ball(min(ends) >> BITS, -(-max(ends) >> BITS))
    __rmul__ = __mul__
    def inverse(x):
        if x.a <= 0 <= x.b: raise ValueError("undecided: a division by what may be 0")
        return Ball((1 << 2 * BITS) // x.b, -(-(1 << 2 * BITS) // x.a))
    __truediv__ = lambda x, y: x * lift(y).inverse()
    __gt__ = lambda x, y: x.a > lift(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    size = lambda x: max(abs(x.a), abs(x.b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
    def exp(x):  # the series at x / 2**k, whose rest is below its last term, squared k times
        k, n, t, s = (x.size() >> BITS).bit_length() + 2, 0, ball(1), ball(1)
        while t.size() > 2 or n < 4: n += 1; t = t * x * Fraction(1, n * 2**k); s = s + t
        s = Ball(s.a - t.size(), s.b + t.size())
        for _ in range(k): s = s * s
        return s
def each(f, x, y):  # f of the entries of two arrays, or of an array and a number
    if not isinstance(x, Array): return Array(each(f, x, b) for b in y) if isinstance(y, Array) else f(x, y)
    if isinstance(y, Array) and isinstance(x[0], Array) == isinstance(y[0], Array): return Array(map(each, [f] * len(y), list(x) * len(y) if len(x) == 1 else x, y))
    return Array(each(f, a, y) for a in x)
class Array(list):  # vectors and matrices
    __pow__ = lambda x, k: each(operator.pow, x, k)
    ravel = lambda x: Array(b for a in x for b in (a.ravel() if isinstance(a, Array) else [a]))
array = lambda x, dtype=None: Array(map(array, x)) if isinstance(x, (list, tuple, map)) else x
ndim = lambda x: 1 + ndim(x[0]) if isinstance(x, Array) else 0
F = Fraction
CASE = {
    'T': array([[F(0), F(0), F(0), F(-1), F(1), F(-1)], [F(0), F(0), F(0), F(1), F(0), F(-1)],
        [F(0), F(0), F(0), F(-1), F(-1), F(0)], [F(-1), F(1), F(-1), F(0), F(0), F(0)], [F(1),
        F(0), F(-1), F(0), F(0), F(-1)], [F(-1), F(-1), F(0), F(0), F(-1), F(0)]]),
    'K0': array([[F(1861207370358229, 18014398509481984), F(2723744212030193,
        36028797018963968), F(-3231382642318901, 18014398509481984), F(2588961983262189,
        18014398509481984), F(1775269236997317, 36028797018963968), F(-3202775462524167,
        18014398509481984)], [F(2723744212030193, 36028797018963968), F(124620768493777,
        2251799813685248), F(-2366447982862605, 18014398509481984), F(7578218820253381,
        72057594037927936), F(5203211895397569, 144115188075855872), F(-4689798667954479,
        36028797018963968)], [F(-3231382642318901, 18014398509481984), F(-2366447982862605,
        18014398509481984), F(2809422751955621, 9007199254740992), F(-1123910702104289,
        4503599627370496), F(-6179954643654979, 72057594037927936), F(5566527984270789,
        18014398509481984)], [F(2588961983262189, 18014398509481984), F(7578218820253381,
        72057594037927936), F(-1123910702104289, 4503599627370496), F(1800672495305897,
        9007199254740992), F(4940203557607291, 72057594037927936), F(-8911238958166723,
        36028797018963968)], [F(1775269236997317, 36028797018963968), F(5203211895397569,
        144115188075855872), F(-6179954643654979, 72057594037927936), F(4940203557607291,
        72057594037927936), F(3400744313285035, 144115188075855872), F(-3060287194371213,
        36028797018963968)], [F(-3202775462524167, 18014398509481984), F(-4689798667954479,
        36028797018963968), F(5566527984270789, 18014398509481984), F(-8911238958166723,
        36028797018963968), F(-3060287194371213, 36028797018963968), F(5515467606725943,
        18014398509481984)]]),
    'gamma': F(1),
    'computed_kernel': array([[F(4015009170114501, 72057594037927936), F(5874030657381095,
        144115188075855872), F(-3483606705962237, 36028797018963968), F(5584615235285117,
        72057594037927936), F(3826405522075707, 144115188075855872), F(-3453297272040357,
        36028797018963968)], [F(5874363000393825, 144115188075855872), F(2150433076999301,
        72057594037927936), F(-638107491604325, 9007199254740992), F(8172247148182397,
        144115188075855872), F(2806457207588111, 144115188075855872), F(-5058049852432749,
        72057594037927936)], [F(-435495587226871, 4503599627370496), F(-2552547663502177,
        36028797018963968), F(6062884475410703, 36028797018963968), F(-4847467272322551,
        36028797018963968), F(-6671792405705079, 144115188075855872), F(3002492463531643,
        18014398509481984)], [F(5584679399296181, 72057594037927936), F(2042969689717865,
        36028797018963968), F(-302939062859203, 2251799813685248), F(3884096947241571,
        36028797018963968), F(5325062909912059, 144115188075855872), F(-4804405501084361,
        36028797018963968)], [F(7654110057337291, 288230376151711744), F(5613547927182623,
        288230376151711744), F(-3336118569711097, 72057594037927936), F(2662952586056873,
        72057594037927936), F(1837779709561589, 144115188075855872), F(-6604845106119909,
        144115188075855872)], [F(-6907090586486197, 72057594037927936), F(-5058126866967231,
        72057594037927936), F(6004799503160661, 36028797018963968), F(-4804695291805787,
        36028797018963968), F(-206381267920835, 4503599627370496), F(1487248340280625,
        9007199254740992)]]),
}
def _graph(T):
    W = [[ball(entry).exp() for entry in row] for row in T]
    return (W, [sum(row, ball(0)) for row in W])
def _product(A, B):
    columns = list(zip(*B, strict=True))
    return [[sum((a * b for a, b in zip(row, column, strict=True)), ball(0)) for column in columns] for row in A]
def exact_residual(case):
    K = CASE['computed_kernel']
    K0 = case['K0']
    points = range(len(K0))
    W, D = _graph(case['T'])
    S = [[(i == j) - W[i][j] / (D[i] * D[j]).sqrt() for j in points] for i in points]
    exact = [[ball(entry) for entry in row] for row in K]
    start = [[ball(entry) for entry in row] for row in K0]
    KSK0 = _product(_product(exact, S), start)
    gamma = ball(case['gamma'])
    residual = [exact[i][j] + gamma * KSK0[i][j] - start[i][j] for i in points for j in points]
    allowed = Fraction(1, 10 ** 16) * sum(K0.ravel() ** 2)
    return (sum((x * x for x in residual), ball(0)), ball(allowed))
left, right = exact_residual(CASE)
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
print('the claim says that', show(left), 'is at most', show(right))
print('REFUTED' if left > right else 'not refuted')
sys.exit(0 if left > right else 1)
