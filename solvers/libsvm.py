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
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Backend, Settings, Step, Stop
from klopt.model.features import Feature
from klopt.model.forms import Form, SimplexForm, Start
from klopt.numerics.box_qp.active_set import solve_on_face
from klopt.solvers._native.options import INT32_MAX, POSITIVE, SWITCH, check_options
from klopt.solvers._native.svm_structure import SvmDual, as_svm

OPTIONS = {"shrinking": SWITCH, "cache_size": POSITIVE}
MIN_EPS = 1e-7
"""The smallest violation that single precision can be asked for."""
MAX_EPS = 1e-3
"""The largest violation at which the face is still right."""
CACHE_SIZE_MB = 200.0


class Libsvm(Backend):
    """SVM and SVR duals by LIBSVM.

    Raw options: `shrinking`, and `cache_size` in MB. Without `max_iter` it stops after 10000 + 50 n
    iterations.
    """

    name = "libsvm"
    library = "sklearn"
    install_hint = "pip install scikit-learn"
    offers = frozenset({Feature.SIMPLEX, Feature.MARGIN, Feature.BOX})
    honours = frozenset({"tol", "max_iter", "threads", "seed"})
    rank = 8
    references = ("chang2011", "pedregosa2011")

    @property
    def version(self) -> str:
        return "unknown" if self.missing else importlib.metadata.version("scikit-learn")

    def load(self) -> None:
        """Import the part of scikit-learn that has LIBSVM."""
        import sklearn.svm  # noqa: F401

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        if settings.raw:
            check_options(self.name, settings.raw, OPTIONS, {})
        began = time.perf_counter()
        assert isinstance(form, SimplexForm)
        svm = as_svm(form)
        if isinstance(svm, str):
            return Answer(Stop.REJECTED, native=svm)

        eps = min(max(settings.tol, MIN_EPS), MAX_EPS)
        limit = min(settings.max_iter or 10_000 + 50 * len(svm.K), INT32_MAX)
        fit = _fit(svm, eps, limit, settings.raw)

        # Back from LIBSVM's units to the variables of the form, then polished on their face.
        coefficient = np.zeros(len(svm.K))
        coefficient[fit.support] = svm.unit * fit.coefficients
        x = np.clip(svm.spread(coefficient), 0.0, svm.qp.box.upper)
        found = solve_on_face(svm.qp, x, settings.tol / 4)
        seconds = time.perf_counter() - began
        converged = fit.converged or found.stop is Stop.OPTIMAL
        end = Step(fit.iterations, seconds, found.value - found.gap, found.value)
        return Answer(
            Stop.OPTIMAL if converged else Stop.ITERATION_LIMIT,
            found.x,
            iterations=fit.iterations,
            seconds=seconds,
            native=found.native,
            history=(end,),
        )


BACKEND = Libsvm()


class _Fit(NamedTuple):
    """What LIBSVM returns: the support vectors and their coefficients, in units of its own."""

    support: FloatArray
    coefficients: FloatArray
    iterations: int
    converged: bool


def _fit(svm: SvmDual, eps: float, limit: int, raw: Mapping[str, Any]) -> _Fit:
    """Run LIBSVM on linear terms of size 1.

    Parameters
    ----------
    svm
        The support vector machine.
    eps
        The violation of optimality that ends LIBSVM.
    limit
        The limit of its iterations.
    raw
        Its options.
    """
    largest_C = float(svm.C.max())
    weights = svm.C / svm.C.max()
    # scikit-learn's classes are 0 and 1.
    if svm.is_regression:
        target = svm.target / svm.unit
    else:
        target = np.where(svm.target > 0, 1.0, 0.0)
    options = {
        "C": largest_C / svm.unit,
        "tol": eps,
        "max_iter": limit,
        "shrinking": 1,
        "cache_size": CACHE_SIZE_MB,
        **raw,
    }
    epsilon = svm.epsilon / svm.unit
    try:
        from sklearn.svm import _libsvm as native

        native.set_verbosity_wrap(0)
        answer = native.fit(
            svm.K,
            target,
            svm_type=3 if svm.is_regression else 0,
            kernel="precomputed",
            epsilon=epsilon,
            sample_weight=weights,
            **options,
        )
        iterations = int(np.ravel(answer[8])[0])
        return _Fit(answer[0], answer[3][0], iterations, converged=not answer[7])
    except (ImportError, AttributeError, TypeError, IndexError):
        # Its arguments or its answer have changed.
        return _fit_in_public(svm, target, weights, epsilon, options)


def _fit_in_public(
    svm: SvmDual,
    target: FloatArray,
    weights: FloatArray,
    epsilon: float,
    options: dict[str, Any],
) -> _Fit:
    """The same run through scikit-learn's public estimators; the arguments are those of LIBSVM."""
    from sklearn.svm import SVC, SVR

    options = {**options, "shrinking": bool(options["shrinking"]), "kernel": "precomputed"}
    model = SVR(epsilon=epsilon, **options) if svm.is_regression else SVC(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(svm.K, target, weights)
    iterations = int(np.ravel(model.n_iter_)[0])
    return _Fit(model.support_, model.dual_coef_[0], iterations, converged=not model.fit_status_)
