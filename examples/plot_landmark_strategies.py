r"""
Six ways to choose landmarks
============================

:class:`mercer.Landmarks` chooses rows that stand for a sample by one of five strategies;
:class:`mercer.QuadratureSparsifier` is the sixth. What they choose looks different, and serves differently.
"""

# %%
# What they choose
# ----------------
# 915 points: three clusters, and a few points far from all of them. The area of a dot is its weight: the weight of the
# points that are nearest to it. Uniform draws leave out the lonely points, the greedy choice begins with them.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Landmarks, QuadratureSparsifier, SDPEmbedding
from mercer.datasets import three_clusters

X, labels = three_clusters(n_per_cluster=300, n_outliers=15, random_state=0)
kernel = Gaussian(sigma=1.0)
NAMES = ["uniform", "leverage", "rpcholesky", "k-means", "greedy", "quadrature"]


def choose(name, m, seed=0):
    if name == "quadrature":
        return QuadratureSparsifier(kernel, n_nodes=m).fit(X)
    return Landmarks(m, strategy=name, kernel=kernel, random_state=seed).fit(X)


_, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained", sharex=True, sharey=True)
for panel, name in zip(axes.flat, NAMES, strict=True):
    chosen = choose(name, 30)
    rows, shares = chosen.indices_, chosen.weights_ / chosen.weights_.sum()
    panel.scatter(*X.T, s=3, color="#cccccc", linewidths=0)
    panel.scatter(*X[rows].T, s=6 + 1500 * shares, color="#4477aa", alpha=0.8, linewidths=0)
    panel.set_title(name, fontsize=10)
    panel.set_aspect("equal")
plt.show()

# %%
# What they are worth
# -------------------
# Two measures, as the number of landmarks grows: the share of the trace of the kernel matrix that the completion from
# the landmarks leaves out, which is about the *span*, and the error of an embedding that is solved on the weighted
# landmarks and extended to all points, which is about the *measure*, too. The lonely points have the longest vectors in
# this embedding, so that it is right only where some landmark is near them: chance alone finds none.

COUNTS = [10, 20, 40, 80]
full = SDPEmbedding(kernel, random_state=0).fit(X).embedding_


def error(chosen):
    """How far the learned kernel is from that of all points, in Frobenius norm."""
    embedded = SDPEmbedding(kernel, landmarks=chosen, random_state=0).fit(X).embedding_
    return np.linalg.norm(embedded @ embedded.T - full @ full.T) / np.linalg.norm(full.T @ full)


def left_out(chosen):
    rows = chosen.indices_
    completed = Landmarks(len(rows), strategy=lambda *_: rows, kernel=kernel).fit(X)
    return completed.share_left_out_


_, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
COLOURS = ["#bbbbbb", "#ccbb44", "#4477aa", "#228833", "#aa3377", "#222222"]
for name, colour in zip(NAMES, COLOURS, strict=True):
    choices = [[choose(name, m, seed) for seed in range(1 if name in ("greedy", "quadrature") else 3)] for m in COUNTS]
    for panel, measure in ((left, left_out), (right, error)):
        values = [np.mean([measure(chosen) for chosen in tries]) for tries in choices]
        panel.loglog(COUNTS, values, "o-", color=colour, label=name, markersize=4)
left.set(xlabel="landmarks", title="share of the trace left out")
right.set(xlabel="landmarks", title="error of the embedding")
for panel in (left, right):
    panel.set_xticks(COUNTS, labels=map(str, COUNTS))
    panel.minorticks_off()
left.legend(fontsize=8)
plt.show()

# %%
# A number is enough
# ------------------
# ``landmarks=80`` chooses by randomly pivoted Cholesky with the kernel of the embedding.

model = SDPEmbedding(kernel, landmarks=80, random_state=0).fit(X)
weights = model.sample_weight_
print(f"{weights.size} landmarks, weights from {weights.min():.0f} to {weights.max():.0f}, sum {weights.sum():.0f}")
