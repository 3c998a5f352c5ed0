r"""
Embeddings side by side
=======================

Three samples, each embedded without tuning by principal components, by scikit-learn's spectral embedding and by
:class:`mercer.SDPEmbedding`. :doc:`/user_guide/choosing` says when to use which, with UMAP and t-SNE beside them.
"""

# %%
# Three samples
# -------------
# Images of digits, in 64 dimensions; two moons, where one point in ten is an outlier; and a sheet rolled up in space,
# cut into six strips for the colours. No method sees the classes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer import SDPEmbedding, plane_map
from mercer.datasets import digits, swiss_roll, two_moons


def moons_with_outliers():
    moons, sides = two_moons(270)
    low, high = moons.min(axis=0) - 0.5, moons.max(axis=0) + 0.5
    outliers = np.random.default_rng(0).uniform(low, high, (30, 2))
    return np.concatenate([moons, outliers]), np.concatenate([sides, np.full(30, -1)])


def rolled_sheet():
    sheet, angle = swiss_roll(500)
    return sheet, np.digitize(angle, np.quantile(angle, np.arange(1, 6) / 6))


images, numbers = digits()
samples = {
    "digits": (images[:500], numbers[:500]),
    "two moons": moons_with_outliers(),
    "a sheet": rolled_sheet(),
}

# %%
# Three methods
# -------------
# The number in a corner is the accuracy of five nearest neighbours, outliers left out, in all coordinates that the
# method gave: two for the first two methods, some ten for the third, of which the first two are shown. Principal
# components show a flat view. Spectral embedding draws groups into corners and lets the ends of the sheet overlap. The
# first two coordinates of the programme unroll the sheet, tell the moons apart in spite of the outliers, and show
# groups of digits; what they leave together, the others tell apart.


def draw(panel, shown, coordinates, labels):
    inlier = labels >= 0
    panel.scatter(*shown[~inlier].T, s=12, c="#999999", marker="x", linewidths=0.8)
    panel.scatter(*shown[inlier].T, s=6, c=labels[inlier], cmap="tab10", vmin=0, vmax=9, linewidths=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score = cross_val_score(KNeighborsClassifier(5), coordinates[inlier], labels[inlier], cv=folds).mean()
    panel.text(0.98, 0.02, f"{score:.2f}", transform=panel.transAxes, ha="right")
    panel.set(xticks=[], yticks=[])


methods = {
    "PCA": PCA(2),
    "SpectralEmbedding": SpectralEmbedding(random_state=0),
    "SDPEmbedding": SDPEmbedding(random_state=0),
}
fitted = {}
_, panels = plt.subplots(3, 3, figsize=(9, 9), layout="constrained")
for row, (sample, (X, labels)) in zip(panels, samples.items(), strict=True):
    row[0].set_ylabel(sample)
    for panel, (name, method) in zip(row, methods.items(), strict=True):
        coordinates = fitted[sample] = method.fit_transform(X)
        draw(panel, coordinates[:, :2], coordinates, labels)
        panel.set_title(name if panel in panels[0] else "")
plt.show()

# %%
# All coordinates in one picture
# ------------------------------
# Two of ten coordinates are a poor picture of them. :func:`mercer.plane_map` lays all of them out in the plane and says
# what share of neighbours that keeps. The number in a corner is the accuracy in the two coordinates shown. Like every
# such layout it tears what does not fit into the plane in small pieces, as the sheet. The map is for the eye: k-means
# or a classifier should be given the coordinates.

_, panels = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, (sample, (_, labels)) in zip(panels, samples.items(), strict=True):
    plane = plane_map(fitted[sample])
    draw(panel, plane.coordinates, plane.coordinates, labels)
    panel.set_title(f"{sample}: {plane.kept.mean():.0%} kept")
plt.show()
