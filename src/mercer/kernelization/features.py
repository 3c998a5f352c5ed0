"""Coordinates of points in the space of a kernel: all of it that a sample spans, or what some landmarks span.

With K_II = L Lᵀ and the pivots J ⊂ I of a Cholesky factorisation that stops at rounding, f(x) = k(x, J) L_J⁻ᵀ has the
inner products ⟨f(x), f(y)⟩ = k(x, I) K_II⁺ k(I, y), as k(x, I) K_II^(-1/2) has (RKHS section 10): the two differ by a
rotation. These are as many as K_II has rank, so that none depends on the others, and they cost m³/3 flops instead of an
eigendecomposition. Where I is the whole sample, ⟨f(x), f(y)⟩ = k(x, y) on it.
"""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dpstrf

from mercer.backends import get_config
from mercer.backends.arrays import (
    Array,
    as_double,
    cast,
    contiguous,
    eigvalsh,
    like,
    namespace,
    solve_triangular,
    to_numpy,
)
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.config import require_free_memory
from mercer.backends.rounding import EPS, UNIT, gamma, unit_of
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel
from mercer.linalg import rp_cholesky
from mercer.operators import GramOperator, LowRankOperator
from mercer.operators.sections import KernelSections
from mercer.support import choose_support
from mercer.validation import whole_number

_PIVOTS = 0  # seed of a factorisation to rounding, which changes the features by a rotation alone
_WIDE = 8  # bytes of an entry of the factor
# Parts of the trace at which a factorisation ends: from entries that are exact to rounding to those of single
# precision. Beyond the first, copies of a point would count as points of their own.
_TOLERANCES = (300 * EPS, 1e-11, 1e-9, 1e-6)
_LOOKED_AT = 4096  # rows on which a factor is compared with its matrix
_DECOMPOSED = 512  # rows on which a matrix is looked at for negative eigenvalues
_INDEFINITE = 1e-5  # of the largest eigenvalue: more than entries in single precision make of zero
_NOISE, _FEW = 256.0, 32.0  # units of rounding, of the largest k(x, x)
_FALL, _DEPTH = 1e-4, 1e-10  # from a pivot to the next, and from the first: where a matrix of low rank ends
_NEGATIVE = 1e-2  # of the largest k(x, x): no rounding makes a squared length that much larger


@final
class KernelFeatures:
    """The map x ↦ f(x) = k(x, J) L_J⁻ᵀ of some nodes of a sample.

    Parameters
    ----------
    sections : KernelSections
        k(·, xⱼ), j ∈ J, in the order of the elimination.
    lower : array of shape (r, r)
        L_J, lower triangular, L_J L_Jᵀ = K_JJ.

    Attributes
    ----------
    sections : KernelSections
        As given.
    nodes : array of int of shape (r,)
        J, as rows of the sample.
    components : array of shape (r, d)
        Their points; for ``Precomputed()`` the kernel matrix between them.
    normalization : array of shape (r, r)
        L_J⁻ᵀ.
    """

    sections: KernelSections
    nodes: Array
    components: Any
    normalization: Array

    def __init__(self, sections: KernelSections, lower: Array) -> None:
        xp = namespace(lower)
        self.sections = sections
        self.nodes, self.components = sections.nodes, sections.components
        identity = xp.eye(lower.shape[0], dtype=lower.dtype, device=lower.device)
        self.normalization = contiguous(solve_triangular(lower, identity).T)

    def require_memory(self, X: Any) -> None:
        """Refuse more points than the memory limit has room for the features of."""
        count, width = int(X.shape[0]), int(self.nodes.shape[0])
        needed = float(_WIDE) * count * width
        require_free_memory(needed, f"{width} features of {count} points take", "pass fewer points", MemoryError)

    def transform(self, X: Any) -> Array:
        """The features of points X, n × r; for ``Precomputed()`` from their kernel values with the whole sample."""
        return self.sections.against(X) @ self.normalization


class SampleFeatures(NamedTuple):
    """The features of a sample, n × r, the map that gives them to new points, k(x, x), and what they leave of it."""

    values: Array
    map: KernelFeatures
    diagonal: Array
    left_out: Array


