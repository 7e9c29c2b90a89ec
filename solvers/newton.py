"""Newton's method for smooth convex functions over boxes, planes, simplices and their products.

Each iteration minimises the quadratic model of the function over the set and searches along the way
there (`klopt.numerics.newton`).
"""

from __future__ import annotations

from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm
from klopt.numerics.newton import newton_iterates
from klopt.numerics.newton_step import supported
from klopt.solvers._first_order.loop import deadline_of, iterate, starting_point


class Newton(Backend):
    """A handful of iterations, each with one quadratic program.

    Takes functions that know their curvature.
    """

    name = "newton"
    offers = frozenset({Feature.SIMPLEX, Feature.CURVED, Feature.BOX, Feature.PRODUCT})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})
    rank = 15
    accuracy = 1e-9

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_raw(self.name, settings.raw, (), {})
        assert isinstance(form, SimplexForm)
        if not supported(form.domain):
            only = "only boxes, planes, simplices and products of them"
            return Answer(Stop.REJECTED, native=only)
        x = None if start is None else starting_point(form.domain, start.x)
        steps = newton_iterates(form, x, settings.tol, deadline_of(settings))
        return iterate(steps, settings)


BACKEND = Newton()
