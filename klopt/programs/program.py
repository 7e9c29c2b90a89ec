"""`Program`: a general program, bracketed by its cone form and solved by it or its dual."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import ClassVar, Self

import numpy as np

import klopt.programs.formats as formats
from klopt.arrays import FloatArray
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Start
from klopt.model.problem import Bracket, Formulation, Point, Problem, Sense
from klopt.programs.duality import dual_claim, dual_of, from_dual, to_dual
from klopt.programs.formats.model import Model
from klopt.programs.rows import LinearRows
from klopt.proof.cone_witnesses import ConeClaim, DualWitness
from klopt.proof.enclosure import round_down, round_up
from klopt.proof.statement import ConeStatement
from klopt.witness.cone_witness import ConeProof, prove, proven_infeasible, proven_ray
from klopt.witness.precise_witness import precise_proof

__all__ = ["Program", "with_better_ends"]

Recover = Callable[[FloatArray, FloatArray | None], Point]
Pair = Callable[[Point], tuple[FloatArray, FloatArray]]

HUGE = 1e12
"""Entries of x beyond which a user is told that only huge points come near the optimum."""


def with_better_ends(bracket: Bracket, other: Bracket, sense: Sense = "min") -> Bracket:
    """Return a bracket with the better end of both on either side, and the point of its value."""
    attained = "upper" if sense == "min" else "lower"
    if other.lower > bracket.lower:
        bracket = replace(bracket, lower=other.lower, lower_by=other.lower_by)
        if attained == "lower":
            bracket = replace(bracket, point=other.point, note=other.note)
    if other.upper < bracket.upper:
        bracket = replace(bracket, upper=other.upper, upper_by=other.upper_by)
        if attained == "upper":
            bracket = replace(bracket, point=other.point, note=other.note)
    return bracket


class Program(Problem):
    """The base of `LP`, `QCQP`, `SDP` and `ConeProgram`, whose value is `scale` times that of `form`, + `offset`."""

    trusts_residuals: ClassVar[bool] = True
    offset: float
    within: float
    repair: str = ""
    """What was changed in the data by rounding, such as a matrix made symmetric."""

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> Self:
        """Return the program in a file, whose suffix says how it is read.

        Reading may take `time_limit` seconds and ask for `memory_limit` bytes; see
        `klopt.programs.formats.read`.
        """
        with formats.opened(path, time_limit=time_limit, memory_limit=memory_limit) as model:
            return cls.from_model(model, path)

    @classmethod
    @abstractmethod
    def from_model(cls, model: Model, path: str | PathLike[str]) -> Self:
        """Return the program that was read from a file."""

    @property
    @abstractmethod
    def form(self) -> ConeForm:
        """The cone program that brackets the optimum."""

    def stated_form(self) -> ConeForm:
        """Return the program itself, by whose size routes are planned."""
        return self.form

    @property
    @abstractmethod
    def rows(self) -> LinearRows:
        """The linear rows and bounds as they were given."""

    @property
    def rows_note(self) -> str:
        """What is reported of the linear rows."""
        return self.rows.note

    @property
    def sign(self) -> float:
        """1 for min, -1 for max."""
        return 1.0 if self.sense == "min" else -1.0

    @property
    def scale(self) -> float:
        """The factor from a value of `form`, which minimises, to one of the program."""
        return self.sign

    @abstractmethod
    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        """Return a solution of `form` as a point of the program."""

    @abstractmethod
    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """Return (x, y) of `form` from a point; missing multipliers are 0."""

    @cached_property
    def cone_statement(self) -> ConeStatement:
        """The program as exact numbers, without what `form` rounds."""
        return replace(ConeStatement.of_form(self.form), within=self.within)

    def dual_witness(self, w: FloatArray, y: FloatArray) -> DualWitness:
        """Return what (w, y) of `form` proposes for `cone_statement`."""
        return DualWitness(w, y)

    def cone_claim(self, point: Point) -> ConeClaim | None:
        x, y = self.pair(point)
        witness = self.dual_witness(x, y)
        if self.is_dual_of_form:
            return dual_claim(self.cone_statement, x, witness.y, self.sign, self.offset)
        return ConeClaim(
            self.cone_statement, x, witness.y, witness.quadratic, self.scale, self.offset
        )

    def bracket(self, point: Point) -> Bracket:
        """Return bounds of the optimum, proven from a repaired point and repaired multipliers."""
        found = prove(self.cone_statement, self.form, *self.pair(point), self.dual_witness)
        return self._bracket(found)

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return the better ones of these ends and those that many digits prove."""
        # Data that contradict themselves are no matter of digits.
        found = None if bracket.data_change else self._precise_bracket()
        return bracket if found is None else with_better_ends(bracket, found, self.sense)

    @cached_property
    def _precise_brackets(self) -> list[Bracket]:
        """What many digits have proven: nothing, or the bracket of the one time they were tried."""
        return []

    def _precise_bracket(self) -> Bracket | None:
        """What an interior-point method with many digits proves; None where it takes too long."""
        if self._precise_brackets:
            return self._precise_brackets[0]
        found = precise_proof(self.cone_statement)
        if found is None:
            return None
        # Multipliers of the statement are those of the form but for a factor each.
        factors = self.dual_witness(found.x, np.ones(self.form.b.size)).y
        bracket = self._bracket(ConeProof(found.lower, found.upper, found.x, found.y / factors))
        size = float(np.max(np.abs(found.x), initial=0.0))
        if size > HUGE:
            note = (
                f"the point has entries of {size:.0e}: the optimum is approached only where x is huge; "
                "declare how large x can be (within=) for a statement about smaller points"
            )
            bracket = replace(bracket, note=f"{bracket.note}; {note}" if bracket.note else note)
        self._precise_brackets.append(bracket)
        return bracket

    def _bracket(self, found: ConeProof) -> Bracket:
        """The proof about `form` in the units and the sense of the program."""
        low = found.lower.value
        high = found.upper.value
        by = (found.lower.by, found.upper.by)
        if (
            self.scale < 0
        ):  # the form minimises what the program maximises: its bounds change places
            low, high = -high, -low
            by = by[::-1]
        if self.offset:
            low = float(round_down(low + self.offset))
            high = float(round_up(high + self.offset))
        note = "; ".join(filter(None, (self.rows_note, self.repair)))
        return Bracket(
            low,
            high,
            self.point(found.x, found.y),
            note,
            lower_by=by[0],
            upper_by=by[1],
            data_change=found.data_change,
            estimate=self._in_units(found.estimate),
            no_optimum="" if self.is_dual_of_form else found.no_optimum,
        )

    def _in_units(self, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        """An interval of values of `form` in the units and the sense of the program."""
        if ends is None:
            return None
        values = [self.scale * end + self.offset for end in ends]
        return min(values), max(values)

    @property
    def is_dual_of_form(self) -> bool:
        """Whether the program is the dual of `form`, as a semidefinite program over X is."""
        return self.scale != self.sign

    def proves_infeasible(self, point: Point) -> bool:
        x, y = self.pair(point)
        if self.is_dual_of_form:
            return proven_ray(self.cone_statement, self.form, x)
        return proven_infeasible(self.cone_statement, self.form, y, self.dual_witness)

    def proves_unbounded(self, direction: Point) -> bool:
        x, y = self.pair(direction)
        if self.is_dual_of_form:
            return proven_infeasible(self.cone_statement, self.form, y, self.dual_witness)
        return proven_ray(self.cone_statement, self.form, x)

    def by_form(
        self,
        name: str,
        needs: set[Feature],
        because: str,
        build: Callable[[], ConeForm],
        recover: Recover,
        pair: Pair,
        dual: bool = False,
    ) -> Formulation:
        """Return the formulation by a cone program.

        Parameters
        ----------
        name
            What plans and results call it.
        needs
            The features that a solver needs beside cone programs.
        because
            Why it is equivalent to the program.
        build
            Makes the cone program.
        recover
            Makes a point of the program from a solution (x, y) of the cone program.
        pair
            Makes (x, y) from a point.
        dual
            Whether it is a dual of the program.
        """
        return Formulation(
            name=name,
            needs=frozenset({Feature.CONE} | needs),
            build=build,
            recover=recover,
            lift=lambda point: Start(*pair(point)),
            because=because,
            dual=dual,
            scale=self.scale,
            shift=self.offset,
        )

    def by_dual(
        self,
        name: str,
        needs: set[Feature],
        because: str,
        build: Callable[[], ConeForm],
        recover: Recover,
        pair: Pair,
        dual: bool = True,
    ) -> Formulation:
        """Return the formulation by the dual of what `build` makes, with parameters of `by_form`.

        `recover` and `pair` are about the cone program itself, not its dual.
        """
        return replace(
            self.by_form(name, needs, because, build, recover, pair, dual),
            build=lambda: dual_of(build()),
            recover=lambda y, x: recover(*from_dual(build(), y, x)),
            lift=lambda point: to_dual(build(), *pair(point)),
            scale=-self.scale,
        )
