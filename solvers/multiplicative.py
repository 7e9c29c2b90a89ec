"""Nonnegative quadratics over the orthant or a simplex by the multiplicative update of Xie et al.

    minimise x'Hx/2 - b'x  over x >= 0                 value -1/(2 lam*)
    minimise x'Hx/2        over x >= 0,  b'x = 1       value lam*/2,     H >= 0 entrywise

are one problem: lam* is the minimum of x'Hx with b'x = 1, and x / lam* solves the first where x
solves the second. From a positive x, all entries at once ((33) of Xie, Ding, Gong and Wu (2017),
section 4, simultaneous, lam fixed within the step; `_update` below),

    lam = x'Hx,    x_i <- x_i lam b_i / (Hx)_i,    x <- x / b'x

lowers x'Hx: H >= 0 makes sum_i (Hx)_i z_i^2 / x_i a majorant of z'Hz. Without the last step, which
the paper leaves out, the iterates grow doubly exponentially. Bounds: rho^2 lam <= lam* <= lam with
rho = min (Hx)_i / (lam b_i), klopt's own lower bound over an orthant. The rate may be sublinear,
and for prefix kernels it is: 1e5 iterations for 1e-8.

Variables with b_i <= 0 are zero at an optimum, since H >= 0; a zero never comes back, so no other
one ever gets there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.model.functions import Quadratic, QuadraticLike
from klopt.model.sets import BoxPlane, Simplex
from klopt.numerics.candidate import Candidate
from klopt.numerics.newton_step import as_box_plane
from klopt.solvers._first_order.loop import Steps, due, iterate, starting_point

MIN_FACTOR = 1e-200
"""The smallest share of its start that an entry falls to: it must not underflow to zero."""
MIN_START = 1e-9
"""What a zero of a start becomes, as a share of the largest entry."""


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
        # Every variable is zero at the optimum.
        if not (program.b > 0).any():
            zero = np.zeros(program.b.size)
            return iterate(iter([Candidate(zero, 0.0, form.lower_bound(zero))]), settings)

        x = _first_point(form, program, start)
        f = form.objective
        assert isinstance(f, QuadraticLike)
        Hx = f.matvec(x)
        if (Hx < 0).any():
            row = int(np.argmin(Hx))
            native = f"H has a negative entry in row {row}; it must have none"
            return Answer(Stop.REJECTED, native=native)
        # A column of zeros: the linear term alone decides, and nothing stops the variable.
        flat = np.flatnonzero((Hx <= 0) & (program.b > 0))
        if flat.size and not program.plane and np.isinf(program.upper[flat]).any():
            native = f"H is zero in column {flat[0]}, where b is positive"
            return Answer(Stop.UNBOUNDED, native=native)
        return iterate(_steps(form, program, x), settings)


BACKEND = Multiplicative()


@dataclass(frozen=True, eq=False)
class _NonnegativeProgram:
    """b, whether b'x = 1 is a condition, and upper bounds."""

    b: FloatArray
    plane: bool
    upper: FloatArray


def _program(form: SimplexForm) -> _NonnegativeProgram | str:
    """The form as one of the two programs, or why it is none."""
    f = form.objective
    assert isinstance(f, QuadraticLike)
    if isinstance(f, Quadratic) and f.H.min(initial=0.0) < 0:
        return "H has negative entries; the update needs H >= 0"
    if not isinstance(form.domain, BoxPlane | Simplex):
        return "the set is neither an orthant nor a simplex"
    domain = as_box_plane(form.domain)
    if domain.lower.any():
        return "the set is neither an orthant nor a simplex"
    if domain.normal is None:
        return _NonnegativeProgram(-f.linear, False, domain.upper)
    if np.isfinite(domain.upper).any() or (domain.normal < 0).any() or not domain.offset > 0:
        return "the plane does not cut a simplex from the orthant"
    if f.linear.any():
        return "over a simplex the update takes no linear term"
    return _NonnegativeProgram(domain.normal / domain.offset, True, domain.upper)


def _first_point(
    form: SimplexForm, program: _NonnegativeProgram, start: Start | None
) -> FloatArray:
    """The start, or equal entries, where b is positive; zero elsewhere, and b'x = 1."""
    b = program.b
    x = np.where(b > 0, 1.0, 0.0)
    if start is not None:
        given = starting_point(form.domain, start.x)
        if (given * (b > 0)).any():
            x *= np.maximum(given, MIN_START * float(given.max()))
    x /= float(b @ x)
    return x


def _steps(form: SimplexForm, program: _NonnegativeProgram, x: FloatArray) -> Steps:
    f = form.objective
    assert isinstance(f, QuadraticLike)
    b = np.maximum(program.b, 0.0)
    floor = MIN_FACTOR * x
    for iteration in count():
        Hx = f.matvec(x)
        lam = float(x @ Hx)
        if due(iteration):
            yield _candidate(form, program, x, Hx, lam)
        else:
            yield None
        new = _update(x, Hx, lam, b, floor)
        if np.array_equal(new, x):
            return
        x = new


def _update(
    x: FloatArray, Hx: FloatArray, lam: float, b: FloatArray, floor: FloatArray
) -> FloatArray:
    """The update of Xie et al. (2017): x_i lam b_i / (Hx)_i, then divided by b'x.

    Parameters
    ----------
    x, Hx, lam
        The point, its product with H, and x'Hx.
    b
        The linear term, not negative.
    floor
        What no entry falls below.
    """
    flat = (Hx <= 0) & (b > 0)
    if flat.any():  # there x'Hx = 0, its minimum
        new = np.where(flat, b, 0.0)
    else:
        new = np.maximum(x * (lam * b / np.where(Hx > 0, Hx, 1.0)), floor)
    new /= float(b @ new)
    return new


def _candidate(
    form: SimplexForm, program: _NonnegativeProgram, x: FloatArray, Hx: FloatArray, lam: float
) -> Candidate:
    """x at its best length, with the bound that its gradient proves.

    Where b'x = 1 is a condition the length is that of x, else 1 / lam within the upper bounds.

    Parameters
    ----------
    form, program
        The form as it is stated and as one of the two programs.
    x, Hx, lam
        The point, its product with H, and x'Hx.
    """
    f = form.objective
    assert isinstance(f, QuadraticLike)
    length = 1.0
    if not program.plane:
        positive = x > 0
        longest = float(np.min(program.upper[positive] / x[positive]))
        length = min(1 / lam if lam > 0 else np.inf, longest)
    z = length * x
    Hz = length * Hx
    value = float(z @ Hz) / 2 + float(f.linear @ z)
    return Candidate(z, value, form.lower_bound(z, value, Hz + f.linear))
