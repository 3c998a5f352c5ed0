"""The Hilbert-Schmidt independence criterion of two variables (RKHS (115)-(117)), in one pass over pairs of rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.collections import takes_dask
from mercer.backends.threads import watch
from mercer.dependence.centred_gram import CentredGram, inner_product
from mercer.dependence.variables import require_pairs, variable
from mercer.kernels.checks import checked_weights
from mercer.validation import one_of, warn_if_not

Estimator = Literal["biased", "unbiased"]
_MOST = 1e150  # rows that weights may count, whose square is a number
ALIKE = "dependent variables can have an HSIC of zero, so that a small value does not say they are independent."


@takes_dask
def hsic(
    X: Any,
    Y: Any,
    x_kernel: Any = None,
    y_kernel: Any = None,
    *,
    estimator: Estimator = "biased",
    sample_weight: Any = None,
    progress: Callable[[float], None] | None = None,
) -> float:
    """How much two variables depend on each other: the squared Hilbert-Schmidt norm of their cross-covariance.

    With kernels k of X and l of Y, Cov(f(x), g(y)) = ⟨f, C g⟩ for all f and g of their spaces, and HSIC = ‖C‖²
    (RKHS (115), (116)). It is the squared maximum mean discrepancy, for the kernel k·l, of the joint law and the
    product of its margins (Remark 10), so it vanishes for independent variables, and only for them where both kernels
    are characteristic (Lemma 15, which leaves that condition out).

    ``"biased"``
        tr(K H L H)/(n - 1)² with H = I - 11ᵀ/n (RKHS (117)): never negative, too large by O(1/n).
    ``"unbiased"``
        Without the terms in which a row meets itself (Song et al. 2012, (4)): right on average, may be negative. It
        takes four rows or more.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (n, e), vectors of numbers or texts, or data frames
        The observations, row by row in pairs.
    x_kernel, y_kernel : Kernel, optional
        k and l; if left out, the Gaussian with the median bandwidth for numbers and :class:`mercer.Mixed` for what has
        categories. ``Precomputed()`` takes the n × n kernel matrix instead of the points. One that is known not to be
        characteristic is named in a warning.
    estimator : {"biased", "unbiased"}, default="biased"
        See above.
    sample_weight : array of shape (n,), optional
        How often each row counts, with a sum above one; of the biased estimator.
    progress : callable, optional
        Called with the fraction done, from any thread.

    Returns
    -------
    float
        The estimate.

    Notes
    -----
    Cost: 2n² evaluations of each kernel, in tiles. Memory: linear in n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import hsic
    >>> x = np.linspace(-1, 1, 50)
    >>> round(hsic(x, x**2), 4), round(hsic(x, np.cos(40 * x)), 4)
    (0.053, 0.0004)
    """
    one_of("biased", "unbiased")(estimator, "estimator")
    weights = checked_counts(sample_weight, X, estimator)
    x = variable(X, x_kernel, "X", weights=weights)
    y = variable(Y, y_kernel, "Y", weights=weights)
    n = require_pairs(x, y, least_rows(estimator))
    for side in (x, y):
        if len(side.kernels) > 1:
            raise ValueError(f"{side.name.lower()}_kernel is a list: hsic takes one kernel, and hsic_test several.")
        warn_if_not("characteristic", side.kernels[0], ALIKE, f"{side.name.lower()}_kernel")
    with nullcontext() if progress is None else watch(progress):
        one, other = (
            CentredGram(side.kernels[0], side.points, weights, unbiased=estimator == "unbiased") for side in (x, y)
        )
        total = inner_product(one.weighed(weights), other)
    return total * scale(n, weights, estimator)


def least_rows(estimator: Estimator) -> int:
    """The fewest rows that an estimator takes."""
    return 4 if estimator == "unbiased" else 2


def scale(n: int, weights: Array | None, estimator: Estimator) -> float:
    """What the sum over pairs is multiplied by."""
    if estimator == "unbiased":
        return 1 / (n * (n - 3))
    count = n if weights is None else float(weights.sum())
    return 1 / (count - 1) ** 2


def checked_counts(sample_weight: Any, X: Any, estimator: Estimator) -> Array | None:
    """How often each row counts."""
    if sample_weight is None:
        return None
    if estimator == "unbiased":
        raise ValueError('sample_weight belongs to estimator="biased": leave it out, or take that one.')
    given = to_numpy(sample_weight) if is_tensor(sample_weight) else sample_weight
    weights = checked_weights(given, len(X), "sample_weight")
    if weights.sum() <= 1:
        raise ValueError("sample_weight says how often each row counts: its sum must be more than one.")
    if weights.sum() > _MOST:
        raise ValueError(f"sample_weight says how often each row counts: its sum, above {_MOST:.0e}, counts no rows.")
    return weights
