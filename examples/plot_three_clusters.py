r"""
Three clusters and a few outliers
=================================

Three clusters lie in the plane, with a few points far from all of them. The semi-definite programme gives
each point a vector whose length is fixed by the data, large where points are sparse, and chooses only its
direction. Diffusion maps take the leading eigenvectors of the same operator, where nothing fixes the length
of a point's vector: those of the symmetric matrix are small at outliers, those of the Markov matrix put them
among the clusters. The example follows Figure 1 of Fanuel, Aspeel, Delvenne and Suykens (SIAM J. Math. Data
Sci., 2022).
"""

# %%
# The data
# --------
# Label -1 marks the outliers.

import matplotlib.pyplot as plt

from mercer import DiffusionMaps, Gaussian, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.plots import plot_points

X, labels = three_clusters(n_per_cluster=100, n_outliers=10, random_state=0)

# %%
# Embeddings of the same operator
# -------------------------------
# All start from :math:`k(x, y) = \exp(-\|x-y\|^2/\sigma^2)`, normalised by its row sums.

kernel = Gaussian(sigma=1.2)
sdp = SDPEmbedding(kernel, random_state=0).fit(X)
symmetric = DiffusionMaps(kernel, normalization="symmetric").fit(X)
markov = DiffusionMaps(kernel).fit(X)

# %%
# What was proved
# ---------------
# The certificate bounds the optimum of the semi-definite programme from both sides. :doc:`/certificate`
# explains each part of this line.

print(str(sdp.certificate_))

# %%
# Side by side
# ------------
# The first two coordinates of each embedding; stars are the outliers.

figure, panels = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
plot_points(panels[0], X, labels, title="data")
plot_points(panels[1], sdp.embedding_, labels, title=f"SDPEmbedding (rank {sdp.rank_})")
plot_points(panels[2], symmetric.embedding_, labels, title='DiffusionMaps(normalization="symmetric")')
plot_points(panels[3], markov.embedding_, labels, title="DiffusionMaps()")
plt.show()
