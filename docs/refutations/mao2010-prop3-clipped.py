#!/usr/bin/env python3
"""Refutes mao2010-prop3-clipped: Mao and Tsang (2010), Proposition 3 with Proposition 2.
Claim: mu* of (10) maximises the alignment of the kernel, whose spectrum is the positive part
(8).
What holds: The pieces between the breakpoints must be compared: each has one candidate in
closed form.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor, isqrt
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
    __rtruediv__ = lambda x, y: x.inverse() * y
    __gt__ = lambda x, y: x.a > ball(y).b
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list): pass
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'A': F([2, 1]),
    'B': F(['1152921504606847/1152921504606846976', 1]),
    'C': F(1),
    'better_weight': F('7737125245533627/77371252455336267181195264'),
}
def exact_signs(case):
    A = [ball(a) for a in case['A']]
    r = [ball(a / (2 * b)).sqrt() for a, b in zip(case['A'], case['B'], strict=True)]
    X = sum((a * b for a, b in zip(A, r, strict=True)))
    Y = sum((b * b for b in r))
    Z = sum(r)
    total = sum(A)
    return (len(A) * X - Z * total, Y * total - Z * X)
def _exact_alignment(case, mu, clip):
    A = [ball(a) for a in case['A']]
    rate = 1 / ball(Fraction(case['C']))
    lam = [(ball(a / (2 * b)) / mu).sqrt() - rate for a, b in zip(case['A'], case['B'], strict=True)]
    lam = [ball(0).max(x) for x in lam] if clip else lam
    norm = sum((x * x for x in lam), ball(0)).sqrt()
    total = sum((x * a for x, a in zip(lam, A, strict=True)), ball(0))
    return total / norm if norm > 0 else ball(0)
def exact_alignments(case, *, clip):
    better = ball(CASE['better_weight'])
    p, q = exact_signs(case)
    printed = q / p * ball(Fraction(case['C'])) * (q / p * ball(Fraction(case['C'])))
    return (_exact_alignment(case, better, clip), _exact_alignment(case, printed, clip))
def sides(case): return exact_alignments(case, clip=True)
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
