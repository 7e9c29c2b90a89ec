"""Bounds over simple sets and of games hold in exact arithmetic, whatever point they are made from."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as Q

import numpy as np
import pytest
from hypothesis import given, strategies as st

import klopt
from klopt.arrays import FloatArray
from klopt.conformance.instances import FormProblem
from klopt.model.cones import svec
from klopt.model.forms import SimplexForm
from klopt.model.functions import Bilinear, KernelQuadratic, Linear, Objective, Quadratic
from klopt.model.problem import Bracket, Point
from klopt.model.sets import (
    BoxPlane,
    OrderedCone,
    OrderedSimplex,
    Product,
    SimpleSet,
    Simplex,
    Spectrahedron,
)
from klopt.problems.saddle_point import SaddlePoint
from klopt.problems.simplex_program import SimplexProgram
from klopt.proof.enclosure import Enclosure
from klopt.proof.function_bounds import nonconvexity
from klopt.proof.set_bounds import feasible_near, linear_floor, squared_reach
from klopt.witness.over_sets import point_next_to
from klopt.witness.plane_prices import plane_price

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 6)
scales = st.sampled_from([1.0, 2.0**-50, 2.0**40, 1e-9, 1e9, 1 / 3])
Rng = np.random.Generator


def rational(x: FloatArray) -> list[Q]:
    return [Q(float(v)) for v in x]


def dot(x: list[Q], y: list[Q]) -> Q:
    return sum((a * b for a, b in zip(x, y, strict=True)), Q(0))


# --- the exact minimum of a linear function, by vertices


def prefixes(weights: list[Q], price: list[Q], total: Q) -> list[list[Q]]:
    """The prefixes of the weights, scaled to the total price."""
    found = []
    for k in range(1, len(weights) + 1):
        cost = dot(weights[:k], price[:k])
        found.append([w * total / cost for w in weights[:k]] + [Q(0)] * (len(weights) - k))
    return found


def vertices_of_box(box: BoxPlane) -> list[list[Q]]:
    """The vertices of a bounded box, cut by its plane."""
    lower = rational(box.lower)
    upper = rational(box.upper)
    n = len(lower)
    if box.normal is None:
        return [list(corner) for corner in itertools.product(*zip(lower, upper, strict=True))]
    normal = rational(box.normal)
    found = []
    for free in range(n):
        if not normal[free]:
            continue
        others = [i for i in range(n) if i != free]
        for corner in itertools.product(*((lower[i], upper[i]) for i in others)):
            z = [Q(0)] * n
            for i, value in zip(others, corner, strict=True):
                z[i] = value
            z[free] = (Q(box.offset) - dot(normal, z)) / normal[free]
            if lower[free] <= z[free] <= upper[free]:
                found.append(z)
    return found


def vertices(domain: SimpleSet) -> list[list[Q]]:
    if isinstance(domain, Product):
        parts = [vertices(member) for member in domain.sets]
        return [list(itertools.chain(*choice)) for choice in itertools.product(*parts)]
    if isinstance(domain, Simplex):
        n = domain.n
        return [[Q(domain.total) * (i == j) for i in range(n)] for j in range(n)]
    if isinstance(domain, OrderedSimplex):
        e = [1 / Q(domain.sigma) ** i for i in range(domain.n)]
        return prefixes(e, [Q(1)] * domain.n, Q(domain.total))
    if isinstance(domain, OrderedCone):
        found = prefixes(rational(domain.steps), rational(domain.price), Q(domain.total))
        return [*found, [Q(0)] * domain.size]
    assert isinstance(domain, BoxPlane)
    return vertices_of_box(domain)


def random_set(rng: Rng, kind: str, n: int, scale: float) -> SimpleSet:
    if kind == "simplex":
        return Simplex(n, scale * float(rng.uniform(0.1, 3)))
    if kind == "ordered":
        sigma = float(rng.choice([1.0, 1.1, 2.0, 7.3]))
        return OrderedSimplex(n, sigma, scale * float(rng.uniform(0.1, 3)))
    if kind == "cone":
        steps = rng.uniform(0.1, 2, n) if rng.random() < 0.7 else np.ones(n)
        return OrderedCone(steps, rng.uniform(0.1, 2, n), scale * float(rng.uniform(0.1, 3)))
    if kind == "product":
        return Product((random_set(rng, "simplex", 2, scale), random_set(rng, "box", 2, scale)))
    lower = scale * rng.normal(size=n)
    upper = lower + scale * rng.uniform(0, 2, n) * (rng.random(n) < 0.9)
    if kind == "box":
        return BoxPlane(lower, upper)
    normal = rng.normal(size=n) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n)
    inside = lower + (upper - lower) * rng.uniform(0, 1, n)
    return BoxPlane(lower, upper, normal, float(normal @ inside))


KINDS = ("simplex", "ordered", "cone", "box", "plane", "product")
kinds = st.sampled_from(KINDS)


@given(seed=seeds, kind=kinds, n=sizes, scale=scales)
def test_a_linear_floor_is_below_the_exact_minimum_and_next_to_it(
    seed: int, kind: str, n: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    domain = random_set(rng, kind, n, scale)
    g = rng.normal(size=domain.size) * 10.0 ** rng.integers(-8, 9)
    x = scale * rng.normal(size=domain.size) * (rng.random() < 0.7)
    corners = vertices(domain)
    if not corners:  # a plane that misses its box by the rounding of its offset
        return
    exact = min(
        dot(rational(g), [a - b for a, b in zip(z, rational(x), strict=True)]) for z in corners
    )
    floor = linear_floor(domain, Enclosure.of(g), x, price=plane_price)
    size = sum(abs(a * b) for z in corners for a, b in zip(rational(g), z, strict=True))
    size += sum(abs(a * b) for a, b in zip(rational(g), rational(x), strict=True))
    assert Q(floor) <= exact
    assert Q(floor) >= exact - size * Q(1, 10**13)


@given(seed=seeds, kind=kinds, n=sizes)
def test_a_linear_floor_holds_for_all_functions_enclosed(seed: int, kind: str, n: int) -> None:
    rng = np.random.default_rng(seed)
    domain = random_set(rng, kind, n, 1.0)
    corners = vertices(domain)
    if not corners:
        return
    g = Enclosure(rng.normal(size=domain.size), rng.uniform(0, 0.3, domain.size))
    floor = linear_floor(domain, g, price=plane_price)
    for signs in itertools.product((-1, 1), repeat=domain.size):
        one = [Q(m) + s * Q(r) for m, r, s in zip(g.mid, g.rad, signs, strict=True)]
        assert Q(floor) <= min(dot(one, z) for z in corners)


@given(seed=seeds, scale=scales)
def test_the_floor_over_a_spectrahedron_is_below_the_smallest_eigenvalue(
    seed: int, scale: float
) -> None:
    """[[a, b / sqrt 2], [., c]] - t I is positive semidefinite: a rational question of b^2."""
    rng = np.random.default_rng(seed)
    a, b, c = scale * rng.integers(-5, 6, 3) + (rng.random() < 0.5) * rng.normal(size=3)
    floor = Q(linear_floor(Spectrahedron(2), Enclosure.of(np.array([a, b, c]))))
    first = Q(a) - floor
    last = Q(c) - floor
    assert first >= 0
    assert last >= 0
    assert first * last >= Q(b) ** 2 / 2


def test_an_infinite_side_needs_a_sure_sign_or_curvature() -> None:
    orthant = BoxPlane(np.zeros(2), np.full(2, np.inf))
    unsure = Enclosure(np.array([1.0, 0.0]), np.array([0.0, 1e-20]))
    assert linear_floor(orthant, unsure) == -math.inf
    assert linear_floor(orthant, Enclosure.of(np.array([1.0, 0.0]))) <= 0.0
    curved = linear_floor(orthant, unsure, np.zeros(2), np.ones(2))
    assert -1e-30 < curved < 0
    plane = BoxPlane(np.zeros(2), np.full(2, np.inf), np.ones(2), 1.0)
    g = Enclosure(np.array([1.0, 2.0]), np.full(2, 1e-12))
    sure = linear_floor(plane, g, price=plane_price)
    assert 1 - 1e-11 < sure < 1 - 1e-12


# --- points of the set


@given(seed=seeds, kind=kinds, n=sizes, scale=scales)
def test_an_enclosure_holds_a_point_of_the_set(seed: int, kind: str, n: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    domain = random_set(rng, kind, n, scale)
    x = point_next_to(domain, scale * rng.normal(size=domain.size))
    near = feasible_near(domain, x)
    if near is None:
        # Only a plane may touch its box in a vertex that rounding has moved off.
        assert kind == "plane"
        return
    assert np.all(near.rad <= 1e-12 * scale)
    holds_a_point(domain, near)


def holds_a_point(domain: SimpleSet, near: Enclosure) -> None:
    """The box of the enclosure meets the set, in rationals."""
    if isinstance(domain, Product):
        blocks = zip(domain.sets, domain.split(near.mid), domain.split(near.rad), strict=True)
        for member, mid, rad in blocks:
            holds_a_point(member, Enclosure(mid, rad))
        return
    mid = rational(near.mid)
    rad = rational(near.rad)
    if isinstance(domain, BoxPlane):
        low = [max(m - r, a) for m, r, a in zip(mid, rad, rational(domain.lower), strict=True)]
        high = [min(m + r, a) for m, r, a in zip(mid, rad, rational(domain.upper), strict=True)]
        assert all(a <= b for a, b in zip(low, high, strict=True))
        if domain.normal is not None:
            terms = [
                (v * a, v * b) for v, a, b in zip(rational(domain.normal), low, high, strict=True)
            ]
            least = sum(min(pair) for pair in terms)
            assert least <= Q(domain.offset) <= sum(max(pair) for pair in terms)
        return

    z = mid
    if isinstance(domain, Simplex | OrderedSimplex):
        factor = Q(domain.total) / sum(mid)
        z = [factor * m for m in mid]
    elif isinstance(domain, OrderedCone):
        cost = dot(rational(domain.price), mid)
        factor = min(Q(1), Q(domain.total) / cost) if cost else Q(1)
        z = [factor * m for m in mid]
    assert all(abs(a - m) <= r for a, m, r in zip(z, mid, rad, strict=True))
    assert all(a >= 0 for a in z)
    if isinstance(domain, OrderedSimplex):
        assert all(a >= Q(domain.sigma) * b for a, b in itertools.pairwise(z))
    if isinstance(domain, OrderedCone):
        ratios = [a / b for a, b in zip(z, rational(domain.steps), strict=True)]
        assert all(a >= b for a, b in itertools.pairwise(ratios))


@given(seed=seeds)
def test_a_point_of_the_spectrahedron_is_semidefinite_of_the_right_trace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Spectrahedron(2, float(rng.uniform(0.1, 3)))
    v = rng.normal(size=2)
    # Rank one: on the boundary, where rounding decides.
    near = feasible_near(domain, point_next_to(domain, svec(np.outer(v, v))))
    assert near is not None
    a, b, c = rational(near.mid)
    factor = Q(domain.total) / (a + c)
    assert a >= 0
    assert a * c >= b**2 / 2
    assert all(abs((factor - 1) * m) <= Q(r) for m, r in zip((a, b, c), near.rad, strict=True))


@pytest.mark.parametrize(
    ("domain", "x"),
    [
        (Simplex(2), [1.5, -0.5]),
        (Simplex(2), [0.0, 0.0]),
        (Simplex(2), [np.nan, 1.0]),
        (OrderedSimplex(2), [0.25, 0.75]),
        (OrderedSimplex(2, 3.0), [0.74, 0.26]),
        (OrderedCone([1.0, 2.0], [1.0, 1.0]), [0.1, 0.3]),
        (BoxPlane([0.0, 0.0], [1.0, 1.0]), [0.5, 1.0 + 2**-52]),
        (BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 2.0), [1.0, 0.0]),
        (Spectrahedron(2), [1.0, 0.0, -0.5]),
    ],
)
def test_no_point_is_proven_next_to_one_outside(domain: SimpleSet, x: list[float]) -> None:
    near = feasible_near(domain, np.array(x))
    if near is not None:  # a box may have room to move in
        assert isinstance(domain, BoxPlane)
        holds_a_point(domain, near)


@given(seed=seeds, kind=kinds, n=sizes)
def test_the_reach_is_that_of_the_farthest_vertex_or_more(seed: int, kind: str, n: int) -> None:
    rng = np.random.default_rng(seed)
    domain = random_set(rng, kind, n, 1.0)
    x = rng.normal(size=domain.size)
    for z in vertices(domain):
        assert Q(squared_reach(domain, x)) >= sum(
            (a - b) ** 2 for a, b in zip(z, rational(x), strict=True)
        )


# --- programs whose optimum is known: z is optimal because g = Hz + c prices the vertices so


def planted(rng: Rng, kind: str, n: int) -> tuple[SimpleSet, FloatArray, FloatArray]:
    """A set, a point z of it and a gradient for which z is a minimiser, all small dyadics."""
    t = float(rng.integers(-3, 4))
    if kind in ("simplex", "box", "plane"):
        inside = rng.random(n) < 0.6
        inside[0] = True
        slack = rng.integers(0, 4, n).astype(float)
        if kind == "simplex":
            z = np.where(inside, rng.integers(1, 6, n), 0).astype(float)
            return Simplex(n, float(z.sum())), z, np.where(inside, t, t + slack)
        lower = rng.integers(-3, 1, n).astype(float)
        upper = lower + 4
        side = rng.choice([-1.0, 1.0], n)
        z = np.where(inside, lower + 1, np.where(side > 0, lower, upper))
        g = np.where(inside, 0.0, side * slack)
        if kind == "box":
            return BoxPlane(lower, upper), z, g
        normal = rng.choice([-2.0, -1.0, 1.0, 3.0], n)
        return BoxPlane(lower, upper, normal, float(normal @ z)), z, g + t * normal

    # z is a sum of prefixes; the priced prefix sums of g are 0 there and positive elsewhere.
    used = rng.random(n) < 0.6
    used[-1] = True
    weights = np.where(used, rng.integers(1, 4, n), 0).astype(float)
    gaps = np.where(used, 0.0, rng.integers(0, 4, n).astype(float))
    e = 2.0 ** -np.arange(n)
    z = e * np.cumsum(weights[::-1])[::-1]
    steps = np.diff(gaps, prepend=0.0) / e
    if kind == "ordered":
        return OrderedSimplex(n, 2.0, float(z.sum())), z, t + steps
    price = rng.integers(1, 4, n).astype(float)
    t = -abs(t)
    total = float(price @ z) + (1.0 if t == 0 else 0.0)
    return OrderedCone(e, price, total), z, t * price + steps


def exact_value(H: FloatArray, c: FloatArray, z: FloatArray) -> Q:
    curved = [dot(rational(row), rational(z)) for row in H]
    return dot(curved, rational(z)) / 2 + dot(rational(c), rational(z))


def starts(rng: Rng, z: FloatArray) -> list[FloatArray]:
    n = z.size
    return [
        z,
        z * (1 + 1e-9 * rng.normal(size=n)),
        z + rng.normal(size=n),
        np.zeros(n),
        1e12 * rng.normal(size=n),
        rng.normal(size=n) * 1e-200,
    ]


PLANTED = ("simplex", "ordered", "cone", "box", "plane")


@given(seed=seeds, kind=st.sampled_from(PLANTED), n=sizes, power=st.integers(-40, 40))
def test_programs_bracket_their_exact_optimum(seed: int, kind: str, n: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    domain, z, g = planted(rng, kind, n)
    G = rng.integers(-3, 4, (int(rng.integers(0, n + 1)), n)).astype(float)
    unit = 2.0**power
    H = unit * (G.T @ G)
    c = unit * g - H @ z
    truth = exact_value(H, c, z)
    f: Objective = Quadratic(H, c) if len(G) else Linear(c)
    scale = float(unit * (np.abs(G.T @ G).sum() * (z @ z) + np.abs(g) @ np.abs(z) + 1))
    check_program(f, domain, truth, starts(rng, z), z, scale)


def check_program(
    f: Objective,
    domain: SimpleSet,
    truth: Q,
    points: list[FloatArray],
    best: FloatArray,
    scale: float,
) -> None:
    program = SimplexProgram.of(f, domain)
    form = FormProblem(SimplexForm(f, domain))
    for x in points:
        brackets = [program.bracket(Point({"x": x})), form.bracket(Point({"x": x}))]
        # A forged witness may lie anywhere; what it proves must hold all the same.
        brackets.append(program.proof(Point({"x": x})))
        for bracket in brackets:
            contains(bracket, truth)
    bracket = program.bracket(Point({"x": best}))
    assert bracket.gap <= 1e-11 * scale
    assert bracket.lower_by
    assert bracket.upper_by


def contains(bracket: Bracket, truth: Q) -> None:
    assert bracket.estimate is None
    if math.isfinite(bracket.lower):
        assert Q(bracket.lower) <= truth
    if math.isfinite(bracket.upper):
        assert Q(bracket.upper) >= truth


@given(seed=seeds, n=sizes, power=st.integers(-30, 30))
def test_kernel_quadratics_bracket_their_exact_optimum(seed: int, n: int, power: int) -> None:
    """Two variables may share a point, and signs other than -1 and 1 are multiplied by."""
    rng = np.random.default_rng(seed)
    domain, z, g = planted(rng, "plane", n)
    points = max(1, n - 1)
    G = rng.integers(-3, 4, (points, points)).astype(float)
    K = 2.0**power * (G.T @ G + np.eye(points))
    sign = rng.choice([-1.0, 1.0, 3.0], n)
    point = rng.integers(0, points, n)
    S = np.zeros((points, n))
    S[point, np.arange(n)] = sign
    H = S.T @ K @ S
    c = 2.0**power * g - H @ z
    scale = float(np.abs(H).sum() * (z @ z) + np.abs(c) @ np.abs(z)) + 2.0**power
    f = KernelQuadratic(K, sign, c, point)
    check_program(f, domain, exact_value(H, c, z), starts(rng, z), z, scale)


@given(seed=seeds, n=sizes)
def test_unbounded_boxes_are_bounded_by_curvature(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    G = rng.integers(-3, 4, (n, n)).astype(float)
    H = G.T @ G + np.eye(n)
    z = np.where(rng.random(n) < 0.6, rng.integers(1, 6, n), 0).astype(float)
    g = np.where(z > 0, 0, rng.integers(0, 4, n)).astype(float)
    c = g - H @ z
    truth = exact_value(H, c, z)
    lower = np.where((z > 0) & (rng.random(n) < 0.5), -np.inf, 0.0)
    domain = BoxPlane(lower, np.full(n, np.inf))
    scale = float(np.abs(H).sum() * (z @ z) + 1)
    # One third is no float: the gradient is 0 only up to rounding.
    check_program(
        Quadratic(H / 3, c / 3),
        domain,
        rounded_truth(H / 3, c / 3, z, lower),
        starts(rng, z)[2:],
        z,
        1e6 * scale,
    )
    check_program(Quadratic(H, c), domain, truth, starts(rng, z), z, scale)


def rounded_truth(H: FloatArray, c: FloatArray, z: FloatArray, lower: FloatArray) -> Q:
    """The exact optimum over {x >= lower} by trying all sets of free variables, in rationals."""
    n = z.size
    rows = [rational(row) for row in H]
    linear = rational(c)
    bounds = [None if math.isinf(low) else Q(low) for low in lower]
    must = [i for i in range(n) if bounds[i] is None]
    may = [i for i in range(n) if bounds[i] is not None]
    for count in range(len(may) + 1):
        for chosen in itertools.combinations(may, count):
            free = sorted([*must, *chosen])
            x = solved(rows, linear, free, n)
            g = [dot(rows[i], x) + linear[i] for i in range(n)]
            if all(x[i] >= 0 for i in chosen) and all(g[i] >= 0 for i in may if i not in chosen):
                return dot([v + w for v, w in zip(g, linear, strict=True)], x) / 2
    raise AssertionError("a strictly convex program has a solution")


def solved(rows: list[list[Q]], linear: list[Q], free: list[int], n: int) -> list[Q]:
    """The x with (Hx + c)_i = 0 for the free i, and 0 elsewhere."""
    k = len(free)
    M = [[rows[i][j] for j in free] + [-linear[i]] for i in free]
    for p in range(k):
        for q in range(k):
            if q != p:
                factor = M[q][p] / M[p][p]
                M[q] = [a - factor * b for a, b in zip(M[q], M[p], strict=True)]
    x = [Q(0)] * n
    for p, i in enumerate(free):
        x[i] = M[p][k] / M[p][p]
    return x


def test_a_matrix_that_is_indefinite_by_rounding_is_charged() -> None:
    """1 - 2^-53 off the diagonal is semidefinite, 1 + 2^-52 is not: the true minimum lies lower."""
    for off, wanted in ((1 - 2.0**-53, True), (1 + 2.0**-52, False)):
        f = Quadratic([[1.0, -off], [-off, 1.0]], np.zeros(2))
        assert (nonconvexity(f) == 0) is wanted
        domain = BoxPlane([-1e3, -1e3], [1e3, 1e3])
        bracket = FormProblem(SimplexForm(f, domain)).bracket(Point({"x": [0.0, 0.0]}))
        corner = Q(10**6) * (1 - Q(off))
        assert Q(bracket.lower) <= min(Q(0), corner)
        assert bracket.upper >= 0


def test_a_matrix_that_is_not_symmetric_proves_no_lower_end() -> None:
    K = np.array([[1.0, 0.5], [0.25, 1.0]])
    f = KernelQuadratic(K, np.ones(2), np.zeros(2))
    assert nonconvexity(f) == math.inf
    bracket = FormProblem(SimplexForm(f, Simplex(2))).bracket(Point({"x": [0.5, 0.5]}))
    assert bracket.lower == -math.inf
    assert bracket.upper >= 0.34375


# --- games


def value_of_game(M: FloatArray) -> Q:
    """min over p in [0, 1] of the largest of the lines p a + (1 - p) b, at their crossings."""
    lines = list(zip(rational(M[0]), rational(M[1]), strict=True))
    corners = [Q(0), Q(1)]
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        if a - b != c - d:
            p = (d - b) / (a - b - c + d)
            if 0 < p < 1:
                corners.append(p)
    return min(max(p * a + (1 - p) * b for a, b in lines) for p in corners)


@given(seed=seeds, columns=st.integers(1, 5), scale=scales)
def test_games_bracket_their_exact_value(seed: int, columns: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    M = scale * (rng.integers(-5, 6, (2, columns)) + rng.normal() * (rng.random() < 0.5))
    totals = rng.choice([0.1, 1.0, 3.0], 2)
    truth = value_of_game(M) * Q(totals[0]) * Q(totals[1])
    game = SaddlePoint.game(M, Simplex(2, totals[0]), Simplex(columns, totals[1]))
    for size in (1e-200, 1.0, 1e12):
        point = Point({"x": size * rng.normal(size=2)}, {"y": size * rng.normal(size=columns)})
        contains(game.bracket(point), truth)
        contains(game.proof(point), truth)
    result = klopt.solve(game, tol=1e-9)
    assert Q(result.lower) <= truth <= Q(result.upper)
    # No interval is narrower than the rounding of entries that cancel.
    rounding = 1e-14 * float(np.abs(M).max() * totals.prod())
    assert result.upper - result.lower <= 1e-9 * (1 + abs(result.upper)) + rounding


def test_linear_terms_of_a_game_are_part_of_both_ends() -> None:
    """x'My + l'x + r'y with M = 0: each player takes the best entry of its own."""
    phi = Bilinear(np.zeros((2, 3)), [0.1, 0.7], [0.3, -0.2, 0.9])
    game = SaddlePoint.game(phi)
    truth = Q(0.1) + Q(0.9)
    bracket = game.bracket(Point({"x": [1.0, 0.0]}, {"y": [0.0, 0.0, 1.0]}))
    assert Q(bracket.lower) <= truth <= Q(bracket.upper)
    assert bracket.gap < 1e-14


