"""
The directions that y depends on
================================

Ten columns, and y is a wave along one combination of two of them. A column shows it blurred, the first principal
component not at all, and a linear fit is blind to it. :class:`mercer.KernelDimensionReduction` looks for the direction
of x after which the rest of x says nothing more of y.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from mercer import KernelDimensionReduction

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 10))
along = (X[:, 0] + 2 * X[:, 1]) / np.sqrt(5)
y = along * np.sin(np.sqrt(5) * along) + 0.1 * rng.standard_normal(300)

model = KernelDimensionReduction(n_components=1, n_restarts=1, random_state=0).fit(X, y)
views = {
    "second column": X[:, 1],
    "first principal component": PCA(1).fit_transform(X)[:, 0],
    "linear regression": LinearRegression().fit(X, y).predict(X),
    "kernel dimension reduction": model.transform(X)[:, 0],
}
figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), sharey=True, layout="constrained")
for axis, (title, values) in zip(axes, views.items(), strict=True):
    axis.scatter(values, y, s=6, color="tab:blue" if "kernel" in title else "tab:gray")
    axis.set_title(title, fontsize=10)
axes[0].set_ylabel("y")
plt.show()

# %%
# Classes, and how many directions
# --------------------------------
# The four classes below depend on two of eight columns, as exclusive or does: each column alone has little to say.
# ``n_components="test"`` adds directions until a test finds nothing left.

X = rng.standard_normal((400, 8))
labels = np.array(["north", "south", "east", "west"])[(X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 0] > 1)]
tested = KernelDimensionReduction("test", n_restarts=1, random_state=0).fit(X, labels)
for test in tested.dimension_tests_:
    print(f"after {test.n_components} directions: p = {test.pvalue:.3f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, (title, plane) in zip(
    axes,
    {"two principal components": PCA(2).fit_transform(X), "two directions": tested.transform(X)}.items(),
    strict=True,
):
    for name in np.unique(labels):
        axis.scatter(*plane[labels == name].T, s=8, label=name)
    axis.set_title(title, fontsize=10)
    axis.set_aspect("equal")
axes[1].legend(fontsize=8)
plt.show()
