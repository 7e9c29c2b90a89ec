"""Rates of first-order methods for every number of iterations: what falls in each step.

Values of the function are written f, points and gradients are vectors (Lemma V). Where L does not
occur the function is divided by it. A projection p of v on a closed convex set Q has
<v - p, z - p> <= 0 for every z in Q; with Q the whole space p = v.
"""

from __future__ import annotations

from fractions import Fraction

from klopt.papers.theorems.proofs.expression import Expression, Rational, symbols
from klopt.papers.theorems.proofs.inner_products import variational
from klopt.papers.theorems.proofs.proof import Proof, Square, Step, at_least

__all__ = [
    "accelerated_gradient",
    "douglas_rachford",
    "extragradient",
    "mirror_prox",
    "monotone_two_sequences",
    "projected_gradient",
    "proximal_point",
    "subgradient",
    "two_sequences",
]

HALF = Fraction(1, 2)


def polynomial_weight(
    factors: tuple[Rational, Rational, Rational], t: Expression, *what: Expression
) -> list[Square]:
    """Return (c0 + c1 t + c2 t^2) times what is not negative, for t >= 0 and c >= 0."""
    c0, c1, c2 = factors
    return [Square(c0, 1, what), Square(c1, 1, (t, *what)), Square(c2, t, what)]


def projected_gradient() -> Proof:
    """Return the proof of f(x_N) - f* <= L |x_0 - x*|^2 / (2N)."""
    x, p, u, g, f, fp, fu, L = symbols("x x+ u g f(x) f(x+) f(u) L")
    smooth = f + g * (p - x) + L * (p - x) ** 2 / 2 - fp
    convex = fu - f - g * (u - x)
    # L times the inequality of the projection of x - g / L.
    to_u = -((L * (x - p) - g) * (u - p))
    to_x = -((L * (x - p) - g) * (x - p))
    return Proof(
        "every N and dimension, every closed convex set Q (the whole space too), every convex function whose gradient "
        "is Lipschitz with L on Q",
        "x+ is the projection of x - g / L, u a minimiser. With d = f(x) - f(u), the first step plus N times "
        "the second "
        "says that (N + 1) d(x_(N+1)) + L/2 |x_(N+1) - u|^2 <= N d(x_N) + L/2 |x_N - u|^2. The sum over all steps is "
        "N d(x_N) <= L/2 |x_0 - u|^2. To maximise a concave h take f = -h.",
        (
            at_least(
                "f(x+) - f(u) + L/2 |x+ - u|^2 <= L/2 |x - u|^2",
                fu - fp + L * (x - u) ** 2 / 2 - L * (p - u) ** 2 / 2,
                given=(smooth, convex, to_u),
                by=[Square(1, 1, (smooth,)), Square(1, 1, (convex,)), Square(1, 1, (to_u,))],
                vectors="x x+ u g",
            ),
            at_least(
                "f(x+) <= f(x)",
                f - fp,
                given=(smooth, to_x, L),
                by=[
                    Square(1, 1, (smooth,)),
                    Square(1, 1, (to_x,)),
                    Square(HALF, x - p, (L,)),
                ],
                vectors="x x+ g",
            ),
        ),
    )


def two_sequences() -> Proof:
    """Return the proof of f(theta_t) - f* <= 2 L |x_0 - x*|^2 / ((t + 1)(t + 2))."""
    return Proof(
        "every t and dimension, every closed convex set Q, every convex function whose gradient is Lipschitz "
        "with L on Q",
        "L = 1 by dividing f by L. Let m_t(x) = 2 |x - x_0|^2 + sum_(s <= t) 2 (s + 1) (f(x_s) + <g_s, x - "
        "x_s>), whose "
        "minimiser over Q is beta_t; the claim is (t + 1)(t + 2) f(theta_t) <= m_t(beta_t), and m_t(beta_t) "
        "<= m_t(u) <= "
        "2 |u - x_0|^2 + (t + 1)(t + 2) f(u) is the rate. Step 1 is t = 0. Step 2 is m_t(x) >= m_t(beta_t) + 2 |x - "
        "beta_t|^2 on Q, with s the sum of the gradients in the argument of the projection. Step 3 goes from "
        "t to t + 1: "
        "theta = a - 2w and beta = a + (t + 1) w make a = ((t + 1) theta + 2 beta) / (t + 3), and beta+ = "
        "beta + (t + 3) "
        "e makes z = ((t + 1) theta + 2 beta+) / (t + 3) = a + 2e, a point of Q.",
        _two_sequences_steps(),
    )


