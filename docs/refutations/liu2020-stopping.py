#!/usr/bin/env python3
"""Refutes liu2020-stopping: Liu et al. (2020), Algorithm 1 line 10.
Claim: A step shorter than 1e-4 means that the optimum is near: at least 9/10 of it is reached.
Premise: the first step is that short.
What holds: Steps are as short as 1/L: with L of Theorem 4 the first may stop the run. The
duality gap decides.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
from math import ceil, floor, isqrt
from dataclasses import dataclass
from typing import Any
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
    __pow__ = lambda x, k: x ** (k - 1) * x if k else ball(1)
    __gt__ = lambda x, y: x.a > ball(y).b
    __le__ = lambda x, y: x.b <= ball(y).a
    __float__ = lambda x: float(Fraction(x.a + x.b, 2 << BITS))
    max = lambda x, y: Ball(max(x.a, ball(y).a), max(x.b, ball(y).b))
    min = lambda x, y: Ball(min(x.a, ball(y).a), min(x.b, ball(y).b))
    mid = lambda x: Ball(x.a + x.b >> 1, x.a + x.b >> 1)
    sqrt = lambda x: Ball(isqrt(max(x.a, 0) << BITS), isqrt(max(x.b, 0) << BITS) + 1)
class Array(list):  # vectors and matrices
    __getitem__ = lambda x, i: x[i[0]][i[1]] if isinstance(i, tuple) else list.__getitem__(x, i)
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'y': F([1, -1]),
    'C': F(128),
    'eta': F(1),
    'tau': F(0),
    'K': F([[1, 0], [0, 1]]),
}
@dataclass(frozen=True)
class SeparableProblem:
    k: Any
    C: Any
    eta: Any
    @classmethod
    def of(cls, case):
        K = case['K']
        y = case['y']
        n = len(case['y'])
        diagonal = all((K[i, j] == 0 for i in range(n) for j in range(n) if i != j))
        firsts = range(0, n, 2)
        paired = n % 2 == 0 and all((K[i, i] == K[i + 1, i + 1] > 0 and y[i] == -y[i + 1] for i in firsts))
        if case['tau'] or not diagonal or (not paired):
            raise ValueError('decided exactly for tau = 0 and a diagonal K of pairs with opposite labels only')
        k = tuple((ball(K[i, i]) for i in firsts))
        return cls(k, ball(case['C']), ball(case['eta']))
    @property
    def L(self):
        n = 2 * len(self.k)
        top = max(self.k, key=float)
        norm = (2 * sum((k * k for k in self.k))).sqrt()
        return top * (n + 3 * n * self.C ** 2 * norm / (4 * self.eta))
    @property
    def reach(self): return 2 * sum((self.C.min(1 / k) ** 2 for k in self.k))
    def value(self, s):
        pairs = zip(self.k, s, strict=True)
        return 2 * sum((x - k * x * x / 2 - k * k * x ** 4 / (16 * self.eta) for k, x in pairs))
    def gradient(self, s):
        return [1 - k * x - k * k * x ** 3 / (4 * self.eta) for k, x in zip(self.k, s, strict=True)]
    def within(self, s): return [x.max(ball(0)).min(self.C) for x in s]
    def best(self):
        s = [ball(0) + 1 / k for k in self.k]
        for _ in range(30):
            down = [k + 3 * k * k * x * x / (4 * self.eta) for k, x in zip(self.k, s, strict=True)]
            s = [(x + g / d).mid() for x, g, d in zip(s, self.gradient(s), down, strict=True)]
        return self.value(self.within(s))
def exact_stop(case):
    problem = SeparableProblem.of(case)
    first = problem.within([2 / (3 * problem.L)] * len(problem.k))
    if not 2 * sum((x * x for x in first)) <= ball(1) / 10 ** 8:
        raise ValueError('the first step does not stop the run')
    return (problem.best() * 9 / 10, problem.value(first))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = exact_stop(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
