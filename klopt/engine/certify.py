"""The rules by which an answer becomes a certificate.

A backend's status plays no part in the verdict; the vectors it returns do. The rules are tried in
this order, and the first one that applies decides.

    INFEASIBLE  multipliers prove it of the problem, exactly (of a form that is the problem's dual:
                its ray is such a vector); or the bracket has found a contradiction
    UNBOUNDED   a direction proves it, exactly, and the problem's bracket proves a feasible point; or
                the bracket has found both
    OPTIMAL     upper - lower <= tol (1 + |upper|), both ends from the problem's own bracket
    ESTIMATED   the bracket's estimate is as narrow as that
    ESTIMATED   by residuals, where a user's general program has no bracket: primal, dual, cone and
                gap residuals <= tol in the scale of the data, row by row and column by column too,
                and a bounded magnitude
    FEASIBLE    the bracket's end on the side of the point is finite
    UNPROVEN    everything else; the notes say what is missing

The ends of the interval are those of the bracket under every verdict: an estimate never moves them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Stop
from klopt.model.cones.norms import block_norms
from klopt.model.forms import ConeForm, Form, Residuals, SimplexForm
from klopt.model.functions import DualFunction
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.proof.certificate import Argument, Certificate, Verdict, contradict, is_narrow, within
from klopt.proof.statement import ConeStatement
from klopt.witness.cone_witness import proven_infeasible, proven_ray

__all__ = ["certify", "violated_row"]

MAX_MAGNITUDE = 1e6
"""Points or multipliers that exceed the data by this factor are not judged by residuals."""


@dataclass(frozen=True, eq=False)
class SolverClaim:
    """A solver's answer to one formulation of a problem, to be judged at a tolerance.

    Parameters
    ----------
    problem
        What the verdict is about.
    formulation
        The formulation that was solved, which maps the answer back to the problem.
    form
        The form that the solver was given.
    stop
        Why it says it stopped.
    tol
        The relative gap that is asked for.
    x, y, farkas, ray
        What it returned, in arrays that nobody else can write while they are judged.
    """

    problem: Problem
    formulation: Formulation
    form: Form
    stop: Stop
    tol: float
    x: FloatArray | None
    y: FloatArray | None
    farkas: FloatArray | None
    ray: FloatArray | None

    @property
    def infeasible(self) -> bool:
        """Whether the solver claims that its form has no feasible point."""
        return self.farkas is not None or self.stop is Stop.INFEASIBLE

    @property
    def unbounded(self) -> bool:
        """Whether the solver claims that its form has no optimum."""
        return self.ray is not None or self.stop is Stop.UNBOUNDED


def certify(
    problem: Problem,
    formulation: Formulation,
    form: Form,
    answer: Answer,
    tol: float,
    *,
    sharpen: bool = True,
) -> tuple[Certificate, Point | None]:
    """Return what the answer proves about the problem, and the (repaired) point it leads to.

    Parameters
    ----------
    problem
        What the verdict is about.
    formulation
        The formulation that was solved, which maps the answer back to the problem.
    form
        The form that the solver was given.
    answer
        What it returned.
    tol
        The relative gap that counts as optimal.
    sharpen
        Whether a bracket that is too wide is sharpened, which may amount to solving again.
    """
    x = _copied(answer.x)
    y = _copied(answer.y)
    farkas = _copied(answer.farkas)
    ray = _copied(answer.ray)
    claim = SolverClaim(problem, formulation, form, answer.stop, tol, x, y, farkas, ray)
    notes: list[str] = []

    no_optimum = _no_optimum(claim, notes)
    if no_optimum is not None:
        return no_optimum, None

    if x is None:
        notes.append(f"the backend returned no point ({answer.stop.words})")
        return Certificate.unproven(tol, *notes), None

    residuals = form.measure(x, y)
    if residuals is not None and residuals.magnitude > MAX_MAGNITUDE:
        notes.append(
            f"point or multipliers are {residuals.magnitude:.0e} times the data: no Slater point, "
            "or the optimum is not attained, or the data are badly scaled"
        )

    bracket = problem.bracket(formulation.recover(x, y))
    is_decided = is_narrow(bracket.lower, bracket.upper, tol) or bracket.no_optimum
    if sharpen and not is_decided:
        bracket = problem.sharper_bracket(bracket)
    if bracket.note:
        notes.append(bracket.note)
    if bracket.no_optimum:
        found = _infeasible(claim) if bracket.no_optimum == "infeasible" else _unbounded(claim)
        return replace(found, residuals=residuals, notes=tuple(notes)), None
    ends = _ordered_ends(bracket, notes)
    if ends is None:
        # Where a proof is broken, evidence from the same numbers is worth nothing either.
        return replace(Certificate.unproven(tol, *notes), residuals=residuals), bracket.point
    lower, upper = ends

    lower_by = bracket.lower_by if math.isfinite(lower) else ""
    upper_by = bracket.upper_by if math.isfinite(upper) else ""

    # The first rule that applies decides: both ends are proven and close enough.
    if is_narrow(lower, upper, tol):
        certificate = Certificate(
            Verdict.OPTIMAL,
            lower,
            upper,
            tol,
            "bracket",
            residuals,
            tuple(notes),
            lower_by=lower_by,
            upper_by=upper_by,
        )
        return certificate, bracket.point
    weaker = _estimated_by_bracket(claim, bracket, lower, upper, notes)
    if weaker is None:
        weaker = _estimated_by_residuals(claim, residuals, lower, upper, notes)
    if weaker is None:
        weaker = _feasible_or_unproven(claim, lower, upper, notes)
    certificate = replace(
        weaker, residuals=residuals, notes=tuple(notes), lower_by=lower_by, upper_by=upper_by
    )
    return certificate, bracket.point


def _copied(vector: FloatArray | None) -> FloatArray | None:
    """A fresh float64 array."""
    return None if vector is None else np.array(vector, dtype=np.float64)


# No feasible point, no optimum


def _no_optimum(claim: SolverClaim, notes: list[str]) -> Certificate | None:
    """Judge a claim of infeasibility or unboundedness by its vectors, never by the status."""
    if not (claim.infeasible or claim.unbounded):
        return None
    if claim.problem.has_optimum:
        notes.append(
            f"the backend says {claim.stop.words}, but every {type(claim.problem).__name__} "
            "has an optimum"
        )
        return None

    # Both may be claimed at once; infeasibility comes first, since a ray says nothing where there
    # is no point.
    form = claim.form
    if isinstance(form, ConeForm):
        certificate = None
        if claim.infeasible:
            certificate = _infeasible_by_farkas_vector(claim, form, notes)
        if certificate is None and claim.unbounded:
            certificate = _no_optimum_by_ray(claim, form, notes)
        return certificate

    # A dual function checks its own rays; other forms have no vectors that prove anything.
    ray = claim.ray
    objective = form.objective if isinstance(form, SimplexForm) else None
    if isinstance(objective, DualFunction) and ray is not None:
        return _no_optimum_by_ray_of_dual_function(claim, objective, ray, notes)
    notes.append(f"the backend says {claim.stop.words}, which cannot be verified for this form")
    return None


def _infeasible_by_farkas_vector(
    claim: SolverClaim, form: ConeForm, notes: list[str]
) -> Certificate | None:
    """The problem has no feasible point, by Farkas' lemma."""
    farkas = claim.farkas
    if farkas is None:
        notes.append("infeasibility not proven: no multipliers came with the claim")
        return None
    # An infeasible dual leaves the problem unbounded or infeasible: neither is proven.
    if claim.formulation.dual:
        notes.append("the dual is claimed to be infeasible: no bound can be had")
        return None
    if not _refutes(claim, form, np.zeros_like(form.c), farkas):
        notes.append(
            "infeasibility not proven: the multipliers do not add the constraints up to a "
            "contradiction, exactly"
        )
        return None

    # A ray that passes as well is worth a note: no change of b alone gives an optimum.
    certificate = _infeasible(claim)
    ray = claim.ray
    if ray is not None and claim.problem.proves_unbounded(claim.formulation.recover(ray, None)):
        note = "dual infeasible as well: a ray improves the objective"
        certificate = replace(certificate, notes=(note,))
    return certificate


