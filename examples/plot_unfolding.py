r"""
A sheet unrolled, and a proof that it cannot be drawn further
=============================================================

:class:`mercer.MaximumVarianceUnfolding` keeps the distances of neighbours and makes the variance as large as it can
be. Its certificate says that no other arrangement with these distances has more: what the picture shows is a property
of the graph, not of a solver that gave up.
"""

# %%
# A rolled sheet
# --------------
# 250 points of a sheet that is rolled up by somewhat more than a turn, and their nearest neighbours.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.manifold import Isomap

from mercer import MaximumVarianceUnfolding, verify

rng = np.random.default_rng(0)
turn, height = np.pi * (1 + 2.5 * rng.random(250)), 12 * rng.random(250)
X = np.stack([turn * np.cos(turn), height, turn * np.sin(turn)], axis=1)

model = MaximumVarianceUnfolding(n_neighbors=5, tol=1e-3).fit(X)
print(model.certificate_)
print("shares of the variance:", model.explained_variance_ratio_[:4].round(4))

figure = plt.figure(figsize=(9, 4), layout="constrained")
space = figure.add_subplot(1, 2, 1, projection="3d")
space.scatter(*X.T, c=turn, s=12)
space.set_title("The sheet in space")
plane = figure.add_subplot(1, 2, 2)
for i, j in model.pairs_:
    plane.plot(*model.embedding_[[i, j]].T, color="0.8", linewidth=0.6, zorder=0)
plane.scatter(*model.embedding_.T, c=turn, s=12)
plane.set_aspect("equal")
plane.set_title("Unfolded: two coordinates")
plt.show()

# %%
# Anyone can check it
# -------------------
# The proof needs the coordinates, the multipliers and the data, and nothing that the solver remembers.

print(verify(model, X))

# %%
# Beside Isomap
# -------------
# Isomap lays points out by the lengths of shortest paths, which are too long where the path has to go around. The
# distances of neighbours in two coordinates, over those in the data: an unfolding has them where they were.

other = Isomap(n_neighbors=5).fit_transform(X)
i, j = model.pairs_.T
given = np.linalg.norm(X[i] - X[j], axis=1)
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, Y in (("unfolding", model.embedding_), ("Isomap", other)):
    ax.hist(np.linalg.norm(Y[i] - Y[j], axis=1) / given, bins=np.linspace(0.4, 2, 65), alpha=0.6, label=name)
ax.set_xlabel("distance of neighbours, over that in the data")
ax.legend()
plt.show()

# %%
# A short cut
# -----------
# One pair that links two turns of the roll, as noise makes it, holds the sheet together. The certificate excludes
# that the solver is to blame for the third coordinate, and the multipliers name the pair: it is under the greatest
# tension of all.

graph = np.zeros((250, 250))
graph[i, j] = graph[j, i] = given
ends = int(np.argmin(turn)), int(np.argmax(turn))
graph[ends] = graph[ends[::-1]] = np.linalg.norm(X[ends[0]] - X[ends[1]])

held = MaximumVarianceUnfolding(metric="precomputed", distances="not exceeded", tol=1e-3).fit(csr_array(graph))
print(held.certificate_)
print("shares of the variance:", held.explained_variance_ratio_[:4].round(3))
i, j = held.pairs_.T
tension = held.multipliers_ * np.linalg.norm(X[i] - X[j], axis=1)
worst = held.pairs_[np.argmax(tension)]
print("the pair under most tension:", sorted(worst.tolist()), "and the short cut:", sorted(ends))
