"""The native backends on programs whose solutions, gradients and contradictions are known."""

from __future__ import annotations

import importlib.util
import tracemalloc

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from strategies import known_pairs, planted_cone_program

import klopt
from klopt.errors import InvalidSettings
from klopt.model.backend import Settings, Start, Stop
from klopt.model.cones import Cones, svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.solvers import clarabel, cvxpy, ecos, highs, scs
from klopt.solvers._native.cvxpy_model import constraints_of, multipliers_of

BACKENDS = [
    module.BACKEND for module in (highs, clarabel, ecos, scs, cvxpy) if not module.BACKEND.missing
]
PROVERS = [backend for backend in BACKENDS if {"farkas", "ray"} <= backend.proves]
KINDS = ("lp", "qp", "socp", "sdp", "exp", "power")
NEEDS = {kind: planted_cone_program(np.random.default_rng(0), kind).form.needs for kind in KINDS}
PAIRS = [
    pytest.param(backend, kind, id=f"{backend.name}-{kind}")
    for backend in BACKENDS
    for kind in KINDS
    if NEEDS[kind] <= backend.offers
]
every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
every_prover = pytest.mark.parametrize("backend", PROVERS, ids=lambda backend: backend.name)

LP = ConeForm(
    [-1.0, -2.0], [[1, 1], [1, 3], [-1, 0], [0, -1]], [4.0, 6.0, 0.0, 0.0], Cones(nonneg=4)
)
QP = ConeForm(
    [-4.0, -1.0, 0.5],
    [[1, 1, 1], [1, 0, 2], [0, -1, 0]],
    [1.0, 1.2, -0.1],
    Cones(1, 2),
    np.diag([2.0, 1.0, 0.0]),
)


def optimum(backend, form, tol=1e-6):
    answer = backend.run(form, Settings(tol=tol))
    assert answer.stop is Stop.OPTIMAL, answer.native
    return answer


@pytest.mark.parametrize(("backend", "kind"), PAIRS)
@given(data=st.data())
def test_known_pairs_are_solved(backend, kind, data):
    instance = data.draw(known_pairs(kind))
    answer = optimum(backend, instance.form)
    residuals = instance.form.measure(answer.x, answer.y)
    assert residuals.worst <= 1e-6
    assert abs(residuals.value - instance.value) <= 2e-6 * (1 + abs(instance.value))
    assert answer.iterations >= 0
    assert answer.seconds > 0
    assert answer.native


@pytest.mark.parametrize(
    ("backend", "kind"), [p for p in PAIRS if p.values[0].name in ("clarabel", "highs")]
)
@given(data=st.data())
def test_clarabel_and_highs_reach_eight_digits(backend, kind, data):
    instance = data.draw(known_pairs(kind))
    # Asked for 1e-10, Clarabel may say that it almost got there: what counts is measured.
    answer = backend.run(instance.form, Settings(tol=1e-8))
    assert answer.stop in (Stop.OPTIMAL, Stop.ALMOST_OPTIMAL), answer.native
    assert instance.form.measure(answer.x, answer.y).worst <= 1e-8


@every_backend
@pytest.mark.parametrize("form", [LP, QP], ids=["lp", "qp"])
def test_multipliers_are_the_gradients_of_the_value(backend, form):
    if not form.needs <= backend.offers:
        pytest.skip("takes no quadratic objective")
    y = optimum(backend, form, 1e-8).y
    step = 1e-4
    for row in range(form.b.size):
        change = step * (np.arange(form.b.size) == row)
        up, down = (
            form.value(optimum(backend, attrs.evolve(form, b=form.b + d), 1e-9).x)
            for d in (change, -change)
        )
        assert (up - down) / (2 * step) == pytest.approx(-y[row], abs=1e-3)


