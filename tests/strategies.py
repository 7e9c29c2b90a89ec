"""Hypothesis strategies and builders that tests share: programs with known solutions, Gram matrices, labels.

Every builder is a pure function of a NumPy generator; every strategy draws a seed and some sizes
and calls one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import settings, strategies as st
from scipy import sparse

from klopt.conformance.instances import Instance
from klopt.conformance.planted import Kind, planted_cone_program
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

__all__ = [
    "TINY_LP",
    "at_most",
    "bounded_pair",
    "bounded_pairs",
    "exact_value",
    "few_bits",
    "generators",
    "gram",
    "grams",
    "known_pairs",
    "labels",
    "margin_form",
    "planted_cone_program",
    "radial_gram",
    "signs",
]

TINY_LP = """NAME tiny
ROWS
 N cost
 G enough
COLUMNS
 x cost 1 enough 1
 y cost 1 enough 2
RHS
 RHS enough 2
ENDATA
"""
"""A model in MPS format: the least x + y with x + 2y >= 2 and no negative numbers, which is 1."""


def at_most(examples: int) -> settings:
    """Return settings for a costly law: so many examples, or as few as the profile asks for."""
    return settings(max_examples=min(examples, settings().max_examples))


generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def known_pairs(draw, kind: Kind, slater: bool = True) -> Instance:
    """Cone programs built from their optimal pair, with fewer variables than rows."""
    n, more = draw(st.integers(2, 7)), draw(st.integers(6, 18))
    return planted_cone_program(draw(generators), kind, n, n + more, slater=slater)


def few_bits(values: np.ndarray) -> np.ndarray:
    """Multiples of 2^-10: sums of products of three of them are computed without rounding."""
    return np.round(values * 2**10) / 2**10


def exact_value(form: ConeForm, x: np.ndarray) -> Fraction:
    """x'Px/2 + c'x as a rational number."""
    z = [Fraction(float(v)) for v in x]
    total = sum((Fraction(float(v)) * w for v, w in zip(form.c, z, strict=True)), Fraction(0))
    if form.P is not None:
        for i, row in enumerate(form.P.toarray().tolist()):
            total += (
                sum((Fraction(v) * z[i] * z[j] for j, v in enumerate(row) if v), Fraction(0)) / 2
            )
    return total


def bounded_pair(rng: np.random.Generator, n: int, quadratic: bool) -> Instance:
    """A linear or quadratic program, mostly of scaled, repeated bounds, built from its exact pair."""
    general = few_bits(rng.normal(size=(max(n // 2, 1), n)))
    picked = rng.integers(n, size=2 * n)
    bounds = sparse.csr_array(
        (rng.choice([-4.0, -1.0, 0.5, 2.0], 2 * n), (np.arange(2 * n), picked)), shape=(2 * n, n)
    )
    A = sparse.vstack([general, bounds], format="csr")
    fixed = int(rng.integers(2))
    A = sparse.vstack([A[-fixed:], A[:-fixed]]) if fixed else A
    active = rng.random(A.shape[0]) < 0.4
    active[:fixed] = True
    amount = few_bits(rng.uniform(0.5, 2.0, A.shape[0]))
    y = np.where(active, amount, 0.0)
    y[:fixed] *= rng.choice([-1.0, 1.0])
    x = few_bits(rng.normal(size=n))
    factor = few_bits(rng.normal(size=(int(rng.integers(1, n + 1)), n)))
    P = factor.T @ factor if quadratic else None
    c = -A.T @ y - (0.0 if P is None else P @ x)
    form = ConeForm(
        c, A, A @ x + np.where(active, 0.0, amount), Cones(fixed, A.shape[0] - fixed), P
    )
    return Instance("bounded_pair", form, value=form.value(x), x=x, y=y)


@st.composite
def bounded_pairs(draw, quadratic: bool) -> Instance:
    """Programs with many bounds; some variables are fixed by two of them."""
    return bounded_pair(draw(generators), draw(st.integers(2, 12)), quadratic)


def gram(rng: np.random.Generator, n: int, rank: int) -> np.ndarray:
    """A kernel matrix of n points in general position, of the given rank: a linear kernel."""
    factor = rng.normal(size=(n, rank))
    return factor @ factor.T


def radial_gram(rng: np.random.Generator, n: int, dimension: int = 3) -> np.ndarray:
    """The Gaussian kernel matrix of n random points: full rank, rapidly falling eigenvalues."""
    points = rng.normal(size=(n, dimension))
    norms = np.sum(points**2, axis=1)
    return np.exp(-np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0.0) / dimension)


def signs(rng: np.random.Generator, n: int) -> np.ndarray:
    """Labels +1 and -1, both present, for n >= 2 points."""
    y = rng.choice([-1.0, 1.0], n)
    y[rng.choice(n, 2, replace=False)] = (1.0, -1.0)
    return y


@st.composite
def grams(draw, largest: int = 12) -> np.ndarray:
    """Kernel matrices of every rank, radial and linear, on scales from 1e-4 to 1e4."""
    rng, n = draw(generators), draw(st.integers(2, largest))
    K = radial_gram(rng, n) if draw(st.booleans()) else gram(rng, n, draw(st.integers(1, n)))
    return K * 10.0 ** draw(st.integers(-4, 4))


def labels(n: int) -> st.SearchStrategy[np.ndarray]:
    """Labels of n points, both classes present."""
    return generators.map(lambda rng: signs(rng, n))


def margin_form(K: np.ndarray, y: np.ndarray, C: float) -> ConeForm:
    """The soft-margin dual as a plain quadratic program: y'a = 0, 0 <= a <= C, minimise a'(yy' * K)a/2 - 1'a."""
    n, unit = y.size, sparse.eye_array(y.size)
    A = sparse.vstack([sparse.csr_array(y[None, :]), -unit, unit])
    b = np.concatenate([np.zeros(n + 1), np.full(n, C)])
    return ConeForm(-np.ones(n), A, b, Cones(1, 2 * n), K * np.outer(y, y))
