r"""
The best density for a purpose
==============================

:func:`mercer.optimal_density` finds, among all densities that are sums of squares, the one that minimises a convex
function of linear functionals: values of the mean embedding, moments, masses of cells. Three of them are worked here,
each with a proof of how far it is from the best.
"""

# %%
# Entropy of a discretisation
# ---------------------------
# On [0, 1], cut into 20 cells, the density with the greatest entropy :math:`-\sum_i u_i \log u_i` of the cells' masses
# among those with a given mean. The function is given by its value and gradient, the mean by bounds. Without the sums
# of squares the answer would be :math:`u_i \propto e^{-\theta x_i}`, the dashed line: a smooth density comes close.
# The entropy does not see what happens inside a cell; a small regularisation keeps the density smooth there.

import matplotlib.pyplot as plt
import numpy as np

import mercer
from mercer.density import CellMasses, ConvexFunctional, EmbeddingValues, Moments

edges = np.linspace(0, 1, 21)
free = np.full(20, np.inf)  # the masses have no bounds of their own
support = np.linspace(0, 1, 14)[:, None]
kernel = mercer.Gaussian(sigma=0.25)
x = np.linspace(0, 1, 400)

_, panels = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained", sharey=True)
for ax, mean in zip(panels, (0.5, 0.35, 0.2), strict=True):
    entropy = ConvexFunctional(
        [CellMasses.between(edges), Moments()],  # u: twenty masses, then the mean
        lambda u: float(u[:20] @ np.log(u[:20])),
        lambda u: np.append(np.log(u[:20]) + 1, 0.0),
        lower=np.append(-free, mean - 1e-3),
        upper=np.append(free, mean + 1e-3),
    )
    best = mercer.optimal_density(entropy, support, kernel, box=(0, 1), regularization=3e-4)
    masses = best.functionals_[:20]
    ax.stairs(20 * masses, edges, fill=True, color="#cccccc")
    ax.plot(x, best.density(x[:, None]), color="#4477aa")
    laws = np.exp(-np.linspace(0, 8, 401)[:, None] * x)
    laws /= laws.mean(axis=1, keepdims=True)
    law = laws[np.argmin(np.abs(laws @ x / x.size - mean))]  # the exponential one with this mean
    ax.plot(x, law, "k--", linewidth=0.8)
    ax.set(title=f"mean {mean}: entropy {-masses @ np.log(masses):.3f}", xlabel="x")
plt.show()
print(best.certificate_)

# %%
# Moments with a tolerance
# ------------------------
# The smoothest density, the one with the least :math:`\operatorname{Tr}(B\tilde K)`, whose first two moments are given
# up to a tolerance. The prices of the bounds say what a tolerance costs: the smaller it is, the rougher the density.

smoothest = {}
for tolerance in (0.05, 0.02, 0.005):
    moments = np.array([0.5, 0.35])  # a variance of 0.1 asks for mass at both ends
    near = ConvexFunctional(Moments(2), lower=moments - tolerance, upper=moments + tolerance)
    smoothest[tolerance] = mercer.optimal_density(near, support, kernel, box=(0, 1), regularization=1e-2)

_, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for tolerance, found in smoothest.items():
    price = np.abs(found.prices_).max()
    ax.plot(
        x, found.density(x[:, None]), label=f"± {tolerance}: penalty {found.certificate_.upper:.4f}, price {price:.3f}"
    )
ax.set(xlabel="x", ylabel="density", ylim=(0, None))
ax.legend(fontsize=8)
plt.show()

# %%
# Transport of a mean
# -------------------
# A sample, and where its mean should be. Of all densities with that mean, the nearest to the sample in the MMD that is
# projected on the support. It keeps the moons where they are and puts some mass beyond them.

X, _ = mercer.datasets.two_moons(200, noise=0.1, random_state=0)
at = X[mercer.Landmarks(30, strategy="k-means", random_state=0).fit(X).indices_]
kernel = mercer.Gaussian(sigma=0.8)
K, v = kernel(at), kernel(at, X).mean(axis=1)
to = X.mean(axis=0) + np.array([0.3, 0.2])

moved = ConvexFunctional(
    [EmbeddingValues(at), Moments()],  # u: thirty values of the embedding, then the mean
    lambda u: float((u[:-2] - v) @ np.linalg.solve(K, u[:-2] - v)),
    lambda u: np.append(2 * np.linalg.solve(K, u[:-2] - v), [0.0, 0.0]),
    lower=np.append(np.full(30, -np.inf), to - 1e-3),
    upper=np.append(np.full(30, np.inf), to + 1e-3),
)
best = mercer.optimal_density(moved, at, kernel, regularization=1e-3, tol=1e-4)

_, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
mercer.plots.plot_density(best, X, ax, title="mean moved along the arrow")
ax.annotate("", to, X.mean(axis=0), arrowprops={"arrowstyle": "->", "linewidth": 2})
plt.show()
print(best.certificate_)
print("mean asked for", to.round(3), "found", best.mean().round(3))
