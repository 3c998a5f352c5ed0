r"""
Kernel principal components
===========================

:class:`~mercer.KernelPCA` takes the leading directions of the features that a kernel stands for. It is the method of
that name in scikit-learn, coordinate for coordinate, without the n × n matrix, with an error bound for every eigenvalue
and with what a Nyström eigenfunction needs. Two of its uses here: circles that no line separates, and digits whose
noise is left out.
"""

# %%
# Two circles
# -----------
# The textbook's example, beside scikit-learn's answer: the same to fourteen digits, up to the sign of a column.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference

from mercer import Gaussian, KernelPCA
from mercer.plots import plot_points

X, labels = make_circles(400, factor=0.3, noise=0.05, random_state=0)
model = KernelPCA(Gaussian(sigma=0.5), certify=True).fit(X)
reference = Reference(2, kernel="rbf", gamma=1 / 0.5**2).fit_transform(X)
reference *= np.sign(np.sum(reference * model.embedding_, axis=0))
print(f"largest difference from scikit-learn: {np.abs(model.embedding_ - reference).max():.0e}")
print(f"eigenvalues {model.eigenvalues_}, each within {model.residual_bounds_.max():.0e} of one")
print(f"none is missed: all others are below {model.largest_left_out_:.3f}")

_, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
plot_points(axes[0], X, labels, title="two circles")
plot_points(axes[1], model.embedding_, labels, title="KernelPCA of Mercer")
plot_points(axes[2], reference, labels, title="KernelPCA of scikit-learn")
plt.show()

# %%
# An eigenfunction is defined everywhere
# --------------------------------------
# Components are functions of the plane, so that new points have coordinates too; as eigenfunctions their squares
# average to one over the sample. The first changes its sign between the circles, the next two go around the inner one.

grid = np.linspace(-1.4, 1.4, 120)
plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
functions = KernelPCA(Gaussian(sigma=0.5), n_components=3).fit(X).eigenfunctions(plane)
_, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for column, axis in enumerate(axes):
    values = functions[:, column].reshape(120, 120)
    top = np.abs(values).max()
    axis.contourf(grid, grid, values, levels=21, cmap="RdBu_r", vmin=-top, vmax=top)
    axis.scatter(*X.T, s=3, color="black", alpha=0.4)
    axis.set(title=f"eigenfunction {column + 1}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# Digits without their noise
# --------------------------
# Some of the digits are learned from as they are. The others are given noise, projected on forty components and brought
# back: ``inverse_transform`` looks for the image whose coordinates they are. Linear components, of which about ten do
# best here, keep a linear space, and the noise has its part in all of it: their error is a fifth larger.

digits = load_digits().data / 16
rng = np.random.default_rng(0)
order = rng.permutation(len(digits))
learned, clean = digits[order[:1000]], digits[order[1000:]]
noisy = clean + 0.35 * rng.standard_normal(clean.shape)

kernel = KernelPCA(Gaussian(sigma=8.0), n_components=40, alpha=0.1).fit(learned)
linear = PCA(10).fit(learned)
kept = {"clean": clean, "noisy": noisy}
kept["PCA"] = linear.inverse_transform(linear.transform(noisy))
kept["KernelPCA"] = kernel.inverse_transform(kernel.transform(noisy))

_, axes = plt.subplots(4, 10, figsize=(10, 4.6), layout="constrained")
for row, (name, images) in zip(axes, kept.items(), strict=True):
    error = np.sqrt(np.mean((images - clean) ** 2))
    for axis, image in zip(row, images, strict=False):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"{name}\n(error {error:.2f})", rotation=0, ha="right", va="center")
plt.show()
