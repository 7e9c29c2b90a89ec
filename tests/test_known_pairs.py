"""Programs built from their optimal pair are certified by every backend that takes them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import at_most, known_pairs, planted_cone_program
from test_native import BACKENDS, KINDS, PAIRS

import klopt
from klopt import ConeForm, Cones, Verdict
from klopt.conformance.instances import FormProblem, Instance
from klopt.solvers import clarabel
from klopt.witness.cone_interior import centre

CURVED = KINDS[2:]
EIGHT = ("clarabel", "highs")


@pytest.mark.parametrize(("backend", "kind"), PAIRS)
@at_most(10)
@given(data=st.data())
def test_known_pairs_are_certified(backend, kind, data) -> None:
    # Semidefinite multipliers with little room are proven to some 1e-7 (the test below).
    tol = 1e-8 if backend.name in EIGHT and kind != "sdp" else 1e-6
    certified(backend, data.draw(known_pairs(kind)), tol)


def test_a_known_pair_whose_multipliers_have_little_room() -> None:
    instance = planted_cone_program(np.random.default_rng(7), "sdp", 7, 13)
    certified(clarabel.BACKEND, instance, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kind"), PAIRS)
def test_many_known_pairs_are_certified(backend, kind) -> None:
    """Forty larger ones, 120 where `KLOPT_HYPOTHESIS` is `ci`; the campaign is `thorough`: 2000."""
    for seed in range(4 * settings().max_examples):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        instance = planted_cone_program(rng, kind, n, n + int(rng.integers(6, 19)))
        certified(backend, instance, 1e-8 if backend.name in EIGHT else 1e-6)


def certified(backend: klopt.Backend, instance: Instance, tol: float) -> None:
    result = klopt.solve(FormProblem(instance.form), backend, tol=tol, isolate=False)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.certificate.proof == "bracket"
    rounding = 1e-12 * (1 + abs(instance.value))
    assert result.lower - rounding <= instance.value <= result.upper + rounding


@pytest.mark.parametrize("kind", CURVED)
@at_most(10)
@given(data=st.data())
def test_curved_known_pairs_have_slater_points(kind, data) -> None:
    """The largest t with b - Ax - t e in K is positive; where K is self-dual, so is that with y - t e in K*."""
    form = data.draw(known_pairs(kind)).form
    e = centre(form.cones)
    A = np.hstack([form.A.toarray(), e[:, None]])
    assert depth(A, form.b, form.cones) > 1e-3
    if form.cones.is_symmetric:
        m, n = form.shape
        slack = np.hstack([-np.eye(m), e[:, None]])[form.cones.zero :]
        A = np.vstack([np.hstack([form.A.T.toarray(), np.zeros((n, 1))]), slack])
        cones = Cones(n, form.cones.nonneg, form.cones.soc, form.cones.psd)
        assert depth(A, np.concatenate([-form.c, np.zeros(len(slack))]), cones) > 1e-3


def depth(A: np.ndarray, b: np.ndarray, cones: Cones) -> float:
    """A proven lower bound of the largest last variable, which is at most 1."""
    last = np.eye(A.shape[1])[-1:]
    wide = np.vstack([A[: cones.zero], last, A[cones.zero :]])
    tall = np.concatenate([b[: cones.zero], [1.0], b[cones.zero :]])
    more = attrs.evolve(cones, nonneg=cones.nonneg + 1)
    return -klopt.solve(FormProblem(ConeForm(-last[0], wide, tall, more)), "clarabel").upper


def test_every_kind_has_its_backends() -> None:
    taken = {kind: [p.values[0].name for p in PAIRS if p.values[1] == kind] for kind in KINDS}
    assert all(len(names) >= 3 for names in taken.values())
    assert {name for names in taken.values() for name in names} == {
        backend.name for backend in BACKENDS
    }
