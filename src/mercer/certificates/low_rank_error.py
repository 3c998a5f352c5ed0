"""How far a low-rank factor can be from the kernel matrix that it stands for: a bound by the trace of the residual.

For a psd matrix K and *any* matrices S and C of shape (n, k),

    N = (I - C Sᵀ) K (I - S Cᵀ) = K - C Yᵀ - Y Cᵀ + C SᵀY Cᵀ  ≽  0        with Y = KS.

Let F be the factor, L any k × k matrix, R = Y - F Lᵀ and T = C L - F. Then

    K - FFᵀ = N + C Rᵀ + R Cᵀ - T Tᵀ - C ((SᵀF - L)Lᵀ + SᵀR) Cᵀ.

With S the vectors that the factor was built from, L about SᵀF and C about F L⁻¹, all terms but N are at the level of
rounding, whoever made the factor. If their nuclear norms sum to η, then ‖K - FFᵀ‖_* ≤ tr N + η ≤ tr(K - FFᵀ) + 2η, and
the operator and the Frobenius norm are not larger.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, inverse, like, namespace, norm
from mercer.backends.rounding import UNIT, exact_sum, gamma, unit_of
from mercer.linalg.tall import inner_products, inner_products_depth, square_row_lengths, tall_product
from mercer.operators import GramOperator, LowRankOperator

_MORE = 1.01  # for products of errors, and for the rounding of these bounds
_STEPS = 16  # roundings of a product beside those of its sums


class LowRankError(NamedTuple):
    """A proved bound on K - FFᵀ, K the matrix of the kernel's values.

    Attributes
    ----------
    trace : float
        The trace of K - FFᵀ as computed.
    rounding : float
        What is added to it.
    trace_of_kernel : float
        The trace of K as computed, to compare with.
    """

    trace: float
    rounding: float
    trace_of_kernel: float

    @property
    def bound(self) -> float:
        """A number that the operator, the Frobenius and the nuclear norm of K - FFᵀ do not exceed."""
        return max(self.trace, 0.0) + self.rounding


def bound_low_rank_error(gram: GramOperator, low: LowRankOperator, *, below_zero: float | None = None) -> LowRankError:
    """Bound every norm of K - FFᵀ by its trace, rounding counted.

    Parameters
    ----------
    gram : GramOperator
        K, symmetric and without weights, of a kernel that is known to be positive semi-definite.
    low : LowRankOperator
        FFᵀ as :func:`mercer.factorize`, :func:`mercer.rp_cholesky`, :func:`mercer.greedy_cholesky` and
        :func:`mercer.nystrom` return it: with the ``landmarks`` or the ``basis`` it was built from, in as many columns.
    below_zero : float, optional
        How far below zero the spectrum of K reaches at most, where that is known otherwise, as of a matrix that is
        given; its rounding is then taken to be contained in it.

    Notes
    -----
    Cost: the columns of the landmarks, or k products with K, again, and 3 n k² flops; memory: 4 n k.
    """
    shift = _shift(gram, low, below_zero)
    error = gram.entry_error.doubled()
    own, F = as_double(gram.diagonal()), as_double(low.factor)
    part, total = error.relative + error.scaled, float(namespace(own).sum(own)) * _MORE
    S, Y, stray = _images(gram, low, part, error.absolute, total)
    eta = _leftovers(F, S, Y, stray, shift) if F.shape[1] else shift * gram.shape[0]
    n, k, squares = gram.shape[0], int(F.shape[1]), square_row_lengths(F)
    entries, size = part * total + n * error.absolute, float(namespace(squares).sum(squares)) * _MORE
    trace = exact_sum(own) - exact_sum(squares)
    rounding = 2 * eta + entries + gamma(k + 4, UNIT) * (size + total) + UNIT * total
    crude = total + entries + size + 2 * shift * n  # of K and of FFᵀ apart, where C is of no use
    return LowRankError(trace, _MORE * min(rounding, crude), exact_sum(own))


def _shift(gram: GramOperator, low: LowRankOperator, below_zero: float | None) -> float:
    if not gram.symmetric or not low.symmetric or gram.shape != low.shape:
        raise ValueError("The map and its factor must be symmetric and of the same shape.")
    built_from = low.basis.shape[1] if low.basis is not None else 0 if low.landmarks is None else len(low.landmarks)
    if built_from < low.rank:
        raise ValueError("The factor does not say what it was built from: give it landmarks or a basis.")
    if below_zero is not None:
        return float(below_zero)
    if not gram.kernel.properties.positive_definite:
        raise ValueError(
            f"{gram.kernel!r} is not known to be positive semi-definite, so that the trace bounds nothing: say by "
            "below_zero how far the spectrum reaches below zero."
        )
    return 0.0


def _images(
    gram: GramOperator, low: LowRankOperator, part: float, absolute: float, total: float
) -> tuple[Array, Array, float]:
    """S, Y = KS as computed, and a bound on the Frobenius norm of the error of Y.

    An entry of K errs by a part of √(kᵢᵢkⱼⱼ), so that Y errs by that part of √tr K times the length of Σⱼ √kⱼⱼ |Sⱼ|.
    """
    n, xp = gram.shape[0], namespace(gram.reference)
    if low.basis is None:
        index = like(low.landmarks, gram.reference)
        m, own = int(index.shape[0]), as_double(gram.diagonal())[index]
        S = xp.zeros((n, m), dtype=xp.float64, device=gram.reference.device)
        S[index, xp.arange(m, device=S.device)] = 1.0
        reach = math.sqrt(max(float(xp.sum(own)), 0.0))
        stray = part * math.sqrt(total) * reach + absolute * math.sqrt(n * m)
        return S, as_double(gram.block(slice(None), index)), stray
    S = as_double(low.basis)
    unit = unit_of(gram.dtype)
    rounding = part + gamma(gram.product_depth + _STEPS, unit) + 2 * unit  # S and Y go through the arithmetic of K
    return S, as_double(gram @ S), _MORE * (rounding * total + absolute * n) * norm(S)


def _leftovers(F: Array, S: Array, Y: Array, stray: float, shift: float) -> float:
    """η: the nuclear norms of the terms beside N, and what a spectrum below zero leaves of N."""
    k = int(F.shape[1])
    L = inner_products(S, F)
    try:
        C = tall_product(F, inverse(L))
    except np.linalg.LinAlgError:
        return math.inf
    chain = gamma(int(L.shape[0]) + k + 2, UNIT)
    of_F, of_L, of_C, of_S = norm(F), norm(L), norm(C), norm(S)
    off = Y - tall_product(F, L.T)
    lost = chain * of_F * of_L + 2 * UNIT * norm(Y) + stray
    R = _MORE * norm(off) + lost
    T = _MORE * norm(tall_product(C, L) - F) + chain * of_C * of_L + UNIT * of_F
    summing = gamma(inner_products_depth(F), UNIT) * of_S
    middle = summing * of_F * of_L + _MORE * norm(inner_products(S, off)) + summing * norm(off) + of_S * lost
    beyond = shift * (math.sqrt(F.shape[0]) + of_C * of_S) ** 2
    eta = 2 * of_C * R + T**2 + of_C**2 * middle + beyond
    return _MORE * eta if math.isfinite(eta) else math.inf
