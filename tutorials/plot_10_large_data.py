r"""
Large data
==========

What to do when rows are many: which of the ways through the library does not need all pairs of them, what each costs,
and how to stop and go on.

.. note::

   The build of these pages takes 10 000 rows. ``MERCER_TUTORIAL_ROWS=100000`` and more run the same code; the figures
   of large runs that are quoted come from the pages of benchmarks.
"""

# %%
# A file
# ------
# A ring of groups in 8 columns, made here.

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

rows = int(os.environ.get("MERCER_TUTORIAL_ROWS", 10_000))
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
angle = rng.integers(12, size=rows) * np.pi / 6
turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
table = np.column_stack([6 * np.cos(angle), 6 * np.sin(angle), np.zeros((rows, 6))]) @ turn + rng.normal(
    0, 0.8, (rows, 8)
)
pd.DataFrame(table).to_csv(folder / "rows.csv", index=False, float_format="%.4f")

# %%
# Read with the precision that is needed. Estimators compute in double precision whatever the array is, so that
# certificates hold, but the points themselves may stay in single.

X = pd.read_csv(folder / "rows.csv", dtype=np.float32).to_numpy()
print(X.shape, f"{X.nbytes / 1e6:.1f} MB")

# %%
# 1. The neighbour graph
# ----------------------
# The default. Memory grows with the rows, not with their square: 100 000 rows of covtype are embedded and proved to a
# gap of 1.4e-4 in 8 s and 0.6 GB on two cores, a million in 13 minutes and 3.4 GB to a gap of 1.2e-3, where 1e-3 was
# asked for (``benchmarks/results/million_points.md``). ``tol`` is the gap you want proved: ask for no more than you
# need.

from mercer import SDPEmbedding

began = time.perf_counter()
model = SDPEmbedding(n_levels=1, tol=1e-3, random_state=0).fit(X)
print(f"{time.perf_counter() - began:.1f} s: {model.certificate_}")

# %%
# 2. Landmarks
# ------------
# Some rows that stand for all; every estimator takes them. The certificate is then that of the problem on the
# landmarks. What the extended solution is worth for *all* rows is another question, and it is answered: ``verify(…,
# extended=True)``.

began = time.perf_counter()
sparse = SDPEmbedding(n_levels=1, landmarks=1000, random_state=0).fit(X)
print(f"{time.perf_counter() - began:.1f} s for {len(sparse.embedding_)} rows by {sparse.landmarks_.size} landmarks")

# %%
# 3. A dense kernel without its matrix
# ------------------------------------
# A Gaussian kernel connects all rows with all. Products with its matrix are computed in tiles that are used at once;
# where the matrix has a low rank, a stand-in does most of the work and the proof is still against the exact kernel
# (``benchmarks/results/embedding_scale.md``: 100 000 rows in 132 s and 0.9 GB). Say how much memory there is:

import mercer
from mercer import Gaussian, KernelPCA

began = time.perf_counter()
with mercer.config_context(memory_limit="500MB"):
    components = KernelPCA(Gaussian("median"), n_components=2).fit(X)
print(f"{time.perf_counter() - began:.1f} s for kernel PCA; the matrix would have {rows**2 * 8 / 1e6:.0f} MB")
print("eigenvalues known to within", components.residual_bounds_.max().round(12))

# %%
# 4. Stop, and go on
# ------------------
# ``max_products`` bounds the work, Ctrl-C ends it, and either way the best embedding so far is kept, with a
# certificate that says how good it is. A checkpoint is a file; the same call goes on from it.

import warnings

from sklearn.exceptions import ConvergenceWarning

checkpoint = folder / "run.npz"
settings = {"n_levels": 1, "tol": 1e-9, "random_state": 0, "checkpoint": checkpoint}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # it says that the work was cut off, as asked for
    cut_off = SDPEmbedding(**settings, max_products=300).fit(X)
    print(cut_off.status_.name, f"{cut_off.certificate_.relative_gap:.1e}")
    more = SDPEmbedding(**settings, max_products=1500).fit(X)
    print(more.status_.name, f"{more.certificate_.relative_gap:.1e}")

# %%
# The picture
# -----------

import matplotlib.pyplot as plt

_, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for panel, fitted, title in ((panels[0], model, "all rows"), (panels[1], sparse, "1000 landmarks, extended")):
    panel.scatter(*fitted.embedding_[:5000, :2].T, s=2, c=angle[:5000], cmap="twilight", linewidths=0)
    panel.set(title=title, aspect="equal")
plt.show()

# %%
# Other ways
# ----------
# - More cores: products use all of them and give the same bits with any number
#   (``benchmarks/results/many_cores.md``).
# - A GPU: hand over torch tensors on the device (:doc:`/user_guide/operators`).
# - Tests of large samples: ``mmd_test(…, compress="landmarks")``, 100 000 rows in a second
#   (``benchmarks/results/compressed_tests.md``).
# - Regression and classification: ``Kernelized(Ridge(), landmarks=1000)`` (:doc:`/user_guide/kernelization`).
# - What does not grow: :class:`mercer.MaximumVarianceUnfolding` is for a thousand rows or its landmarks.
