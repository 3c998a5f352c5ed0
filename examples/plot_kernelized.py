r"""
A kernel learned inside a Hilbert space
=======================================

:class:`mercer.KernelizedSDPEmbedding` learns a kernel :math:`b(x, y) = \langle\varphi(x), \mathbb{B}\varphi(y)\rangle`
inside the Hilbert space of another one. Two numbers decide what it finds: the price λ of the trace of
:math:`\mathbb{B}`, and the smoothness s of the space. This page shows what each does, and what the embedding is good
for beside the one by diffusion.
"""

# %%
# The price of the trace
# ----------------------
# Forty points of an interval; d(x) = 1, so that every embedding lies on a circle or a sphere. A direction of the space
# with the eigenvalue σ gains σ² and costs λ. With a high price nothing is worth it but the constant: all points fall
# together. With the default, a tenth of the largest σ², the interval becomes an arc. The lower the price, the more the
# middle is left in haste: both halves end as opposite points, which is the optimum without any smoothness.

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, KernelizedSDPEmbedding, Matern, SDPEmbedding
from mercer.datasets import two_moons

X = np.linspace(-1, 1, 40)[:, None]
fine = np.linspace(-1, 1, 801)[:, None]
default = KernelizedSDPEmbedding(Matern(2.5, 1.0)).fit(X)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for ax, factor in zip(axes, (30.0, 1.0, 1e-3), strict=True):
    model = KernelizedSDPEmbedding(Matern(2.5, 1.0), regularization=factor * default.regularization_).fit(X)
    curve, dots = (
        np.column_stack([part, np.zeros(len(part))])[:, :2] for part in (model.transform(fine), model.embedding_)
    )
    ax.plot(*curve.T, color="0.7", zorder=0)
    ax.scatter(*dots.T, c=X[:, 0], s=18)
    ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
    ax.set_title(f"λ = {model.regularization_:.1e}, Tr 𝔹 = {model.trace_:.0f}", fontsize=10)
    print(f"λ = {model.regularization_:.1e}: rank {model.rank_}, {model.certificate_}")
plt.show()

# %%
# The smoothness of the space
# ---------------------------
# The constraints b(x, x) = d(x) hold on the sample. Between its points they hold as well as the functions of the space
# are smooth: PSD22 Proposition 4.3 proves an error of :math:`h^m` for every integer m below ν, h the fill distance, and
# here it falls like :math:`h^{\nu + 1/2}`. A rough kernel with twelve points lets b(x, x) sag between them.

X = np.linspace(-1, 1, 12)[:, None]
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for nu in (0.5, 1.5, 2.5):
    model = KernelizedSDPEmbedding(Matern(nu, 1.0)).fit(X)
    ax.plot(fine, np.sum(model.transform(fine) ** 2, axis=1), label=f"ν = {nu:g}, s = {nu + 0.5:g}")
ax.scatter(X, np.ones(12), color="black", s=18, zorder=3)
ax.set(xlabel="x", ylabel="b(x, x)", title="d(x) = 1 is met at the points, and nearly so between them")
ax.legend()
plt.show()

# %%
# Beside the embedding by diffusion
# ---------------------------------
# Both embeddings are optima with a proof. The one by diffusion divides by densities: its lengths tell how central a
# point is, and its extension gives a length to every new point, however far it lies. The kernelised one is a function
# of the place: smooth, linear in what was learned, exact on the sample. Away from the data it fades, and b(x, x)/d(x)
# says by how much: it is one where the sample says something about a point, and zero where it says nothing.

X, labels = two_moons(n_points=200, random_state=0)
diffusion = SDPEmbedding(Gaussian(0.4), random_state=0).fit(X)
smooth = KernelizedSDPEmbedding(Matern(1.5, 0.5)).fit(X)
low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
across, up = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 80))
grid = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
shown = {
    "diffusion, first coordinate": diffusion.transform(grid)[:, 0],
    "kernelised, first coordinate": smooth.transform(grid)[:, 0],
}
shown["kernelised, b(x, x)/d(x)"] = np.sum(smooth.transform(grid) ** 2, axis=1)
for ax, (title, values) in zip(axes, shown.items(), strict=True):
    colours = ax.pcolormesh(across, up, values.reshape(across.shape), cmap="viridis", shading="gouraud")
    ax.scatter(*X.T, c=np.where(labels == labels[0], "white", "black"), s=4)
    ax.set_title(title, fontsize=10)
    figure.colorbar(colours, ax=ax)
plt.show()

# %%
# The learned kernel is a callable kernel like any other, psd on all of the plane.

print("smallest eigenvalue of b on new points:", np.linalg.eigvalsh(smooth.learned_kernel(grid[::200]))[0].round(12))
