"""The direction in which a stationary point of too low a rank is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from mercer.backends.arrays import Array, as_double, is_tensor, like, namespace
from mercer.backends.rounding import TINY
from mercer.linalg.lanczos import BlockLanczos
from mercer.linalg.tall import first_axis
from mercer.problems import Elliptope
from mercer.solvers.elliptope.method import Iterate

_COLUMNS, _DEPTH = 20, 40
_ANGLE = 0.3


def raised(problem: Elliptope, at: Iterate, rng: np.random.Generator) -> Array:
    """H with one more column, turned a little towards the direction in which the objective grows most."""
    direction = escape_direction(problem, at.H, at.G, rng)
    reach = float(abs(direction).max())
    wider = namespace(at.H).concat([at.H, (_ANGLE / reach * direction)[:, None]], axis=1)
    return problem.project(wider, first_axis(wider.shape[1], at.H))


def escape_direction(problem: Elliptope, H: Array, G: Array, rng: np.random.Generator) -> Array:
    """About the vector v of largest vᵀ(J - Diag z)v / vᵀDiag(z)v outside the span of H, by a few Lanczos steps.

    At a stationary point, a positive value means that turning the rows of H towards v in a new dimension ascends. The
    steps are ARPACK's on NumPy arrays, with restarts, and our own on tensors.
    """
    z, xp = as_double(problem.multipliers(H, G)), namespace(H)
    largest = float(abs(z).max()) if problem.size else 0.0
    root = xp.sqrt(xp.clip(z, max(1e-3 * largest, TINY), None))
    Q, _ = xp.linalg.qr(root[:, None] * H)

    def multiply(V: Array) -> Array:
        W = V - Q @ (Q.T @ V)
        W = as_double(problem.curvature(W / root[:, None])) / root[:, None]
        return W - Q @ (Q.T @ W)

    leading = _leading_by_lanczos if is_tensor(H) else _leading_by_arpack
    direction = leading(multiply, Q, rng) / root
    return direction if bool((direction != 0).any()) else like(rng.standard_normal(problem.size), H)


def _leading_by_arpack(multiply: Callable[[Array], Array], Q: Array, rng: np.random.Generator) -> Array:
    """About the leading eigenvector, by ARPACK; where that fails, after a few power steps."""
    n = Q.shape[0]
    map_ = LinearOperator((n, n), matvec=lambda v: multiply(np.reshape(v, (-1, 1)))[:, 0], dtype=np.float64)
    start = rng.standard_normal(n)
    try:
        return eigsh(map_, k=1, which="LA", v0=start, ncv=min(_COLUMNS, n), maxiter=4, tol=1e-2)[1][:, 0]
    except ArpackError:  # no convergence, or nothing outside the span of H
        for _ in range(4):
            start = map_.matvec(start)
        return start


def _leading_by_lanczos(multiply: Callable[[Array], Array], Q: Array, rng: np.random.Generator) -> Array:
    """About the leading eigenvector, from one Krylov space; zero where there is nothing outside the span of Q."""
    space = BlockLanczos(multiply, Q, rng)
    space.extend(_DEPTH)
    return space.ritz_pairs(1)[1][:, 0] if space.n_columns else namespace(Q).zeros_like(Q[:, 0])
