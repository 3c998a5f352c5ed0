"""The squared-kernel discrepancy between two weighted samples (QUAD section 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from mercer.backends.arrays import dtype_name
from mercer.backends.threads import watch
from mercer.kernels.checks import in_one_unit
from mercer.operators.signed_measure import difference, energy
from mercer.validation import checked_kernel, require_points, resolved_kernel, two_samples


def squared_kernel_discrepancy(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    x_weights: Any = None,
    y_weights: Any = None,
    progress: Callable[[float], None] | None = None,
) -> float:
    """How far the integral operators of two weighted samples are apart: ‖T_μ - T_ν‖² in Hilbert-Schmidt norm.

    D(μ, ν) = ΣΣ ωᵢωⱼ k²(xᵢ, xⱼ) + ΣΣ vᵢvⱼ k²(yᵢ, yⱼ) - 2 ΣΣ ωᵢvⱼ k²(xᵢ, yⱼ), where μ = Σ ωᵢ δ(xᵢ), ν = Σ vⱼ δ(yⱼ)
    and T_μ f = Σ ωᵢ f(xᵢ) k(·, xᵢ) is an operator on the reproducing kernel Hilbert space of k (QUAD Definition 2.1).
    It is the squared maximum mean discrepancy of the kernel k², and twice the D(v) that
    :class:`mercer.problems.Discrepancy` minimises.

    Parameters
    ----------
    X : array of shape (n, d)
        The points of μ.
    Y : array of shape (m, d)
        The points of ν; they need not be among those of X.
    kernel : Kernel, optional
        k; the Gaussian with the median bandwidth if left out. What depends on the data is fixed from X and its weights:
        the function is symmetric in the two samples only for a kernel whose parameters are numbers.
    x_weights, y_weights : array or float, optional
        Weights that are not negative, and not all zero. They are used as they are, and need not sum to one. Left out,
        they are 1/n and 1/m.
    progress : callable, optional
        Called with the fraction done, from any thread.

    Returns
    -------
    float
        D(μ, ν) ≥ 0: zero if both samples hold the same points with the same weights, in whatever order.

    Notes
    -----
    The weights of equal points are added up first, those of Y with a minus sign, and points left without weight are
    dropped; then D = wᵀ S w for the Gram matrix S of k² on the points that remain. So what the samples have in common
    leaves no rounding error. What they have not does: the three sums cancel, and D is wrong by a few ε Σ|wᵢwⱼ|Sᵢⱼ, at
    most ε times the sum of the three terms, ε being the precision of the configuration. A result below that is noise
    around zero; a negative one is returned as 0.

    Samples may be tensors: the product runs in their library, on their device.

    Cost: (n + m)²/2 kernel evaluations in tiles. Memory: the points once more and a tile a thread, never n × m.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, squared_kernel_discrepancy
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> squared_kernel_discrepancy(X, X[::-1], Gaussian(sigma=1.0))
    0.0
    >>> round(squared_kernel_discrepancy(X, [[1.0]], Gaussian(sigma=1.0)), 6)
    0.546443
    """
    require_points(kernel, "The discrepancy evaluates the kernel at the points of both samples")
    kernel, X, Y = checked_kernel(kernel).read(X, Y)
    X, Y, of_X, of_Y = two_samples(X, Y, x_weights, y_weights)
    fixed = resolved_kernel(kernel, X, None if x_weights is None else of_X)
    of_X, of_Y, power = in_one_unit(of_X, of_Y)
    with nullcontext() if progress is None else watch(progress), np.errstate(over="ignore", invalid="ignore"):
        value = energy(fixed**2, *difference(X, of_X, Y, of_Y))
    if not np.isfinite(value):
        raise ValueError(
            f"The squares of {fixed!r} overflow in {dtype_name(X.dtype)}: divide the kernel by a constant."
        )
    with np.errstate(over="ignore", under="ignore"):
        value = float(np.ldexp(value, 2 * power))
    if not np.isfinite(value):
        raise ValueError("The discrepancy of weights as large as these overflows: divide them by a constant.")
    return value
