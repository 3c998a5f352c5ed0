r"""
Choosing a bandwidth
====================

The default has no bandwidth to choose. A Gaussian kernel has one, and with it everything changes: this tutorial looks
at all of them at once and takes one for a reason.
"""

# %%
# A file
# ------
# 150 flowers of iris, four lengths each, and the species.

import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

file = Path(tempfile.mkdtemp()) / "iris.csv"
load_iris(as_frame=True).frame.rename(columns={"target": "species"}).to_csv(file, index=False)

flowers = pd.read_csv(file)
species = flowers.pop("species").to_numpy()
X = StandardScaler().fit_transform(flowers)

# %%
# Why a kernel of one's own
# -------------------------
# ``SDPEmbedding()`` gives every point a scale of its own. A Gaussian kernel has one scale, σ, for all: its
# coordinates are smooth functions of the point, it is what the papers write about, and it is what a support vector
# machine or a Gaussian process takes. The usual rule of thumb is the median distance between points:

from mercer import Gaussian

median = Gaussian("median").resolve(X).sigma
print(f"median distance: {median:.2f}")

# %%
# All bandwidths at once
# ----------------------
# :func:`mercer.rank_path` embeds the sample at every bandwidth of a grid. Each line says how many dimensions the
# optimum has, how well that was proved, and two things that decide. *Step keeps*: how much of the embedding one step
# of a random walk between neighbours remembers. Near 100 % everyone stays where he is (the bandwidth is too small);
# near 0 % everyone is everyone's neighbour (too large). *Neighbours kept*: how many of a point's nearest neighbours
# in the data are among its nearest in the embedding.

import numpy as np

from mercer import rank_path

path = rank_path(X, median * np.geomspace(1 / 8, 4, 9), random_state=0)
print(path)

# %%
# The same in a picture; shaded bandwidths say little, for the reason written into the shade, and the dashed line is
# the suggestion.

import matplotlib.pyplot as plt

from mercer.plots import plot_points, plot_rank_path

_, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_rank_path(path, axes)
plt.show()

# %%
# Take the suggestion
# -------------------
# ``path.suggested_kernel`` is the kernel with that bandwidth. Beside it the median, and the default that needs none.
# The score is the accuracy of five nearest neighbours in the coordinates: it sees the species, the suggestion did
# not.

from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer import SDPEmbedding

kernels = {
    f"suggested, σ = {path.suggested_kernel.sigma:.2f}": path.suggested_kernel,
    f"median, σ = {median:.2f}": Gaussian(median),
    "default, no bandwidth": None,
}
_, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for panel, (name, kernel) in zip(panels, kernels.items(), strict=True):
    model = SDPEmbedding(kernel, random_state=0).fit(X)
    score = cross_val_score(KNeighborsClassifier(5), model.embedding_, species, cv=5).mean()
    plot_points(panel, model.embedding_, species, title=f"{name}: {score:.2f}")
plt.show()

# %%
# When to ignore it
# -----------------
# The suggestion keeps neighbours. For clusters a smaller bandwidth may be better: groups then shrink to points. Over
# thirteen samples the suggestion is within .011 of the best bandwidth by five neighbours on eleven of them, and below
# it by .4 for k-means on two moons: ``benchmarks/results/bandwidth_choice.md``. If labels are at hand, let them
# choose: :doc:`plot_04_pipeline`.
