"""Large sparse semidefinite programs over a factor V of X = VV' (Burer and Monteiro, 2003).

The matrices of the program are never formed while it is solved, only their entries that the data
touch: a step costs what a product of the sparse slack with V costs. Rows of V whose length an
equation fixes, as in the relaxation of a maximum cut, move on spheres; other equations are met by an
augmented Lagrangian. The multipliers give a slack whose smallest eigenvalue, by Lanczos' method,
tells how far it is from the cone; both matrices are returned inside their cones, so that klopt's
proof has room. It has no proof of infeasibility.
"""

from __future__ import annotations

from dataclasses import replace

from klopt.model.backend import Answer, Backend, Settings, Start, check_raw
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._low_rank.method import solve_factored
from klopt.solvers._low_rank.orientation import as_inequality

__all__ = ["BACKEND", "LowRankSdp"]

BYTES_PER_ENTRY = 60.0
"""Bytes for each entry of a dense matrix: VV' in full, its triangle, and what assembles them."""


class LowRankSdp(Backend):
    """Sparse programs with thousands of rows in a matrix whose rank is low at the optimum."""

    name = "low_rank_sdp"
    rank = 41
    references = ("burer2003", "boumal2016")
    offers = frozenset({Feature.CONE, Feature.PSD})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what the method claims about a semidefinite program."""
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, ConeForm)
        inequality, back = as_inequality(form)
        found = solve_factored(inequality, settings)
        assert found.x is not None
        assert found.y is not None
        x, y = back(found.x, found.y)
        return replace(found, x=x, y=y)

    def memory(self, form: Form) -> float:
        """Return the bytes of the dense matrices that it returns."""
        if not isinstance(form, ConeForm):
            return 0.0
        return BYTES_PER_ENTRY * sum(float(order) ** 2 for order in form.cones.psd)


BACKEND = LowRankSdp()
