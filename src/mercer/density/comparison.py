"""What a density's objective compares of its embedding with the sample's: all of it, or what a wider span sees.

The span of the support (SOS 12) sees little of a density where it has few points. The whole MMD² of (9) takes functions
that span w_p for every density of the programme: the embeddings of the bumps that these are made of, as many as are
independent to rounding, found by a Cholesky factorisation with the largest pivots.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import (
    Array,
    as_double,
    cholesky,
    contiguous,
    namespace,
    norm,
    solve_triangular,
    upper_triangle,
)
from mercer.backends.chunks import KEPT_BYTES, TALL_ROWS, row_chunks
from mercer.backends.rounding import EPS
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel
from mercer.kernels.integrals import KernelIntegrals
from mercer.kernels.integrals.closed_form import LoopIntegrals
from mercer.kernels.integrals.gaussian import GaussianIntegrals
from mercer.kernels.integrals.measures import Box
from mercer.kernels.integrals.midpoints import MidpointProbes, midpoint_kernel, midpoints
from mercer.kernels.integrals.probes import Probes, SectionProbes
from mercer.kernels.integrals.quadrature import NodeIntegrals
from mercer.linalg.greedy_cholesky import greedy_cholesky
from mercer.operators import GramOperator, LinearMap
from mercer.operators.base import Index
from mercer.problems.sum_of_squares import Comparison
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.validation import distinct_rows, normalised

_WIDEST, _MOST_AT_NODES, _MOST_SLAB = 500, 150, 180  # points of a wide span, by what a proof takes
_SEEN = 1e-12  # of the trace
_PAIRS, _ROWS = 1500, 2000
_NEGLIGIBLE = 1e-13  # of the largest weight of a pair: no density makes anything of it
_LEFT_OUT = 1e-12  # of the weighted trace: with less, gaps below 1e-8 are out of reach where W is ill-conditioned
_MOST_PROBES, _MOST_ROWS = 2000, 50_000
_LIFTS = 20
_MOST_SUPPORT = 400  # a proof takes m/2 products of m × m matrices of twice the double precision
_MOST_NODES = 10_000  # whose pairs a proof goes through, some ten seconds


def compared(integrals: KernelIntegrals, sample: Sample, basis: Array, probes: Array | None = None) -> Comparison:
    """The MMD² between densities B = T C Tᵀ and the sample (SOS 9): the whole of it, or what a wide span sees.

    The whole one serves the Gaussian kernel on R^d with up to 400 support points, and measures that are sums over up to
    10 000 nodes. Elsewhere v - w_p is projected on the span of sections at up to 500 points: a lower bound of the MMD²,
    nearer to it than that of the support.

    Parameters
    ----------
    integrals : KernelIntegrals
        Those of the densities.
    sample : Sample
        The data.
    basis : array of shape (m, s)
        T.
    probes : array of shape (N, d), optional
        The points of an earlier comparison by a span; left out, they are chosen.
    """
    spanning = _spanning(integrals, basis)
    if spanning is not None:
        return _whole(integrals, sample, spanning)
    points = wide_span(integrals, sample) if probes is None else probes
    sections = SectionProbes(integrals, points)
    shares = normalised(sample.weights, sample.points.shape[0], reference=sample.points)
    target = as_double(GramOperator(integrals.kernel, points, sample.points) @ shares)
    return Comparison.on_span(sections, whitened(sections), target)


def _whole(integrals: KernelIntegrals, sample: Sample, probes: Probes) -> Comparison:
    """With ‖v‖² by n² kernel evaluations and V by n m² operations."""
    n = sample.points.shape[0]
    if n > _MOST_ROWS:
        raise ValueError(
            f"objective='mmd' goes through all pairs of rows, for {_MOST_ROWS} at most, not {n}: use 'projection', "
            "or a weighted part of the rows, as QuadratureSparsifier finds one."
        )
    shares = normalised(sample.weights, n, reference=sample.points)
    squared_norm = float(shares @ as_double(GramOperator(integrals.kernel, sample.points) @ shares))
    return Comparison.whole(probes, whitened(probes), _potential(integrals, sample.points, shares), squared_norm)


def _spanning(integrals: KernelIntegrals, basis: Array) -> Probes | None:
    """Probes that span w_p for every density, to rounding; None where ‖w_p‖² is not to be had."""
    few = integrals.points.shape[0] <= _MOST_SUPPORT
    if few and isinstance(integrals, GaussianIntegrals) and integrals.is_isotropic:
        return MidpointProbes(integrals, independent_pairs(integrals, basis))
    if isinstance(integrals, NodeIntegrals) and integrals.n_nodes <= _MOST_NODES:
        return SectionProbes(integrals, independent_nodes(integrals, basis))
    return None


def wide_span(integrals: KernelIntegrals, sample: Sample) -> Array:
    """Points whose sections span those of the support, of points between and beyond its pairs, and of the sample's.

    The pivots of a Cholesky factorisation, of shape (N, d): N at most 500 for the Gaussian kernel, 150 with the nodes
    of a quadrature, and as many as a proof with a tensor of three indices takes elsewhere.
    """
    candidates, m = _candidates(integrals, sample), integrals.points.shape[0]
    most = _MOST_AT_NODES if isinstance(integrals, NodeIntegrals) else _WIDEST
    most = max(_MOST_SLAB - m, m) if isinstance(integrals, LoopIntegrals) else most
    low = greedy_cholesky(GramOperator(integrals.kernel, candidates), most, tolerance=_SEEN)
    return candidates[low.landmarks]


def left_out(integrals: KernelIntegrals, sample: Sample, points: Array) -> float:
    """The part of the candidates' squared norms that the sections at some points leave out."""
    candidates = _candidates(integrals, sample)
    whitening = whitened(SectionProbes(integrals, points))
    seen = whitening.T @ as_double(integrals.kernel(points, candidates))
    total = float(integrals.kernel.diag(candidates).sum())
    return max(1.0 - norm(seen) ** 2 / total, 0.0)