INFEASIBLE = {
    "rows": ConeForm([1, 1], [[1, 1], [-1, -1]], [1.0, -2.0], Cones(nonneg=2)),
    "equations": ConeForm([1, 1], [[1, 1], [2, 2]], [1.0, 3.0], Cones(zero=2)),
    "bounds": ConeForm([0, 0], [[1, 1], [2, 0], [-1, 0]], [9.0, 2.0, -3.0], Cones(nonneg=3)),
    "row_and_bounds": ConeForm([0, 0], [[1, 1], [-1, 0], [0, -1]], [1.0, -1.0, -0.5], Cones(1, 2)),
    "quadratic": ConeForm(
        [1, 1], [[1, 1], [-1, 0], [0, -1]], [-1.0, 0.0, 0.0], Cones(nonneg=3), np.eye(2)
    ),
    "disc": ConeForm(
        [1, 0],
        [[-1, -1], [0, 0], [-1, 0], [0, -1]],
        [-9.0, 1.0, 0.0, 0.0],
        Cones(nonneg=1, soc=(3,)),
    ),
    "triangle": ConeForm([0], [[1], [0], [-1]], [-1.0, 0.0, -1.0], Cones(psd=(2,))),
    "exponential": ConeForm(
        [0, 0],
        [[-1, 0], [0, 1], [-1, 0], [0, 0], [0, -1]],
        [0.0, 0.5, 0.0, 1.0, 0.0],
        Cones(nonneg=2, exp=1),
    ),
    "power": ConeForm(
        [0, 0],
        [[1, 0], [0, 1], [0, 0], [0, 0], [0, 0]],
        [1.0, 1.0, 1.0, 1.0, 2.0],
        Cones(nonneg=2, power=(0.25,)),
    ),
}
UNBOUNDED = {
    "linear": ConeForm([-1, 0], [[-1, 0], [0, 1]], [0.0, 1.0], Cones(nonneg=2)),
    "equation": ConeForm([-1, 0], [[1, -1], [-1, 0]], [1.0, 0.0], Cones(1, 1)),
    "quadratic": ConeForm(
        [0, -1], [[-1, 0], [0, -1]], [0.0, 0.0], Cones(nonneg=2), np.diag([1.0, 0.0])
    ),
    "ice_cream": ConeForm([-1, 0, 0], -np.eye(3), [0.0, 0.0, 1.0], Cones(soc=(3,))),
    "triangle": ConeForm([-1, 0, 0], -np.eye(3), [0.0, 0.0, 1.0], Cones(psd=(2,))),
    "exponential": ConeForm([1, 0], [[-1, 0], [0, 0], [0, -1]], [0.0, 1.0, 0.0], Cones(exp=1)),
    "power": ConeForm([-1, 0, 0], -np.eye(3), [0.0, 1.0, 0.0], Cones(power=(0.25,))),
}


@every_prover
@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasibility_comes_with_a_contradiction(backend, name):
    form = INFEASIBLE[name]
    if not form.needs <= backend.offers:
        pytest.skip("does not take it")
    answer = backend.run(form, Settings())
    assert answer.stop is Stop.INFEASIBLE
    y = answer.farkas / -(form.b @ answer.farkas)
    assert form.b @ answer.farkas < 0
    assert np.abs(form.A.T @ y).max() <= 1e-6
    assert form.cones.dual_distance(y) <= 1e-6


@every_prover
@pytest.mark.parametrize("name", UNBOUNDED)
def test_unboundedness_comes_with_a_ray(backend, name):
    form = UNBOUNDED[name]
    if not form.needs <= backend.offers:
        pytest.skip("does not take it")
    answer = backend.run(form, Settings())
    assert answer.stop is Stop.UNBOUNDED
    d = answer.ray / -(form.c @ answer.ray)
    assert form.c @ answer.ray < 0
    assert np.abs(form.curve(d)).max() <= 1e-6
    assert form.cones.distance(-form.A @ d) <= 1e-6


@pytest.mark.parametrize(
    "backend", [b for b in BACKENDS if Feature.PSD in b.offers], ids=lambda backend: backend.name
)
def test_triangles_are_lower_ones_by_columns(backend):
    """The largest corner entry that completes a correlation matrix: the two triangles give different programs."""
    r, s = 0.5, -0.3
    form = ConeForm(
        [-1.0], [[0], [0], [-np.sqrt(2)], [0], [0], [0]], svec(corner(0.0, r, s)), Cones(psd=(3,))
    )
    best = r * s + np.sqrt((1 - r**2) * (1 - s**2))
    answer = optimum(backend, form)
    assert answer.x[0] == pytest.approx(best, abs=1e-6)
    assert form.measure(answer.x, answer.y).worst <= 1e-6


def corner(value, r, s):
    return np.array([[1.0, r, value], [r, 1.0, s], [value, s, 1.0]])


@pytest.mark.parametrize(
    "backend", [b for b in BACKENDS if Feature.EXP in b.offers], ids=lambda backend: backend.name
)
def test_exponential_cones_are_scale_second_value_third(backend):
    """The smallest z with 2 exp(1/2) <= z and, in a second cone, 1 exp(3) <= w."""
    A = np.zeros((6, 2))
    A[2, 0] = A[5, 1] = -1.0
    form = ConeForm([1.0, 1.0], A, [1.0, 2.0, 0.0, 3.0, 1.0, 0.0], Cones(exp=2))
    answer = optimum(backend, form)
    assert answer.x == pytest.approx([2 * np.exp(0.5), np.exp(3.0)], rel=1e-6)
    assert form.measure(answer.x, answer.y).worst <= 1e-6


