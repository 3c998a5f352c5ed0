"""Densities that are sums of squares of Gaussians with covariances of their own: moments, marginals, draws.

The product of two sections is a normal density between them,

    φ_i φ_j = W_ij N(x; S(P_iμ_i + P_jμ_j), 2S),   S = (P_i + P_j)⁻¹

so that the density is a mixture of normal laws, whose weights B_ij W_ij sum to one but may be negative. Integrating
some coordinates out, or fixing them, leaves a mixture of the same kind.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from scipy.special import ndtr

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.chunks import PANEL_ENTRIES, row_chunks, rows_within
from mercer.backends.rounding import EPS, TINY
from mercer.density.law import Law
from mercer.kernels.integrals.gaussian_sections import GaussianSections

_BISECTIONS = 200
_REACH = 40.0  # deviations, beyond which no law has a quantile in double precision
_NONE_LEFT = 1e-14  # of the sum of absolute weights: less is left out


@final
class SignedNormals(Law):
    """The probability density Σ_c w_c N(x; m_c, S_c) on R^d, which is nowhere negative though weights may be.

    Parameters
    ----------
    weights : array of shape (c,)
        w; they are scaled so that they sum to one.
    means : array of shape (c, d)
        m.
    covariances : array of shape (c, d, d)
        S.
    """

    _weights: Array
    _covariances: Array

    def __init__(self, weights: Any, means: Any, covariances: Any) -> None:
        super().__init__(means, None, None)
        self._weights, self._covariances = (np.asarray(to_numpy(part), np.float64) for part in (weights, covariances))
        total = float(self._weights.sum())
        if not total > 0:
            raise ValueError("The density has no mass: its coefficients are not positive semi-definite, or vanish.")
        self._weights = self._weights / total

    @classmethod
    def of_squares(cls, sections: GaussianSections, factor: Any) -> SignedNormals:
        """The density ‖Fᵀφ(x)‖² of a factor of shape (m, r)."""
        F, W = np.asarray(to_numpy(factor), np.float64), np.asarray(to_numpy(sections.mass()), np.float64)
        rows, cols = np.triu_indices(W.shape[0])
        weights = (F @ F.T * W)[rows, cols] * np.where(rows == cols, 1.0, 2.0)
        kept = np.abs(weights) > _NONE_LEFT * np.abs(weights).sum()
        rows, cols, weights = rows[kept], cols[kept], weights[kept]
        means = np.asarray(to_numpy(sections.points), np.float64)
        P = np.linalg.inv(np.asarray(to_numpy(sections.covariances), np.float64))
        inner = np.einsum("kij,kj->ki", P, means)
        S = np.linalg.inv(P[rows] + P[cols])
        made = cls(weights, np.einsum("kij,kj->ki", S, inner[rows] + inner[cols]), S + np.transpose(S, (0, 2, 1)))
        made._home = sections.means[:0] if is_tensor(sections.means) else None
        return made

    @property
    def acceptance_rate(self) -> float:
        """1/Σ|w|: the share of proposals from the mixture of all abs(w) that fit p."""
        return 1.0 / float(np.abs(self._weights).sum())

    @property
    def sampling_error(self) -> float:
        """How far, in total variation, rounding may take the law of :meth:`sample` from the density."""
        return EPS / self.acceptance_rate

    def score_samples(self, X: Any) -> Any:
        """log p at some points; minus infinity where p underflows."""
        values = self._sum(self._rows(to_numpy(X)), self._weights)
        with np.errstate(divide="ignore"):
            return self._answer(np.log(np.maximum(values, 0.0)))

    def _sum(self, X: Array, weights: Array) -> Array:
        """Σ w N(x; m, S)."""
        roots = np.linalg.cholesky(self._covariances)
        inverses = np.linalg.inv(roots)
        heights = weights * np.exp(
            -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1) - 0.5 * self.n_features * math.log(2 * math.pi)
        )
        out = np.empty(X.shape[0])
        for rows in row_chunks(X.shape[0], rows_within(PANEL_ENTRIES, self._points.size)):
            apart = X[rows][:, None] - self._points
            squares = np.sum(np.einsum("kij,nkj->nki", inverses, apart) ** 2, axis=2)
            out[rows] = np.exp(-0.5 * squares) @ heights
        return out

    def _mean(self) -> Array:
        return self._weights @ self._points

    def _covariance(self) -> Array:
        apart = self._points - self._mean()
        within = np.einsum("k,kij->ij", self._weights, self._covariances)
        return np.asarray(within + (apart.T * self._weights) @ apart)

    def _of(self, weights: Array, means: Array, covariances: Array) -> SignedNormals:
        made = SignedNormals(weights, means, covariances)
        made._home = self._home
        return made

    def _marginal(self, kept: Array, others: Array) -> SignedNormals:
        return self._of(self._weights, self._points[:, kept], self._covariances[:, kept[:, None], kept])

    def _conditional(self, given: Array, at: Array, others: Array) -> SignedNormals:
        S = self._covariances
        own, cross = S[:, given[:, None], given], S[:, others[:, None], given]
        gain = np.transpose(np.linalg.solve(own, np.transpose(cross, (0, 2, 1))), (0, 2, 1))
        apart = at - self._points[:, given]
        logs = -0.5 * np.sum(apart * np.linalg.solve(own, apart[:, :, None])[:, :, 0], axis=1)
        logs -= 0.5 * np.linalg.slogdet(own)[1]
        weights = self._weights * np.exp(logs - logs.max())  # far away all underflow, their ratios do not
        means = self._points[:, others] + np.einsum("kij,kj->ki", gain, apart)
        left = S[:, others[:, None], others] - gain @ np.transpose(cross, (0, 2, 1))
        return self._of(weights, means, (left + np.transpose(left, (0, 2, 1))) / 2)

    def _cdf(self, x: Array) -> Array:
        out = np.empty(x.size)
        deviations = np.sqrt(self._covariances[:, 0, 0])
        for rows in row_chunks(x.size, rows_within(PANEL_ENTRIES, deviations.size)):
            out[rows] = ndtr((x[rows][:, None] - self._points[:, 0]) / deviations) @ self._weights
        return np.clip(out, 0.0, 1.0)

    def _quantile(self, levels: Array) -> Array:
        reach = _REACH * np.sqrt(self._covariances[:, 0, 0]).max()
        low = np.full(levels.size, self._points[:, 0].min() - reach)
        high = np.full(levels.size, self._points[:, 0].max() + reach)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = self._cdf(middle) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        """Propose from the mixture with weights ``abs(w)``, accept with the probability by which p lies below it."""
        magnitudes = np.abs(self._weights)
        roots, chances = np.linalg.cholesky(self._covariances), magnitudes / magnitudes.sum()
        parts: list[Array] = []
        found = 0
        while found < n:
            count = min(int(1.2 * (n - found) / self.acceptance_rate) + 16, rows_within(PANEL_ENTRIES, self.n_features))
            at = rng.choice(chances.size, count, p=chances)
            drawn = rng.standard_normal((count, self.n_features))
            proposed = self._points[at] + np.einsum("nij,nj->ni", roots[at], drawn)
            if np.all(self._weights >= 0):
                kept = proposed
            else:
                bound = np.maximum(self._sum(proposed, magnitudes), TINY)
                kept = proposed[rng.uniform(0, 1, count) * bound < self._sum(proposed, self._weights)]
            parts.append(kept)
            found += kept.shape[0]
        return np.concatenate(parts)[:n]
