"""
How DANK converges, and what its penalty and its clusters do
============================================================

Liu et al. (2020) solve their data-adaptive kernel by a projected gradient method with Nesterov's acceleration
(their Figure 4), choose the rank of F by a penalty tau (Table 5) and cut large sets into clusters, at a price that the
kernel between clusters bounds (Figure 5). They use heart, ijcnn1 and covtype; here it is breast cancer.
"""

# %%
# The concave function and its gradient
# -------------------------------------
# For given alpha the best F is 11' + Gamma with its eigenvalues lowered by tau / 2. Without bias the set is a box, so
# that a projection is a clip.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import klopt
from klopt.learners.decomposition import kmeans, off_blocks

X, labels = load_breast_cancer(return_X_y=True)
X = scale(X)[:150]
y = np.where(labels[:150] == 1, 1.0, -1.0)
K = rbf_kernel(X)
C = 1.0
eta = 100.0
n = y.size


def best_F(alpha, tau):
    """Return the F that belongs to alpha."""
    a = alpha * y
    values, V = np.linalg.eigh(np.ones((n, n)) + np.outer(a, a) * K / (4 * eta))
    return (V * np.maximum(values - tau / 2, 0)) @ V.T


def gradient(alpha):
    """Return the gradient of h without tau."""
    return 1 - y * ((best_F(alpha, 0.0) * K) @ (y * alpha))


def h(alpha):
    """Return h without tau, where F is 11' + Gamma."""
    a = alpha * y
    Gamma = np.outer(a, a) * K / (4 * eta)
    return alpha.sum() - a @ K @ a / 2 - eta * np.sum(Gamma**2)


# %%
# Projected gradient and Nesterov's method
# ----------------------------------------
# Both take steps 1/L with the constant L that klopt proves to be enough (the page of claims), and are compared with the
# certified optimum.

L = np.linalg.eigvalsh(K)[-1] + 3 * C**2 * np.linalg.eigvalsh(K * K)[-1] / (4 * eta)
optimum = klopt.solve(klopt.problems.AdaptiveKernel(K, y, C, eta, bias=False), tol=1e-9).require()
plain = momentum = extrapolated = np.zeros(n)
gaps = {"projected gradient": [], "Nesterov's method": []}
for t in range(150):
    plain = np.clip(plain + gradient(plain) / L, 0, C)
    moved = np.clip(extrapolated + gradient(extrapolated) / L, 0, C)
    extrapolated = moved + t / (t + 3) * (moved - momentum)
    momentum = moved
    gaps["projected gradient"].append(optimum.upper - h(plain))
    gaps["Nesterov's method"].append(optimum.upper - h(momentum))
print("optimum", optimum.verdict.name, optimum.route)

# %%
# The rank of F falls with tau; the kernel between clusters grows with their number
# ---------------------------------------------------------------------------------

taus = (0.0, 0.01, 0.1, 1.0, 10.0)
ranks = []
for tau in taus:
    result = klopt.solve(klopt.problems.AdaptiveKernel(K, y, C, eta, tau)).require()
    ranks.append(np.linalg.matrix_rank(best_F(result.point.alpha, tau), tol=1e-8))
    print(f"tau {tau:4g}: {result.verdict.name}, rank {ranks[-1]}")
counts = range(2, 11)
between = [off_blocks(rbf_kernel, X, kmeans(X, count, seed=0)).absolute for count in counts]

# %%
# Three pictures
# --------------

plt.style.use("tableau-colorblind10")
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8, 3.2), layout="constrained")
for (name, values), style in zip(gaps.items(), ("--", "-"), strict=True):
    left.plot(np.arange(1, len(values) + 1), np.maximum(values, 1e-12), style, label=name)
left.set(yscale="log", xlabel="iterations", ylabel="gap", title="Convergence")
left.legend(frameon=False, fontsize=8)
middle.bar([f"{tau:g}" for tau in taus], ranks)
middle.set(xlabel="tau", ylabel="rank of F", yscale="log", title="Penalty")
right.plot(list(counts), between, "o-")
right.set(xlabel="clusters", ylabel="sum of |K| between them", title="Clusters", ylim=(0, None))
plt.show()
