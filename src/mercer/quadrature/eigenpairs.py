"""Eigenpairs of an integral operator from those of a sparse measure (QUAD section 4).

T_μ f = Σ ωₖ f(xₖ) k(·, xₖ) over the whole sample; T_ν the same with the values v of the nodes I. Both are operators on
the reproducing kernel Hilbert space H of k. Functions on the nodes' kernel sections, orthonormal in H,

    f_l = Σ_{i ∈ I} C_il k(·, xᵢ),   ‖f_l‖_H = 1,

are normalised in L²(μ): φ̂_l = f_l/‖f_l‖ (4.1), so that λ̃_l = 1/‖φ̂_l‖²_H (4.4) is ‖f_l‖² in L²(μ). The f_l are the
eigenfunctions √ϑ_l ψ_l of T_ν, or, refined, those of T_μ restricted to the span of the sections.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, cast, is_sparse_tensor, is_tensor, namespace
from mercer.backends.chunks import ENTRY_ROWS, panel_rows, row_chunks
from mercer.backends.ordering import flatnonzero, places
from mercer.backends.rounding import times_power_of_two, unit_of
from mercer.backends.threads import run_chunks, single_threaded_blas, watch
from mercer.kernels import Kernel
from mercer.kernels.checks import as_points, in_one_unit
from mercer.linalg.dense_products import inner_products, over_rows
from mercer.linalg.eigen import deterministic_signs, leading_eigenpairs, positive_eigenpairs
from mercer.operators import GramOperator, LinearMap
from mercer.operators.sections import KernelSections
from mercer.problems.discrepancy import checked_measure
from mercer.progress import warn_user
from mercer.validation import checked_weights, positive_number, whole_number
from mercer.wording import brief

Progress = Callable[[float], None] | None
_MODERATE = 100  # 4^±100: squares of such weights are far from the ends of the range


@dataclass(frozen=True, eq=False)
class ApproximateEigenpairs:
    """Approximate eigenpairs of T_μ, l = 1…n, by falling ϑ.

    Attributes
    ----------
    functions : array of shape (N, n)
        φ̂_l at the sample, of unit norm in L²(μ) (4.1).
    canonical : array of shape (n,)
        ϑ_l, the eigenvalues of T_ν; refined, those of T_μ restricted to the span of the nodes' kernel sections.
    rescaled : array of shape (n,)
        ϑ_l/ρ, where ρ is the trace of that operator over the trace of T_μ.
    eigenvalues_tilde : array of shape (n,)
        λ̃_l = 1/‖φ̂_l‖²_H (4.4).
    rkhs_norms : array of shape (n,)
        ‖φ̂_l‖_H.
    orthogonality : array of shape (n, n)
        The inner products of the φ̂_l in L²(μ): the identity if they are eigenfunctions (Remark 4.1).
    upsilon : array of shape (n,) or None
        Υ_l = ⟨φ̂_l, T_μ φ̂_l⟩/‖T_μ φ̂_l‖ in L²(μ), between 0 and 1: one for an eigenfunction (4.2).
    eigenvalues_hat : array of shape (n,) or None
        λ̂_l = ‖T_μ φ̂_l‖ in L²(μ) (4.3).
    residuals, rkhs_residuals : arrays of shape (n,) or None
        ‖T_μ φ̂_l - λ̂_l φ̂_l‖ in L²(μ) and in H (Lemma 4.1). They are computed from the difference itself, so they keep
        their digits where Υ_l is one to rounding.
    coefficients : array of shape (m, n)
        φ̂_l = Σ coefficients[i, l] k(·, xᵢ) over the nodes.
    """

    functions: Array
    canonical: Array
    rescaled: Array
    eigenvalues_tilde: Array
    rkhs_norms: Array
    orthogonality: Array
    upsilon: Array | None
    eigenvalues_hat: Array | None
    residuals: Array | None
    rkhs_residuals: Array | None
    coefficients: Array
    _sections: KernelSections = field(repr=False)

    def __repr__(self) -> str:
        return brief(self, "canonical", "upsilon")

    @property
    def largest_overlap(self) -> float:
        """The largest inner product, in absolute value, of two different φ̂_l in L²(μ); zero for true eigenfunctions."""
        overlap = abs(self.orthogonality)
        each = places(int(overlap.shape[0]), overlap)
        overlap[each, each] = 0.0
        return float(overlap.max())

    @property
    def correction(self) -> float:
        """ρ_c = Σ ϑ_l / Σ λ̃_l over the pairs at hand: the factor ρ corrected for what is not approximated (QUAD 4).

        ρ compares with the whole trace of T_μ, to which eigenvalues add that ν has no like of. The sum of the leading
        ones is not known; λ̃ estimates it well, where λ̂ does not for functions that Υ calls poor.
        """
        return float(self.canonical.sum()) / float(self.eigenvalues_tilde.sum())

    @property
    def corrected(self) -> Array:
        """ϑ_l/ρ_c, the eigenvalues of ν, scaled to the sum of the estimates."""
        return self.canonical / self.correction

    def rescaled_to(self, largest: float) -> Array:
        """ϑ_l times a factor that gives the first of them a value that is known, such as λ̂₁ or 1 (QUAD 4)."""
        return self.canonical * (positive_number(largest, "largest") / float(self.canonical[0]))

    def extend(self, X: Any) -> Array:
        """φ̂_l at other points, one column each; for ``Precomputed()`` from their kernel values with the sample."""
        return self._sections.against(X) @ self.coefficients


def approximate_eigenpairs(
    kernel: Kernel,
    X: Any,
    weights: Any,
    nodes: Any,
    values: Any,
    n: int,
    *,
    upsilon: bool = True,
    refine: bool = False,
    progress: Progress = None,
) -> ApproximateEigenpairs:
    """Approximate the n leading eigenpairs of T_μ from a sparse measure (QUAD section 4).

    Parameters
    ----------
    kernel : Kernel
        k, resolved.
    X : array of shape (N, d)
        The sample. For ``Precomputed()`` its kernel matrix.
    weights : array of shape (N,) or float
        ω, the weights of the sample.
    nodes, values : arrays of shape (m,)
        The sparse measure ν: rows of X, and their positive values. Only their ratios matter, but for ϑ (Remark 4.2).
    n : int
        Eigenpairs to compute. There are fewer, with a warning, if the others are at rounding level.
    upsilon : bool, default=True
        Whether to test the pairs against T_μ itself.
    refine : bool, default=False
        Rather than the eigenfunctions of T_ν take those of T_μ restricted to the span of the nodes' kernel sections
        (Rayleigh-Ritz): ``M a = λ K_II a``, ``M = K_I· W K_·I``. They are orthonormal in L²(μ) and depend on ν by its
        nodes only.
    progress : callable, optional
        Called with the fraction done of the longest product.

    Returns
    -------
    ApproximateEigenpairs
        The functions at the sample and on demand elsewhere, three or four estimates of each eigenvalue, and how good
        they are.

    Notes
    -----
    Cost: the eigenproblem of the m nodes (m³ flops, or Lanczos if n is much less than m), N·m kernel evaluations, and
    N²/2 more for the test of all n functions, in one product. Refined: N·m more and 4 N m² flops. Memory: N × n a few
    times and panels; never N × N, nor N × m.
    """
    count = whole_number(n, "n", 1)
    X = X if hasattr(X, "toarray") or is_sparse_tensor(X) else as_points(X)
    reference = X if is_tensor(X) else np.empty(0)
    omega = checked_weights(weights, X.shape[0], "weights", reference=reference)
    chosen, v = checked_measure(nodes, values, X.shape[0], omega)
    sections = KernelSections(kernel, X, chosen)
    omega, of_sample = _within_range(omega)
    v, of_nodes = _within_range(v)
    with single_threaded_blas():  # our threads multiply; those of BLAS would only get in their way
        pairs = _compute(_Request(sections, X, omega, v, count, upsilon, refine, progress))
    return _in_given_units(pairs, of_sample, of_sample if refine else of_nodes)


def _within_range(weights: Array) -> tuple[Array, int]:
    """Weights w · 4^e with w of moderate size, and e: zero where they are moderate as they are."""
    half = (in_one_unit(weights)[-1] + 1) // 2
    return (times_power_of_two(weights, -2 * half), half) if abs(half) > _MODERATE else (weights, 0)


def _in_given_units(pairs: ApproximateEigenpairs, sample: int, own: int) -> ApproximateEigenpairs:
    """The pairs where the sample weighs 4^sample as much, and the operator that gave ϑ 4^own."""
    if sample == own == 0:
        return pairs
    powers = {
        "functions": -sample,
        "coefficients": -sample,
        "rkhs_norms": -sample,
        "rkhs_residuals": sample,
        "canonical": 2 * own,
        **dict.fromkeys(("rescaled", "eigenvalues_tilde", "eigenvalues_hat", "residuals"), 2 * sample),
    }
    with np.errstate(over="ignore", under="ignore"):
        changed: dict[str, Any] = {
            name: None if getattr(pairs, name) is None else times_power_of_two(getattr(pairs, name), power)
            for name, power in powers.items()
        }
    if not all(value is None or namespace(value).isfinite(value).all() for value in changed.values()):
        raise ValueError("The eigenpairs of weights as large as these overflow: divide the weights by a constant.")
    return replace(pairs, **changed)


class _Request(NamedTuple):
    """The arguments of :func:`approximate_eigenpairs`, checked and with weights of moderate size."""

    sections: KernelSections
    X: Any
    omega: Array
    values: Array
    n_pairs: int
    upsilon: bool
    refine: bool
    progress: Progress


def _compute(request: _Request) -> ApproximateEigenpairs:
    """Approximate the pairs."""
    sections, X, omega, values, count, upsilon, refine, progress = request
    nodes = sections.nodes
    span = _ritz(sections, X, omega) if refine else _canonical(sections, values, min(count, int(nodes.shape[0])))
    with nullcontext() if progress is None or upsilon else watch(progress):
        functions = as_double(sections.against(X) @ span.coefficients[:, :count])
    sizes = _weighted_sums(functions, omega, functions) ** 0.5
    kept = flatnonzero(sizes > 0)
    _warn_of_fewer(count, int(kept.shape[0]), int(nodes.shape[0]))
    scale = deterministic_signs(functions[:, kept]) / sizes[kept]
    functions = functions[:, kept]
    functions *= scale
    coefficients = span.coefficients[:, kept] * scale
    gram = GramOperator(sections.kernel, X)
    tested = _tested(gram, omega, functions, coefficients, nodes, progress) if upsilon else _Tested()
    return ApproximateEigenpairs(
        functions=functions,
        canonical=span.eigenvalues[kept],
        rescaled=span.eigenvalues[kept] * (float(as_double(gram.diagonal()) @ omega) / span.trace),
        eigenvalues_tilde=sizes[kept] ** 2,
        rkhs_norms=1 / sizes[kept],
        orthogonality=inner_products(functions, omega[:, None] * functions),
        upsilon=tested.upsilon,
        eigenvalues_hat=tested.eigenvalues,
        residuals=tested.residuals,
        rkhs_residuals=tested.rkhs_residuals,
        coefficients=coefficients,
        _sections=sections,
    )


class _Span(NamedTuple):
    """Functions orthonormal in H by their coefficients C, the eigenvalues ϑ, and the trace of the operator."""

    coefficients: Array
    eigenvalues: Array
    trace: float


def _canonical(sections: KernelSections, values: Array, count: int) -> _Span:
    """Eigenfunctions of T_ν: with V^½ K_II V^½ u = ϑ u, √ϑ ψ = Σ (V^½ u)ᵢ k(·, xᵢ)/√ϑ."""
    roots = values**0.5
    operator = _Weighted(sections.gram(), roots)
    eigenvalues, vectors = leading_eigenpairs(operator, count, rng=np.random.default_rng(0))
    eigenvalues, vectors = as_double(eigenvalues), as_double(vectors)
    rounding = values.shape[0] * 2 * unit_of(operator.dtype)
    kept = eigenvalues > max(float(eigenvalues[0]), 0.0) * rounding
    coefficients = roots[:, None] * vectors[:, kept] / eigenvalues[kept] ** 0.5
    return _Span(coefficients, eigenvalues[kept], float(operator.diagonal().sum()))


def _ritz(sections: KernelSections, X: Any, weights: Array) -> _Span:
    """Eigenfunctions of T_μ restricted to the span of the sections.

    The sections are made orthonormal in H first, by K_II = Q Λ Qᵀ and QΛ^(-½), and the matrix of T_μ is then summed
    over panels of their values. M itself is not formed: dividing its rounding errors by small eigenvalues of K_II would
    raise them to the size of λ₁.
    """
    gram = sections.gram()
    rounding = 2 * unit_of(gram.dtype)
    lengths, directions = positive_eigenpairs(as_double(gram.to_dense()), rounding)
    basis = directions / lengths**0.5
    if not lengths.shape[0]:
        return _Span(basis, lengths, 0.0)
    matrix = _inner_products(sections.against(X), basis, weights)
    eigenvalues, vectors = positive_eigenpairs(matrix, rounding)
    return _Span(basis @ vectors, eigenvalues, float(namespace(matrix).linalg.diagonal(matrix).sum()))


def _inner_products(values: GramOperator, basis: Array, weights: Array) -> Array:
    """Those of the functions K_·I @ basis in L²(μ), over panels of the sample, on our threads."""
    xp, n, rank = namespace(basis), values.shape[0], basis.shape[1]
    roots = weights**0.5
    total = xp.zeros((rank, rank), dtype=basis.dtype, device=basis.device)
    height = ENTRY_ROWS * max(1, panel_rows(rank) // ENTRY_ROWS)
    for part in row_chunks(n, height):
        panel = xp.zeros((part.stop - part.start, rank), dtype=basis.dtype, device=basis.device)

        def fill(which: slice, start: int = part.start, panel: Array = panel) -> None:
            rows = slice(start + which.start, start + which.stop)
            block = as_double(values.block(rows, slice(None)))
            panel[which] = roots[rows, None] * (block @ basis)

        def add(which: slice, panel: Array = panel) -> None:
            total[:, which] += panel.T @ panel[:, which]

        run_chunks(fill, row_chunks(panel.shape[0], ENTRY_ROWS))
        run_chunks(add, row_chunks(rank, ENTRY_ROWS))
    return total


class _Tested(NamedTuple):
    """What one product with T_μ says of the functions."""

    upsilon: Array | None = None
    eigenvalues: Array | None = None
    residuals: Array | None = None
    rkhs_residuals: Array | None = None


def _tested(
    gram: GramOperator, weights: Array, functions: Array, coefficients: Array, nodes: Array, progress: Progress
) -> _Tested:
    """The Υ-test (4.2), λ̂ (4.3) and the residuals of Lemma 4.1, all from T_μ φ̂ at the sample.

    The residual function r = T_μ φ̂ - λ̂φ̂ is Σ zₖ k(·, xₖ) with z = Wφ̂ less λ̂ times the coefficients at the nodes, so
    its norm in H is the root of Σ zₖ r(xₖ), and r at the sample is at hand.
    """
    with nullcontext() if progress is None else watch(progress):
        images = as_double(gram @ (weights[:, None] * functions))
    xp = namespace(images)
    eigenvalues = _weighted_sums(images, weights, images) ** 0.5
    safe = xp.where(eigenvalues > 0, eigenvalues, 1.0)
    upsilon = xp.clip(_weighted_sums(functions, weights, images) / safe, 0.0, 1.0)
    images -= eigenvalues * functions
    energy = _weighted_sums(functions, weights, images)
    energy -= eigenvalues * xp.sum(coefficients * images[nodes], axis=0)
    residuals = _weighted_sums(images, weights, images) ** 0.5
    return _Tested(upsilon, eigenvalues, residuals, xp.clip(energy, min=0.0) ** 0.5)


def _weighted_sums(functions: Array, weights: Array, others: Array) -> Array:
    """Σₖ ωₖ f(xₖ) g(xₖ) for every column, over chunks of the sample, added in order."""

    def part(rows: slice) -> Array:
        return weights[rows] @ (functions[rows] * others[rows])

    parts = over_rows(part, *functions.shape)
    return sum(parts[1:], parts[0])


def _warn_of_fewer(wanted: int, found: int, nodes: int) -> None:
    if found == 0:
        raise ValueError("The kernel vanishes on every node: choose others.")
    if found < wanted:
        warn_user(
            f"n={wanted} exceeds the {found} eigenpairs above rounding level that {nodes} nodes give: only these are "
            "returned. Lower n, or fit with more n_nodes.",
        )


@final
class _Weighted(LinearMap):
    """Diag(s) K Diag(s)."""

    def __init__(self, gram: GramOperator, scale: Array) -> None:
        super().__init__(gram.shape, gram.dtype, symmetric=True, reference=gram.reference)
        self._gram = gram
        self._scale = cast(scale, gram.dtype)

    def _multiply(self, v: Array) -> Array:
        return self._scale[:, None] * (self._gram @ (self._scale[:, None] * v))

    def _transpose_multiply(self, v: Array) -> Array:
        return self._multiply(v)

    def diagonal(self) -> Array:
        return self._gram.diagonal() * self._scale**2

    def block(self, rows: Any, cols: Any) -> Array:
        return self._gram.block(rows, cols) * (self._scale[rows][:, None] * self._scale[cols])
