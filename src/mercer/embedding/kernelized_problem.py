"""From points, weights and a kernel to the kernelised programme: copies made one, the matrix formed, λ and d chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, distinct_rows, is_tensor, like, to_numpy
from mercer.backends.config import require_free_memory
from mercer.backends.rounding import UNIT, EntryError
from mercer.certificates.kernelized import KernelizedProof
from mercer.kernels import Kernel, Precomputed
from mercer.linalg.eigen import largest_of
from mercer.operators import GramOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.problems.kernelized import KernelizedProgramme, SingularKernelError, kernelized_bytes
from mercer.support import Support
from mercer.validation import normalised, positive_number

_SMALL = 1e-40
AUTO_SHARE = 0.1  # of the squared largest eigenvalue: directions with a third of that eigenvalue are worth their norm


class Carriers(NamedTuple):
    """The different points that carry the programme.

    Attributes
    ----------
    support : Support
        Which rows of X they are, and with which weights.
    place : array of shape (n,) or None
        Of a programme on all rows, which of the points every row of X is; None where some rows take no part.
    """

    support: Support
    place: Array | None


def without_any_copies(support: Support, X: Any, kernel: Kernel) -> Carriers:
    """One of each set of equal rows, with the sum of their weights: K would be singular with two of them."""
    n = int(X.shape[0])
    if isinstance(kernel, Precomputed):
        return Carriers(support, np.arange(n) if support.indices is None else None)
    rows = to_numpy(support.points(X, kernel))
    first, place = distinct_rows(rows)
    if first.size < 2:
        raise DegenerateKernelError("All points are equal: there is nothing to embed.")
    everywhere = place if support.indices is None else None
    if first.size == rows.shape[0]:
        return Carriers(support, everywhere)
    weights = np.bincount(place, None if support.weights is None else to_numpy(support.weights)).astype(np.float64)
    indices = first if support.indices is None else to_numpy(support.indices)[first]
    chosen = Support(*(like(part, X) if is_tensor(X) else part for part in (indices, weights)))
    return Carriers(chosen, everywhere)


def pose(
    kernel: Kernel, X: Any, support: Support, prescribed: Array | None, regularization: Any, nugget: float
) -> KernelizedProgramme:
    """The programme of the points of a support; ``prescribed`` is d at these points, None for k(x, x).

    Raises
    ------
    ValueError
        If the kernel is not positive semi-definite, or the matrices do not fit the memory limit.
    """
    points = support.points(X, kernel)
    m = int(points.shape[0])
    if kernel.properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive definite: the kernelised programme needs a Hilbert space.")
    require_free_memory(
        kernelized_bytes(m),
        f"A kernelised programme on {m} points needs",
        f"pass fewer landmarks, such as landmarks={max(m // 4, 2)}",
    )
    matrix = _dense(kernel, points)
    error = GramOperator(kernel, points).entry_error
    own = np.diagonal(matrix).copy()
    off = 1.1 * (error.doubled().relative + error.doubled().scaled) * own + error.doubled().absolute
    d, d_error = (own, off) if prescribed is None else (prescribed, np.zeros(m))
    _refuse_sizes(own, d)
    if nugget > 0:
        matrix[np.diag_indices(m)] += nugget
        error = error.beside(EntryError(0.0, 2 * UNIT))
    shares = normalised(None if support.weights is None else to_numpy(support.scaled), m)
    programme = KernelizedProgramme(matrix, shares, d, 1.0, error, d_error)
    return replace(programme, regularization=strength(programme, regularization))


def _refuse_sizes(own: Array, d: Array) -> None:
    """Refuse values whose products leave the range of double precision."""
    for what, values in (("k(x, x)", own), ("diagonal", d)):
        least, most = float(values.min()), float(values.max())
        if not _SMALL < least <= most < 1 / _SMALL:
            raise ValueError(f"{what} lies between {least:.3g} and {most:.3g}: bring it to a size near one.")


def _dense(kernel: Kernel, points: Any) -> Array:
    matrix = np.array(to_numpy(as_double(kernel(points))), np.float64)
    if not np.all(np.diagonal(matrix) > 0):
        raise DegenerateKernelError(f"k(x, x) is not positive at every point under {kernel!r}: leave such points out.")
    return np.asarray((matrix + matrix.T) / 2)


def strength(programme: KernelizedProgramme, regularization: Any) -> float:
    """λ as it was given, or a tenth of σ², σ the largest eigenvalue of P^½K̄P^½.

    For a direction of eigenvalue σ in the Hilbert space 𝔹 gains σ² and loses λ for every unit of trace, so that λ draws
    the line between directions that are worth their norm and others.
    """
    if not isinstance(regularization, str):
        given = positive_number(regularization, "regularization")
        if not _SMALL**2 < given < _SMALL**-2:
            raise ValueError(f"regularization={given:.3g} is out of range: bring the kernel to a size near one.")
        return given
    root = np.sqrt(programme.shares)
    top = largest_of(programme.centred / (root[:, None] * root))
    found = AUTO_SHARE * max(top, 0.0) ** 2
    if not found > 0:
        raise DegenerateKernelError("All points look alike under the kernel: choose a smaller bandwidth.")
    return found


def prescribed_at(diagonal: Any, X: Any, rows: Any, support: Support) -> Array | None:
    """D at the points of a support, from a function of points, an array with an entry for every row of X, or None."""
    if diagonal is None:
        return None
    if callable(diagonal):
        values = np.asarray(to_numpy(diagonal(rows)), np.float64)
        if values.shape != (int(rows.shape[0]),):
            raise ValueError(f"diagonal gave an array of shape {values.shape} for {rows.shape[0]} points: one each.")
    else:
        values = np.asarray(to_numpy(diagonal), np.float64)
        if values.shape != (int(X.shape[0]),):
            raise ValueError(f"diagonal has shape {values.shape} where X has {X.shape[0]} rows: give one number each.")
        values = values if support.indices is None else values[to_numpy(support.indices)]
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("diagonal must be positive and finite at every point: leave points where it vanishes out.")
    return values


def proved(programme: KernelizedProgramme, kernel: Kernel) -> KernelizedProof:
    """What a certificate of the programme needs of K, or a sentence where K is singular for all that is known."""
    try:
        _ = programme.factor
        return KernelizedProof(programme)
    except (SingularKernelError, ArithmeticError):
        raise SingularKernelError(
            f"The kernel matrix of these {programme.size} points under {kernel!r} cannot be told from a singular one "
            "in double precision: pass fewer landmarks, a kernel that is less smooth or of a shorter length, or a "
            "nugget such as 1e-8."
        ) from None
