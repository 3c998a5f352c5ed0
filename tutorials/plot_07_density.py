r"""
A density to sample from
========================

A file of measurements becomes a probability density: a function that can be evaluated anywhere, that integrates to
one, and from which new rows are drawn.
"""

# %%
# A file
# ------
# Two columns about 442 patients with diabetes: body mass index and blood pressure.

import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_diabetes

folder = Path(tempfile.mkdtemp())
patients = load_diabetes(as_frame=True, scaled=False).data[["bmi", "bp"]]
patients.to_csv(folder / "patients.csv", index=False)

patients = pd.read_csv(folder / "patients.csv")
X = patients.to_numpy()
scale = X.std(axis=0)  # one bandwidth serves both columns: bring them to one scale

# %%
# Fit
# ---
# The density is a sum of squares of combinations of kernel sections, so it cannot be negative, and its integral is a
# closed form. It is fitted so that its mean embedding is nearest to that of the sample, a convex problem; the
# certificate bounds how far the fit is from the best one.

from mercer import SumOfSquaresDensity

model = SumOfSquaresDensity(random_state=0).fit(X / scale)
print(model)
print(model.certificate_)

# %%
# Look
# ----

import matplotlib.pyplot as plt

from mercer.plots import plot_density

_, panel = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
plot_density(model, X / scale, panel, title="442 patients, and the density fitted to them")
plt.show()

# %%
# Draw rows
# ---------
# Draws are independent and from the density itself: no chain that has to forget where it began. They go into a file
# as the sample came.

drawn = model.sample(1000, random_state=0) * scale
pd.DataFrame(drawn, columns=patients.columns).round(2).to_csv(folder / "drawn.csv", index=False)
print(pd.DataFrame({"sample": X.mean(axis=0), "drawn": drawn.mean(axis=0)}, index=patients.columns).round(2))

# %%
# Would anybody notice? A test of the sample beside as many draws. (The draws stand for the sample no better than the
# density does: of iris, whose petals have a gap between two species, the same test finds that the default density is
# too smooth.)

from mercer import mmd_test

result = mmd_test(X / scale, drawn[:442] / scale, rng=0)
print(result)

# %%
# Questions to a density
# ----------------------
# Its logarithm at a point, its marginals, and what one column is given the other.

import numpy as np

asked = np.array([[25.0, 90.0], [40.0, 70.0]])  # usual; heavy, and of low blood pressure
print("log-density:", model.score_samples(asked / scale).round(1))

_, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plot_density(model, X / scale, panels[0], columns=0, data="histogram", support=False, title="body mass index, scaled")
for bmi, colour in ((22, "#4477aa"), (34, "#aa3377")):
    given = model.conditional([0], [bmi / scale[0]])
    plot_density(
        given, None, panels[1], support=False, label=f"blood pressure, scaled, given bmi = {bmi}", colour=colour
    )
plt.show()

# %%
# How good is it?
# ---------------
# By the mean log-density of rows that were held out, beside the usual densities, each at its own choice of
# parameters.

from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KernelDensity

peers = {
    "sum of squares, default": SumOfSquaresDensity(random_state=0),
    "kernel density": GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 1, 10)}),
    "Gaussian mixture": GridSearchCV(GaussianMixture(random_state=0), {"n_components": [1, 2, 3, 4]}),
}
shuffled = np.random.default_rng(0).permutation(X / scale)
for name, peer in peers.items():
    scores = cross_val_score(peer, shuffled, cv=5)
    if name == "kernel density":
        scores = scores / (len(X) / 5)  # its score is a sum over the rows
    print(f"{name}: {scores.mean():.2f}")

# %%
# A mixture of Gaussians wins where the data are such a mixture, and where columns are correlated;
# :doc:`/where_we_lose` has the counts over nineteen cells. A sum of squares is the one whose fit is proved, whose
# conditionals are closed forms, and which :func:`mercer.optimal_density` can shape by any convex wish:
# :doc:`/user_guide/density`.