def _refutes(claim: SolverClaim, form: ConeForm, x: FloatArray, y: FloatArray | None) -> bool:
    """Whether the vector proves of the problem itself that it has no feasible point."""
    decided = claim.problem.proves_infeasible(claim.formulation.recover(x, y))
    if decided is None:
        # A problem that says nothing of its own is stated by its form.
        return y is not None and proven_infeasible(ConeStatement.of_form(form), form, y)
    return decided


def _no_optimum_by_ray(claim: SolverClaim, form: ConeForm, notes: list[str]) -> Certificate | None:
    """The form is unbounded by a ray and a feasible point; where it is the dual, a ray suffices."""
    ray = claim.ray
    if ray is None:
        notes.append("unboundedness not proven: no ray came with the claim")
        return None
    direction = claim.formulation.recover(ray, None)

    # A ray of the dual is a Farkas vector of the problem and needs no feasible point.
    if claim.formulation.dual:
        decided = claim.problem.proves_infeasible(direction)
        if decided is None:
            decided = proven_ray(ConeStatement.of_form(form), form, ray)
        if decided:
            return _infeasible_by_ray_of_dual(claim)
        notes.append("infeasibility not proven: the ray of the dual is none, exactly")
        return None

    decided = claim.problem.proves_unbounded(direction)
    if decided is None:
        decided = proven_ray(ConeStatement.of_form(form), form, ray)
    if not decided:
        notes.append("unboundedness not proven: the direction is no ray, exactly")
        return None
    # Without a feasible point the problem may be infeasible instead.
    if claim.x is not None and _has_feasible_point(claim, claim.x):
        return _unbounded(claim)
    notes.append("dual infeasible: unbounded if a feasible point exists")
    return None