def monotone_two_sequences() -> Proof:
    """Return the proof for the variant that takes the best of three points."""
    found = two_sequences()
    return Proof(
        found.scope,
        "The value falls because theta is the best of three points, the last theta among them. The rate: theta+ in "
        "steps 1 and 3 is the projected step; the best point is a point of Q whose value is not larger, and "
        "that is all "
        f"that is used of it. {found.argument}",
        found.steps,
    )


def _two_sequences_steps() -> tuple[Step, Step, Step]:
    a, w, e, g, p, t = symbols("a w e g theta+ t")
    f, fa, fp = symbols("f(theta) f(a) f(theta+)")
    theta = a - 2 * w
    beta_plus = a + (t + 1) * w + (t + 3) * e
    z = a + 2 * e
    convex = f - fa - g * (theta - a)
    smooth = fa + g * (p - a) + (p - a) ** 2 / 2 - fp
    near = variational(a - g, p, z)
    A = (t + 1) * (t + 2)
    A_plus = (t + 2) * (t + 3)
    weight = 2 * (t + 2)
    induction = at_least(
        "(t+1)(t+2) f(theta) + 2 |beta+ - beta|^2 + 2(t+2) (f(a) + <g, beta+ - a>) >= (t+2)(t+3) f(theta+)",
        A * f + 2 * (t + 3) ** 2 * e**2 + weight * (fa + g * (beta_plus - a)) - A_plus * fp,
        given=(t, convex, smooth, near),
        by=[
            *polynomial_weight((2, 3, 1), t, convex),
            *polynomial_weight((6, 5, 1), t, smooth),
            *polynomial_weight((6, 5, 1), t, near),
            # (t + 2)(t + 3) / 2 and 2 (t + 3) times squares
            Square(3, p - a - 2 * e),
            Square(Fraction(5, 2), p - a - 2 * e, (t,)),
            Square(HALF, t * (p - a - 2 * e)),
            Square(6, e),
            Square(2, e, (t,)),
        ],
        vectors="a w e g theta+",
    )
    b, s, x = symbols("beta s x")
    first = fa + g * (p - a) + (p - a) ** 2 / 2 - fp
    nearest = variational(a - g, p, b)
    start = at_least(
        "f(theta+) <= f(a) + <g, beta - a> + |beta - a|^2, theta+ the projection of a - g, beta in Q",
        fa + g * (b - a) + (b - a) ** 2 - fp,
        given=(first, nearest),
        by=[
            Square(1, 1, (first,)),
            Square(1, 1, (nearest,)),
            Square(HALF, p - b),
            Square(HALF, b - a),
        ],
        vectors="a g theta+ beta",
    )
    at_beta = variational(a - s, b, x)
    model = at_least(
        "|x - a|^2/2 + <s, x> >= |beta - a|^2/2 + <s, beta> + |x - beta|^2/2, beta the projection of a - s",
        (x - a) ** 2 / 2 + s * x - (b - a) ** 2 / 2 - s * b - (x - b) ** 2 / 2,
        given=(at_beta,),
        by=[Square(1, 1, (at_beta,))],
        vectors="a s beta x",
    )
    return start, model, induction


