"""The method of Burer and Monteiro: augmented Lagrangians over factors, one minimum after the other.

    z <- z - sigma r,      sigma grows where the equations r = 0 do not close fast enough

A factor of rank p has no spurious local minima, for almost all objectives, where p (p + 1) / 2 exceeds
the number of equations (Boumal, Voroninski and Bandeira, 2016). Whether a minimum is the optimum is
read off the multipliers: the slack's smallest eigenvalue bounds the gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Settings, Stop
from klopt.model.forms import ConeForm
from klopt.solvers._low_rank.minimiser import AugmentedLagrangian, Factors, minimise, on_spheres
from klopt.solvers._low_rank.multipliers import (
    Interior,
    point_of,
    raised,
    settled,
    whole_multipliers,
)
from klopt.solvers._low_rank.program import FactorProgram

__all__ = ["solve_factored"]

MAX_ROUNDS = 60
"""Augmented Lagrangians at most."""
MAX_STEPS = 300
"""Steps of the trust region towards the minimum of one of them."""
MAX_IDLE_ROUNDS = 6
"""Rounds in which the error must become smaller."""
GAP_SHARE = 0.2
"""The gap that is aimed at, as a share of the tolerance: the proof takes some of the rest."""
SETTLING_SHARE = 0.5
"""What eigenvalues that Lanczos' method has missed may cost, as a share of the tolerance."""
INTERIOR_SHARE = 0.1
"""What moving the matrices inside their cones may cost, as a share of the tolerance."""
FIRST_GRADIENT = 0.1
"""The gradient that ends the first round, relative to the square root of 1 + |value| ..."""
GRADIENT_FACTOR = 0.1
"""... and by how much it falls from round to round."""
LAST_GRADIENT = 1e-11
"""The smallest gradient that is asked for."""
CLOSING = 0.25
"""Equations close fast enough if a round leaves this share of what they lack."""
PENALTY = 10.0
"""The first penalty, in units of the data ..."""
PENALTY_GROWTH = 4.0
"""... and by how much it grows where equations do not close."""
PROGRESS = 0.9
"""A round makes progress if it brings the error below this share of the smallest so far."""
MAX_INTERIOR_SHARE = 1e-3
"""The largest share of an interior point in the multipliers, whatever it costs."""


@dataclass(frozen=True, eq=False)
class _Round:
    """What the minimum of one augmented Lagrangian is worth."""

    f: AugmentedLagrangian
    x: FloatArray
    gap: float
    """The relative gap between the objectives of VV' and of x moved into its cones."""
    lack: float
    """What the equations lack, relative to their right-hand sides."""

    @property
    def error(self) -> float:
        """The larger of the two."""
        return max(self.gap, self.lack)