def _no_optimum_by_ray_of_dual_function(
    claim: SolverClaim,
    objective: DualFunction,
    ray: FloatArray,
    notes: list[str],
) -> Certificate | None:
    """A dual function is finite at 0; if it falls without bound, its problem is infeasible.

    Parameters
    ----------
    claim
        What is judged.
    objective
        The dual function, which checks the ray.
    ray
        The direction along which it falls.
    notes
        Takes what is missing.
    """
    flaw = objective.ray_flaw(ray)
    if flaw:
        notes.append(f"unboundedness not proven: {flaw}")
        return None
    if claim.formulation.dual:
        return _infeasible_by_ray_of_dual(claim)
    return _unbounded(claim)


def _has_feasible_point(claim: SolverClaim, x: FloatArray) -> bool:
    """Whether the problem's own bracket proves a feasible point next to x; residuals prove none."""
    bracket = claim.problem.bracket(claim.formulation.recover(x, None))
    ends = _ordered_ends(bracket, [])
    return ends is not None and _proves_a_point(claim.problem, *ends)


def _infeasible(claim: SolverClaim) -> Certificate:
    """No point: the optimum is the worst value, inf for a problem that minimises."""
    worst = np.inf if claim.problem.sense == "min" else -np.inf
    return Certificate(Verdict.INFEASIBLE, worst, worst, claim.tol, "farkas")


def _infeasible_by_ray_of_dual(claim: SolverClaim) -> Certificate:
    """The dual falls to -inf, and the optimum goes with it, in the units and sense of the problem."""
    lower, upper = claim.formulation.to_user(-np.inf, -np.inf)
    return Certificate(Verdict.INFEASIBLE, lower, upper, claim.tol, "farkas")


def _unbounded(claim: SolverClaim) -> Certificate:
    """No end: the optimum is the best value, -inf for a problem that minimises."""
    best = -np.inf if claim.problem.sense == "min" else np.inf
    return Certificate(Verdict.UNBOUNDED, best, best, claim.tol, "ray")


