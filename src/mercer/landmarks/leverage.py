"""Landmarks drawn by approximate ridge leverage scores (Musco, Musco 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, cholesky, eigvalsh, like, namespace, solve_triangular, to_numpy
from mercer.backends.chunks import row_chunks
from mercer.backends.threads import run_chunks_of, single_threaded_blas
from mercer.linalg.tall import square_row_lengths
from mercer.operators import GramOperator

_ROWS = 1024
_OVERSAMPLING = 4  # landmarks a dimension: of 1, 2, 4 and 4 log m, it left out the least of the trace
_LEAST_SCORE = 1e-12
_LEAST_RIDGE = 1e-10  # of the trace, so that a matrix of low rank has a ridge too


def leverage(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """Rows drawn without repetition by their ridge leverage scores, which recursive halving approximates.

    The score of a row is lᵢ = wᵢ [K(WK + λ)⁻¹]ᵢᵢ, the part of it that the others do not explain at the ridge λ, the
    mean of the eigenvalues beyond the rank that so many landmarks can serve. A sample of half of the rows, weighed
    by its own scores, gives the scores of all: n·m kernel evaluations and n·m² flops in sum, memory 1024·m a thread.
    """
    n = weights.size
    order = rng.permutation(n)
    sizes = [n]
    while sizes[-1] > 2 * n_landmarks:
        sizes.append(-(-sizes[-1] // 2))
    sample = order[: min(n_landmarks, sizes[-1])]
    scale = np.sqrt(n * weights[sample])
    scores = np.ones(n)
    for size in reversed(sizes):
        rows = order[:size]
        with single_threaded_blas():  # chunks of rows go to our threads
            scores, rank = _scores(gram, rows, n * weights[rows], sample, scale, n_landmarks)
        if size < n:
            often = min(math.log(max(rank, 3)), n_landmarks / scores.sum())  # so that the sample is of m rows at most
            chances = np.minimum(1.0, often * scores)
            drawn = rng.random(size) < chances
            drawn[np.argmax(chances)] = True
            sample, scale = rows[drawn], np.sqrt(n * weights[rows[drawn]] / chances[drawn])
    return order[rng.choice(n, n_landmarks, replace=False, p=scores / scores.sum())]


def _scores(
    gram: GramOperator, rows: Array, weights: Array, sample: Array, scale: Array, n_landmarks: int
) -> tuple[Array, int]:
    """Scores of some rows from a scaled sample, and the rank for which the ridge is made.

    lᵢ = wᵢ (kᵢᵢ - kᵢₛ S (S K_ss S + λ)⁻¹ S kₛᵢ) / λ with S the diagonal matrix of the scale.
    """
    rank = max(2, n_landmarks // _OVERSAMPLING)
    chosen, factor = like(sample, gram.reference), like(scale, gram.reference)
    inner = factor[:, None] * as_double(gram.block(chosen, chosen)) * factor
    xp, trace = namespace(inner), float(inner.diagonal().sum())
    leading = eigvalsh(inner, max(0, inner.shape[0] - rank))
    ridge = max(trace - float(leading.sum()), _LEAST_RIDGE * trace, np.finfo(float).tiny) / rank
    identity = xp.eye(inner.shape[0], dtype=inner.dtype, device=inner.device)
    try:
        inverse = solve_triangular(cholesky(inner + ridge * identity), identity).T
    except np.linalg.LinAlgError:
        raise ValueError(
            f"strategy='leverage' needs a positive semi-definite kernel, which {gram.kernel!r} is not on these points: "
            "choose another strategy."
        ) from None
    diagonal = as_double(gram.diagonal())

    def unexplained(part: slice) -> Any:
        which = like(rows[part], gram.reference)
        explained = (as_double(gram.block(which, chosen)) * factor) @ inverse
        return to_numpy(diagonal[which] - square_row_lengths(explained))

    left = np.concatenate(run_chunks_of(inner, unexplained, row_chunks(rows.size, _ROWS)))
    return np.clip(weights * left / ridge, _LEAST_SCORE, 1.0), rank
