"""The MMD between a sample and a density, without the projection that the fit makes (SOS Lemma 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, contiguous, like, namespace, to_numpy
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel
from mercer.kernels.integrals import KernelIntegrals
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.validation import distinct_rows

_MOST_ROWS = 50_000
_PROBES = 1000
_MIDPOINTS = 500
_TRUNCATION = 1e-9


class SquaredMMD(NamedTuple):
    """MMD², and an estimate of its error; 0 where it is exact."""

    value: float
    error: float


def squared_mmd(integrals: KernelIntegrals, kernel: Kernel, factor: Array, X: Array, weights: Array) -> SquaredMMD:
    """‖v - w_p‖² = ‖v‖² - 2⟨v, w_p⟩ + ‖w_p‖² for v = Σ a_i φ(x_i) and p(x) = ‖Fᵀk_x‖², F scaled as the integrals are.

    In few dimensions p is laid out on the nodes of a quadrature, from F and not from B, whose entries cancel. Elsewhere
    ‖v‖² takes one product with the kernel matrix of the sample, ⟨v, w_p⟩ n m² operations, and ‖w_p‖² what
    :meth:`KernelIntegrals.squared_norm` says. Where that has no answer, w_p is projected on the span of the support, of
    midpoints between support points, and of up to 1 000 points of the sample: a lower bound, whose error is estimated
    by leaving out half of these points. From 50 000 rows on v is projected too, as n² takes long. What is drawn at
    random is drawn by NumPy.
    """
    few = X.shape[0] <= _MOST_ROWS
    laid_out = integrals.at_nodes(factor) if few else None
    if laid_out is not None:
        return SquaredMMD(_at_nodes(kernel, *laid_out, X, weights), 0.0)
    B = factor @ factor.T
    exact = integrals.squared_norm(B) if few else None
    if exact is not None:
        return SquaredMMD(max(_norm(kernel, X, weights) - 2.0 * _cross(integrals, B, X, weights) + exact, 0.0), 0.0)
    probes = _probes(integrals, B, X)
    whole, half = (_Span(integrals, kernel, probes[:count]) for count in (probes.shape[0], probes.shape[0] // 2))
    seen, density = whole.sections(X, weights), integrals.embed(B, whole.points)
    inside = whole.norm(seen - density)
    if X.shape[0] > _MOST_ROWS:
        less = half.norm(half.sections(X, weights) - integrals.embed(B, half.points))
        return SquaredMMD(inside, abs(inside - less))
    error = abs(whole.norm(density) - half.norm(integrals.embed(B, half.points)))
    outside = 0.0  # where the span holds the sample
    if X.shape[0] > _PROBES:
        outside = _norm(kernel, X, weights) - whole.norm(seen)
        outside -= 2.0 * (_cross(integrals, B, X, weights) - whole.inner(seen, density))
    return SquaredMMD(max(inside + outside, 0.0), error)


def _at_nodes(kernel: Kernel, nodes: Array, masses: Array, X: Array, weights: Array) -> float:
    """MMD² between the sample and a density of mass one on some nodes."""
    masses = masses / masses.sum()
    seen = as_double(GramOperator(kernel, nodes, X) @ weights)
    return max(_norm(kernel, X, weights) - 2.0 * float(masses @ seen) + _norm(kernel, nodes, masses), 0.0)


def _norm(kernel: Kernel, X: Array, weights: Array) -> float:
    """‖v‖²."""
    return float(weights @ as_double(GramOperator(kernel, X) @ weights))


def _cross(integrals: KernelIntegrals, B: Array, X: Array, weights: Array) -> float:
    """⟨v, w_p⟩."""

    def part(rows: slice) -> float:
        return float(weights[rows] @ integrals.embed(B, X[rows]))

    return sum(run_chunks_of(X, part, row_chunks(X.shape[0], TALL_ROWS)))


class _Span:
    """The span of φ(z) over the support and some probes, in orthonormal coordinates Λ^{-1/2}Vᵀ."""

    def __init__(self, integrals: KernelIntegrals, kernel: Kernel, probes: Array) -> None:
        xp = namespace(probes)
        points = xp.concat([integrals.points, probes])
        self.points = contiguous(points[distinct_rows(points)[0]])
        gram = as_double(kernel(self.points))
        levels, V = positive_eigenpairs(gram, _TRUNCATION / self.points.shape[0])
        self._whitening = V / xp.sqrt(levels)
        self._kernel = kernel

    def sections(self, X: Array, weights: Array) -> Array:
        """v at the points."""
        return as_double(GramOperator(self._kernel, self.points, X) @ weights)

    def inner(self, values: Array, others: Array) -> float:
        """⟨P f, P g⟩ of functions with these values at the points."""
        return float((self._whitening.T @ values) @ (self._whitening.T @ others))

    def norm(self, values: Array) -> float:
        """‖P f‖²."""
        return self.inner(values, values)


def _probes(integrals: KernelIntegrals, B: Array, X: Array) -> Array:
    """Up to 1 000 points of the sample, and midpoints of pairs drawn by what they contribute to the density's mass."""
    rng, m = np.random.default_rng(0), integrals.points.shape[0]
    rows = rng.permutation(X.shape[0])[:_PROBES]
    shares = np.abs(to_numpy(B * integrals.mass())).reshape(-1)
    pairs = rng.choice(m * m, min(_MIDPOINTS, m * m), p=shares / shares.sum())
    rows, one, other = (like(numbers, X) for numbers in (rows, pairs // m, pairs % m))
    both = namespace(X).concat([X[rows], (integrals.points[one] + integrals.points[other]) / 2])
    return both[like(rng.permutation(both.shape[0]), X)]