# The bracket


def _ordered_ends(bracket: Bracket, notes: list[str]) -> tuple[float, float] | None:
    """The bracket's ends; None where they cross, which exact bounds never do, or are NaN."""
    lower = float(bracket.lower)
    upper = float(bracket.upper)
    if math.isnan(lower) or math.isnan(upper):
        notes.append("the bracket is not a number: the point overflows")
        return None
    if contradict(lower, upper):
        crossing = lower - upper
        notes.append(f"the bracket is crossed by {crossing:.1e}: the problem's proof does not hold")
        return None
    return lower, upper


def _estimated_by_bracket(
    claim: SolverClaim,
    bracket: Bracket,
    lower: float,
    upper: float,
    notes: list[str],
) -> Certificate | None:
    """The bracket's own estimate is close enough, though its proven ends are not.

    Parameters
    ----------
    claim
        What is judged.
    bracket
        That of the problem, with its estimate.
    lower, upper
        The proven ends.
    notes
        Takes what is wrong with the estimate.
    """
    if bracket.estimate is None:
        return None
    # An estimate for changed data is about another problem, which these ends do not bound.
    bounds = (-np.inf, np.inf) if bracket.data_change else (lower, upper)
    estimate = within(bracket.estimate, *bounds)
    if estimate is None:
        notes.append("the estimate is empty or contradicts a proven bound")
        return None
    if not is_narrow(*estimate, claim.tol):
        return None
    return Certificate(
        Verdict.ESTIMATED,
        lower,
        upper,
        claim.tol,
        "estimate",
        estimate=estimate,
        data_change=bracket.data_change,
    )


def _feasible_or_unproven(
    claim: SolverClaim,
    lower: float,
    upper: float,
    notes: list[str],
) -> Certificate:
    """What is left when the optimum is not proven: the interval, and whether there is a point.

    Parameters
    ----------
    claim
        What is judged.
    lower, upper
        The proven ends.
    notes
        Takes by how much the interval is too wide.
    """
    if np.isfinite(lower) and np.isfinite(upper):
        relative_gap = (upper - lower) / (1 + abs(upper))
        notes.append(f"the interval is {relative_gap / claim.tol:.2g} times as wide as asked for")

    verdict = Verdict.UNPROVEN
    argument: Argument = "none"
    if _proves_a_point(claim.problem, lower, upper):
        verdict = Verdict.FEASIBLE
        argument = "bracket"
    return Certificate(verdict, lower, upper, claim.tol, argument)


def _proves_a_point(problem: Problem, lower: float, upper: float) -> bool:
    """Whether the end that a feasible point attains is finite."""
    attained = upper if problem.sense == "min" else lower
    return bool(np.isfinite(attained))


# Residuals


def _estimated_by_residuals(
    claim: SolverClaim,
    residuals: Residuals | None,
    lower: float,
    upper: float,
    notes: list[str],
) -> Certificate | None:
    """Small residuals give an estimate where an end is missing and the problem allows it.

    Parameters
    ----------
    claim
        What is judged.
    residuals
        Those of the answer, where its form can measure them.
    lower, upper
        The proven ends, of which one is infinite.
    notes
        Takes what is wrong with the residuals.
    """
    two_sided = np.isfinite(lower) and np.isfinite(upper)
    if two_sided or not claim.problem.trusts_residuals or residuals is None:
        return None

    estimated_lower, estimated_upper = claim.formulation.to_user(*_estimate(claim, residuals))
    estimated_lower = max(lower, estimated_lower)
    estimated_upper = min(upper, estimated_upper)
    flaw = _estimate_flaw(claim, residuals, estimated_lower, estimated_upper)
    if flaw:
        notes.append(
            f"no two-sided bound could be had, and residuals give no estimate either: {flaw}"
        )
        return None
    return Certificate(
        Verdict.ESTIMATED,
        lower,
        upper,
        claim.tol,
        "residuals",
        estimate=(estimated_lower, estimated_upper),
    )


