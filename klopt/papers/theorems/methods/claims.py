"""Rates of first-order methods: the theorems of the methods themselves, proven anew.

R is |x_0 - x*|. Methods project on a closed convex set Q, the whole space included.
"""

from __future__ import annotations

from klopt.papers.theorems.claim import method_theorem
from klopt.papers.theorems.proofs import first_order, worst_case

projected_gradient = method_theorem(
    "rates-gradient",
    says="Projected gradient with steps 1/L reaches f* within L R^2 / (2N) after N steps.",
    latex=r"f(x_N)-f^*\le\frac{LR^2}{2N}",
    reference="Beck and Teboulle (2009), Theorem 3.1",
    proof=first_order.projected_gradient,
)
gradient_sharp = method_theorem(
    "rates-gradient-sharp",
    says="Gradient descent with steps 1/L reaches f* within L R^2 / (4N + 2), without constraints, for N = 1 to 4.",
    latex=r"f(x_N)-f^*\le\frac{LR^2}{4N+2},\quad N\le4",
    reference="Drori and Teboulle (2014)",
    proof=worst_case.gradient_descent,
)
accelerated_gradient = method_theorem(
    "rates-nesterov",
    says="The accelerated gradient method of the backend nesterov, without restart and with a constant L, reaches f* "
    "within 2 L R^2 / (N + 1)^2.",
    latex=r"f(x_N)-f^*\le\frac{2LR^2}{(N+1)^2}",
    reference="Beck and Teboulle (2009), Theorem 4.4; backend nesterov, scheme restarted",
    proof=first_order.accelerated_gradient,
)
two_sequences = method_theorem(
    "rates-two-sequences",
    says="Nesterov's method with two sequences reaches f* within 2 L R^2 / ((t + 1)(t + 2)).",
    latex=r"f(\theta_t)-f^*\le\frac{2LR^2}{(t+1)(t+2)}",
    reference="Nesterov (2005), Theorem 2; backend nesterov, scheme two sequences",
    proof=first_order.two_sequences,
)
mirror_descent = method_theorem(
    "rates-mirror-descent",
    says="Mirror descent with psi = |x|^2 / 2 and the step R / (L sqrt(T)) reaches f* within L R / sqrt(T), in the "
    "best of T points.",
    latex=r"\min_{t\le T}f(x_t)-f^*\le\frac{LR}{\sqrt T}",
    reference="Beck and Teboulle (2003), Theorem 4.2",
    proof=first_order.subgradient,
)
mirror_prox = method_theorem(
    "rates-mirror-prox",
    says="Mirror-prox with psi = |x|^2 / 2: the regret against any u of Q is at most |z_0 - u|^2 / 2, for steps as "
    "long as the backend mirror_prox takes them.",
    latex=r"\sum_t\gamma_t\langle G(w_t),w_t-u\rangle\le\tfrac12\|z_0-u\|^2",
    reference="Nemirovski (2004); backend mirror_prox, Euclidean, between restarts",
    proof=first_order.mirror_prox,
)
proximal_point = method_theorem(
    "rates-proximal-point",
    says="The proximal point method reaches f* within R^2 / (2 lambda N).",
    latex=r"f(x_N)-f^*\le\frac{R^2}{2\lambda N}",
    reference="Güler (1991)",
    proof=first_order.proximal_point,
)
proximal_sharp = method_theorem(
    "rates-proximal-point-sharp",
    says="The proximal point method reaches f* within R^2 / (4 lambda N), for N = 1 to 4.",
    latex=r"f(x_N)-f^*\le\frac{R^2}{4\lambda N},\quad N\le4",
    reference="Taylor, Hendrickx and Glineur (2017)",
    proof=worst_case.proximal_point,
)
douglas_rachford = method_theorem(
    "rates-douglas-rachford",
    says="The last step of Douglas and Rachford's splitting has a square of at most |z_0 - z*|^2 / (N + 1).",
    latex=r"\|z_{N+1}-z_N\|^2\le\frac{\|z_0-z^*\|^2}{N+1}",
    reference="He and Yuan (2015)",
    proof=first_order.douglas_rachford,
)
