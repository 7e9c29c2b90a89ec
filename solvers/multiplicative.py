"""Nonnegative quadratics over the orthant or a simplex by the multiplicative update for rank-ordered kernels [1].

    minimise x'Hx/2 - b'x  over x >= 0                 value -1/(2 lam*)
    minimise x'Hx/2        over x >= 0,  b'x = 1       value lam*/2,     H >= 0 entrywise

are one problem: lam* is the least x'Hx with b'x = 1, and x / lam* solves the first where x solves
the second. From a positive x, all entries at once ((33) of [1], simultaneous, lam fixed within the
step),

    lam = x'Hx,    x_i <- x_i lam b_i / (Hx)_i,    x <- x / b'x

lowers x'Hx: H >= 0 makes sum_i (Hx)_i z_i^2 / x_i a majorant of z'Hz. Without the last step, (3) of
the paper's list, the iterates grow doubly exponentially. Bounds: rho^2 lam <= lam* <= lam with rho
= min (Hx)_i / (lam b_i), klopt's own lower bound over an orthant. The rate may be sublinear, and
for prefix kernels it is: 1e5 iterations for 1e-8.

Variables with b_i <= 0 are zero at an optimum, since H >= 0; a zero never comes back, so no other
one ever gets there.

[1] Xie, Ding, Gong, Wu, Rank ordering constraints elimination with application for kernel learning,
section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import Quadratic, QuadraticLike
from klopt.model.sets import BoxPlane, Simplex
from klopt.solvers._first_order.loop import Candidate, Steps, due, iterate, starting_point

LEAST = 1e-200  # of a factor that must not underflow to zero
POSITIVE = 1e-9  # of the largest entry: what a zero of a start becomes


class Multiplicative(Backend):
    """The multiplicative update, for nonnegative quadratics.

    Takes a box at zero as well: where an upper bound binds it ends without a proof.
    """

    name = "multiplicative"
    offers = frozenset({Feature.SIMPLEX, Feature.QUADRATIC, Feature.BOX})
    honours = frozenset({"tol", "time_limit", "max_iter", "seed", "log", "start"})
    rank = 40
    references = ("xie2017",)
    accuracy = 1e-5

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SimplexForm)
        program = _program(form)
        if isinstance(program, str):
            return Answer(Stop.REJECTED, native=program)
        f, b = form.objective, program.b
        assert isinstance(f, QuadraticLike)
        if not (b > 0).any():
            return iterate(
                iter([Candidate(np.zeros(b.size), 0.0, form.lower_bound(np.zeros(b.size)))]),
                settings,
            )
        x = np.where(b > 0, 1.0, 0.0)
        given = None if start is None else starting_point(form.domain, start.x)
        if given is not None and (given * (b > 0)).any():
            x *= np.maximum(given, POSITIVE * float(given.max()))
        x /= float(b @ x)
        Hx = f.matvec(x)
        if (Hx < 0).any():
            return Answer(
                Stop.REJECTED,
                native=f"H has a negative entry in row {int(np.argmin(Hx))}; it must have none",
            )
        flat = np.flatnonzero((Hx <= 0) & (b > 0))
        if flat.size and not program.plane and np.isinf(program.upper[flat]).any():
            return Answer(
                Stop.UNBOUNDED, native=f"H is zero in column {flat[0]}, where b is positive"
            )
        return iterate(_steps(form, program, x), settings)


BACKEND = Multiplicative()


@dataclass(frozen=True, eq=False)
class _Program:
    """b, whether b'x = 1 is a condition, and upper bounds."""

    b: FloatArray
    plane: bool
    upper: FloatArray


def _program(form: SimplexForm) -> _Program | str:
    """The form as one of the two programs, or why it is none."""
    f, domain = form.objective, form.domain
    assert isinstance(f, QuadraticLike)
    if isinstance(f, Quadratic) and f.H.min(initial=0.0) < 0:
        return "H has negative entries; the update needs H >= 0"
    if isinstance(domain, Simplex):
        domain = BoxPlane(
            np.zeros(domain.n), np.full(domain.n, np.inf), np.ones(domain.n), domain.total
        )
    if not isinstance(domain, BoxPlane) or domain.lower.any():
        return "the set is neither an orthant nor a simplex"
    if domain.normal is None:
        return _Program(-f.linear, False, domain.upper)
    if np.isfinite(domain.upper).any() or (domain.normal < 0).any() or not domain.offset > 0:
        return "the plane does not cut a simplex from the orthant"
    if f.linear.any():
        return "a simplex leaves no room for a linear term"
    return _Program(domain.normal / domain.offset, True, domain.upper)


def _steps(form: SimplexForm, program: _Program, x: FloatArray) -> Steps:
    f, b = form.objective, program.b
    assert isinstance(f, QuadraticLike)
    b = np.maximum(b, 0.0)
    floor = LEAST * x
    for iteration in count():
        Hx = f.matvec(x)
        lam = float(x @ Hx)
        if due(iteration):
            yield _candidate(form, program, x, Hx, lam)
        else:
            yield None
        flat = (Hx <= 0) & (b > 0)
        new = (
            np.where(flat, b, 0.0)
            if flat.any()
            else np.maximum(x * (lam * b / np.where(Hx > 0, Hx, 1.0)), floor)
        )
        new /= float(b @ new)
        if np.array_equal(new, x):
            return
        x = new


def _candidate(
    form: SimplexForm, program: _Program, x: FloatArray, Hx: FloatArray, lam: float
) -> Candidate:
    """x at its best length, which with the condition b'x = 1 is its own, and the bound its gradient proves."""
    f = form.objective
    assert isinstance(f, QuadraticLike)
    length = 1.0
    if not program.plane:
        used = x > 0
        length = min(1 / lam if lam > 0 else np.inf, float(np.min(program.upper[used] / x[used])))
    z, Hz = length * x, length * Hx
    value = float(z @ Hz) / 2 + float(f.linear @ z)
    return Candidate(z, value, form.lower_bound(z, value, Hz + f.linear))
