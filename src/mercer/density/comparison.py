"""What a density's objective compares of its embedding with the sample's: all of it, or what a wider span sees.

The span of the support (SOS 12) sees little of a density where it has few points. The whole MMD² of (9) takes functions
that span w_p for every density of the programme: the embeddings of the bumps that these are made of, as many as are
independent to rounding, found by a Cholesky factorisation with the largest pivots.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, cholesky, namespace, solve_triangular, upper_triangle
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.rounding import EPS
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel
from mercer.kernels.integrals import KernelIntegrals
from mercer.kernels.integrals.gaussian import GaussianIntegrals
from mercer.kernels.integrals.midpoints import MidpointProbes, midpoint_kernel, midpoints
from mercer.kernels.integrals.node_probes import NodeProbes
from mercer.kernels.integrals.probes import Probes
from mercer.kernels.integrals.quadrature import NodeIntegrals
from mercer.linalg.greedy_cholesky import greedy_cholesky
from mercer.operators import GramOperator, LinearMap
from mercer.operators.base import Index
from mercer.problems.sum_of_squares import Comparison
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.validation import normalised

_NEGLIGIBLE = 1e-13  # of the largest weight of a pair: no density makes anything of it
_LEFT_OUT = 1e-12  # of the weighted trace: with less, gaps below 1e-8 are out of reach where W is ill-conditioned
_MOST_PROBES, _MOST_ROWS = 2000, 50_000
_LIFTS = 20
_MOST_NODES = 10_000  # whose pairs a proof goes through, some ten seconds


def whole_comparison(integrals: KernelIntegrals, sample: Sample, basis: Array) -> Comparison:
    """The whole MMD² between densities B = T C Tᵀ and the sample (SOS 9).

    Cost: n² kernel evaluations for ‖v‖², n m² operations for V, m² N² for the choice of N probes.

    Raises
    ------
    ValueError
        Where ‖w_p‖² is no closed form and no sum over the nodes of a quadrature.
    """
    n = sample.points.shape[0]
    if n > _MOST_ROWS:
        raise ValueError(
            f"objective='mmd' goes through all pairs of rows, for {_MOST_ROWS} at most, not {n}: use 'projection', "
            "or a weighted part of the rows, as QuadratureSparsifier finds one."
        )
    probes = _spanning(integrals, basis)
    shares = normalised(sample.weights, n, reference=sample.points)
    squared_norm = float(shares @ as_double(GramOperator(integrals.kernel, sample.points) @ shares))
    return Comparison.whole(probes, whitened(probes), _potential(integrals, sample.points, shares), squared_norm)


def _spanning(integrals: KernelIntegrals, basis: Array) -> Probes:
    """Probes that span w_p for every density, to rounding."""
    if isinstance(integrals, GaussianIntegrals) and integrals.is_isotropic:
        return MidpointProbes(integrals, independent_pairs(integrals, basis))
    if isinstance(integrals, NodeIntegrals) and integrals.n_nodes <= _MOST_NODES:
        return NodeProbes(integrals, independent_nodes(integrals, basis))
    raise ValueError(
        f"objective='mmd' takes a double integral of {integrals.kernel!r} under this measure, which has no closed form "
        f"and no quadrature of {_MOST_NODES} nodes at most: use Gaussian(), or objective='projection'."
    )


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
    return pairs[greedy_cholesky(gram, min(_MOST_PROBES, pairs.shape[0]), tolerance=_LEFT_OUT).landmarks]


def independent_nodes(integrals: NodeIntegrals, basis: Array) -> Array:
    """Nodes of the quadrature whose sections span the embeddings of all densities to rounding, of shape (N, d).

    A density has the mass w_q p(x_q) at a node, and p(x) ≤ ‖Tᵀk_x‖²: the weights of :func:`independent_pairs` here.
    """
    xp = namespace(basis)
    weights = integrals.weights * xp.sum((integrals.values @ basis) ** 2, axis=1)
    present = xp.nonzero(weights > _NEGLIGIBLE * xp.max(weights))[0]
    nodes = integrals.nodes[present]
    gram = _WeightedGram(integrals.kernel, nodes, xp.sqrt(weights[present]))
    return nodes[greedy_cholesky(gram, min(_MOST_PROBES, nodes.shape[0]), tolerance=_LEFT_OUT).landmarks]


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
