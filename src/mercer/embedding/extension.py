"""An embedding at new points: affinities to the training points, in logarithms, and sums over them.

Far from the data every k(x, xⱼ) underflows. Written as k(x, xⱼ) = P_j e^t with t = maxⱼ log k(x, xⱼ), the weights P
stay between 0 and 1 and one of them is 1, so directions and averages are defined arbitrarily far away, and log Σⱼ k(x,
xⱼ) is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.threads import run_chunks
from mercer.embedding.support import Support
from mercer.kernels import Kernel
from mercer.operators import DiffusionOperator, GramOperator

Array = np.ndarray[Any, np.dtype[Any]]
_ENTRIES = 2**21


@final
@dataclass(frozen=True)
class Extension:
    """All that new points need of a solved embedding (PSD22 (1.5)); made of the solution and the data alone.

    The direction of Ξ(x) is that of Σⱼ wⱼ k(x, xⱼ) βⱼ with βⱼ = Ξⱼ/√mⱼ - mean/√vol, its squared length is
    d(x) = k(x, x)/m(x) - m(x)/vol.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    points : array or sparse array
        What the problem was solved on.
    support : Support
        Which rows of X these are, and their weights w in the user's unit.
    weights : array of shape (m,)
        w over the square of the support's unit.
    slopes : array of shape (m, r)
        β, in these weights.
    log_volume, log_longest : float
        Logarithms of the sum of all affinities and of the largest √d in the training set, in these weights.
    """

    kernel: Kernel
    points: Any
    support: Support
    weights: Array
    slopes: Array
    log_volume: float
    log_longest: float

    @classmethod
    def of(
        cls, kernel: Kernel, points: Any, support: Support, operator: DiffusionOperator, coordinates: Array
    ) -> Extension:
        """The extension of coordinates (m × r) of the points of a diffusion operator in the scaled weights."""
        mean = (operator.stationary * np.sqrt(operator.weights)) @ coordinates
        slopes = coordinates / np.sqrt(operator.degrees)[:, None] - mean / np.sqrt(operator.volume)
        longest = float(np.max(operator.diagonal() / operator.weights))
        with np.errstate(divide="ignore"):
            logarithms = float(np.log(operator.volume)), 0.5 * float(np.log(longest))
        weights = np.asarray(operator.weights, np.float64)
        return cls(kernel, points, support, weights, slopes, *logarithms)

    def novelty(self, X: Any) -> Array:
        """-log Σⱼ wⱼ k(x, xⱼ) for every row of X, in the user's weights."""
        return -self._sums(X, self.slopes[:, :0])[0] - 2 * np.log(self.support.unit)

    def coordinates(self, X: Any, *, capped: bool) -> Array:
        """Ξ(x) for every row of X, of shape (n, r), in the unit of the user's weights."""
        log_degrees, averages, log_diagonal = self._sums(X, self.slopes)
        lengths = np.linalg.norm(averages, axis=1, keepdims=True)
        directions = np.divide(averages, lengths, out=np.zeros_like(averages), where=lengths > 0)
        radius = log_radius(log_degrees, log_diagonal, self.log_volume)
        if capped:
            radius = np.minimum(radius, self.log_longest)
        elif np.any(radius - np.log(self.support.unit) > 0.5 * np.log(np.finfo(np.float64).max)):
            row = int(np.argmax(radius))
            raise ValueError(f"Row {row} of X is so far from the data that its radius overflows: use radius='capped'.")
        return self.support.lengths(np.exp(radius)[:, None] * directions)

    def _sums(self, X: Any, values: Array) -> tuple[Array, Array, Array]:
        columns = self.support.columns(X, self.kernel)
        return log_degrees_and_sums(self.kernel, columns, self.points, values, self.weights)


def embedded_rows(coordinates: Array, extension: Extension, X: Any, *, capped: bool) -> Array:
    """The solution on its points, extended to the others where it does not cover all rows of X."""
    if extension.support.indices is None:
        return coordinates
    everywhere = extension.coordinates(X, capped=capped)
    everywhere[extension.support.indices] = coordinates
    return everywhere


def log_degrees_and_sums(
    kernel: Kernel, X: Any, training: Any, values: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Sums over the training points, for every row of X.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X, training : arrays
        New points and training points.
    values : array of shape (n, r)
        What is summed.
    weights : array of shape (n,)
        Positive weights of the training points.

    Returns
    -------
    log_degrees : array of shape (m,)
        log Σⱼ wⱼ k(x, xⱼ).
    sums : array of shape (m, r)
        Σⱼ pⱼ valuesⱼ with pⱼ = wⱼ k(x, xⱼ) / Σ wₗ k(x, xₗ).
    log_diagonal : array of shape (m,)
        log k(x, x).
    """
    gram = GramOperator(kernel, X, training)
    rows = _rows_at_once(gram.shape[1])
    read = _logarithmic if kernel.properties.positive else _plain
    weighted = weights[:, None] * values
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named
        parts = run_chunks(
            lambda lo: _chunk(gram, lo, min(lo + rows, gram.shape[0]), weighted, weights, read),
            range(0, gram.shape[0], rows),
        )
    with np.errstate(divide="ignore", over="ignore"):
        log_diagonal = np.log(gram.kernel_diagonal().astype(np.float64))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), log_diagonal


def _rows_at_once(n: int) -> int:
    """Rows of n entries for one thread: all threads together, with one copy each, keep to a quarter of the memory."""
    config = get_config()
    entries = min(_ENTRIES, config.memory_bytes // (4 * 2 * 8 * config.threads))
    return max(1, entries // max(1, n))


def log_radius(log_degrees: Array, log_diagonal: Array, log_volume: float) -> Array:
    """½ log d(x), d(x) = k(x, x)/m - m/vol = (k(x, x)/m) (1 - m²/(vol k(x, x)))."""
    ratio = np.minimum(np.exp(2 * log_degrees - log_volume - log_diagonal), 1.0)
    with np.errstate(divide="ignore"):
        return 0.5 * (log_diagonal - log_degrees + np.log1p(-ratio))


Reader = Callable[[GramOperator, int, int], tuple[Array, Array]]


def _logarithmic(gram: GramOperator, lo: int, hi: int) -> tuple[Array, Array]:
    P = gram.log_rows(lo, hi).astype(np.float64, copy=False)
    scale = P.max(axis=1)
    scale[scale == -np.inf] = 0.0  # no affinity at all: the weights are zero
    P -= scale[:, None]
    return np.exp(P, out=P), scale


def _plain(gram: GramOperator, lo: int, hi: int) -> tuple[Array, Array]:
    return gram.block(slice(lo, hi), slice(None)).astype(np.float64, copy=False), np.zeros(hi - lo)


def _chunk(gram: GramOperator, lo: int, hi: int, weighted: Array, weights: Array, read: Reader) -> tuple[Array, Array]:
    P, scale = read(gram, lo, hi)
    degrees = P @ weights
    if not np.all(np.isfinite(degrees)):
        row = lo + int(np.argmin(np.isfinite(degrees)))
        raise ValueError(f"Row {row} of X is so far from the data that {gram.kernel!r} overflows: it has no place.")
    if not np.all(degrees > 0):
        row = lo + int(np.argmin(degrees))
        raise ValueError(
            f"Row {row} of X has no positive affinity to the training points: it has no place in the embedding."
        )
    return np.log(degrees) + scale, (P @ weighted) / degrees[:, None]
