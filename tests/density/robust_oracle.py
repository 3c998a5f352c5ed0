"""Small robust regressions, and what a conic solver makes of them."""

import numpy as np

from mercer.density.robust_game import Pairs, function_basis, make_ball, make_game

SIGMA, TAU = 1.0, 0.8


def small_pairs(seed, *, n=14, m=6, d=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    weights = rng.uniform(0.5, 1.5, n)
    return Pairs(X, y, weights / weights.sum(), X[:m], y[:m], SIGMA, TAU)


def small_game(seed, *, radius=0.2, regularization=1e-2, sample=True, **sizes):
    pairs = small_pairs(seed, **sizes)
    U, features = function_basis(pairs)
    game = make_game(pairs, U, features, make_ball(pairs), radius=radius, regularization=regularization, sample=sample)
    return pairs, game


def conic_value(game):
    """max over (C, a) of the least ridge objective, as a semi-definite programme with a matrix fraction."""
    import cvxpy as cp

    s, l = game.order, game.n_functions
    C = cp.Variable((s, s), symmetric=True)
    a = cp.Variable(nonneg=True)
    units = np.eye(l)
    zero = game.loss_matrix(np.zeros(l))
    slopes = game.loss_derivatives(np.zeros(l))[1]  # -2R
    H = sum_curvature(game, C, cp) + a * game.sample_curvature + game.regularization * units
    r = cp.hstack([-0.5 * cp.sum(cp.multiply(slope, C)) for slope in slopes]) + a * game.sample_slope
    embedded = cp.hstack([cp.sum(cp.multiply(A, C)) for A in game.embeddings])
    constraints = [
        C >> 0,
        cp.trace(C) + a == 1,
        cp.norm(embedded - (1 - a) * game.goal) <= game.radius,
        *([] if game.keeps_sample else [a == 0]),
    ]
    value = cp.sum(cp.multiply(zero, C)) + a * game.sample_constant - cp.matrix_frac(r, H)
    problem = cp.Problem(cp.Maximize(value), constraints)
    problem.solve(solver="CLARABEL")  # to 1e-8
    return problem.value


def sum_curvature(game, C, cp):
    """∫ u uᵀ p_C as an affine function of C, from its values at unit matrices."""
    s, l = game.order, game.n_functions
    total = np.zeros((l, l))
    for i in range(s):
        for j in range(i, s):
            unit = np.zeros((s, s))
            unit[i, j] = unit[j, i] = 1.0
            total = total + game.loss_curvature(unit) * C[i, j]
    return 0.5 * (total + total.T)
