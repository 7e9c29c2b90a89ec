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
from math import ceil, floor, isqrt
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
    __gt__ = lambda x, y: x.a > ball(y).b
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
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'T': F([[0, 0, 0, -1, 1, -1], [0, 0, 0, 1, 0, -1], [0, 0, 0, -1, -1, 0], [-1, 1, -1, 0, 0,
        0], [1, 0, -1, 0, 0, -1], [-1, -1, 0, 0, -1, 0]]),
    'K0': F([['1861207370358229/18014398509481984', '2723744212030193/36028797018963968',
        '-3231382642318901/18014398509481984', '2588961983262189/18014398509481984',
        '1775269236997317/36028797018963968', '-3202775462524167/18014398509481984'],
        ['2723744212030193/36028797018963968', '124620768493777/2251799813685248',
        '-2366447982862605/18014398509481984', '7578218820253381/72057594037927936',
        '5203211895397569/144115188075855872', '-4689798667954479/36028797018963968'],
        ['-3231382642318901/18014398509481984', '-2366447982862605/18014398509481984',
        '2809422751955621/9007199254740992', '-1123910702104289/4503599627370496',
        '-6179954643654979/72057594037927936', '5566527984270789/18014398509481984'],
        ['2588961983262189/18014398509481984', '7578218820253381/72057594037927936',
        '-1123910702104289/4503599627370496', '1800672495305897/9007199254740992',
        '4940203557607291/72057594037927936', '-8911238958166723/36028797018963968'],
        ['1775269236997317/36028797018963968', '5203211895397569/144115188075855872',
        '-6179954643654979/72057594037927936', '4940203557607291/72057594037927936',
        '3400744313285035/144115188075855872', '-3060287194371213/36028797018963968'],
        ['-3202775462524167/18014398509481984', '-4689798667954479/36028797018963968',
        '5566527984270789/18014398509481984', '-8911238958166723/36028797018963968',
        '-3060287194371213/36028797018963968', '5515467606725943/18014398509481984']]),
    'gamma': F(1),
    'computed_kernel': F([['4015009170114501/72057594037927936',
        '5874030657381095/144115188075855872', '-3483606705962237/36028797018963968',
        '5584615235285117/72057594037927936', '3826405522075707/144115188075855872',
        '-3453297272040357/36028797018963968'], ['5874363000393825/144115188075855872',
        '2150433076999301/72057594037927936', '-638107491604325/9007199254740992',
        '8172247148182397/144115188075855872', '2806457207588111/144115188075855872',
        '-5058049852432749/72057594037927936'], ['-435495587226871/4503599627370496',
        '-2552547663502177/36028797018963968', '6062884475410703/36028797018963968',
        '-4847467272322551/36028797018963968', '-6671792405705079/144115188075855872',
        '3002492463531643/18014398509481984'], ['5584679399296181/72057594037927936',
        '2042969689717865/36028797018963968', '-302939062859203/2251799813685248',
        '3884096947241571/36028797018963968', '5325062909912059/144115188075855872',
        '-4804405501084361/36028797018963968'], ['7654110057337291/288230376151711744',
        '5613547927182623/288230376151711744', '-3336118569711097/72057594037927936',
        '2662952586056873/72057594037927936', '1837779709561589/144115188075855872',
        '-6604845106119909/144115188075855872'], ['-6907090586486197/72057594037927936',
        '-5058126866967231/72057594037927936', '6004799503160661/36028797018963968',
        '-4804695291805787/36028797018963968', '-206381267920835/4503599627370496',
        '1487248340280625/9007199254740992']]),
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
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_residual(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