@pytest.mark.parametrize(
    "backend", [b for b in BACKENDS if Feature.POWER in b.offers], ids=lambda backend: backend.name
)
def test_power_cones_have_the_exponent_of_their_first_row(backend):
    """The largest z, v with z <= 2^(1/4) 3^(3/4) and |v| <= 5^0.9 7^0.1."""
    A = np.zeros((6, 2))
    A[2, 0] = A[5, 1] = -1.0
    form = ConeForm([-1.0, 1.0], A, [2.0, 3.0, 0.0, 5.0, 7.0, 0.0], Cones(power=(0.25, 0.9)))
    answer = optimum(backend, form)
    assert answer.x == pytest.approx([2**0.25 * 3**0.75, -(5**0.9) * 7**0.1], rel=1e-6)
    assert form.measure(answer.x, answer.y).worst <= 1e-6


@pytest.mark.parametrize(
    "backend",
    [b for b in BACKENDS if Feature.GENERAL_POWER in b.offers],
    ids=lambda backend: backend.name,
)
def test_long_power_cones_take_their_exponents_in_order(backend):
    """The largest z <= 2^(1/6) 3^(2/6) 5^(3/6), beside a short cone and one of two rows."""
    A = np.zeros((9, 3))
    A[3, 0] = A[6, 1] = A[8, 2] = -1.0
    b = [2.0, 3.0, 5.0, 0.0, 2.0, 3.0, 0.0, 4.0, 0.0]
    form = ConeForm([-1.0, -1.0, 1.0], A, b, Cones(power=((1, 2, 3), 0.25, (1,))))
    answer = optimum(backend, form)
    best = [2 ** (1 / 6) * 3 ** (1 / 3) * 5**0.5, 2**0.25 * 3**0.75, -4.0]
    assert answer.x == pytest.approx(best, rel=1e-6)
    assert form.measure(answer.x, answer.y).worst <= 1e-6


@every_backend
def test_unknown_and_reserved_options_are_refused(backend):
    named = backend.variant("SCS") if backend.name == "cvxpy" else backend
    raw = {"no_such_option": 1}
    with pytest.raises(InvalidSettings, match="has no option 'no_such_option'"):
        named.run(LP, Settings(raw=raw))
    reserved = {
        "highs": "threads",
        "clarabel": "max_iter",
        "ecos": "abstol",
        "scs": "eps_abs",
        "cvxpy": "eps_abs",
    }
    with pytest.raises(InvalidSettings, match="is klopt's own"):
        named.run(LP, Settings(raw={reserved[backend.name]: 1}))
    assert raw == {"no_such_option": 1}


@pytest.mark.parametrize(
    ("backend", "raw", "text"),
    [
        (highs.BACKEND, {"presolve": 5}, "refused the option presolve = 5"),
        (clarabel.BACKEND, {"presolve_enable": "x"}, "refused the option presolve_enable = 'x'"),
        (cvxpy.BACKEND, {"eps_abs": 1.0}, "name it, as in backend='cvxpy:SCS'"),
        (highs.BACKEND, {"presolv": "off"}, "did you mean 'presolve'"),
    ],
)
def test_a_wrong_value_or_name_of_an_option_is_explained(backend, raw, text):
    with pytest.raises(InvalidSettings, match=text):
        backend.run(LP, Settings(raw=raw))


@pytest.mark.parametrize(
    ("backend", "raw"),
    [
        (highs.BACKEND, {"presolve": "off", "hipo_system": "choose"}),
        (clarabel.BACKEND, {"equilibrate_enable": False}),
        (ecos.BACKEND, {"nitref": 3}),
        (scs.BACKEND, {"linear_solver": "qdldl", "acceleration_lookback": 0}),
    ],
)
def test_known_options_are_passed_on_and_never_changed(backend, raw):
    before = dict(raw)
    answer = backend.run(LP, Settings(raw=raw))
    assert answer.stop is Stop.OPTIMAL
    assert raw == before


@every_backend
def test_one_iteration_ends_in_a_limit_with_a_point(backend):
    if "max_iter" not in backend.honours:
        pytest.skip("keeps no limit of iterations")
    instance = planted_cone_program(np.random.default_rng(1), "lp", 10, 30)
    answer = backend.run(instance.form, Settings(max_iter=1))
    assert answer.stop is Stop.ITERATION_LIMIT
    assert answer.iterations <= 1
    assert answer.x.shape == (10,)
    assert instance.form.measure(answer.x).value != pytest.approx(instance.value)


