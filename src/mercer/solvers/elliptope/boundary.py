"""From a matrix X inside the elliptope to points of low rank near it, on its boundary."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, as_double, cast, like, namespace
from mercer.linalg.tall import first_axis
from mercer.problems import Elliptope

_FURTHER, _SWEEPS = 20, 6  # columns beyond the rank that is looked for, and products with them


def extreme_rank(n: int) -> int:
    """A rank at which there is an optimum (Barvinok 1995, Pataki 1998)."""
    return int(np.sqrt(2 * n)) + 1


def point_near(problem: Elliptope, X: Array, cut: float) -> Array:
    """A point H of low rank with H Hᵀ near X: the principal directions above this part of the trace, rising."""
    xp, s = namespace(X), as_double(problem.scale[problem.active])
    S = s[:, None] * X * s
    few = extreme_rank(problem.size) + _FURTHER
    whole = cut == 0 or s.shape[0] <= 4 * few or problem.split is not None
    values, vectors = xp.linalg.eigh(S) if whole else _leading(S, few)
    kept = values > (cut if problem.split is None else 0.0) * float(xp.sum(S.diagonal()))
    H = xp.zeros((problem.size, int(kept.sum())), dtype=xp.float64, device=X.device)
    H[problem.active] = vectors[:, kept] * xp.sqrt(values[kept])
    if problem.split is not None:  # each pair of halves parts in a dimension of its own there
        H[problem.active] /= s[:, None]
        return cast(problem.reduced(H, cut), problem.operator.dtype)
    return cast(problem.project(H, first_axis(H.shape[1], H)), problem.operator.dtype)


def leading_columns(problem: Elliptope, H: Array, rank: int) -> Array:
    """The point of the last columns of H, which are those of most weight, alone."""
    return problem.leading(H, rank)


def _leading(S: Array, count: int) -> tuple[Array, Array]:
    """About the largest eigenvalues of a positive definite matrix, rising, with their vectors: subspace iteration."""
    xp = namespace(S)
    Q = like(np.random.default_rng(0).standard_normal((len(S), count)), S)
    for _ in range(_SWEEPS):
        Q, _ = xp.linalg.qr(S @ Q)
    values, vectors = xp.linalg.eigh(Q.T @ (S @ Q))
    return values, Q @ vectors
