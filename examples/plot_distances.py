r"""
Kernels from distances
======================

A distance makes a kernel, and the principal components of that kernel are an embedding that has another name:
classical scaling of straight distances, Isomap of paths along the data, and so on. :doc:`/user_guide/distances` has the
formulas.
"""

# %%
# A rolled sheet, by straight lines and by paths
# ----------------------------------------------
# Straight distances show the roll as it is. Lengths of shortest paths between neighbours unroll it, and so do the
# kernels of locally linear embedding and of Laplacian eigenmaps, each in its own shape. The problem is solved on 150
# landmarks; paths lead over all 1500 points.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.neighbors import KNeighborsClassifier

from mercer import SSIM, FromDistance, Geodesic, GraphLaplacian, KernelPCA, LocallyLinear
from mercer.plots import plot_points

X, along = make_swiss_roll(1500, random_state=0)
landmarks = np.arange(0, 1500, 10)
kernels = {
    "straight distances": FromDistance(),
    "paths: Isomap": Geodesic(10),
    "locally linear embedding": LocallyLinear(10),
    "Laplacian eigenmaps": GraphLaplacian(10),
}

_, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
models = {name: KernelPCA(kernel, landmarks=landmarks).fit(X) for name, kernel in kernels.items()}
for panel, (name, model) in zip(axes.flat, models.items(), strict=True):
    panel.scatter(*model.embedding_.T, c=along, s=4, cmap="viridis")
    panel.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# What is negative
# ----------------
# Lengths of paths are no distances of a Euclidean space but on a flat sheet without holes, so their kernel has negative
# eigenvalues. Their share of the spectrum tells how far the picture can be trusted: here it is small.

for name, model in models.items():
    print(f"{name:25s} {model.negative_share_:.3f} of the spectrum is negative")

# %%
# Digits by their structural similarity
# -------------------------------------
# :class:`mercer.SSIM` compares means, variances and covariances of windows instead of pixels, as one does who judges
# how much a picture suffered. Its kernel is positive semi-definite. For telling digits apart it does little more than
# pixels do: the figures are for new digits, by five nearest neighbours in eight coordinates.

digits = load_digits()
images, labels = digits.data[:900], digits.target[:900]
train = np.arange(900) < 600

_, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
by_name = {"pixel by pixel": FromDistance(), "by structural similarity": SSIM((8, 8), data_range=16, size=5)}
for panel, (name, kernel) in zip(axes, by_name.items(), strict=True):
    model = KernelPCA(kernel, n_components=8).fit(images[train])
    new = model.transform(images[~train])
    score = KNeighborsClassifier(5).fit(model.embedding_, labels[train]).score(new, labels[~train])
    plot_points(panel, model.embedding_, labels[train], title=f"{name}: {score:.0%} of new digits right")
plt.show()