# --- what is no number proves nothing


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_overflow_leaves_ends_infinite(bad: float) -> None:
    program = SimplexProgram.of(Quadratic(1e130 * np.eye(2), np.zeros(2)), Simplex(2))
    bracket = program.proof(Point({"x": [bad, 1.0]}))
    assert bracket.upper == math.inf
    assert bracket.lower <= 0.25e130


class Halved(Simplex):
    """A set of somebody's own: half a simplex."""

    def violation(self, x: FloatArray) -> float:
        return super().violation(2 * x)


def test_of_a_derived_set_nothing_is_proven() -> None:
    bracket = SimplexProgram.of(Linear([1.0, 2.0]), Halved(2)).bracket(Point({"x": [1.0, 0.0]}))
    assert (bracket.lower, bracket.upper) == (-math.inf, math.inf)
    assert bracket.estimate is not None
    assert "a class of its own" in bracket.note


class Doubled(Quadratic):
    """A function of somebody's own: twice the quadratic."""

    def value(self, x: FloatArray) -> float:
        return 2 * super().value(x)


def test_of_a_derived_function_nothing_is_proven_by_the_formula() -> None:
    bracket = SimplexProgram.of(Doubled(np.eye(2), np.zeros(2)), Simplex(2)).bracket(
        Point({"x": [0.5, 0.5]})
    )
    assert (bracket.lower, bracket.upper) == (-math.inf, math.inf)