def accelerated_gradient() -> Proof:
    """Return the proof of f(x_N) - f* <= 2 L |x_0 - x*|^2 / (N + 1)^2."""
    x, e, p, u, g, s, r = symbols("x e x+ u g s r")
    f, fy, fp, fu = symbols("f(x) f(y) f(x+) f(u)")
    y = x + (s - 1) * e
    before = x - r * e
    recurrence = r**2 - r - s**2
    smooth = fy + g * (p - y) + (p - y) ** 2 / 2 - fp
    below_x = f - fy - g * (x - y)
    below_u = fu - fy - g * (u - y)
    to_x = variational(y - g, p, x)
    to_u = variational(y - g, p, u)
    later = r - 1
    given = (smooth, below_x, below_u, to_x, to_u, later)
    old = s**2 * (f - fu) + (s * x - (s - 1) * before - u) ** 2 / 2
    new = r**2 * (fp - fu) + (r * p - (r - 1) * x - u) ** 2 / 2
    # r (r - 1) times what is known at x and r times what is known at u, r = (r - 1) + 1
    squares = []
    for known in (below_x, to_x):
        squares += [Square(1, later, (known,)), Square(1, 1, (later, known))]
    for known in (below_u, to_u):
        squares += [Square(1, 1, (later, known)), Square(1, 1, (known,))]
    squares.append(Square(1, r, (smooth,)))
    potential = at_least(
        "r^2 (f(x+) - f(u)) + |r x+ - (r-1) x - u|^2/2 <= s^2 (f(x) - f(u)) + |s x - (s-1) x_before - u|^2/2",
        old - new,
        given=given,
        zero=(recurrence,),
        by=squares,
        using=[(fu - f, recurrence)],
        at={"r": 1},
        vectors="x e x+ u g",
    )
    growth = at_least(
        "(r - 1/2)^2 >= s^2 where r^2 - r = s^2",
        (r - HALF) ** 2 - s**2,
        zero=(recurrence,),
        by=[Square(Fraction(1, 4))],
        using=[(1, recurrence)],
        at={"r": 1},
    )
    return Proof(
        "every N and dimension, every closed convex set Q, every convex function on the whole space whose "
        "gradient is Lipschitz with L",
        "L = 1 by dividing f by L; s and r are t and t+, r^2 - r = s^2, and e = (x - x_before) / r, so that y = x + "
        "(s - 1) e. By the first step s_N^2 (f(x_N) - f*) + .. falls; the first iteration, s = 0 and r = 1, "
        "makes it at "
        "most |x_0 - u|^2 / 2. By the second s grows by 1/2 at least in each, so that s_N >= (N + 1) / 2.",
        (potential, growth),
    )


def extragradient() -> Proof:
    """Return the proof of sum_t gamma_t <G(w_t), w_t - u> <= |z_0 - u|^2 / 2."""
    z, w, p, u, at_z, at_w = symbols("z w z+ u p q")
    to_plus = variational(z - at_z, w, p)
    to_u = variational(z - at_w, p, u)
    short = (w - z) ** 2 - (at_w - at_z) ** 2
    return Proof(
        "every number of iterations and dimension, every closed convex set and operator G, steps with "
        "gamma |G(w) - G(z)| <= |w - z|",
        "w and z+ are the projections of z - p and z - q, p = gamma G(z), q = gamma G(w). The sum over all steps is "
        "sum_t gamma_t <G(w_t), w_t - u> <= |z_0 - u|^2 / 2. For G the derivatives of a function that is "
        "concave in alpha "
        "and convex in F, <G(w), w - u> is at least H(alpha*, F_w) - H(alpha_w, F_u), whose mean is at least "
        "h(alpha*) - h(mean of alpha_w), for F_u the best F there.",
        (
            at_least(
                "<q, w - u> <= |z - u|^2/2 - |z+ - u|^2/2",
                (z - u) ** 2 / 2 - (p - u) ** 2 / 2 - at_w * (w - u),
                given=(to_plus, to_u, short),
                by=[
                    Square(1, 1, (to_plus,)),
                    Square(1, 1, (to_u,)),
                    Square(HALF, 1, (short,)),
                    Square(HALF, p - w + at_w - at_z),
                ],
                vectors="z w z+ u p q",
            ),
        ),
    )


def mirror_prox() -> Proof:
    """Return the same for the rule by which the backend mirror_prox chooses its steps."""
    z, w, p, u, at_z, at_w = symbols("z w z+ u p q")
    to_plus = variational(z - at_z, w, p)
    to_u = variational(z - at_w, p, u)
    short = (p - w) ** 2 / 2 + (w - z) ** 2 / 2 - (at_w - at_z) * (w - p)
    given = (to_plus, to_u, short)
    return Proof(
        "every number of iterations and dimension, every closed convex set and operator G, steps with "
        "gamma <G(w) - G(z), w - z+> <= |z+ - w|^2 / 2 + |w - z|^2 / 2",
        "w and z+ are the projections of z - p and z - q, p = gamma G(z), q = gamma G(w). Add up all steps.",
        (
            at_least(
                "<q, w - u> <= |z - u|^2/2 - |z+ - u|^2/2",
                (z - u) ** 2 / 2 - (p - u) ** 2 / 2 - at_w * (w - u),
                given=given,
                by=[Square(1, 1, (known,)) for known in given],
                vectors="z w z+ u p q",
            ),
        ),
    )


