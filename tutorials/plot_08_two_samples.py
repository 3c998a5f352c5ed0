r"""
Are these two samples different?
================================

Two files with the same columns. Do their rows come from the same source? A test gives the answer with a promise about
how often it is wrong, for any kind of difference, not only of the means.
"""

# %%
# Two files
# ---------
# Made here, with a seed at which no t-test rejects: parts of an old machine and of a new one. The means are the same;
# the new machine is less steady in one column.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(5)


def parts(n, spread):
    length, width = rng.normal(10, 0.2, n), rng.normal(5, spread, n)
    colour = rng.choice(["red", "grey"], n, p=[0.3, 0.7])
    return pd.DataFrame({"length": length, "width": width, "colour": colour})


parts(150, 0.1).to_csv(folder / "old.csv", index=False)
parts(120, 0.2).to_csv(folder / "new.csv", index=False)

# %%
# The usual look
# --------------
# Means agree. So does a t-test of each column.

old, new = pd.read_csv(folder / "old.csv"), pd.read_csv(folder / "new.csv")
from scipy.stats import ttest_ind

for column in ("length", "width"):
    p = ttest_ind(old[column], new[column]).pvalue
    print(f"{column}: {old[column].mean():.3f} and {new[column].mean():.3f}, t-test p = {p:.2f}")

# %%
# The test
# --------
# Numbers and categories together, on one scale that is made of both files alike. The p-value is the share of random
# ways to deal the rows into two piles that look as different as the files do: one in a thousand here, and no formula
# for large samples is involved.

from mercer import explain_difference, mmd_test

result = mmd_test(old, new, rng=0)
print(result)

# %%
# What carries the difference? Each column by itself, with p-values that account for there being several:

print(explain_difference(old, new, rng=0))

# %%
# Among the relabellings, and in the columns:

import matplotlib.pyplot as plt

from mercer.plots import plot_null

_, panels = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
plot_null(result, panels[0])
for name, table, colour in (("old", old, "#4477aa"), ("new", new, "#ee6677")):
    panels[1].hist(table["width"], np.linspace(4.3, 5.7, 25), density=True, alpha=0.6, color=colour, label=name)
panels[1].set(title="width")
panels[1].legend()
plt.show()

# %%
# From the command line
# ---------------------
# The same without a line of Python; the answer is the first sentence.
#
# .. code-block:: console
#
#    $ mercer test old.csv new.csv --explain
#    old.csv and new.csv differ: ...
#
# What a p-value says, and what spoils it (looking again and again, ordered rows, the best of many columns), is the
# matter of :doc:`/user_guide/testing`.
