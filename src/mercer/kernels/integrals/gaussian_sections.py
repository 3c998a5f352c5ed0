"""Gaussian sections with covariances of their own, several at a point: square roots of normal densities.

A section is φ(x) = N(x; μ, cΣ)^{1/2}, so that φ² is a normal density and a mixture of normal laws is a sum of squares
of them. With Σ⁻¹ = L Lᵀ and P = Σ⁻¹/c,

    ∫ φ_i φ_j dx = 2^{d/2} (|P_i| |P_j|)^{1/4} |P_i + P_j|^{-1/2} exp(-¼ (μ_i - μ_j)ᵀ (cΣ_i + cΣ_j)⁻¹ (μ_i - μ_j)),

Bhattacharyya's coefficient: one on the diagonal.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.pairings import LARGEST_DISTANCE
from mercer.backends.rounding import EPS
from mercer.kernels.integrals.base import SquareMasses
from mercer.kernels.integrals.gaussian_section_enclosures import GaussianSectionEnclosures


@final
class GaussianSections:
    """φ(x) = N(x; μ_k, c Σ_k)^{1/2} for all k and, of each, all factors c: factor by factor.

    Parameters
    ----------
    means : array of shape (K, d)
        μ.
    roots : array of shape (K, d, d), or (1, d, d) for one covariance of all
        L, lower triangular with a positive diagonal: Σ⁻¹ = L Lᵀ.
    factors : array of shape (f,)
        c > 0.

    Attributes
    ----------
    log_scale : float
        Of the heights: φ = exp(-log_scale/2) φ̃, the φ̃ at most one, and p = exp(-log_scale) φ̃ᵀBφ̃.
    """

    means: Array
    roots: Array
    factors: Array
    error: ClassVar[float] = 0.0  # closed forms
    unit_log_scale: ClassVar[float] = 0.0  # their squares have mass one
    _made_from: ClassVar = {"means": "means", "roots": "roots", "factors": "factors"}

    def __init__(self, means: Array, roots: Array, factors: Array) -> None:
        self.means, self.roots, self.factors = means, roots, factors
        logs = self._log_heights
        self.log_scale = -2.0 * float(logs.max())
        sizes = np.abs(np.log(np.diagonal(to_numpy(roots), axis1=1, axis2=2))).sum(axis=1).max()
        scale = 2.0 + self.n_features * (3.0 + float(np.abs(np.log(to_numpy(factors))).max())) + 2.0 * float(sizes)
        self.log_scale_error = 16.0 * EPS * scale

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.means.shape[1])

    @property
    def size(self) -> int:
        """The number of sections, m."""
        return int(self.means.shape[0] * self.factors.shape[0])

    @property
    def points(self) -> Array:
        """The mean of every section, of shape (m, d)."""
        return namespace(self.means).concat([self.means] * int(self.factors.shape[0]), axis=0)

    @property
    def covariances(self) -> Array:
        """cΣ of every section, of shape (m, d, d)."""
        xp = namespace(self.roots)
        inverse = xp.linalg.inv(self._all_roots())
        return xp.matmul(xp.matrix_transpose(inverse), inverse)

    @property
    def of_one_shape(self) -> bool:
        """Whether several means share a covariance: all of them, or all but one that is wide."""
        if self.means.shape[0] == 1:
            return False
        return self.roots.shape[0] == 1 or bool((self.roots[0] == self.roots[1]).all())

    @property
    def n_numbers(self) -> int:
        """How many numbers make them: means, triangles and factors."""
        d = self.n_features
        return int(self.means.shape[0] * d + self.roots.shape[0] * d * (d + 1) // 2 + self.factors.shape[0])

    def __repr__(self) -> str:
        kinds = "one covariance" if self.roots.shape[0] == 1 else "covariances of their own"
        factors = ", ".join(f"{float(c):g}" for c in self.factors)
        return f"GaussianSections({int(self.means.shape[0])} means with {kinds}, times {factors})"

    def _all_roots(self) -> Array:
        """L/√c of every section, of shape (m, d, d)."""
        xp, K = namespace(self.roots), int(self.means.shape[0])
        roots = xp.broadcast_to(self.roots, (K, *self.roots.shape[1:]))
        return xp.concat([roots / math.sqrt(float(c)) for c in self.factors], axis=0)

    @cached_property
    def _log_heights(self) -> Array:
        """log φ(μ), of shape (m,)."""
        xp, K, d = namespace(self.roots), int(self.means.shape[0]), self.n_features
        halves = 0.5 * xp.sum(xp.log(xp.linalg.diagonal(self.roots)), axis=-1)
        halves = xp.broadcast_to(halves, (K,))
        return xp.concat([halves - 0.25 * d * math.log(2 * math.pi * float(c)) for c in self.factors], axis=0)

    def mass(self) -> Array:
        """W, of shape (m, m)."""
        xp, d, L = namespace(self.roots), self.n_features, self._all_roots()
        P = xp.matmul(L, xp.matrix_transpose(L))
        out, logs = [], 0.5 * xp.sum(xp.log(xp.linalg.diagonal(L)), axis=-1)
        for i, mean in enumerate(self.points):
            A = xp.linalg.cholesky(P + P[i])
            apart = mean - self.points
            pairs = xp.stack([apart @ P[i], xp.matmul(apart[:, None], P)[:, 0]], axis=-1)
            u = xp.linalg.solve(A, pairs)
            exponent = -0.25 * xp.sum(u[:, :, 0] * u[:, :, 1], axis=1)
            exponent = exponent + logs + logs[i] - xp.sum(xp.log(xp.linalg.diagonal(A)), axis=-1)
            out.append(xp.exp(xp.clip(exponent + 0.5 * d * math.log(2.0), None, 0.0)))  # above which is rounding
        W = xp.stack(out, axis=0)
        return (W + W.T) / 2

    def gram(self) -> Array:
        """The identity: a penalty on the squares of coefficients, which grow where sections cancel."""
        xp = namespace(self.means)
        return xp.eye(self.size, dtype=self.means.dtype, device=self.means.device)

    def square_masses(self, F: Array) -> SquareMasses:
        """∫ (Fᵀφ)_c² dx, scaled, for every column c of F."""
        xp, W = namespace(F), like(self.mass(), F)
        rounding = EPS * float(xp.sum(xp.abs(F) * (xp.abs(W) @ xp.abs(F))))
        return SquareMasses(xp.sum(F * (W @ F), axis=0), rounding)

    def log_values(self, X: Array) -> Array:
        """log φ̃ at the rows of X, of shape (n, m)."""
        xp, K = namespace(X), int(self.means.shape[0])
        squares = xp.empty((X.shape[0], K), dtype=X.dtype, device=X.device)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(K):
                y = (X - self.means[k]) @ self.roots[k if self.roots.shape[0] > 1 else 0]
                squares[:, k] = xp.sum(y**2, axis=1)
            farthest = xp.full_like(squares, LARGEST_DISTANCE["float64"])
            squares = xp.where(squares < farthest, squares, farthest)  # what is no number is too far to be one
            parts = xp.concat([xp.maximum(squares / (-4.0 * float(c)), -farthest) for c in self.factors], axis=1)
        return parts + (self._log_heights + 0.5 * self.log_scale)

    def scaled_product(self, X: Array, F: Array) -> tuple[Any, Any]:
        """φ̃(x)ᵀ F = exp(s) P at the rows of X, s the largest logarithm of a row."""
        xp = namespace(X)
        scales = xp.empty(X.shape[0], dtype=X.dtype, device=X.device)
        product = xp.empty((X.shape[0], F.shape[1]), dtype=X.dtype, device=X.device)
        for rows in row_chunks(X.shape[0], panel_rows(self.size)):
            logs = self.log_values(X[rows])
            scales[rows] = xp.max(logs, axis=1)
            product[rows] = xp.exp(logs - scales[rows][:, None]) @ F
        return scales, product

    def enclosures(self) -> GaussianSectionEnclosures:
        """The same with proved errors."""
        K, f = int(self.means.shape[0]), int(self.factors.shape[0])
        given = (self.means, self.roots, self.factors)
        means, roots, factors = (np.asarray(to_numpy(part), np.float64) for part in given)
        roots = np.broadcast_to(roots, (K, *roots.shape[1:]))
        highest = int(np.argmax(to_numpy(self._log_heights)))
        every = np.tile(means, (f, 1)), np.tile(roots, (f, 1, 1)), np.repeat(factors, K)
        return GaussianSectionEnclosures(*every, highest)
