"""SVM and SVR duals by LIBSVM, through scikit-learn, recovered to full accuracy.

LIBSVM minimises x'Qx/2 - 1'x over 0 <= x <= C_i, y'x = 0 and its twin for regression, until the
worst pair of multipliers violates optimality by at most eps. It keeps Q in single precision, so
that its point is off by 1e-7 of the terms, which C multiplies; but its face is right. Where the gap
is not yet what was asked for, the point is moved to the minimiser on that face in double precision
(`klopt.numerics.box_qp.active_set`), which takes one or two factorisations.

The call is scikit-learn's own inner one, whose arguments have not changed for years: `SVC.fit`
spends four times the run at 200 points on validation. Should it ever change, `SVC` and `SVR` take
over.
"""

from __future__ import annotations

import importlib.metadata
import time
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Step, Stop
from klopt.model.cones import Feature
from klopt.model.forms import Form, SimplexForm, Start
from klopt.numerics.box_qp.active_set import solve_on_face
from klopt.solvers._native.options import POSITIVE, SWITCH, check_options, iteration_limit
from klopt.solvers._native.svm_structure import Machine, as_svm


class Libsvm(Backend):
    """SVM and SVR duals by LIBSVM.

    Raw options: `shrinking`, and `cache_size` in MB. Without `max_iter` it stops after 10000 + 50 n
    iterations.
    """

    name = "libsvm"
    library = "sklearn"
    offers = frozenset({Feature.SIMPLEX, Feature.MARGIN, Feature.BOX})
    honours = frozenset({"tol", "max_iter", "threads", "seed"})
    rank = 8
    references = ("chang2011", "pedregosa2011")

    @property
    def missing(self) -> str:
        return super().missing.replace("install sklearn", "install scikit-learn")

    @property
    def version(self) -> str:
        return "unknown" if self.missing else importlib.metadata.version("scikit-learn")

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        check_options(self.name, settings.raw, {"shrinking": SWITCH, "cache_size": POSITIVE}, {})
        began = time.perf_counter()
        assert isinstance(form, SimplexForm)
        machine = as_svm(form)
        if isinstance(machine, str):
            return Answer(Stop.REJECTED, native=machine)
        limit = iteration_limit(settings.max_iter or 10_000 + 50 * len(machine.K))
        eps = min(max(settings.tol, 1e-7), 1e-3)
        support, coefficients, iterations, ended = _fit(machine, eps, limit, settings.raw)
        coefficient = np.zeros(len(machine.K))
        coefficient[support] = machine.gradient * coefficients
        x = np.clip(machine.spread(coefficient), 0.0, machine.qp.box.upper)
        found = solve_on_face(machine.qp, x, settings.tol / 4)
        stop = Stop.OPTIMAL if ended or found.stop is Stop.OPTIMAL else Stop.ITERATION_LIMIT
        seconds, value = time.perf_counter() - began, found.value
        history = (Step(iterations, seconds, value - found.gap, value),)
        return Answer(
            stop,
            found.x,
            iterations=iterations,
            seconds=seconds,
            native=found.native,
            history=history,
        )


BACKEND = Libsvm()


def _fit(
    machine: Machine, eps: float, limit: int, raw: Any
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Run LIBSVM on gradients of size 1. Return the support, its coefficients, iterations, whether it ended by itself."""
    C = float(machine.box.max()) / machine.gradient
    weights = machine.box / machine.box.max()
    regression = machine.down is not None
    target = (
        machine.target / machine.gradient if regression else np.where(machine.target > 0, 1.0, 0.0)
    )
    options = {"C": C, "tol": eps, "max_iter": limit, "shrinking": 1, "cache_size": 200.0, **raw}
    epsilon = machine.epsilon / machine.gradient
    try:
        from sklearn.svm import _libsvm as native

        native.set_verbosity_wrap(0)
        answer = native.fit(
            machine.K,
            target,
            svm_type=3 * regression,
            kernel="precomputed",
            epsilon=epsilon,
            sample_weight=weights,
            **options,
        )
        support, coefficients, status, iterations = answer[0], answer[3], answer[7], answer[8]
    except (ImportError, AttributeError, TypeError, IndexError):
        return _fit_in_public(machine, target, weights, epsilon, options)
    return support, coefficients[0], int(np.ravel(iterations)[0]), not status


def _fit_in_public(
    machine: Machine,
    target: FloatArray,
    weights: FloatArray,
    epsilon: float,
    options: dict[str, Any],
) -> tuple[FloatArray, FloatArray, int, bool]:
    import warnings

    from sklearn.svm import SVC, SVR

    options = {**options, "shrinking": bool(options["shrinking"]), "kernel": "precomputed"}
    model = SVC(**options) if machine.down is None else SVR(epsilon=epsilon, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(machine.K, target, weights)
    return (
        model.support_,
        model.dual_coef_[0],
        int(np.ravel(model.n_iter_)[0]),
        not model.fit_status_,
    )