def solve_factored(form: ConeForm, settings: Settings) -> Answer:
    """Return a claim about a matrix inequality: x, and multipliers VV' moved into their cones."""
    began = time.perf_counter()
    limit = np.inf if settings.time_limit is None else settings.time_limit
    steps_left = settings.max_iter or MAX_ROUNDS * MAX_STEPS
    goal = GAP_SHARE * settings.tol

    def is_late() -> bool:
        return time.perf_counter() - began > limit

    program = FactorProgram(form)
    interior = Interior(program)
    no_multipliers = np.zeros(program.general.size)
    first = _start(program, settings.seed)
    f = AugmentedLagrangian(program, first, no_multipliers, _first_penalty(program))

    best = _Round(f, np.zeros(form.c.size), np.inf, np.inf)
    last_lack = np.inf
    idle = 0
    tol = FIRST_GRADIENT
    lines = []
    iterations = 0
    for count in range(MAX_ROUNDS):
        size = sqrt(1.0 + abs(f.objective))
        found = minimise(f, tol * size, min(MAX_STEPS, steps_left), is_late)
        f = found.f
        iterations += found.steps
        steps_left -= found.steps
        here = _measured(program, f, interior, goal, settings.seed)
        lines.append(
            f"{count:3} steps {found.steps:4} value {-f.objective:.9e} gap {here.gap:.1e} "
            f"equations {here.lack:.1e} penalty {f.sigma:.0e}"
        )
        idle = 0 if here.error < PROGRESS * best.error else idle + 1
        if here.error <= best.error:
            best = here
        if best.error <= goal or is_late() or steps_left <= 0 or idle > MAX_IDLE_ROUNDS:
            break

        closes = here.lack <= max(CLOSING * last_lack, goal)
        last_lack = here.lack
        sigma = f.sigma if closes else PENALTY_GROWTH * f.sigma
        f = AugmentedLagrangian(program, f.at, f.z - f.sigma * f.r, sigma)
        # A minimum is worth as much as the equations that it meets.
        tol = GRADIENT_FACTOR * min(tol if closes else np.inf, max(here.lack, tol))
        tol = min(max(tol, LAST_GRADIENT), FIRST_GRADIENT)

    stop = Stop.STALLED
    if best.error <= goal:
        stop = Stop.OPTIMAL
    elif is_late():
        stop = Stop.TIME_LIMIT
    elif steps_left <= 0:
        stop = Stop.ITERATION_LIMIT
    allowed = SETTLING_SHARE * settings.tol * (1.0 + abs(best.f.objective))
    return Answer(
        stop,
        settled(program, best.x, interior, allowed),
        _inside(program, best.f, interior, settings.tol),
        iterations=iterations,
        seconds=time.perf_counter() - began,
        native=f"{stop.words}: gap {best.gap:.1e}, equations {best.lack:.1e}",
        log="\n".join(lines) if settings.log else "",
    )


def _first_penalty(program: FactorProgram) -> float:
    """A penalty that weighs equations of size c about as much as an objective of size b."""
    objective = float(np.linalg.norm(program.b))
    return PENALTY * (1.0 + objective) / (1.0 + float(np.linalg.norm(program.c_general)))


def _start(program: FactorProgram, seed: int) -> Factors:
    """Random factors of a rank without spurious minima, on their spheres."""
    rng = np.random.default_rng(seed)
    rank = ceil(sqrt(2.0 * program.c.size)) + 1
    matrices = []
    for block, length in zip(program.blocks, program.lengths, strict=True):
        columns = min(block.order, rank)
        V = rng.normal(size=(block.order, columns)) / sqrt(columns)
        matrices.append(on_spheres(V, length))
    roots = rng.uniform(0.5, 1.0, program.squares.stop - program.squares.start)
    return Factors(np.zeros(program.free.stop), roots, tuple(matrices))


def _measured(
    program: FactorProgram, f: AugmentedLagrangian, interior: Interior, goal: float, seed: int
) -> _Round:
    """What a minimum is worth: its gap by multipliers moved into their cones, and its equations."""
    size = 1.0 + abs(f.objective)
    x, short = raised(program, point_of(program, f), interior, goal * size, seed)
    # Without a direction into the cones, what they lack stands for the gap.
    gap = abs(f.objective + float(program.form.c @ x)) / size
    lack = float(np.linalg.norm(f.r)) / (1.0 + float(np.linalg.norm(program.c_general)))
    return _Round(f, x, max(gap, short), lack)


def _inside(
    program: FactorProgram, f: AugmentedLagrangian, interior: Interior, tol: float
) -> FloatArray:
    """The multipliers VV', moved towards an interior point by what the tolerance allows."""
    inside = interior.matrix(f.y)
    if inside is None:
        return whole_multipliers(program, f, f.y, 0.0)
    cost = abs(float(program.b @ (inside - f.y)))
    allowed = INTERIOR_SHARE * tol * (1.0 + abs(f.objective))
    share = MAX_INTERIOR_SHARE if cost == 0 else min(MAX_INTERIOR_SHARE, allowed / cost)
    return whole_multipliers(program, f, inside, share)