def _candidates(integrals: KernelIntegrals, sample: Sample) -> Array:
    """The support, points on the lines through its heaviest pairs, and rows of the sample at even distances.

    Of such a pair they are the midpoint and the points as far beyond each end: densities reach beyond their support.
    """
    xp, Z = namespace(sample.points), integrals.points
    i, j = upper_triangle(Z.shape[0], Z)
    heavy = xp.argsort(-integrals.mass()[i, j], stable=True)[:_PAIRS]
    one, other = Z[i[heavy]], Z[j[heavy]]
    stride = -(-sample.points.shape[0] // _ROWS)
    lines = [one + share * (other - one) for share in (0.5, 1.5, -0.5)]
    points = xp.concat([Z, *lines, as_double(sample.points[::stride])])
    if isinstance(integrals.measure, Box):
        points = points[integrals.measure.holds(points)]
    return contiguous(points[distinct_rows(points)[0]])


def whitened(probes: Probes) -> Array:
    """L⁻ᵀ for the Gram matrix LLᵀ of independent functions, with as little added to its diagonal as it takes.

    A Cholesky factor is that of a matrix near by, and ‖L⁻¹u‖² is then wrong by rounding of ‖w_p‖² alone, however small
    the pivots.
    """
    gram = probes.gram()
    xp, n = namespace(gram), gram.shape[0]
    identity = xp.eye(n, dtype=gram.dtype, device=gram.device)
    lift = EPS * float(xp.max(xp.linalg.diagonal(gram)))
    for _ in range(_LIFTS):
        try:
            return solve_triangular(cholesky(gram + lift * identity), identity).T
        except np.linalg.LinAlgError:
            lift *= 4.0
    raise ArithmeticError("The functions that densities are compared on depend on each other: widen the kernel.")


def _potential(integrals: KernelIntegrals, X: Array, shares: Array) -> Array:
    """V = ∫ v(x) k_x k_xᵀ dρ, some points of the sample at a time."""

    def part(rows: slice) -> Array:
        return integrals.weighted_mass(shares[rows], X[rows])

    return sum(run_chunks_of(X, part, row_chunks(X.shape[0], TALL_ROWS)))


def independent_pairs(integrals: GaussianIntegrals, basis: Array) -> Array:
    """Pairs (i, j) of support points whose bumps' embeddings span those of all densities to rounding, shape (N, 2).

    A density has B_pq W_pq of the bump of a pair, at most ω_pq = W_pq ‖T_p‖ ‖T_q‖ for B = T C Tᵀ with Tr C = 1. What is
    left of w_p outside the span of some of them has a squared norm of at most (Σ ω_pq) (Σ ω_pq r_pq), r the squared
    distances of the ψ_pq to it: the trace of the residual of √ω K √ω is made small.
    """
    i, j = upper_triangle(integrals.points.shape[0], integrals.points)
    xp = namespace(basis)
    sizes = xp.sqrt(xp.sum(basis**2, axis=1))
    weights = (integrals.mass() * (sizes[:, None] * sizes))[i, j]
    present = xp.nonzero(weights > _NEGLIGIBLE * xp.max(weights))[0]
    pairs = xp.stack([i[present], j[present]], axis=1)
    gram = _WeightedGram(midpoint_kernel(integrals), midpoints(integrals, pairs), xp.sqrt(weights[present]))
    return pairs[_pivots(gram)]


def independent_nodes(integrals: NodeIntegrals, basis: Array) -> Array:
    """Nodes of the quadrature whose sections span the embeddings of all densities to rounding, of shape (N, d).

    A density has the mass w_q p(x_q) at a node, and p(x) ≤ ‖Tᵀk_x‖²: the weights of :func:`independent_pairs` here.
    """
    xp, (nodes, weights, values) = namespace(basis), integrals.weighted_nodes()
    weights = weights * xp.sum((values @ basis) ** 2, axis=1)
    present = xp.nonzero(weights > _NEGLIGIBLE * xp.max(weights))[0]
    nodes = nodes[present]
    gram = _WeightedGram(integrals.kernel, nodes, xp.sqrt(weights[present]))
    return nodes[_pivots(gram)]


def _pivots(gram: LinearMap) -> Array:
    """Rows of a Cholesky factorisation to rounding, as many as there is memory for its factor."""
    n = gram.shape[0]
    most = min(_MOST_PROBES, n, max(1, KEPT_BYTES // (8 * n)))
    return greedy_cholesky(gram, most, tolerance=_LEFT_OUT).landmarks


@final
class _WeightedGram(LinearMap):
    """Diag(w) K Diag(w) of a kernel at some points, for a factorisation that looks at some of its columns."""

    def __init__(self, kernel: Kernel, points: Array, weights: Array) -> None:
        n = points.shape[0]
        super().__init__((n, n), points.dtype, symmetric=True, reference=points)
        self._kernel, self._points = kernel, points
        self._weights = weights / namespace(weights).max(weights)

    def _multiply(self, v: Array) -> Array:
        raise NotImplementedError("A factorisation looks at entries alone.")

    def diagonal(self) -> Array:
        return as_double(self._kernel.diag(self._points)) * self._weights**2

    def block(self, rows: Index, cols: Index) -> Array:
        entries = as_double(self._kernel(self._points[rows], self._points[cols]))
        return entries * self._weights[rows][:, None] * self._weights[cols]
