r"""
What a kernel can tell apart
============================

Every kernel says what is known of it: ``kernel.properties``. A *characteristic* kernel tells any two distributions
apart by their mean embeddings; a kernel of finite rank sees finitely many moments and no more. Here are three
distributions with the same mean and the same variance, and what kernels see of their difference.
"""

# %%
# Three distributions
# -------------------
# A normal law, a uniform one, and two narrow bumps. Their means are zero and their variances one; their fourth moments
# are 3, 1.8 and about 1.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Laplacian, Linear, Polynomial, mmd

rng = np.random.default_rng(0)
COLOURS = ("#4477aa", "#228833", "#aa3377")


def draw(n):
    bumps = rng.choice([-1.0, 1.0], n) * np.sqrt(1 - 0.15**2) + 0.15 * rng.normal(size=n)
    return {"normal": rng.normal(size=n), "uniform": rng.uniform(-np.sqrt(3), np.sqrt(3), n), "two bumps": bumps}


_, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
for (name, sample), colour in zip(draw(20_000).items(), COLOURS, strict=True):
    panel.hist(sample, bins=np.linspace(-3, 3, 80), density=True, histtype="step", color=colour, label=name)
panel.legend()
plt.show()

# %%
# How far they are apart, by kernel
# ---------------------------------
# The unbiased estimate of MMD² of two samples of 500 points, over its spread when both samples come from the normal
# law. A kernel that sees the difference is far above one. ``mmd`` warns by name of a kernel that is known not to be
# characteristic.

kernels = {
    "Linear()": Linear(),
    "Polynomial(2)": Polynomial(2),
    "Polynomial(3)": Polynomial(3),
    "Polynomial(4)": Polynomial(4),
    "Gaussian(1)": Gaussian(sigma=1.0),
    "Laplacian(1)": Laplacian(sigma=1.0),
}


def unbiased(x, y, kernel):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* is not characteristic")
        return mmd(x[:, None], y[:, None], kernel, estimator="unbiased")


pairs = [draw(500) for _ in range(12)]
_, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
for shift, other, colour in ((-0.2, "uniform", COLOURS[1]), (0.2, "two bumps", COLOURS[2])):
    heights = []
    for kernel in kernels.values():
        alike = [
            unbiased(one["normal"], two["normal"], kernel) for one, two in zip(pairs[::2], pairs[1::2], strict=True)
        ]
        apart = np.mean([unbiased(one["normal"], one[other], kernel) for one in pairs[:6]])
        heights.append(max(apart / np.std(alike), 0.1))
    panel.bar(np.arange(len(kernels)) + shift, heights, width=0.38, color=colour, label=f"normal and {other}")
panel.axhline(3, color="black", linewidth=0.8, linestyle="--")
panel.set_yscale("log")
panel.set_xticks(np.arange(len(kernels)), list(kernels))
panel.set_title("MMD² over its spread under equal laws")
panel.legend()
plt.show()

# %%
# Degrees one to three see means, variances and skewness, which agree. Degree four sees fourth moments: it tells these
# distributions apart, and others with the same four moments it does not. A characteristic kernel needs no such luck:

for name, kernel in kernels.items():
    print(f"{name:15} characteristic: {kernel.properties.characteristic}, finite rank: {kernel.properties.finite_rank}")

# %%
# What follows for kernels made of kernels
# ----------------------------------------
# Sums, products, powers and normalisations know their properties by rules that have proofs, and say None where there is
# none (:doc:`/user_guide/kernels`).

for text, kernel in {
    "Gaussian() + Linear()": Gaussian() + Linear(),
    "Gaussian() * Linear()": Gaussian() * Linear(),
    "Linear() + Polynomial(2)": Linear() + Polynomial(2),
    "Gaussian() ** 0.5": Gaussian() ** 0.5,
    "(Gaussian() + Linear()).normalized()": (Gaussian() + Linear()).normalized(),
}.items():
    known = kernel.properties
    print(f"{text:37} universal: {known.universal!s:5} characteristic: {known.characteristic}")