def sample_features(
    kernel: Kernel, X: Any, landmarks: Any, weights: Array | None, rng: np.random.Generator
) -> SampleFeatures:
    """The features of the rows of X from all of them, for None, from so many that are drawn, or from those chosen."""
    number = isinstance(landmarks, Integral) and not isinstance(landmarks, bool)
    if landmarks is None or number:
        count = whole_number(landmarks, "landmarks", 1) if number else None
        return factor_features(kernel, X, count, weights, rng)
    return landmark_features(kernel, X, choose_support(landmarks, weights, X, kernel, rng).indices)


def landmark_features(kernel: Kernel, X: Any, landmarks: Array) -> SampleFeatures:
    """The features of the rows of X made from some of them, which are given.

    Cost: n m kernel evaluations and 2 n m² flops for m landmarks; memory: n m numbers in the precision of X.
    """
    refuse_indefinite(kernel)
    gram, chosen = GramOperator(kernel, X), KernelSections(kernel, X, landmarks)
    size = int(chosen.nodes.shape[0])
    _require_memory(gram, size, _itemsize(gram))
    within = chosen.gram()
    pivots, lower = _independent(within, _factored(within, size, _PIVOTS))
    made = KernelFeatures(KernelSections(kernel, X, chosen.nodes[pivots]), lower)
    values = made.transform(X)
    return SampleFeatures(values, made, *_left_out(gram, values))


