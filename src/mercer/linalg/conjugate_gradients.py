"""Conjugate gradients for several right-hand sides at once, each with its own steps, products shared."""

from __future__ import annotations

from collections.abc import Callable

from mercer.backends.arrays import Array, namespace
from mercer.progress import warn_user

Multiply = Callable[[Array], Array]


class ConjugateGradientWarning(UserWarning):
    """A linear system was not solved to its tolerance."""


def conjugate_gradients(
    multiply: Multiply, right: Array, *, precondition: Multiply, tolerance: float = 1e-10, max_products: int = 500
) -> Array:
    """Solve A X = B for a positive definite map, to residuals of ``tolerance`` times the norms of the columns of B.

    Parameters
    ----------
    multiply, precondition : callables
        V ↦ A V and V ↦ P V for n × r blocks, P positive definite and about the inverse of A.
    right : array of shape (n, r)
        B, in double precision.
    tolerance : float, default=1e-10
        Of the residuals, as the recurrence has them.
    max_products : int, default=500
        Products with A at most; a warning says if they do not suffice.

    Returns
    -------
    array of shape (n, r)
        X.

    Notes
    -----
    Columns that are done stay as they are, and products are made with the others alone.
    """
    xp = namespace(right)
    X, residual = xp.zeros_like(right), right + 0.0
    goal = tolerance * xp.linalg.vector_norm(right, axis=0)
    P = precondition(residual)
    direction, slope = P, xp.sum(residual * P, axis=0)
    for _ in range(max_products):
        active = xp.linalg.vector_norm(residual, axis=0) > goal
        if not bool(active.any()):
            return X
        D = direction[:, active]
        product = multiply(D)
        step = slope[active] / xp.sum(D * product, axis=0)
        X[:, active] += step * D
        residual[:, active] -= step * product
        P = precondition(residual[:, active])
        turned = xp.sum(residual[:, active] * P, axis=0)
        direction[:, active] = P + turned / slope[active] * D
        slope[active] = turned
    worst = float(xp.max(xp.linalg.vector_norm(residual, axis=0) / xp.linalg.vector_norm(right, axis=0)))
    if worst > tolerance:
        warn_user(
            f"{max_products} products solve a linear system to {worst:.0e} only: raise regularization, or pass "
            "landmarks.",
            ConjugateGradientWarning,
        )
    return X
