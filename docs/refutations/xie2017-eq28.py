#!/usr/bin/env python3
"""Refutes xie2017-eq28: Xie et al. (2017), (28).
Claim: The update is defined: no (F alpha)_i is 0 for a positive alpha.
What holds: An eigenvector that is 0 on the labelled points has a zero row in F and b_i = 0: its
update is 0 / 0. Leave such columns out.
Exact numbers, or intervals that enclose them. Exit code 0: refuted.
"""
import sys
from fractions import Fraction
class Array(list):  # vectors and matrices
    def __getitem__(x, i):
        if not isinstance(i, tuple): return list.__getitem__(x, i)
        if None in i: return Array([x]) if i[0] is None else Array(Array([a]) for a in x)
        return Array(row[i[1]] for row in x) if isinstance(i[0], slice) else x[i[0]][i[1]]
    shape = property(lambda x: (len(x), *(x[0].shape if isinstance(x[0], Array) else ())))
F = lambda x: Array(map(F, x)) if isinstance(x, list) else Fraction(x)
CASE = {
    'V': F([[1, 0]]),
}
def exact_dot(a, b): return sum((x * y for x, y in zip(a, b, strict=True)))
def _exact_f(case):
    V = case['V']
    columns = range(V.shape[1])
    return [[exact_dot(V[:, i], V[:, j]) ** 2 for j in columns] for i in columns]
def sides(case): return (Fraction(1, 10 ** 12), exact_dot(_exact_f(case)[1], [Fraction(1)] * 2))
print(__doc__.strip(), *(f'{name} = {value}' for name, value in CASE.items()), sep='\n')
try: left, right = sides(CASE)
except (ArithmeticError, AssertionError, ValueError) as why: sys.exit(f'not refuted: no instance, {why}')
show = lambda x: str(x) if len(str(x)) < 60 and not hasattr(x, 'a') else f'{float(x):.17g}'
print('the claim says that', show(left), 'is at most', show(right))
sys.exit(print('REFUTED')) if left > right else sys.exit('not refuted')