def factor_features(
    kernel: Kernel, X: Any, count: int | None, weights: Array | None, random_state: Any
) -> SampleFeatures:
    """The features of the rows of X by a Cholesky factorisation of their kernel matrix: ``count`` of them, or all.

    The landmarks are its pivots, drawn by what is not explained yet; rows of weight zero are none. With None for the
    count it goes on to rounding, and the draws are the same in every run.

    Cost: n r kernel evaluations and n r² flops for r features; memory: n r numbers in double precision, and n r in that
    of X.
    """
    refuse_indefinite(kernel)
    gram, n = GramOperator(kernel, X), int(X.shape[0])
    entry = _WIDE + _itemsize(gram)
    if count is None:
        width, seed = min(n, max(1, get_config().memory_bytes // (entry * n))), _PIVOTS
    else:
        width, seed = min(count, n), random_state
        _require_memory(gram, width, entry)
    factor = _factored(gram, width, seed, weights)
    if count is None and factor.rank == width < n:
        raise MemoryError(
            f"{n} points span more than the {width} dimensions whose features fit the memory limit: pass landmarks, "
            "compute in float32, or raise memory_limit."
        )
    pivots, lower = _independent(gram, factor)
    made = KernelFeatures(KernelSections(kernel, X, pivots), lower)
    values = made.transform(X) if pivots.shape[0] < factor.rank else contiguous(cast(factor.factor, gram.dtype))
    return SampleFeatures(values, made, *_left_out(gram, values))


def refuse_indefinite(kernel: Kernel) -> None:
    """Refuse a kernel that is known to have no space of features."""
    if kernel.properties.positive_definite is False:
        raise ValueError(_sentence(kernel))


def _require_memory(gram: GramOperator, features: int, entry: int) -> None:
    what = f"{features} features of {gram.shape[0]} points take"
    advice = "pass fewer landmarks, or compute in float32"
    require_free_memory(float(entry) * gram.shape[0] * features, what, advice, MemoryError)


def _factored(gram: GramOperator, width: int, seed: Any, weights: Array | None = None) -> LowRankOperator:
    """A factorisation to rounding; of a kernel that is not known to be positive semi-definite, to the noise it has.

    Entries that someone computed, or that come of solves with a nearly singular matrix, may be inner products to some
    digits only. A factor that went beyond them is not one of the matrix, which :func:`_explains` sees; the next one
    leaves out more.
    """
    known = gram.kernel.properties.positive_definite is True and gram.entry_error.relative < 1
    if not known:
        refuse_indefinite_part(gram)
    for tolerance in _TOLERANCES[: 1 if known else None]:
        with np.errstate(over="ignore", invalid="ignore"):  # growth on an indefinite matrix
            factor = rp_cholesky(gram, width, random_state=copy(seed), weights=weights, tolerance=tolerance)
            if not known and not _explains(gram, factor):
                continue
        if not factor.rank:
            raise ValueError("The kernel vanishes on every point that features are made from: choose others.")
        return factor
    raise ValueError(_sentence(gram.kernel))


def refuse_indefinite_part(gram: GramOperator) -> None:
    """Refuse a matrix that is indefinite on some rows drawn at random, which is all that can be looked at for sure."""
    rows = _some_rows(gram, _DECOMPOSED)
    values = eigvalsh(as_double(gram.block(rows, rows)))
    if not float(values[0]) >= -_INDEFINITE * float(abs(values).max()):
        raise ValueError(_sentence(gram.kernel))


def _explains(gram: GramOperator, factor: LowRankOperator) -> bool:
    """Whether K can be the sum of FFᵀ and a positive semi-definite E of the trace that is left: ‖Ev‖ ≤ tr(E) ‖v‖.

    One random v on some thousand rows shows an E that is larger, all but surely.
    """
    xp, n, rows = namespace(gram.reference), gram.shape[0], _some_rows(gram, _LOOKED_AT)
    v = like(np.random.default_rng(_PIVOTS).standard_normal(rows.shape[0]), gram.reference)
    F = as_double(factor.factor[rows])
    off = as_double(gram.block(rows, rows)) @ v - F @ (F.T @ v)
    residual = as_double(factor.residual_diagonal)[rows]
    noise = _NOISE * n * unit_of(gram.dtype) * float(xp.max(xp.abs(as_double(gram.diagonal()))))
    return float(xp.linalg.vector_norm(off)) <= (float(xp.sum(residual)) + noise) * float(xp.linalg.vector_norm(v))


def _some_rows(gram: GramOperator, count: int) -> Array:
    n = gram.shape[0]
    return like(np.sort(np.random.default_rng(_PIVOTS).choice(n, min(n, count), replace=False)), gram.reference)


def _left_out(gram: GramOperator, values: Array) -> tuple[Array, Array]:
    """k(x, x) of every point, and an upper bound of k(x, x) - ‖f(x)‖² with what rounding can have done to both.

    A difference far below zero is the work of a kernel that is not positive semi-definite.
    """
    xp, error = namespace(values), gram.entry_error
    diagonal = as_double(gram.diagonal())

    def squares(rows: slice) -> Array:
        wide = as_double(values[rows])
        return xp.sum(wide * wide, axis=1)

    lengths = xp.concat(run_chunks_of(values, squares, row_chunks(values.shape[0], TALL_ROWS)))
    left = diagonal - lengths
    if not bool((left >= -_NEGATIVE * float(xp.max(xp.abs(diagonal)))).all()):
        raise ValueError(_sentence(gram.kernel))
    rounding = (error.relative + error.scaled) * xp.abs(diagonal) + error.absolute
    return diagonal, xp.abs(left) + rounding + gamma(values.shape[1] + 4, UNIT) * (lengths + xp.abs(left))


def _independent(gram: GramOperator, factor: LowRankOperator) -> tuple[Array, Array]:
    """The pivots J without those that are others' combination where a matrix of low rank ends, and L, L Lᵀ = K_JJ.

    The factorisation lifts its blocks by some rounding so that they factor, and what that leaves of a matrix of low
    rank can pass for a dimension: an estimator that scales its features up would take it for one. Here nothing is
    lifted, and the pivots fall to rounding at once. Those of a smooth kernel go down to it step by step, and stay.
    """
    block = to_numpy(as_double(gram.block(factor.landmarks, factor.landmarks)))
    noise = _FEW * unit_of(gram.dtype) * float(np.abs(np.diagonal(block)).max())
    lower, order, rank, _ = dpstrf(block, lower=1, tol=noise)
    left = np.append(np.diagonal(lower)[:rank] ** 2, noise if rank < factor.rank else [])  # by the pivots before
    fallen = np.flatnonzero((left[1:] < _FALL * left[:-1]) & (left[1:] < _DEPTH * left[0]))
    if not fallen.size:  # all of them in their own order, as the factor has them
        return factor.landmarks, namespace(factor.factor).tril(factor.factor[factor.landmarks])
    rank = int(fallen[0]) + 1
    return factor.landmarks[like(order[:rank] - 1, factor.landmarks)], like(np.tril(lower[:rank, :rank]), factor.factor)


def _itemsize(gram: GramOperator) -> int:
    return int(np.finfo("float32" if "32" in str(gram.dtype) else "float64").bits // 8)


def _sentence(kernel: Kernel) -> str:
    return (
        f"{kernel!r} is not positive semi-definite on these points, so that they have no features in its space: choose "
        "another kernel, such as Gaussian()."
    )
