r"""
Linear methods in the space of a kernel
=======================================

:class:`mercer.Kernelized` hands a linear estimator of scikit-learn the coordinates of the points in the space of a
kernel, where inner products are kernel values. What is linear there need not be linear in the plane.
"""

# %%
# Before and after
# ----------------
# Above, four linear methods of scikit-learn on two moons and two rings; below, the same four behind a Gaussian kernel.
# A classifier and Fisher's discriminant separate the moons, k-means finds the rings, and the first principal component
# tells how far out a point is, whatever its direction. Nothing of the four was changed.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge

from mercer import Gaussian, Kernelized
from mercer.datasets import two_moons

moons, sides = two_moons(n_points=300, noise=0.1)
rings, radii = make_circles(300, factor=0.3, noise=0.06, random_state=0)


def values(model, points):
    """What is drawn over the plane, above or below zero: a decision, a coordinate, or one of two clusters."""
    if hasattr(model, "decision_function"):
        return model.decision_function(points)
    return 2 * model.predict(points) - 1 if hasattr(model, "predict") else model.transform(points)[:, 0]


def draw(panel, model, X, title, *, truth):
    """The points over the values of a fitted model in the plane around them."""
    low, high = X.min(0) - 0.3, X.max(0) + 0.3
    first, second = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120))
    surface = values(model, np.column_stack([first.ravel(), second.ravel()])).reshape(first.shape)
    largest = np.abs(surface).max()
    panel.contourf(first, second, surface, 21, cmap="RdBu", vmin=-largest, vmax=largest, alpha=0.6)
    panel.scatter(*X.T, c=truth, cmap="coolwarm_r", s=7, edgecolor="k", linewidth=0.2)
    panel.set(title=title, xticks=[], yticks=[], aspect="equal")


cases = [
    ("logistic regression", LogisticRegression(C=10.0), Gaussian(0.7), moons, sides),
    ("discriminant", LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01), Gaussian(0.7), moons, sides),
    ("k-means", KMeans(2, n_init=10, random_state=0), Gaussian(0.5), rings, radii),
    ("PCA, first component", PCA(1), Gaussian(0.5), rings, radii),
]
_, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
for column, (name, linear, kernel, X, truth) in zip(axes.T, cases, strict=True):
    draw(column[0], clone(linear).fit(X, truth), X, name, truth=truth)
    kernelised = Kernelized(linear, kernel).fit(X, truth)
    draw(column[1], kernelised, X, f"{name}, kernelised", truth=truth)
plt.show()

# %%
# What landmarks lose
# -------------------
# Features from some landmarks cost less, and ``trace_left_out_`` bounds what that loses: the objective of ridge
# regression is at most 1 + t/α times the least there is on all points.

X, y = moons, np.sin(3 * moons[:, 0]) * moons[:, 1]
penalty = 0.1


def objective(model):
    """What ridge regression minimises."""
    return np.sum((y - model.predict(X)) ** 2) + penalty * np.sum(model.estimator_.coef_**2)


best = objective(Kernelized(Ridge(penalty), Gaussian(0.7)).fit(X, y))
counts = [5, 10, 15, 20, 30, 40, 60, 80]
models = [Kernelized(Ridge(penalty), Gaussian(0.7), landmarks=m, random_state=0).fit(X, y) for m in counts]
_, panel = plt.subplots(figsize=(6, 4), layout="constrained")
panel.semilogy(counts, [objective(model) / best - 1 for model in models], "o-", label="objective beyond the least")
panel.semilogy(counts, [model.trace_left_out_ / penalty for model in models], "s--", label="trace left out over α")
panel.set(xlabel="landmarks", ylabel="share of the least objective")
panel.legend()
plt.show()
