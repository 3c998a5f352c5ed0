r"""
A density that is a sum of squares
==================================

:class:`mercer.SumOfSquaresDensity` fits a probability density to a sample: a sum of squares of combinations of kernel
sections, which cannot be negative, and whose integrals are known. It is drawn, drawn from, marginalised and conditioned
here.
"""

# %%
# Two moons
# ---------
# 300 points; the support of the density, the stars, are 40 centres of k-means. The contours are those of the density.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, MeanEmbedding, SumOfSquaresDensity
from mercer.datasets import two_moons
from mercer.plots import plot_density

X, _ = two_moons(300, noise=0.1, random_state=0)
model = SumOfSquaresDensity(Gaussian(sigma=0.4), support=("kmeans", 40), random_state=0).fit(X)

_, panel = plt.subplots(figsize=(7, 4.6), layout="constrained")
plot_density(model, X, panel, title=f"rank {model.rank_}, {len(model.support_)} support points")
plt.show()

# %%
# The fit is a convex programme, and comes with a proof of how far it is from the best density of its kind.

print(model.certificate_)

# %%
# The bandwidth
# -------------
# The kernel's bandwidth decides how fine the density is. Unlike a kernel density estimate, whose bumps are positive and
# only add up, the sections inside a square may cancel: at a bandwidth of half the distance of the moons they are still
# apart.

_, panels = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
limits = [(-1.8, 2.8), (-1.3, 1.8)]
for ax, sigma in zip(panels, (0.25, 0.7, 2.0), strict=True):
    other = SumOfSquaresDensity(Gaussian(sigma=sigma), support=("kmeans", 40), random_state=0, tol=1e-5).fit(X)
    title = f"σ = {sigma}: mean log-density {other.score(X):.2f}"
    plot_density(other, X, ax, support=False, limits=limits, title=title)
plt.show()

# %%
# Marginals, conditionals, samples
# --------------------------------
# With the Gaussian kernel they are closed forms, and densities of the same kind. On the right the second coordinate,
# given the first: at 0 there is the upper moon and the tip of the lower one, at 1 the other way round.

_, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plot_density(model, X, left, columns=0, data="histogram", support=False, title="marginal of the first coordinate")
for value, colour in ((0.0, "#4477aa"), (1.0, "#aa3377")):
    given = model.conditional([0], [value])
    plot_density(given, None, right, support=False, label=f"second, given first = {value:g}", colour=colour)
plt.show()

# %%
# Draws are independent and exact.

drawn = model.sample(300, random_state=1)
_, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharex=True, sharey=True)
for ax, points, title in zip(panels, (X, drawn), ("the sample", "as many draws from the density"), strict=True):
    ax.scatter(*points.T, s=8, color="#4477aa", linewidths=0)
    ax.set(title=title, aspect="equal")
plt.show()

print("mean, of the density and of the draws:", model.mean().round(2), drawn.mean(axis=0).round(2))

# %%
# Where two samples differ
# ------------------------
# The witness function of two mean embeddings is positive where the first sample has more mass, negative where the other
# has. It is scaled to norm one: the shape says where they differ, the distance how much.

kernel = Gaussian(sigma=0.4)
one, two, moved = (MeanEmbedding(kernel, points) for points in (X, drawn, X + np.array([0.3, 0.0])))
print(f"distance to the draws {one.distance(two):.3f}, to the sample moved by 0.3 {one.distance(moved):.3f}")

x, y = np.meshgrid(np.linspace(-1.8, 2.8, 80), np.linspace(-1.3, 1.8, 60))
values = one.witness(moved, np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
_, panel = plt.subplots(figsize=(6, 4), layout="constrained")
panel.contourf(x, y, values, 12, cmap="RdBu_r", vmin=-np.abs(values).max(), vmax=np.abs(values).max())
panel.scatter(*X.T, s=5, color="black", linewidths=0)
panel.set(title="witness of a sample against itself, moved right by 0.3", aspect="equal")
plt.show()