# --- where rounding alone decides


def test_the_apex_of_an_ordered_cone_is_one_of_its_vertices() -> None:
    cone = OrderedCone([1.0, 1.0], [1.0, 1.0])
    assert linear_floor(cone, Enclosure.of(np.array([2.0, 3.0]))) <= 0.0


def test_a_price_beyond_the_total_is_brought_back() -> None:
    cone = OrderedCone([1.0, 1.0], [1.0, 1.0])
    near = feasible_near(cone, np.array([0.5 + 1e-9, 0.5]))
    assert near is not None
    low = rational(near.mid - near.rad)
    assert sum(low) <= 1
    assert near.mid[0] < 0.5 + 1e-9


def test_the_floor_over_a_spectrahedron_counts_the_radius() -> None:
    """[[0, t], [t, 0]] with |t| up to 1 has the eigenvalue -1."""
    g = Enclosure(np.zeros(3), np.array([0.0, math.sqrt(2.0), 0.0]))
    assert linear_floor(Spectrahedron(2), g) <= -1.0


def test_an_empty_set_has_no_point() -> None:
    """The offset is beyond what the box allows by one rounding, less than is refused."""
    box = BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 2 + 2.0**-51)
    assert feasible_near(box, np.array([1.0, 1 - 2.0**-53])) is None
    assert feasible_near(box, np.array([1.0, 1.0])) is None


def test_signed_sums_charge_their_terms_before_they_cancel() -> None:
    """1e16 + 1 - 1e16 is 1, and 0 in floats; a set of one point leaves no other value."""
    x = np.array([1e16, 1.0, -1e16])
    f = KernelQuadratic(np.eye(1), np.ones(3), np.zeros(3), np.zeros(3, int))
    bracket = FormProblem(SimplexForm(f, BoxPlane(x, x))).bracket(Point({"x": x}))
    assert bracket.lower <= 0.5 <= bracket.upper
