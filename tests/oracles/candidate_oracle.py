"""The game on candidate pairs as a conic programme, from kernel matrices alone."""

import numpy as np


def conic_value(gram, pair_gram, targets, shares, loss, *, radius, regularization, threshold=1.0):
    """max over μ and b = μp of the tangents' bound, the dual that the library never solves: no prices, no f.

    Perspectives of the losses' conjugates are written out for each loss.
    """
    import cvxpy as cp

    n = len(shares)
    mu, b = cp.Variable(n, nonneg=True), cp.Variable(n)
    root, pair_root = (factor(matrix) for matrix in (gram, pair_gram))
    constraints = [cp.sum(mu) == 1, cp.norm(pair_root.T @ (mu - shares)) <= radius]
    if radius == 0:
        constraints = [mu == shares]
    q = -cp.multiply(targets, b)
    if loss in ("squared", "huber"):
        gain = q - 0.25 * cp.hstack([cp.quad_over_lin(b[j], mu[j]) for j in range(n)])
        constraints += [cp.abs(b) <= 2 * threshold * mu] if loss == "huber" else []
    elif loss == "absolute":
        gain = q
        constraints += [cp.abs(b) <= mu]
    else:
        constraints += [q >= 0, q <= mu]
        gain = q if loss == "hinge" else -cp.rel_entr(q, mu) - cp.rel_entr(mu - q, mu)
    value = cp.sum(gain) - cp.sum_squares(root.T @ b) / (4 * regularization)
    problem = cp.Problem(cp.Maximize(value), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value


def factor(matrix):
    """F with F Fᵀ the matrix, cut at rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))
