"""How some rows stand for all of them: with which weights, and what they leave out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import unit_of
from mercer.backends.threads import run_chunks_of, single_threaded_blas
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import LinearMap

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
    block = as_double(gram.block(chosen, chosen))
    with single_threaded_blas():
        values, vectors = positive_eigenpairs(block, 2 * unit_of(gram.dtype))
    whiten, rounding = vectors / xp.sqrt(values), _ROUNDING * unit_of(gram.dtype) ** 0.5
    total = float(xp.sum(values))
    definite = total - float(xp.sum(block.diagonal())) <= rounding * total  # else a part of the spectrum is negative

    def look(rows: slice) -> tuple[Array, float, float]:
        affinities = as_double(gram.block(rows, chosen))
        explained = affinities @ whiten
        left = own[rows] - xp.sum(explained * explained, axis=1)
        near = 2 * affinities - own[chosen]
        nearest = xp.astype(near == xp.max(near, axis=1)[:, None], xp.float64)
        shares = mass[rows] / xp.sum(nearest, axis=1)
        return shares @ nearest, float(mass[rows] @ xp.clip(left, 0.0, None)), float(xp.min(left))

    with single_threaded_blas(), np.errstate(invalid="ignore"):
        found = run_chunks_of(gram.reference, look, row_chunks(gram.shape[0], _ROWS))
    masses, left, least = zip(*found, strict=True)
    trace = float(mass @ own)
    definite = definite and trace >= 0 and min(least) >= -rounding * float(xp.max(xp.abs(own)))
    left_out = sum(left) / trace if trace > 0 else 0.0
    return Standing(sum(masses), min(left_out, 1.0) if definite else None)
