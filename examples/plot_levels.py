r"""
Levels, and a map of them in the plane
======================================

The solution of the semi-definite programme has few dimensions: three, say, for ten kinds of handwritten digits. The
same programme on what the first solution left out gives further coordinates, a *level*, and so on. Every level has a
proof of its own. More coordinates than two need a map, and a map in the plane cannot keep everything:
:func:`mercer.plane_map` says, point by point, what it keeps.
"""

# %%
# The data
# --------
# Handwritten digits, images of 8 × 8 pixels: 500 to fit, 200 to place afterwards.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from mercer import SDPEmbedding, plane_map
from mercer.plots import plot_levels, plot_plane_map

digits = load_digits()
train, test = np.split(np.random.default_rng(0).permutation(1797)[:700], [500])
X, labels = digits.data[train], digits.target[train]
X_new, labels_new = digits.data[test], digits.target[test]

# %%
# Levels and their certificates
# -----------------------------
# Without arguments the kernel is :class:`mercer.SelfTuning`, a graph of neighbours, and further levels follow the
# first. Each caption has the certified gap, and the part of the level that one step of the walk on the graph keeps.

model = SDPEmbedding(random_state=0).fit(X)
for level in model.levels_:
    print(f"{level.rank} coordinates, one step keeps {level.correlation:.0%}: {level.certificate}")

figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
plot_levels(ax, model.levels_)
plt.show()

# %%
# What each level adds
# --------------------
# The share of new digits whose five nearest neighbours in the embedding tell what they are, by the coordinates of the
# first level, of the first two, and so on. New points get the coordinates of all levels from ``transform``.

E, E_new = model.embedding_, model.transform(X_new)
for width in np.cumsum([level.rank for level in model.levels_]):
    classifier = KNeighborsClassifier(5).fit(E[:, :width], labels)
    print(f"{width:2d} coordinates: {classifier.score(E_new[:, :width], labels_new):.3f}")

# %%
# The map
# -------
# The proofs are about the coordinates; the map is a picture of them. Its line says how many of the nearest neighbours
# by all coordinates are nearest neighbours on the map. Points that keep fewer than a fifth of theirs are drawn as
# rings: nothing should be read into where they lie. On the left the first two coordinates, which keep far less.

plane = plane_map(model)
print(plane)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
plot_plane_map(left, plane_map(E[:, :2]), labels, title="The first two coordinates")
plot_plane_map(right, plane, labels)
plt.show()

# %%
# New points on the map
# ---------------------
# A new digit is placed among the five that are nearest to it by all coordinates.

placed = plane.place(E_new)
right_kind = KNeighborsClassifier(5).fit(plane.coordinates, labels).score(placed, labels_new)
print(f"{right_kind:.3f} of the new digits lie among their own kind")

figure, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
plot_plane_map(ax, plane, labels, title="New digits, in black, on the map")
ax.scatter(*placed.T, s=10, color="black", marker="x", linewidths=0.8)
plt.show()
