r"""
Four embeddings side by side
============================

Three samples, each embedded without any tuning by principal components, by scikit-learn's spectral embedding, by
t-SNE and by :class:`mercer.SDPEmbedding`. :doc:`/user_guide/choosing` says when to use which, with UMAP beside them.
"""

# %%
# Three samples
# -------------
# Images of digits, in 64 dimensions; two moons, with one point in ten an outlier; and a sheet rolled up in space, whose
# colours run along the sheet.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, SpectralEmbedding

from mercer import SDPEmbedding
from mercer.datasets import digits, swiss_roll, two_moons

rng = np.random.default_rng(0)
images, numbers = (part[:600] for part in digits())
moons, sides = two_moons(270)
low, high = moons.min(axis=0) - 0.4, moons.max(axis=0) + 0.4
moons = np.concatenate([moons, rng.uniform(low, high, (30, 2))])
sides = np.concatenate([sides, np.full(30, -1)])
sheet, angle = swiss_roll(600)
samples = {"digits": (images, numbers), "moons": (moons, sides), "sheet": (sheet, angle)}
