"""Coordinates of points in the space of a kernel: all of it that a sample spans, or what some landmarks span.

With K_II = L Lᵀ and the pivots J ⊂ I of a Cholesky factorisation that stops at rounding, f(x) = k(x, J) L_J⁻ᵀ has the
inner products ⟨f(x), f(y)⟩ = k(x, I) K_II⁺ k(I, y), as k(x, I) K_II^(-1/2) has (RKHS section 10): the two differ by a
rotation. These are as many as K_II has rank, so that none depends on the others, and they cost m³/3 flops instead of an
eigendecomposition. Where I is the whole sample, ⟨f(x), f(y)⟩ = k(x, y) on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, contiguous, like, namespace, solve_triangular
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.config import require_free_memory
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel
from mercer.linalg import rp_cholesky
from mercer.operators import GramOperator, LowRankOperator
from mercer.operators.sections import KernelSections

_PIVOTS = 0  # seed of the factorisation, which changes the features by a rotation alone
_WIDE = 8  # bytes of an entry of the factor
_NEGATIVE = 64.0  # roots of a unit of rounding: what the length of features may be off by
_DOUBT = 4.0  # times the norm that is proved of what the factor leaves of a positive semi-definite matrix


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
    nodes : array of int of shape (r,)
        J, as rows of the sample.
    components : array of shape (r, d)
        Their points; for ``Precomputed()`` the kernel matrix between them.
    normalization : array of shape (r, r)
        L_J⁻ᵀ.
    """

    def __init__(self, sections: KernelSections, lower: Array) -> None:
        xp = namespace(lower)
        self._sections = sections
        self.nodes, self.components = sections.nodes, sections.components
        identity = xp.eye(lower.shape[0], dtype=lower.dtype, device=lower.device)
        self.normalization = contiguous(solve_triangular(lower, identity).T)

    def transform(self, X: Any) -> Array:
        """The features of points X, n × r; for ``Precomputed()`` from their kernel values with the whole sample."""
        return self._sections.against(X) @ self.normalization


class SampleFeatures(NamedTuple):
    """The features of a sample, n × r, the map that gives them to new points, k(x, x), and what they leave of it."""

    values: Array
    map: KernelFeatures
    diagonal: Array
    left_out: Array


def sample_features(kernel: Kernel, X: Any, landmarks: Array | None) -> SampleFeatures:
    """The features of the rows of X made from the rows ``landmarks``, or from all where these are None.

    Cost: n r kernel evaluations and n r² flops; memory n r numbers, and as many again while all rows are factored.
    """
    refuse_indefinite(kernel)
    gram = GramOperator(kernel, X)
    if landmarks is None:
        return _of_all(kernel, X, gram)
    chosen = KernelSections(kernel, X, landmarks)
    size = int(chosen.nodes.shape[0])
    what = f"The features of {X.shape[0]} points on {size} landmarks take"
    require_free_memory(_itemsize(gram) * X.shape[0] * size, what, "choose fewer landmarks", MemoryError)
    factor = _factored(chosen.gram(), size)
    made = KernelFeatures(KernelSections(kernel, X, chosen.nodes[factor.landmarks]), _lower(factor))
    values = made.transform(X)
    return SampleFeatures(values, made, *_left_out(gram, values))


def refuse_indefinite(kernel: Kernel) -> None:
    """Refuse a kernel that is known to have no space of features."""
    if kernel.properties.positive_definite is False:
        raise ValueError(_sentence(kernel))


def _of_all(kernel: Kernel, X: Any, gram: GramOperator) -> SampleFeatures:
    n = int(X.shape[0])
    column = (_WIDE + _itemsize(gram)) * n
    width = min(n, max(1, get_config().memory_bytes // column))
    factor = _factored(gram, width)
    if width < n and factor.factor.shape[1] == width:
        what = f"{n} points span more than {width} dimensions of the kernel's space: their features take more than"
        require_free_memory(column * (width + 1), what, "pass landmarks", MemoryError)
    made = KernelFeatures(KernelSections(kernel, X, factor.landmarks), _lower(factor))
    values = contiguous(cast(factor.factor, gram.dtype))
    return SampleFeatures(values, made, *_left_out(gram, values))


def _factored(gram: GramOperator, width: int) -> LowRankOperator:
    """A factorisation to rounding, which is refused where the matrix cannot be one of inner products."""
    with np.errstate(over="ignore", invalid="ignore"):  # growth of an indefinite matrix, named below
        factor = rp_cholesky(gram, width, random_state=_PIVOTS)
        if gram.kernel.properties.positive_definite is not True:
            _refuse_indefinite_matrix(gram, factor)
    if not factor.factor.shape[1]:
        raise ValueError("The kernel vanishes on every point that features are made from: choose others.")
    return factor


def _refuse_indefinite_matrix(gram: GramOperator, factor: LowRankOperator) -> None:
    """Refuse a matrix that is not what its factor leaves, E = K - FFᵀ, and FFᵀ: if K ≽ 0, then ‖Ev‖ ≤ tr(E) ‖v‖.

    One random v shows an E that is larger, all but surely.
    """
    v = like(np.random.default_rng(_PIVOTS).standard_normal(gram.shape[0]), gram.reference)
    xp = namespace(v)
    off = as_double(gram @ v) - as_double(factor @ v)
    trace = float(xp.sum(xp.clip(as_double(factor.residual_diagonal), 0.0, None)))
    largest = float(xp.max(xp.abs(as_double(gram.diagonal()))))
    noise = _NEGATIVE * gram.shape[0] * unit_of(gram.dtype) * largest
    if not float(xp.linalg.vector_norm(off)) <= _DOUBT * (trace + noise) * float(xp.linalg.vector_norm(v)):
        raise ValueError(_sentence(gram.kernel))


def _left_out(gram: GramOperator, values: Array) -> tuple[Array, Array]:
    """k(x, x) of every point, and an upper bound of k(x, x) - ‖f(x)‖², with what rounding can have done to both.

    A negative one beyond that is the work of a kernel that is not positive semi-definite.
    """
    xp, error = namespace(values), gram.entry_error
    diagonal = as_double(gram.diagonal())

    def squares(rows: slice) -> Array:
        wide = as_double(values[rows])
        return xp.sum(wide * wide, axis=1)

    lengths = xp.concat(run_chunks_of(values, squares, row_chunks(values.shape[0], TALL_ROWS)))
    left = diagonal - lengths
    slack = _NEGATIVE * unit_of(gram.dtype) ** 0.5 * float(xp.max(xp.abs(diagonal)))
    if not bool((left >= -slack).all()):
        raise ValueError(_sentence(gram.kernel))
    rounding = (error.relative + error.scaled) * xp.abs(diagonal) + error.absolute
    return diagonal, xp.clip(left, 0.0, None) + rounding + gamma(values.shape[1] + 4, UNIT) * lengths


def _lower(factor: LowRankOperator) -> Array:
    """The rows of the pivots, without the rounding above their diagonal."""
    return namespace(factor.factor).tril(factor.factor[factor.landmarks])


def _itemsize(gram: GramOperator) -> int:
    return int(np.finfo("float32" if "32" in str(gram.dtype) else "float64").bits // 8)


def _sentence(kernel: Kernel) -> str:
    return (
        f"{kernel!r} is not positive semi-definite on these points, so that they have no features in its space: choose "
        "another kernel, such as Gaussian()."
    )