@every_backend
def test_two_runs_are_identical_and_leave_the_form_alone(backend):
    before = QP.c.copy(), QP.A.data.copy(), QP.b.copy()
    form = QP if QP.needs <= backend.offers else LP
    first, second = (backend.run(form, Settings()) for _ in range(2))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)
    assert all(np.array_equal(a, b) for a, b in zip(before, (QP.c, QP.A.data, QP.b), strict=True))


def test_scs_starts_where_it_is_told():
    instance = planted_cone_program(np.random.default_rng(4), "socp", 10, 30)
    cold = optimum(scs.BACKEND, instance.form)
    warm = scs.BACKEND.run(instance.form, Settings(), Start(instance.x, instance.y))
    assert warm.iterations < cold.iterations
    with pytest.raises(InvalidSettings, match="the start must hold 10 and"):
        scs.BACKEND.run(instance.form, Settings(), Start(np.full(10, np.nan)))


def test_ecos_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("klopt.model.backend._found", set())  # forget what was found before
    assert 'pip install "klopt[ecos]"' in ecos.BACKEND.missing
    assert scs.BACKEND.missing == "scs is not installed; pip install scs"


def test_variants_of_cvxpy_take_what_their_solver_takes():
    named = cvxpy.BACKEND.variant("osqp")
    assert named.name == "cvxpy:OSQP"
    assert named.offers == {Feature.CONE, Feature.QUADRATIC}
    assert cvxpy.BACKEND.variant("CLARABEL").offers == cvxpy.BACKEND.offers
    assert cvxpy.BACKEND.variant("SCIPY").offers == {Feature.CONE}
    assert cvxpy.BACKEND.name == "cvxpy"
    with pytest.raises(InvalidSettings, match="no solver 'CLARABELL'; did you mean 'CLARABEL'"):
        cvxpy.BACKEND.variant("CLARABELL")


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "HIGHS", "OSQP", "SCIPY", "SCS"])
def test_each_solver_behind_cvxpy_is_asked_for_the_tolerance(solver):
    backend = cvxpy.BACKEND.variant(solver)
    for kind in KINDS:
        if NEEDS[kind] <= backend.offers:
            form = planted_cone_program(np.random.default_rng(2), kind).form
            answer = optimum(backend, form, tol=1e-8)
            assert answer.native.startswith(
                f"{solver}: optimal"
            )  # or "optimal_inaccurate"; what counts is measured
            assert form.measure(answer.x, answer.y).worst <= 1e-6


def test_cvxpy_reports_limits_and_failures():
    limited = cvxpy.BACKEND.variant("CLARABEL").run(LP, Settings(max_iter=1))
    assert limited.stop is Stop.ITERATION_LIMIT
    failed = cvxpy.BACKEND.variant("OSQP").run(
        attrs.evolve(QP, P=np.diag([-1.0, 1.0, 1.0])), Settings()
    )
    assert failed.stop is Stop.NUMERICAL
    assert "OSQP" in failed.native


def badly_scaled_dense_qp(seed):
    rng = np.random.default_rng(seed)
    n, m, zero = 100, 20, 5
    F = rng.normal(size=(30, n)) * 10.0 ** rng.uniform(-4, 4, size=(30, 1))
    A = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, size=(m, 1))
    x, slack = rng.normal(size=n), np.maximum(rng.normal(size=m), 0) * (np.arange(m) >= zero)
    P = 0.01 * F.T @ F
    c = -P @ x - A.T @ (rng.uniform(size=m) * (slack == 0))
    return ConeForm(c, A, A @ x + slack, Cones(zero=zero, nonneg=m - zero), (P + P.T) / 2)


def test_clarabel_goes_without_refinement_only_where_it_is_content():
    unrefined = Settings(raw={"iterative_refinement_enable": False, "equilibrate_max_iter": 3})
    refined = Settings(raw={"iterative_refinement_enable": True})
    ends = []
    for seed in range(8):
        form = badly_scaled_dense_qp(seed)
        ours, quick, careful = (
            clarabel.BACKEND.run(form, how) for how in (Settings(), unrefined, refined)
        )
        assert ours.native == (quick.native if quick.native == "Solved" else careful.native)
        ends.append((quick.native, careful.native))
    assert ("AlmostSolved", "Solved") in ends, "no instance here needs refinement"