def subgradient() -> Proof:
    """Return the proof of min_t f(x_t) - f* <= L (2B / T)^1/2."""
    x, p, u, g, eta = symbols("x x+ u g eta")
    near = variational(x - eta * g, p, u)
    step = at_least(
        "|x+ - u|^2 <= |x - u|^2 - 2 eta <g, x - u> + eta^2 |g|^2, x+ the projection of x - eta g",
        (x - u) ** 2 - 2 * eta * g * (x - u) + eta**2 * g**2 - (p - u) ** 2,
        given=(near,),
        by=[Square(2, 1, (near,)), Square(1, x - eta * g - p)],
        vectors="x x+ u g",
    )
    return Proof(
        "every T and dimension, every convex function with subgradients of norm at most L, every closed convex set; "
        "psi = |x|^2 / 2",
        "The sum over t = 1, .., T, with f(x_t) - f* <= <g_t, x_t - u> at a minimiser u, |g_t| <= L and "
        "B >= |x_1 - u|^2 / 2, gives min_t f(x_t) - f* <= B / (eta T) + eta L^2 / 2. With eta = (2B / T)^1/2 "
        "/ L both terms "
        "are L (2B / T)^1/2 / 2.",
        (step,),
    )


def proximal_point() -> Proof:
    """Return the proof of f(x_N) - f* <= |x_0 - x*|^2 / (2 lambda N)."""
    x, p, u, f, fp, fu, lam = symbols("x x+ u f(x) f(x+) f(u) lambda")
    # lambda times f(z) >= f(x+) + <(x - x+) / lambda, z - x+>
    at_u = lam * (fu - fp) - (x - p) * (u - p)
    at_x = lam * (f - fp) - (x - p) ** 2
    return Proof(
        "every N and dimension, every convex function that is closed and has a minimiser, every lambda > 0",
        "(x - x+) / lambda is a subgradient at x+. With d = lambda (f(x) - f(u)) the first step plus N times "
        "the second "
        "says that (N + 1) d(x_(N+1)) + |x_(N+1) - u|^2 / 2 <= N d(x_N) + |x_N - u|^2 / 2; add up.",
        (
            at_least(
                "lambda (f(x+) - f(u)) + |x+ - u|^2/2 <= |x - u|^2/2",
                lam * (fu - fp) + (x - u) ** 2 / 2 - (p - u) ** 2 / 2,
                given=(at_u,),
                by=[Square(1, 1, (at_u,)), Square(HALF, x - p)],
                vectors="x x+ u",
            ),
            at_least(
                "lambda f(x+) <= lambda f(x)",
                lam * (f - fp),
                given=(at_x,),
                by=[Square(1, 1, (at_x,)), Square(1, x - p)],
                vectors="x x+",
            ),
        ),
    )


def douglas_rachford() -> Proof:
    """Return the proof of |z_(N+1) - z_N|^2 <= |z_0 - z*|^2 / (N + 1)."""
    z, w, x, a, y, b = symbols("z w x a y b")
    # x and a are the first proximal points at z and w, y and b the second ones at 2x - z and 2a - w.
    first = ((z - x) - (w - a)) * (x - a)
    second = ((2 * x - z - y) - (2 * a - w - b)) * (y - b)
    moved_z = z + y - x
    moved_w = w + b - a
    return Proof(
        "every N and dimension, all maximally monotone operators (subdifferentials of closed convex functions) with a "
        "zero of their sum, step 1",
        "Tz = z + y - x, x = J_A(z), y = J_B(2x - z). By the step T is firmly nonexpansive: with w = z*, a "
        "fixed point, "
        "sum_k |z_(k+1) - z_k|^2 <= |z_0 - z*|^2; with w = Tz the lengths |z_(k+1) - z_k| do not grow. So the last of "
        "N + 1 of them is at most the mean.",
        (
            at_least(
                "|Tz - Tw|^2 + |(z - Tz) - (w - Tw)|^2 <= |z - w|^2",
                (z - w) ** 2 - (moved_z - moved_w) ** 2 - ((z - moved_z) - (w - moved_w)) ** 2,
                given=(first, second),
                by=[Square(2, 1, (first,)), Square(2, 1, (second,))],
                vectors="z w x a y b",
            ),
        ),
    )
