r"""
Landmarks that stand for a sample
=================================

:class:`mercer.QuadratureSparsifier` chooses a few points of a sample and gives each a weight, so that they do for the
kernel what the whole sample does. The choice is a convex problem, so it is proved, not tried.
"""

# %%
# Forty landmarks
# ---------------
# 1830 points: three clusters, and a few points far from all of them. The area of a dot is its weight. Landmarks are
# spread over the places where the sample has points, and the weights say how much of it each of them stands for.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, QuadratureSparsifier, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.plots import plot_merging, plot_points, plot_quadrature, plot_quadrature_path, plot_upsilon
from mercer.quadrature import approximate_eigenpairs

X, labels = three_clusters(n_per_cluster=600, n_outliers=30, random_state=0)
kernel = Gaussian(sigma=0.8)
model = QuadratureSparsifier(kernel, n_nodes=40).fit(X)

figure, panel = plt.subplots(figsize=(6, 5.2), layout="constrained")
plot_quadrature(model, X, panel)
plt.show()

# %%
# How far the landmarks are from the sample is the discrepancy; the certificate says how much other weights on the same
# landmarks could gain.

print(f"discrepancy {model.discrepancy_:.2e}, weights sum to {model.weights_.sum():.3f}")
print(model.certificate_)

# %%
# All solutions at once
# ---------------------
# With ``solver="path"`` every solution from no node at all to the one asked for is computed, and ``path_`` has them.
# Between two kinks nothing changes but the weights, and these are linear: the path is exact. Its solutions are optimal
# for the trace they carry, and have more nodes than one needs for that discrepancy.

path = QuadratureSparsifier(kernel, trace_fraction=0.95, solver="path").fit(X).path_
print(path)
print(path.at(kappa=0.5).indices.size, "nodes carry half of the trace")

_, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
plot_quadrature_path(path, axes)
plt.show()

# %%
# Taking nodes out
# ----------------
# The solution for 95 % of the trace has neighbours that share what one of them could carry. Nodes are taken out by the
# paper's merging, where one hands its weight to another, or by elimination, where it is shared out among all.
# Elimination gives the weights free first, so that its curve begins lower, and it stays lower.

_, panel = plt.subplots(figsize=(5.5, 4), layout="constrained")
for how, colour in (("strong", "#4477aa"), ("eliminate", "#228833")):
    reduced = QuadratureSparsifier(kernel, trace_fraction=0.95, merge=how, n_nodes=5).fit(X)
    plot_merging(reduced.reduction_, panel, label=how, colour=colour)
plt.show()

# %%
# Eigenfunctions from a few points
# --------------------------------
# The weighted landmarks are a small sample whose kernel operator has nearly the eigenpairs of the large one. The Υ-test
# measures that on all points: one means an exact eigenfunction. As many points at random, all of one weight, do worse.

pairs = model.eigenpairs(20)
drawn = np.random.default_rng(0).choice(len(X), model.indices_.size, replace=False)
equal = np.full(drawn.size, 1 / drawn.size)
at_random = approximate_eigenpairs(kernel, X, 1 / len(X), drawn, equal, 20)

_, panel = plt.subplots(figsize=(5.5, 4), layout="constrained")
plot_upsilon(pairs, panel, label=f"{model.indices_.size} optimal nodes")
plot_upsilon(at_random, panel, label="as many at random", colour="#aa3377", marker="x")
panel.legend(fontsize=8, loc="lower left")
plt.show()

# %%
# An embedding solved on the landmarks
# ------------------------------------
# The landmarks and their weights go straight into :class:`mercer.SDPEmbedding`: the programme is solved on 40 weighted
# points in the place of 1830, and the map is extended to the others.

embedding = SDPEmbedding(kernel, landmarks=model, random_state=0).fit(X)
_, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_points(panels[0], X, labels, title="data")
plot_points(panels[1], embedding.embedding_, labels, title=f"SDPEmbedding on {model.indices_.size} landmarks")
plt.show()
