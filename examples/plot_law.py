r"""
Nodes for a law, without a sample
=================================

Where a distribution is known, :class:`mercer.QuadratureSparsifier` needs no sample of it: the integrals of the kernel
against a box or a normal law are closed forms. The rows that it is fitted to are candidates for the nodes, and the
discrepancy is that to the law itself, proved with the errors of the integrals counted.
"""

# %%
# Twenty nodes for a normal law
# -----------------------------
# The candidates are a grid; the law has correlated coordinates. The area of a dot is its weight. Nodes keep a distance
# of about the width of the kernel, and their weights follow the density, whose contours are drawn.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Box, Gaussian, GaussianMeasure, QuadratureSparsifier
from mercer.datasets import halton_square

kernel = Gaussian(sigma=0.9)
law = GaussianMeasure(np.zeros(2), covariance=np.array([[0.6, 0.35], [0.35, 0.4]]))
axis = np.linspace(-2.5, 2.5, 41)
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
model = QuadratureSparsifier(kernel, n_nodes=20, measure=law).fit(grid)
print(model.certificate_)

figure, panel = plt.subplots(figsize=(5, 4.4), layout="constrained")
panel.contour(axis, axis, np.exp(law.log_density(grid)).reshape(41, 41), levels=7, colors="0.75", linewidths=0.8)
panel.scatter(*model.components_.T, s=1500 * model.weights_, alpha=0.8)
panel.set(title="20 nodes for a normal law", aspect="equal", xlim=(-2.5, 2.5), ylim=(-2.2, 2.2))
plt.show()

# %%
# A law and a sample of it
# ------------------------
# The uniform law on a square. Nodes that are chosen among 500 random points *for the law* come nearer and nearer to it.
# Those that are chosen for the sample come near the sample: beyond thirty of them the sample's own noise is all that is
# left. Halton points with equal weights are further away than either, until that noise is more than their distance.

square, rough = Box(-1.0, 1.0), Gaussian(sigma=0.5)
X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
counts = [5, 10, 15, 20, 30, 40, 50]


def apart(nodes, weights):
    """D of any nodes and weights: what a fit to these candidates alone, its weights replaced, would state."""
    fitted = QuadratureSparsifier(rough, alpha=1e-9, measure=square).fit(nodes)
    v = np.zeros(len(nodes))
    v[fitted.indices_] = fitted.weights_
    off, gram = weights - v, rough(nodes) ** 2
    return fitted.discrepancy_ + off @ fitted.witness(nodes) + 0.5 * off @ gram @ off


for_law, for_sample, halton = [], [], []
for n in counts:
    for_law.append(QuadratureSparsifier(rough, n_nodes=n, measure=square).fit(X).discrepancy_)
    sampled = QuadratureSparsifier(rough, n_nodes=n).fit(X)
    for_sample.append(apart(sampled.components_, sampled.weights_))
    halton.append(apart(halton_square(n), np.full(n, 1 / n)))

figure, panel = plt.subplots(figsize=(5.5, 4.4), layout="constrained")
panel.semilogy(counts, halton, "s:", color="0.5", label="Halton points, equal weights")
panel.semilogy(counts, for_sample, "o--", color="C1", label="chosen for the sample")
panel.semilogy(counts, for_law, "o-", color="C0", label="chosen for the law")
panel.set(xlabel="nodes", ylabel="discrepancy to the law", title="Candidates: 500 random points of a square")
panel.legend()
plt.show()
