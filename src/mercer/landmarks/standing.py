"""How some rows stand for all of them: with which weights, and what they leave out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace
from mercer.backends.chunks import row_chunks, source_rows
from mercer.backends.rounding import unit_of
from mercer.backends.threads import run_chunks_of, single_threaded_blas
from mercer.kernels import Kernel
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator, LinearMap

_ROWS = 1024
_ROUNDING = 100.0  # times √u: directions of eigenvalues down to u are inverted


class Standing(NamedTuple):
    """The weights of landmarks, and the share of the trace that the completion from them leaves out.

    The share is None where the matrix shows that it is not positive semi-definite: a completion then bounds nothing.
    """

    weights: Array
    trace_left_out: float | None


def standing(gram: LinearMap, landmarks: Array, weights: Array) -> Standing:
    """Weights and loss of some landmarks of a weighted sample, in one pass over its rows.

    Every row gives its weight to the landmark that is nearest in the feature space, the one of the largest
    2k(x, y) - k(y, y); rows that are as near to several share it out. The trace left out is that of W^½(K - K̃)W^½ over
    that of W^½KW^½, K̃ = K[:, I] K[I, I]⁺ K[I, :].

    Cost: n·m kernel evaluations and n·m² flops; memory: 1024·m a thread.
    """
    xp, chosen = namespace(gram.reference), like(landmarks, gram.reference)
    mass, own = like(weights, gram.reference, dtype=xp.float64), as_double(gram.diagonal())
    among = _Among(as_double(gram.block(chosen, chosen)), own[chosen], unit_of(gram.dtype))
    return among.standing([among.of(gram, chosen, own, mass)])


def standing_of_rows(kernel: Kernel, rows: Any, landmarks: Array, weights: Array) -> Standing:
    """As :func:`standing`, of rows that come a block at a time: one pass over them, each block beside the landmarks."""
    points = rows[landmarks]
    gram = GramOperator(kernel, points)
    among = _Among(as_double(gram.to_dense()), as_double(gram.diagonal()), unit_of(gram.dtype))
    everyone, found = np.arange(landmarks.size), []
    for where, block in rows.blocks(source_rows(3 * rows.shape[1])):
        own = as_double(GramOperator(kernel, block).diagonal())
        found.append(among.of(GramOperator(kernel, block, points), everyone, own, weights[where]))
    return among.standing(found)


class _Part(NamedTuple):
    """What some rows say: masses of the landmarks, trace left out, trace, largest entry, least entry left out."""

    masses: Array
    left: float
    trace: float
    most: float
    least: float


class _Among:
    """The landmarks: their own block of the matrix, and how rows are explained by it."""

    def __init__(self, block: Array, own: Array, unit: float) -> None:
        xp = namespace(block)
        with single_threaded_blas():
            values, vectors = positive_eigenpairs(block, 2 * unit)
        self._whiten, self._rounding, self._own = vectors / xp.sqrt(values), _ROUNDING * unit**0.5, own
        total = float(xp.sum(values))  # above the trace where a part of the spectrum is negative
        self._definite = total - float(xp.sum(block.diagonal())) <= self._rounding * total

    def of(self, gram: LinearMap, chosen: Array, own: Array, mass: Array) -> _Part:
        """What the rows of a matrix say, of which some columns are the landmarks."""
        xp = namespace(gram.reference)

        def look(rows: slice) -> tuple[Array, float, float]:
            affinities = as_double(gram.block(rows, chosen))
            explained = affinities @ self._whiten
            left = own[rows] - xp.sum(explained * explained, axis=1)
            near = 2 * affinities - self._own
            nearest = xp.astype(near == xp.max(near, axis=1)[:, None], xp.float64)
            shares = mass[rows] / xp.sum(nearest, axis=1)
            return shares @ nearest, float(mass[rows] @ xp.clip(left, 0.0, None)), float(xp.min(left))

        with single_threaded_blas(), np.errstate(invalid="ignore"):
            found = run_chunks_of(gram.reference, look, row_chunks(gram.shape[0], _ROWS))
        masses, left, least = zip(*found, strict=True)
        return _Part(sum(masses), sum(left), float(mass @ own), float(xp.max(xp.abs(own))), min(least))

    def standing(self, parts: list[_Part]) -> Standing:
        """What all rows say together."""
        masses, left, traces, most, least = zip(*parts, strict=True)
        trace = float(sum(traces))
        definite = self._definite and trace >= 0 and min(least) >= -self._rounding * max(most)
        left_out = sum(left) / trace if trace > 0 else 0.0
        return Standing(sum(masses), min(left_out, 1.0) if definite else None)
