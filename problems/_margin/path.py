"""Support vector machines for many penalties C, each solved from the one before, and proven together.

The optimum is enclosed at each penalty of the grid, and between them by what the neighbours prove
(`klopt.problems._margin.path_proof`). All proofs of a path share one product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.forms import SimplexForm
from klopt.model.functions import QuadraticLike
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.numerics.box_qp.active_set import solve_box_qp
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram
from klopt.numerics.penalty_path import follow_penalties
from klopt.problems._margin.forms import KernelMargin
from klopt.problems._margin.path_proof import PathEnds, PathTerms, Targets, enclose_rows
from klopt.problems._margin.witness import is_balanced
from klopt.proof.directed import sum_up
from klopt.proof.dyadic import balanced
from klopt.proof.enclosure import Enclosure

__all__ = ["PathParts", "PenaltyPath", "given_penalties", "penalty_path"]

P = TypeVar("P", bound=KernelMargin)

WIDE = 5e-7
"""A relative gap above this is looked at once more by the proof of a single penalty."""


def given_penalties(penalties: npt.ArrayLike) -> FloatArray:
    """Return rising, positive, finite penalties.

    >>> given_penalties([1.0, 0.1])
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: penalties[1] is 0.1 after 1; expected positive numbers that rise
    """
    C = vector("penalties", penalties)
    if not C.size:
        raise InvalidProblem("penalties has no entries; expected positive numbers that rise")
    wrong = np.flatnonzero(np.diff(C, prepend=0.0) <= 0)
    if wrong.size:
        at = int(wrong[0])
        before = f" after {C[at - 1]:g}" if at else ""
        raise InvalidProblem(
            f"penalties[{at}] is {C[at]:g}{before}; expected positive numbers that rise"
        )
    return C


@dataclass(frozen=True, eq=False)
class PathParts(Generic[P]):
    """What a path takes from its family.

    Parameters
    ----------
    targets
        What values are pulled up and down to.
    problem
        The problem of a penalty.
    coefficients, point
        From a point of a problem to coefficients z of the kernel, and back.
    bias
        A good bias for values Kz.
    """

    targets: Targets
    problem: Callable[[float], P]
    coefficients: Callable[[Point], FloatArray]
    point: Callable[[FloatArray, float], Point]
    bias: Callable[[FloatArray], float]


@dataclass(frozen=True, eq=False)
class PenaltyPath(Generic[P]):
    """Solutions and proven optima of a grid of penalties, and bounds for every C.

    A path is a sequence of problems, one for each penalty.

    Parameters
    ----------
    problems
        The problem of each penalty.
    penalties
        The penalties C, rising.
    brackets
        What is proven of each optimum, with the solution.
    ends
        What is proven between penalties.
    """

    problems: tuple[P, ...]
    penalties: FloatArray
    brackets: tuple[Bracket, ...]
    ends: PathEnds

    def __iter__(self) -> Iterator[P]:
        return iter(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, index: int) -> P:
        return self.problems[index]

    @property
    def lower(self) -> FloatArray:
        """The lower end of each optimum."""
        return np.array([bracket.lower for bracket in self.brackets])

    @property
    def upper(self) -> FloatArray:
        """The upper end of each optimum."""
        return np.array([bracket.upper for bracket in self.brackets])

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the kernel, one row for each penalty."""
        return np.stack([term.z for term in self.ends.terms])

    @property
    def biases(self) -> FloatArray:
        """The bias of each penalty."""
        return np.array([term.bias for term in self.ends.terms])

    @property
    def relative_gap(self) -> float:
        """The largest (upper - lower) / (1 + |upper|) of the grid."""
        return float(np.max((self.upper - self.lower) / (1 + np.abs(self.upper))))

    def bounds(self, C: float) -> tuple[float, float]:
        """Return a proven interval of the optimum for any C, also between or beyond the grid.

        Between two penalties it comes from the mean of their solutions, which is feasible there.
        """
        at = np.flatnonzero(self.penalties == C)
        if at.size:
            bracket = self.brackets[int(at[0])]
            return bracket.lower, bracket.upper
        return self.ends.bounds(float(given_penalties([C])[0]))

    def values(self, K: npt.ArrayLike) -> FloatArray:
        """Return the decision values, penalties x points, from the kernel of new points.

        K has a row for each new point and a column for each training point.
        """
        kernel = np.asarray(K, dtype=float)
        return np.asarray(self.coefficients @ kernel.T + self.biases[:, None])

    def values_between(
        self, K: npt.ArrayLike, diagonal: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return proven bounds of the values at new points for all C from a penalty to the next.

        Both are (penalties - 1) x points. They are about the kernel matrix with `-floor` added to
        its diagonal, which is positive semidefinite; the matrix of training and new points together
        must have that floor too.

        Parameters
        ----------
        K
            The kernel: a row for each new point, a column for each training point.
        diagonal
            k(x, x) of the new points.
        """
        kernel = np.asarray(K, dtype=float)
        gram = self.problems[0].K
        r = np.sqrt(np.asarray(diagonal, dtype=float) - gram.floor) * (1 + 2.0**-50)
        products = enclose_rows(self.coefficients, kernel.T, gram.entry_bounds, r)
        largest = float(gram.entry_bounds.max())
        values = [products[i] + float(bias) for i, bias in enumerate(self.biases)]
        found = [
            self.ends.values_between(i, values[i], values[i + 1], r, largest)
            for i in range(len(self) - 1)
        ]
        return np.array([low for low, _ in found]), np.array([high for _, high in found])


def penalty_path(K: Gram, penalties: npt.ArrayLike, parts: PathParts[P]) -> PenaltyPath[P]:
    """Return the path of a family for a grid of penalties."""
    grid = given_penalties(penalties)
    targets = parts.targets
    problems = tuple(parts.problem(float(C)) for C in grid)

    def restart(index: int, start: FloatArray | None) -> FloatArray:
        return _solved(problems[index], parts, start, float(grid[index]))

    found = follow_penalties(K.matrix, targets.up, targets.down, grid.tolist(), restart)
    Z = np.stack([balanced(_feasible(z, C)) for z, C in zip(found, grid, strict=True)])
    products = enclose_rows(Z, K.matrix, K.entry_bounds, K.entry_bounds)
    phi = -K.floor
    terms = []
    for C, z, mid, rad in zip(grid.tolist(), Z, products.mid, products.rad, strict=True):
        product = Enclosure(mid, rad)
        terms.append(PathTerms.of(C, z, parts.bias(mid), product, targets, phi))
    ends = PathEnds(tuple(terms), targets, phi)
    brackets = tuple(_bracket(problems[i], ends, i, parts) for i in range(grid.size))
    return PenaltyPath(problems, grid, brackets, ends)


def _solved(problem: P, parts: PathParts[P], start: FloatArray | None, C: float) -> FloatArray:
    """z by the method of a single problem."""
    formulation = problem.formulations()[0]
    form = formulation.build()
    assert isinstance(form, SimplexForm)
    assert isinstance(form.domain, BoxPlane)
    assert isinstance(form.objective, QuadraticLike)
    x = None
    if start is not None and formulation.lift is not None:
        x = formulation.lift(parts.point(start, 0.0)).x
    qp = BoxQP(SignedGram.of(form.objective), form.objective.linear, Box.of(form.domain))
    solution = solve_box_qp(qp, x)
    z = parts.coefficients(formulation.recover(solution.x, None))
    return np.clip(z, -C, C)


def _feasible(z: FloatArray, C: float) -> FloatArray:
    """z, in the plane 1'z = 0 but for rounding."""
    if is_balanced(z):
        return z
    low = np.where(z < 0, -C, 0.0)
    high = np.where(z > 0, C, 0.0)
    if not (low.any() and high.any()):
        return np.zeros_like(z)
    return BoxPlane(low, high, np.ones_like(z)).project(z)


def _bracket(problem: P, ends: PathEnds, index: int, parts: PathParts[P]) -> Bracket:
    """The bracket of one penalty; one that is wide is proven on its own."""
    term = ends.terms[index]
    point = parts.point(term.z, term.bias)
    lower = max(term.lower, 0.0)
    upper = sum_up(term.upper, ends.charge(term.C, term.upper))
    bracket = Bracket(lower, upper, point)
    if bracket.gap <= WIDE * (1 + abs(upper)):
        return bracket
    alone = problem.bracket(point)
    return alone if alone.gap < bracket.gap else bracket
