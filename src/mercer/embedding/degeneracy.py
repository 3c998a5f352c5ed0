"""Checks that the embeddings share: a kernel that says something of the data, and room for every point."""

from __future__ import annotations

from typing import Any

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, namespace
from mercer.kernels import Kernel, Precomputed
from mercer.operators import DiffusionOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.problems.elliptope import bytes_needed
from mercer.progress import warn_user
from mercer.validation import distinct_rows
from mercer.wording import size_in_words

_BANDWIDTHS = ("sigma", "length_scale", "n_neighbors", "gamma")  # names of parameters of kernels
_ISOLATED = 1e-12
_CONSTANT = 1e-12
_NEARLY_CONSTANT = 1e-8


class RankWarning(UserWarning):
    """More components were asked for than there are."""


def refuse_degenerate(operator: DiffusionOperator, kernel: Kernel, X: Any) -> None:
    """Name a kernel that is too narrow or too wide for the data, instead of embedding rounding noise."""
    if not isinstance(kernel, Precomputed) and (X[:1] == X).all():
        raise DegenerateKernelError("All points are equal: there is nothing to embed.")
    staying = operator.weights * operator.scale**2 * operator.gram.diagonal() / operator.degrees
    if (staying * _copies(operator, kernel, X) > 1 - _ISOLATED).all():
        raise DegenerateKernelError(
            f"Every point is isolated under {kernel!r}, so every embedding is optimal: "
            f"{_advice(kernel, 'choose a larger bandwidth')}."
        )
    if not (staying > 0).any():  # affinities without loops, as of a graph: of them k(x, x) says nothing
        return
    lost = _lost(operator, kernel)
    diagonal = operator.diagonal()
    if lost.any() and (lost.all() or (diagonal > 0).any()):
        return  # an indefinite matrix: small loops do not make points alike
    signal = float((diagonal / namespace(staying).where(staying > 0, staying, 1.0)).max())
    if signal <= _CONSTANT:
        raise DegenerateKernelError(
            f"All points look alike under {kernel!r}: what tells them apart is lost in rounding. "
            f"{_advice(kernel, 'Choose a smaller bandwidth')}."
        )
    if signal <= _NEARLY_CONSTANT:
        warn_user(
            f"All points look nearly alike under {kernel!r} (relative signal {signal:.0e}): the embedding has few "
            f"correct digits. {_advice(kernel, 'Choose a smaller bandwidth')}.",
        )


def _copies(operator: DiffusionOperator, kernel: Kernel, X: Any) -> Array:
    """How many times its own weight lies at the position of each point: 1 unless rows are repeated."""
    if isinstance(kernel, Precomputed):
        return operator.ones(operator.shape[0])
    _, place = distinct_rows(X)
    weights = as_double(operator.weights)
    return namespace(weights).bincount(place, weights=weights)[place] / weights


def _advice(kernel: Kernel, bandwidth: str) -> str:
    """What to do about a kernel, by the names of its bandwidths; affinities that are given have none."""
    if not isinstance(kernel, Precomputed):
        names = [name for name in kernel.get_params() if name.rpartition("__")[2] in _BANDWIDTHS]
        return f"{bandwidth} ({', '.join(names)})" if names else bandwidth
    return f"{'pass' if bandwidth[0].islower() else 'Pass'} other affinities, as of a kernel of another bandwidth"


def _lost(operator: DiffusionOperator, kernel: Kernel) -> Array:
    """Which points have k(x, x)/m(x) < m(x)/vol, beyond rounding; a psd kernel leaves none."""
    if kernel.properties.positive_definite:
        return operator.degrees < 0  # none: row sums are positive
    length = operator.weights * operator.scale**2 * operator.gram.diagonal() / operator.degrees
    return length < operator.stationary**2 * (1 - _NEARLY_CONSTANT)


def check_room(operator: DiffusionOperator, kernel: Kernel) -> None:
    """Name points to which an indefinite matrix gives no length: d(x) = k(x, x)/m(x) - m(x)/vol < 0."""
    lost = int(_lost(operator, kernel).sum())
    if lost == operator.shape[0]:
        raise DegenerateKernelError(
            f"No point has room under {kernel!r}: k(x, x)/m(x) is below m(x)/vol everywhere. "
            "Give the affinities a larger diagonal."
        )
    if lost:
        warn_user(
            f"{lost} of {operator.shape[0]} points have no room under {kernel!r}, for k(x, x)/m(x) is below m(x)/vol, "
            "which no psd kernel gives: they lie at the origin. Give the affinities a larger diagonal, or pass "
            "kernel=Gaussian() or another that is positive definite.",
        )


def check_dense(n: int, max_products: int | None) -> None:
    """Refuse an interior-point solve that does not fit, before any work is done."""
    needed, allowed = bytes_needed(n), get_config().memory_bytes
    if needed > allowed:
        raise ValueError(
            f"solver='interior-point' needs {size_in_words(needed)} for {n} points and the memory limit "
            f"allows {size_in_words(allowed)}: raise memory_limit, or use solver='auto'."
        )
    if max_products is not None and max_products < n:
        raise ValueError(
            f"solver='interior-point' forms {n} columns and max_products={max_products} allows fewer: raise "
            "max_products, or use solver='auto'."
        )


def pad_components(coordinates: Array, wanted: int, available: int) -> Array:
    """The first ``wanted`` columns; where there are fewer, zero columns, which is what they are."""
    if wanted <= coordinates.shape[1]:
        return coordinates[:, :wanted]
    warn_user(
        f"n_components={wanted} exceeds the number of dimensions, {available}: the other coordinates are zero. "
        "Lower n_components.",
        RankWarning,
    )
    return widened(coordinates, wanted)


def widened(values: Array, columns: int) -> Array:
    """The array with zero columns after its own, so many in all."""
    xp, missing = namespace(values), columns - values.shape[1]
    zeros = xp.zeros((values.shape[0], max(missing, 0)), dtype=values.dtype, device=values.device)
    return xp.concat([values, zeros], axis=1)
