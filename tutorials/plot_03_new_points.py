r"""
New points and outliers
=======================

A model is fitted to Monday's file. On Tuesday another file comes: where do its rows belong, and which of them are
like nothing that was there on Monday?
"""

# %%
# Two files
# ---------
# Both are made here: three kinds of parts with two measurements, and on Tuesday a few parts that are none of the
# three.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.5]])


def parts(n):
    kind = rng.integers(3, size=n)
    return pd.DataFrame(centres[kind] + rng.normal(0, 0.5, (n, 2)), columns=["length", "width"]), kind


monday, kinds = parts(300)
monday.to_csv(folder / "monday.csv", index=False)
odd = pd.DataFrame({"length": [2.0, 7.0, -2.5, 2.0, 4.2], "width": [1.2, 3.0, 3.0, -3.0, 2.4]})
pd.concat([parts(95)[0], odd]).to_csv(folder / "tuesday.csv", index=False)

# %%
# Fit on Monday
# -------------
# A Gaussian kernel: its coordinates are smooth functions of the point. ``"slope"`` finds a bandwidth at which sparse
# and dense places can be told apart, which the median distance does not when there are clusters
# (``benchmarks/results/novelty.md``).

from mercer import Gaussian, SDPEmbedding

monday = pd.read_csv(folder / "monday.csv")
model = SDPEmbedding(Gaussian("slope"), random_state=0).fit(monday)
print(model.certificate_)

# %%
# Place Tuesday's rows
# --------------------
# ``transform`` is a formula: the embedding of a new point is made of those of its neighbours on Monday, and a row of
# Monday gets back the place it had. Columns are matched by name, so a file with other columns is refused.

tuesday = pd.read_csv(folder / "tuesday.csv")
places = model.transform(tuesday)
again = np.abs(model.transform(monday) - model.embedding_).max()
print(f"Monday's rows come back to within {again:.0e}")

try:
    model.transform(tuesday.rename(columns={"width": "weight"}))
except ValueError as refusal:
    print(str(refusal).splitlines()[0])

# %%
# Which rows are new?
# -------------------
# Every row gets a place, an odd one too. ``novelty`` says how far it is from the data: the logarithm of one over the
# density, in the kernel's own terms. What counts as far? Monday's rows are the measure: a row of Tuesday that is
# stranger than 99 of a hundred of Monday's is worth a look.

score = model.novelty(tuesday)
limit = np.quantile(model.novelty(monday), 0.99)
strange = tuesday.assign(novelty=score.round(2))[score > limit]
print(strange)

# %%
# The last five rows are those that were put there by hand, and their scores are far above the rest. Three of the
# other 95 are just above the limit. One or two would be expected: Monday's rows count themselves among their
# neighbours, so that the limit is a little low. All eight are crosses in the picture.

import matplotlib.pyplot as plt

_, panels = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
views = ((panels[0], monday.to_numpy(), tuesday.to_numpy(), "the files"),)
views += ((panels[1], model.embedding_, places, "the embedding"),)
for panel, old, new, title in views:
    panel.scatter(*old[:, :2].T, s=8, color="#bbbbbb", label="Monday")
    panel.scatter(*new[score <= limit, :2].T, s=10, color="#4477aa", label="Tuesday")
    panel.scatter(*new[score > limit, :2].T, s=50, color="#ee6677", marker="x", label="Tuesday, strange")
    panel.set(title=title, aspect="equal")
panels[0].legend(fontsize=8)
plt.show()

# %%
# Is the extension any good?
# --------------------------
# That can be asked for: how far are the places of Tuesday's ordinary rows from the best embedding *of these rows
# themselves*?

from mercer import verify

print(verify(model, tuesday[score <= limit], extended=True))

# %%
# Many files
# ----------
# Whether a whole file differs from another, rather than single rows, is a test: :doc:`plot_08_two_samples`. Files
# that keep coming are watched by :class:`mercer.DriftDetector`: :doc:`/user_guide/drift`. As an outlier detector
# alone, an isolation forest or the local outlier factor of scikit-learn does as well or better:
# :doc:`/where_we_lose`.
