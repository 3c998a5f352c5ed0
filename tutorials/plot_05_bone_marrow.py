r"""
Bone-marrow cells, with AnnData
===============================

Cells of the bone marrow lie on a tree: stem cells turn into the kinds of blood cells, and no gap separates them. Data
of this kind come as AnnData objects, and scanpy looks for results in certain places. :mod:`mercer.anndata` reads and
writes there.

.. note::

   With ``MERCER_DATA`` set this page embeds 1400 of 4142 cells of mouse bone marrow, each by 50 principal components
   of its gene counts; without, it makes cells that branch in the same way. The line that the first block prints says
   which these were.
"""

# %%
# The cells
# ---------
# What usually comes before, with scanpy: counts, filtered, normalised, logarithms taken, ``sc.pp.pca``. Here the
# components are written to a CSV file first and read back, a row for each cell.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from mercer.datasets import data_folder, marrow

rng = np.random.default_rng(0)
if data_folder() is not None:
    components = marrow()[:, :50]
    print("4142 cells of mouse bone marrow")
else:
    step, branch = rng.uniform(0, 1, 1500), rng.integers(3, size=1500)
    directions = rng.normal(0, 1, (4, 50)) / 7
    along = np.minimum(step, 0.4)[:, None] * directions[3] + np.maximum(step - 0.4, 0)[:, None] * directions[branch]
    components = 40 * along + rng.normal(0, 0.5, (1500, 50))
    print("1500 made-up cells on a tree of three branches")

file = Path(tempfile.mkdtemp()) / "cells.csv"
names = [f"cell{i}" for i in range(len(components))]
pd.DataFrame(components, index=names).round(4).to_csv(file, index_label="cell")
table = pd.read_csv(file, index_col="cell")

# %%
# An AnnData object
# -----------------
# ``obsm["X_pca"]`` is where scanpy leaves principal components. Where the package anndata is not installed, as it may
# not be where these pages are built, a small class with the same places stands in for it: Mercer asks for these and
# no more.

try:
    from anndata import AnnData
except ImportError:

    class AnnData:
        """The places of an AnnData object that are used below."""

        def __init__(self, X, obs):
            self.X, self.obs, self.n_vars = X, obs, X.shape[1]
            self.obsm, self.varm, self.uns = {}, {}, {}


def cells(rows):
    adata = AnnData(rows.to_numpy(np.float32), obs=pd.DataFrame(index=rows.index))
    adata.obsm["X_pca"] = rows.to_numpy()
    return adata


shuffled = table.iloc[rng.permutation(len(table))]
adata, further = cells(shuffled.iloc[:1000]), cells(shuffled.iloc[1000:1400])

# %%
# Embed
# -----
# One call. It writes coordinates to ``obsm``, what was done and what was proved to ``uns``, and a score for cells far
# from all others to ``obs``. ``varm`` is left alone: the coordinates are not made of genes one by one.

from mercer import SDPEmbedding
from mercer.anndata import embed, transform

model = SDPEmbedding(random_state=0)
embed(adata, model)

print({name: value.shape for name, value in adata.obsm.items()})
print(adata.uns["mercer"]["certificate"]["sentence"])
print(pd.DataFrame(adata.uns["mercer"]["levels"]).round(7))

# %%
# Further cells
# -------------
# The next plate is embedded by the same model, so that its cells lie on the same map. (Principal components must be
# those of the first plate: ``transform(further, model, reference=adata)`` projects counts on them.)

transform(further, model)
print(further.obsm["X_mercer"].shape)
print("most unlike the cells of the fit:", further.obs["mercer_novelty"].idxmax())

# %%
# Look
# ----
# ``obsm["X_mercer"]`` is a basis like any other for scanpy: ``sc.pl.embedding(adata, basis="mercer")`` draws its
# first two columns. Drawn here without it: the first two, and all of them in the plane.

import matplotlib.pyplot as plt

from mercer import plane_map

plane = plane_map(model)
_, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
panels[0].scatter(*adata.obsm["X_mercer"][:, :2].T, s=4, color="#4477aa", linewidths=0, label="cells of the fit")
panels[0].scatter(*further.obsm["X_mercer"][:, :2].T, s=4, color="#ee6677", linewidths=0, label="further cells")
panels[0].legend(fontsize=8, markerscale=3)
panels[0].set(title='obsm["X_mercer"], first two')
shade = panels[1].scatter(*plane.coordinates.T, s=5, c=adata.obs["mercer_novelty"], cmap="viridis", linewidths=0)
panels[1].set(title="plane_map of all coordinates")
plt.colorbar(shade, ax=panels[1], label="novelty")
plt.show()

# %%
# Clusters and trajectories
# -------------------------
# For scanpy's own neighbours and Leiden clusters on these coordinates: ``sc.pp.neighbors(adata,
# use_rep="X_mercer")``. Along a trajectory diffusion maps are the usual choice; :class:`mercer.DiffusionMaps` is
# written to the same places when it is given as the model:

from mercer import DiffusionMaps

embed(adata, DiffusionMaps(n_components=10), key_added="X_diffusion")
print(sorted(adata.obsm))
