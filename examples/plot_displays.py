r"""
Displays: a picture of every model and result
=============================================

Displays are classes that draw a model or a result, as in scikit-learn, and all take their arguments in one order:
``Display.from_estimator(model, X, *, labels=None, ax=None, …)`` or ``from_result(result, X, *, …)``. See
:doc:`/user_guide/displays`.
"""

# %%
# Embeddings
# ----------
# Labels that are classes get a legend, numbers get a colour bar. An embedding with more than two coordinates is drawn
# by two of them, or by :func:`mercer.plane_map` of all.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_iris

from mercer import Gaussian, QuadratureSparsifier, SDPEmbedding, SumOfSquaresDensity, mmd_test, rank_path
from mercer.datasets import halton_square, three_clusters, two_moons
from mercer.plots import (
    CertificateDisplay,
    DensityDisplay,
    EmbeddingDisplay,
    LandmarksDisplay,
    LevelsDisplay,
    NullDisplay,
    QuadraturePathDisplay,
    RankPathDisplay,
    UpsilonDisplay,
    WitnessDisplay,
)

iris = load_iris()
kinds = iris.target_names[iris.target]
model = SDPEmbedding(random_state=0).fit(iris.data)

_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
EmbeddingDisplay.from_estimator(model, iris.data, labels=kinds, ax=left, label_name="kind", title="classes")
EmbeddingDisplay.from_estimator(
    model, iris.data, labels=iris.data[:, 2], ax=right, label_name="petal length, cm", title="numbers"
)
plt.show()

# %%
# Ten classes, and thirty: where colours run out, markers tell classes apart, and the legend stands beside the panel.

digits = load_digits()
X, labels = digits.data[:600], digits.target[:600]
digit_model = SDPEmbedding(random_state=0).fit(X)
thirds = np.array([f"{digit}{'abc'[k % 3]}" for k, digit in enumerate(labels)])

_, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
display = EmbeddingDisplay.from_estimator(digit_model, labels=labels, ax=left, components="map", label_name="digit")
EmbeddingDisplay.from_predictions(display.coordinates, labels=thirds, ax=right, title="digits, each in three parts")
plt.show()

# %%
# Certificates
# ------------
# What the run knew of itself, and what was proved in the end from the solution alone: the star. Each level of an
# embedding has a proof of its own.

_, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
CertificateDisplay.from_estimator(digit_model, level=2, ax=panels)
_, panel = plt.subplots(figsize=(6, 4), layout="constrained")
LevelsDisplay.from_estimator(digit_model, ax=panel)
plt.show()

# %%
# Paths
# -----
# Bandwidths on the way from isolated points to points that are all alike.

_, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
RankPathDisplay.from_result(rank_path(three_clusters(n_per_cluster=20)[0], random_state=0), ax=panels)
plt.show()

# %%
# Landmarks
# ---------
# Over their sample, which may have labels; the path of the quadrature, and the test of its eigenpairs.

square = halton_square(200)
sparsifier = QuadratureSparsifier(Gaussian(sigma=0.6), trace_fraction=0.7, solver="path").fit(square)
_, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
sides = np.where(square[:, 0] > 0, "right", "left")
LandmarksDisplay.from_estimator(sparsifier, square, labels=sides, ax=left, label_name="half")
UpsilonDisplay.from_estimator(sparsifier, n=15, ax=right)

_, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
QuadraturePathDisplay.from_estimator(sparsifier, ax=panels)
plt.show()

# %%
# Densities
# ---------

moons, moon = two_moons(300, noise=0.1, random_state=0)
density = SumOfSquaresDensity(Gaussian(sigma=0.4), support=("kmeans", 40), random_state=0).fit(moons)
_, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
DensityDisplay.from_estimator(density, moons, labels=moon, ax=left, support=False, label_name="moon")
DensityDisplay.from_estimator(density, moons, labels=moon, ax=right, columns=0, support=False, label_name="moon")
plt.show()

# %%
# Tests
# -----
# Where two samples differ, and how far the statistic is from those of chance.

before, after = moons[:150], moons[150:] + np.array([0.15, 0.0])
result = mmd_test(before, after, rng=0)
print(result)
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
WitnessDisplay.from_result(result, before, after, labels=("before", "after"), ax=left)
NullDisplay.from_result(result, ax=right)
plt.show()
