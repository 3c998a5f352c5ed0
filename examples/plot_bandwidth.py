r"""
Choosing the bandwidth
======================

The bandwidth decides which points are neighbours, and with it everything an embedding can show. Far too small, and
every point is isolated; far too large, and all points look alike. :func:`mercer.rank_path` embeds the data at every
bandwidth of a grid and says, for each of them, what it shows.
"""

# %%
# The data
# --------
# Three clusters in the plane and a few outliers.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, SDPEmbedding, rank_path
from mercer.datasets import three_clusters
from mercer.plots import plot_points, plot_rank_path

X, labels = three_clusters(n_per_cluster=50, n_outliers=6, random_state=0)

# %%
# The path
# --------
# Bandwidths from a thousandth of the median distance to a thousand times it: too wide a range on purpose, to see both
# of its ends. Without ``sigmas`` the grid runs from a sixteenth of the median distance to four times it.

median = Gaussian().resolve(X).sigma
path = rank_path(X, median * np.geomspace(1e-3, 1e3, 13), max_products=3000, random_state=0)
print(path)

# %%
# The same as a picture
# ---------------------
# On the left the spectrum of the learned kernel matrix, its rank above; on the right the eigenvalues of diffusion maps.
# Shaded bandwidths say little or nothing, each for the reason written into it. Between them is the range to choose
# from. There the rank belongs to the data: two dimensions hold three clusters. The dashed line is the bandwidth that
# the path suggests; the last line of the table says why, and ``path.suggested_kernel`` is the kernel with it.

_, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_rank_path(path, axes)
plt.show()

# %%
# Three bandwidths
# ----------------
# One from either end of that range, and one between. On the left the clusters lie on three rays. On the right the
# embedding is close to what a linear method shows: the data again.

figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for panel, factor in zip(panels, (0.25, 0.5, 2.4), strict=True):
    model = SDPEmbedding(Gaussian(sigma=factor * median), random_state=0).fit(X)
    plot_points(panel, model.embedding_, labels, title=f"σ = {factor} median, rank {model.rank_}")
plt.show()
