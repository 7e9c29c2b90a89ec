"""Turns an answer into a `Certificate`.

A backend's status plays no part in the verdict; the vectors it returns do.

    OPTIMAL     upper - lower <= tol (1 + |upper|), both ends from the problem's own bracket. Where a user's general
                program has no bracket: primal, dual, cone and gap residuals <= tol in the scale of the data, row by
                row and column by column too, and a bounded magnitude.
    INFEASIBLE  y in K*, A'y = 0 and b'y < 0: the constraints add up to a contradiction.
    UNBOUNDED   a feasible point and a ray d with c'd < 0, Pd = 0, -Ad in K.
    FEASIBLE    a feasible point, so one side of the bracket.
    UNPROVEN    everything else; the notes say what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import attrs
import numpy as np

from klopt.arrays import FAKE_INFINITY, FloatArray
from klopt.model.backend import Answer, Stop
from klopt.model.forms import ConeForm, Form, Residuals, SimplexForm
from klopt.model.functions import DualFunction
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.proof.cone_bounds import farkas_strength
from klopt.proof.cone_interior import block_norms

__all__ = ["Certificate", "Verdict", "certify", "check_farkas", "check_ray"]

MAGNITUDE_LIMIT = 1e6
# A sum that is smaller than its terms by this factor is rounding.
CANCELLED = 1e-12
# A ray of a curved cone that descends less than this for its length may be one only in the limit
# (weak infeasibility).
FLAT = 1e-4
TINY, ERROR_OF_SUMS, MARGIN = float(np.finfo(float).tiny), 64 * float(np.finfo(float).eps), 1e-9
# Solvers leave noise in entries that are zero in exact arithmetic; a vector counts if it verifies
# after dropping it.
NOISE_LEVELS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


class Verdict(StrEnum):
    """What klopt has proven, with what it means in words.

    >>> Verdict.OPTIMAL.conclusive, Verdict.FEASIBLE.conclusive
    (True, False)
    """

    OPTIMAL = "OPTIMAL"
    INFEASIBLE = "INFEASIBLE"
    UNBOUNDED = "UNBOUNDED"
    FEASIBLE = "FEASIBLE"
    UNPROVEN = "UNPROVEN"

    @property
    def conclusive(self) -> bool:
        """Whether nothing is left to find out."""
        return self in (Verdict.OPTIMAL, Verdict.INFEASIBLE, Verdict.UNBOUNDED)

    @property
    def meaning(self) -> str:
        """What is proven, in one sentence."""
        return _MEANING[self]


_MEANING = {
    Verdict.OPTIMAL: "The optimum lies in the interval shown, which is as narrow as was asked for.",
    Verdict.INFEASIBLE: "No point satisfies the constraints: the multipliers shown add them up to a contradiction.",
    Verdict.UNBOUNDED: "The objective improves without end along the ray shown, from a feasible point.",
    Verdict.FEASIBLE: "The point is feasible, so one side of the interval is proven; "
    "how far it is from the optimum is not.",
    Verdict.UNPROVEN: "Nothing is proven about the optimum beyond the interval shown.",
}


@dataclass(frozen=True)
class Certificate:
    """What is proven about a problem by one answer: a verdict, an interval in the user's units, and the argument.

    `proof` names the argument: "bracket" (a feasible point and a dual bound), "residuals" (of a
    user's own program that has no bracket), "farkas" (infeasible), "ray" (unbounded) or "none".
    """

    verdict: Verdict
    lower: float
    upper: float
    tol: float
    proof: Literal["bracket", "residuals", "farkas", "ray", "none"]
    residuals: Residuals | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def unproven(cls, tol: float, *notes: str) -> Certificate:
        """Return what is proven where there is nothing to judge."""
        return cls(Verdict.UNPROVEN, -np.inf, np.inf, tol, "none", None, notes)

    @property
    def width(self) -> float:
        """upper - lower; 0 for infinite ends that agree."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def relative_width(self) -> float:
        """The width over 1 + |upper|: what `tol` is compared with."""
        return self.width / (1 + abs(self.upper)) if np.isfinite(self.width) else self.width

    @property
    def holds(self) -> bool:
        """Whether the verdict is conclusive."""
        return self.verdict.conclusive

    def explain(self) -> str:
        """Return the verdict, the interval and the argument in plain words."""
        lines = [f"{self.verdict.name}: {self.verdict.meaning}"]
        if np.isfinite(self.lower) or np.isfinite(self.upper):
            lines.append(f"  {self.lower:.10g} <= optimum <= {self.upper:.10g}")
            lines.append(f"  relative width {self.relative_width:.1e}, asked for {self.tol:.0e}")
        one_sided = self.proof == "bracket" and not np.isfinite(self.width)
        lines.append("  " + (_ONE_SIDE if one_sided else _ARGUMENT[self.proof]))
        if self.residuals is not None:
            r = self.residuals
            lines.append(
                f"  residuals: primal {r.primal:.1e}, dual {r.dual:.1e}, cone {r.cone:.1e}, gap {r.gap:.1e}"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


_ONE_SIDE = "one side is proven, by a feasible point whose value klopt computed"
_ARGUMENT = {
    "bracket": "proven by a feasible point and a dual bound, both computed by klopt",
    "residuals": "judged by residuals: no rigorous bound could be had, so the interval is an estimate",
    "farkas": "proven by multipliers that klopt verified",
    "ray": "proven by a feasible point and a ray that klopt verified",
    "none": "no proof",
}


def certify(
    problem: Problem, formulation: Formulation, form: Form, answer: Answer, tol: float
) -> tuple[Certificate, Point | None]:
    """Return what the answer proves about the problem, and the (repaired) point it leads to."""
    notes: list[str] = []
    refuted = _check_claim(problem, formulation, form, answer, tol, notes)
    if refuted is not None:
        return refuted, None
    if answer.x is None:
        return Certificate.unproven(
            tol, *notes, f"the backend returned no point ({answer.stop.words})"
        ), None
    residuals = form.measure(answer.x, answer.y)
    if residuals is not None and residuals.magnitude > MAGNITUDE_LIMIT:
        notes.append(
            f"point or multipliers are {residuals.magnitude:.0e} times the data: no Slater point, or the optimum is "
            "not attained, or the data are badly scaled"
        )
    bracket = problem.bracket(formulation.recover(answer.x, answer.y))
    if bracket.note:
        notes.append(bracket.note)
    lower, upper = _ordered(bracket, notes)
    one_sided = not (np.isfinite(lower) and np.isfinite(upper))
    if not one_sided and upper - lower <= tol * (1 + abs(upper)):
        return Certificate(
            Verdict.OPTIMAL, lower, upper, tol, "bracket", residuals, tuple(notes)
        ), bracket.point
    if one_sided and problem.trusts_residuals and residuals is not None:
        ends = formulation.to_user(*_estimate(form, answer, residuals))
        ends = max(lower, ends[0]), min(upper, ends[1])
        flaw = (
            _residual_flaw(form, answer, residuals, tol)
            if ends[0] <= ends[1]
            else "they contradict a proven bound"
        )
        wide = (ends[1] - ends[0]) / (tol * (1 + abs(ends[1])))
        if not flaw and not wide <= 1:
            flaw = (
                f"what they may be worth makes the interval {wide:.2g} times as wide as asked for"
            )
        if not flaw:
            return Certificate(
                Verdict.OPTIMAL, *ends, tol, "residuals", residuals, tuple(notes)
            ), bracket.point
        notes.append(
            f"no two-sided bound could be had, and residuals do not prove it either: {flaw}"
        )
    feasible = np.isfinite(upper if problem.sense == "min" else lower)
    verdict = Verdict.FEASIBLE if feasible else Verdict.UNPROVEN
    if not one_sided:
        width = (upper - lower) / (1 + abs(upper))
        notes.append(f"the interval is {width / tol:.2g} times as wide as asked for")
    proof: Literal["bracket", "none"] = "bracket" if feasible else "none"
    return Certificate(verdict, lower, upper, tol, proof, residuals, tuple(notes)), bracket.point


def check_farkas(form: ConeForm, y: FloatArray, tol: float) -> str:
    """Return "" if y proves that no x satisfies b - Ax in K, else what is wrong with it.

    Scale-free: (A'y)_j is compared with (|A|'|y|)_j as well as with -b'y, since a tiny coefficient
    on a free variable would otherwise pass for zero. Where -b'y is small next to |b|'|y| the terms
    of b'y nearly cancel, and an error in y as small as that would undo the proof: it must be
    smaller by the same factor.
    """
    if np.isinf(form.b).any():
        if np.any((form.b == -np.inf) & (y > 0)):
            return ""  # one row asks for something below -inf
        form = attrs.evolve(form, b=np.where(np.isinf(form.b), FAKE_INFINITY / 10, form.b))
    worst = "b'y is not negative"
    for level in NOISE_LEVELS:
        strength, left_over, multipliers = farkas_strength(form, _denoised(y, level))
        share = strength / float(np.abs(form.b) @ np.abs(multipliers)) if strength > 0 else 0.0
        if not share > CANCELLED:
            continue
        if left_over * form.radius < strength * (1 - MARGIN - ERROR_OF_SUMS / share):
            return ""
        image = np.abs(form.A.T @ multipliers)
        terms = abs(form.A).T @ np.abs(multipliers)
        error = _worst_ratio(image, np.minimum(terms, strength)) / share
        if error <= tol:
            return ""
        worst = f"A'y is {error:.1e} relative to its terms, not 0"
    return worst


def check_ray(form: ConeForm, d: FloatArray, tol: float) -> str:
    """Return "" if the objective improves without end along d inside the recession cone, else what is wrong with it.

    As with a Farkas vector, errors must be small next to what is left of c'd when its terms have
    cancelled. A row of a curved cone is measured by its whole cone, where a small entry of d with a
    large cost could hide: there the error is compared with the steepest descent as well.
    """
    if np.isfinite(form.radius):
        return "the feasible set is bounded"
    worst = "c'd is not negative"
    for level in NOISE_LEVELS:
        ray = _denoised(d, level)
        descent = -float(form.c @ ray)
        share = descent / float(np.abs(form.c) @ np.abs(ray)) if descent > 0 else 0.0
        if not share > CANCELLED:
            continue
        gradient = descent / float(np.abs(form.c).max() * np.abs(ray).max())
        magnitude = abs(form.A) @ np.abs(ray)
        slack = -(form.A @ ray)
        error = 0.0
        for kind, rows in form.cones.blocks():
            off = np.zeros_like(slack)
            off[rows] = (slack - form.cones.project(slack))[rows]
            whole = np.full_like(
                magnitude, np.max(magnitude[rows]) * (gradient if gradient > FLAT else 0.0) + TINY
            )
            terms = magnitude * share if kind in ("zero", "nonneg") else whole
            error = max(error, _worst_ratio(np.abs(off), terms))
        if form.P is not None:
            bend, size = np.abs(form.P @ ray), abs(form.P) @ np.abs(ray)
            error = max(error, _worst_ratio(bend, np.minimum(size, descent) * share))
        if error <= tol:
            return ""
        worst = f"the ray leaves the feasible set: relative error {error:.1e}"
        if error > 1 / TINY**0.5:
            worst = f"the ray is one only in the limit: it descends by {gradient:.0e} of its length"
    return worst


def _check_claim(
    problem: Problem,
    formulation: Formulation,
    form: Form,
    answer: Answer,
    tol: float,
    notes: list[str],
) -> Certificate | None:
    """Judge a claim of infeasibility or unboundedness by its vectors."""
    claims_infeasible = answer.farkas is not None or answer.stop is Stop.INFEASIBLE
    claims_unbounded = answer.ray is not None or answer.stop is Stop.UNBOUNDED
    if not (claims_infeasible or claims_unbounded):
        return None
    if (
        isinstance(form, SimplexForm)
        and isinstance(form.objective, DualFunction)
        and answer.ray is not None
    ):
        return _receding(formulation, form.objective, answer.ray, tol, notes)
    if not isinstance(form, ConeForm):
        notes.append(
            f"the backend says {answer.stop.words}, which cannot be verified for this form"
        )
        return None
    # A form minimises: no point is worth inf, a ray without end -inf.
    nowhere = float(np.copysign(np.inf, formulation.scale))
    no_point = -nowhere if formulation.dual else nowhere
    infeasible = Certificate(Verdict.INFEASIBLE, no_point, no_point, tol, "farkas")
    unbounded = Certificate(Verdict.UNBOUNDED, -nowhere, -nowhere, tol, "ray")
    if claims_infeasible:
        flaw = (
            "no multipliers came with the claim"
            if answer.farkas is None
            else check_farkas(form, answer.farkas, tol)
        )
        if not flaw and not formulation.dual:
            both = answer.ray is not None and not check_ray(form, answer.ray, tol)
            return replace(
                infeasible,
                notes=("dual infeasible as well: a ray improves the objective",) if both else (),
            )
        notes.append(
            f"infeasibility not proven: {flaw}"
            if flaw
            else "the dual is infeasible: no bound can be had"
        )
    if claims_unbounded:
        flaw = (
            "no ray came with the claim" if answer.ray is None else check_ray(form, answer.ray, tol)
        )
        if not flaw and formulation.dual:
            return infeasible
        if (
            not flaw
            and answer.x is not None
            and _is_feasible(problem, formulation, form, answer.x, tol)
        ):
            return unbounded
        notes.append(
            f"unboundedness not proven: {flaw}"
            if flaw
            else "dual infeasible: unbounded if a feasible point exists"
        )
    return None


def _receding(
    formulation: Formulation, objective: DualFunction, ray: FloatArray, tol: float, notes: list[str]
) -> Certificate | None:
    """A dual function, finite at 0, that falls for ever along a ray: the rows of the problem contradict each other."""
    flaw = objective.ray_flaw(ray)
    if flaw:
        notes.append(f"unboundedness not proven: {flaw}")
        return None
    end = -float(np.copysign(np.inf, formulation.scale))
    verdict = Verdict.INFEASIBLE if formulation.dual else Verdict.UNBOUNDED
    return Certificate(verdict, end, end, tol, "farkas" if formulation.dual else "ray")


def _is_feasible(
    problem: Problem, formulation: Formulation, form: ConeForm, x: FloatArray, tol: float
) -> bool:
    """Whether x is nearly feasible and can be repaired; residuals alone say little where data differ in size."""
    if not form.measure(x).primal <= tol:
        return False
    bracket = problem.bracket(formulation.recover(x, None))
    return bool(np.isfinite(bracket.upper if problem.sense == "min" else bracket.lower))


def _worst_ratio(errors: FloatArray, sizes: FloatArray) -> float:
    worst = float(
        np.max(np.divide(errors, sizes, out=np.zeros_like(errors), where=errors != 0), initial=0.0)
    )
    return worst if worst == worst else np.inf


def _denoised(v: FloatArray, level: float) -> FloatArray:
    return np.where(np.abs(v) <= level * np.max(np.abs(v), initial=0.0), 0.0, v) if level else v


def _ordered(bracket: Bracket, notes: list[str]) -> tuple[float, float]:
    """The bracket's ends; crossed ends are rounding if tiny and a broken proof otherwise."""
    lower, upper = bracket.lower, bracket.upper
    if np.isnan(lower) or np.isnan(upper):
        notes.append("the bracket is not a number: the point overflows")
        return -np.inf, np.inf
    if lower > upper:
        if lower - upper > 1e-9 * (1 + abs(upper)):
            notes.append(
                f"the bracket is crossed by {lower - upper:.1e}: the problem's proof does not hold"
            )
            return -np.inf, np.inf
        lower, upper = upper, lower
    return lower, upper


def _residual_flaw(form: Form, answer: Answer, residuals: Residuals, tol: float) -> str:
    """Return "" if small residuals may stand in for a bracket, else why not."""
    if residuals.magnitude > MAGNITUDE_LIMIT:
        return "residuals say nothing at such a size"
    errors = {name: getattr(residuals, name) for name in ("primal", "dual", "cone", "gap")}
    if not residuals.worst <= tol:
        name = max(
            errors, key=lambda name: errors[name] if errors[name] == errors[name] else np.inf
        )
        return f"the {name} residual is {errors[name]:.1e}, asked for {tol:.0e}"
    if isinstance(form, ConeForm) and answer.x is not None and answer.y is not None:
        return _hidden_flaw(form, answer.x, answer.y, tol)
    return ""


def _hidden_flaw(form: ConeForm, x: FloatArray, y: FloatArray, tol: float) -> str:
    """Name a row or column whose error only vanishes next to the largest entry of b or c, not next to its own."""
    b = np.where(np.isinf(form.b), 0.0, form.b)
    s = np.where(np.isinf(form.b), 0.0, b - form.A @ x)
    rows = block_norms(form.cones, s - form.cones.project(s)) / (1 + block_norms(form.cones, b))
    if rows.max(initial=0.0) > tol:
        return f"row {int(np.argmax(rows))} is violated by {rows.max():.1e} of its right-hand side"
    columns = np.abs(form.curve(x) + form.c + form.A.T @ y) / (1 + np.abs(form.c))
    if columns.max(initial=0.0) > tol:
        return f"the gradient in variable {int(np.argmax(columns))} is off by {columns.max():.1e} of its cost"
    return ""


def _estimate(form: Form, answer: Answer, residuals: Residuals) -> tuple[float, float]:
    """The form's value and dual value, widened to first order by what the residuals can be worth."""
    slack = 0.0
    if isinstance(form, ConeForm) and answer.x is not None and answer.y is not None:
        s = np.where(np.isinf(form.b), 0.0, form.b - form.A @ answer.x)
        gradient = form.curve(answer.x) + form.c + form.A.T @ answer.y
        slack = float(
            np.abs(answer.y) @ np.abs(s - form.cones.project(s))
            + np.abs(answer.x) @ np.abs(gradient)
        )
    ends = residuals.value, residuals.dual_value
    return min(ends) - slack, max(ends) + slack