def _estimate(claim: SolverClaim, residuals: Residuals) -> tuple[float, float]:
    """The form's value and dual value, widened to first order by what residuals can be worth."""
    form = claim.form
    x = claim.x
    y = claim.y
    worth = 0.0
    if isinstance(form, ConeForm) and x is not None and y is not None:
        # A violation costs its multiplier, a gradient that is left costs its variable.
        s = np.where(np.isinf(form.b), 0.0, form.b - form.A @ x)
        violation = np.abs(s - form.cones.project(s))
        gradient = np.abs(form.curve(x) + form.c + form.A.T @ y)
        worth = float(np.abs(y) @ violation + np.abs(x) @ gradient)

    lower = min(residuals.value, residuals.dual_value)
    upper = max(residuals.value, residuals.dual_value)
    return lower - worth, upper + worth


def _estimate_flaw(
    claim: SolverClaim,
    residuals: Residuals,
    lower: float,
    upper: float,
) -> str:
    """Return "" if the estimated interval is as narrow as asked for, else why not.

    Parameters
    ----------
    claim
        What is judged.
    residuals
        Those of the answer.
    lower, upper
        The estimate, cut to the proven ends.
    """
    if not lower <= upper:
        return "they contradict a proven bound"
    flaw = _residual_flaw(claim, residuals)
    if flaw:
        return flaw

    # Not <=, so that NaN is too wide.
    excess = (upper - lower) / (claim.tol * (1 + abs(upper)))
    if not excess <= 1:
        return f"what they may be worth makes the interval {excess:.2g} times as wide as asked for"
    return ""


def _residual_flaw(claim: SolverClaim, residuals: Residuals) -> str:
    """Return "" if the residuals are small, else which one is not."""
    if residuals.magnitude > MAX_MAGNITUDE:
        return "residuals say nothing at such a size"

    if not residuals.worst <= claim.tol:
        errors = {
            "primal": residuals.primal,
            "dual": residuals.dual,
            "cone": residuals.cone,
            "gap": residuals.gap,
        }
        name = max(errors, key=lambda name: _nan_as_infinite(errors[name]))
        return f"the {name} residual is {errors[name]:.1e}, asked for {claim.tol:.0e}"

    form = claim.form
    if isinstance(form, ConeForm) and claim.x is not None and claim.y is not None:
        return _hidden_flaw(form, claim.x, claim.y, claim.tol)
    return ""


def _nan_as_infinite(error: float) -> float:
    return np.inf if np.isnan(error) else error


def _hidden_flaw(
    form: ConeForm,
    x: FloatArray,
    y: FloatArray,
    tol: float,
) -> str:
    """Name a row or column whose error is small next to the largest entry of b or c only.

    Parameters
    ----------
    form
        The cone program.
    x, y
        The point and its multipliers.
    tol
        The error that each row and column may have, relative to its own entry of b or c.
    """
    flaw = violated_row(form, x, tol)
    if flaw:
        return flaw

    gradient = np.abs(form.curve(x) + form.c + form.A.T @ y)
    columns = gradient / (1 + np.abs(form.c))
    if columns.max(initial=0.0) > tol:
        worst = int(np.argmax(columns))
        return f"the gradient in variable {worst} is off by {columns.max():.1e} of its cost"
    return ""


def violated_row(form: ConeForm, x: FloatArray, tol: float) -> str:
    """Return "" if each row holds up to tol of its own right-hand side, else the worst one."""
    b = np.where(np.isinf(form.b), 0.0, form.b)
    s = np.where(np.isinf(form.b), 0.0, b - form.A @ x)
    violation = block_norms(form.cones, s - form.cones.project(s))
    rows = violation / (1 + block_norms(form.cones, b))
    # Not >, so that NaN is a violation.
    if rows.size and not rows.max() <= tol:
        worst = int(np.argmax(rows))
        return f"row {worst} is violated by {rows.max():.1e} of its right-hand side"
    return ""