@pytest.mark.parametrize("kind", ["qp", "lp", "socp"])
def test_the_factorisations_of_scs_agree(kind):
    form = planted_cone_program(np.random.default_rng(3), kind, 10, 30).form
    values = [
        form.value(scs.BACKEND.run(form, Settings(tol=1e-8, raw=raw)).x)
        for raw in ({}, *({"linear_solver": name} for name in ("auto", "qdldl", "cpu_dense")))
    ]
    assert values == pytest.approx([values[0]] * 4, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("rows", "variables", "density", "quadratic", "chosen"),
    [
        (30, 10, 1.0, False, "cpu_dense"),
        (21, 10, 0.1, True, "cpu_dense"),  # an SVM: dense P, sparse A
        (2000, 10, 0.1, True, "qdldl"),  # many sparse rows, which a dense solver would multiply out
        (900, 300, 0.01, False, "qdldl"),
        (4000, 2000, 0.05, False, "auto"),
    ],
)
def test_scs_factors_as_dense_as_the_program_is(rows, variables, density, quadratic, chosen):
    A = sparse.random_array(
        (rows, variables), density=density, rng=np.random.default_rng(0), format="csc"
    )
    P = np.full((variables, variables), 0.1) + np.eye(variables) if quadratic else None
    form = ConeForm(np.ones(variables), A, np.ones(rows), Cones(nonneg=rows), P)
    assert scs._linear_solver(form) == chosen


CONES = Cones(zero=2, nonneg=2, soc=(3,), psd=(2,), exp=2, power=(0.5, 0.25, (1, 1, 2)))


@pytest.mark.parametrize("block", range(7))
@pytest.mark.parametrize("found", [np.ones(1), np.ones(9), None], ids=["one", "nine", "none"])
def test_dual_values_of_cvxpy_that_are_not_one_a_row_are_none(block, found):
    form = ConeForm(np.ones(2), np.ones((26, 2)), np.ones(26), CONES)
    library = pytest.importorskip("cvxpy")
    constraints = constraints_of(form, library.Variable(2))
    assert len(constraints) == 7
    for constraint in constraints:
        for part in constraint.dual_variables:
            part.save_value(np.ones(part.shape))
    expected = np.ones(26)
    # Of a matrix of ones.
    expected[7:10] = [1.0, np.sqrt(2.0), 1.0]
    assert multipliers_of(form, constraints).tolist() == expected.tolist()
    max(constraints[block].dual_variables, key=lambda part: part.size).save_value(found)
    assert multipliers_of(form, constraints) is None


def test_a_semidefinite_cone_is_handed_to_cvxpy_without_its_zeros():
    library = pytest.importorskip("cvxpy")
    order = 150
    rows = order * (order + 1) // 2
    form = ConeForm([1.0], np.ones((rows, 1)), np.ones(rows), Cones(psd=(order,)))
    tracemalloc.start()
    try:
        constraints_of(form, library.Variable(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A matrix of order^2 x rows would take 2 GB.
    assert peak < 50e6


HOSTILE = {
    "NaN": lambda x: np.full_like(x, np.nan),
    "infinite": lambda x: np.full_like(x, np.inf),
    "huge": lambda x: np.full_like(x, 1e308),
    "too few": lambda x: x[:-1],
    "too many": lambda x: np.append(x, 0.0),
    "a number": lambda x: np.array(1.0),
    "complex": lambda x: x + 1j,
    "texts": lambda x: x.astype(str),
    "objects": lambda x: np.full(x.shape, None),
    "none": lambda x: None,
}


@pytest.mark.parametrize("part", ["x", "y", "s"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_solver_behind_cvxpy_returns_is_a_claim(monkeypatch, kind, part):
    """min x + 2 y with x + y >= 1, x, y >= 0 is 1, whatever SCS says."""
    interface = pytest.importorskip("cvxpy.reductions.solvers.conic_solvers.scs_conif")
    solve = interface.SCS.solve_via_data

    def hostile(self, *arguments, **named):
        found = solve(self, *arguments, **named)
        return found | {part: HOSTILE[kind](np.asarray(found[part]))}

    monkeypatch.setattr(interface.SCS, "solve_via_data", hostile)
    program = klopt.problems.LP([1.0, 2.0], A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    result = klopt.solve(program, "cvxpy:SCS", isolate=False)
    assert result.lower <= 1.0 <= result.upper
    assert result.verdict.name in ("OPTIMAL", "ESTIMATED", "FEASIBLE", "UNPROVEN")
    # A slack is no part of an answer.
    if part == "s" and kind != "none":
        assert result.verdict.name == "OPTIMAL"
