"""Small robust regressions, and what a conic solver makes of them."""

import numpy as np

from mercer.kernels.integrals.squared_loss import PairSupport
from mercer.robust.formulation import Terms
from mercer.robust.game import Game
from mercer.robust.pairs import Pairs, make_pairs
from mercer.robust.relaxation import Relaxation

SIGMA, TAU = 1.0, 0.8


def small_pairs(seed, *, n=14, m=6, d=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    weights = rng.uniform(0.5, 1.5, n)
    return Pairs(X, y, weights / weights.sum(), PairSupport(X[:m], y[:m], SIGMA, TAU), given=weights)


def small_game(seed, *, radius=0.2, regularization=1e-2, keep_sample=True, truncation=1e-6, chosen=None, **sizes):
    pairs = small_pairs(seed, **sizes)._replace(chosen=None if chosen is None else np.array(chosen))
    return Game(pairs, Terms(radius, regularization, keep_sample, truncation))


def small_relaxation(seed, *, radius=0.3, regularization=1e-2, **sizes):
    return Relaxation(small_pairs(seed, **sizes), Terms(radius, regularization))


def conic_value(game):
    """max over (C, a) of the least ridge objective, as a semi-definite programme with a matrix fraction."""
    import cvxpy as cp

    s, l = game.order, game.n_functions
    C = cp.Variable((s, s), symmetric=True)
    a = cp.Variable(nonneg=True)
    units = np.eye(l)
    zero = game.loss_matrix(np.zeros(l))
    slopes = game.loss_derivatives(np.zeros(l))[1]  # -2R
    H = sum_curvature(game, C, cp) + a * game.sample.curvature + game.regularization * units
    r = cp.hstack([-0.5 * cp.sum(cp.multiply(slope, C)) for slope in slopes]) + a * game.sample.slope
    embedded = cp.hstack([cp.sum(cp.multiply(A, C)) for A in game.embeddings])
    constraints = [
        C >> 0,
        cp.trace(C) + a == 1,
        cp.norm(embedded - (1 - a) * game.goal) <= game.radius,
        *([] if game.keeps_sample else [a == 0]),
    ]
    value = cp.sum(cp.multiply(zero, C)) + a * game.sample.constant - cp.matrix_frac(r, H)
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


def upper_bound_on_a_grid(model, X, y):
    """What the model's function risks at most by the model's prices, plus the penalty: one input, no closed form.

    Integrals are sums over a grid, where no product of small and large coefficients is formed before the functions
    have values: with coefficients of 1e3 this keeps twelve digits where matrices of closed forms keep four.
    """
    from scipy.linalg import eigh

    sigma, tau = float(model.kernel_.sigma), model.target_sigma_
    inputs, targets = model.support_[:, :-1], model.support_[:, -1]
    x = np.linspace(inputs.min() - 5 * sigma, inputs.max() + 5 * sigma, 201)
    t = np.linspace(targets.min() - 5 * tau, targets.max() + 5 * tau, 201)
    kx, kt = (np.exp(-((a[:, None] - b) ** 2) / c**2) for a, b, c in ((x, inputs[:, 0], sigma), (t, targets, tau)))
    pairs = make_pairs(X, y, np.full(len(y), 1 / len(y)), model.support_, sigma, tau)
    sections = (kx[:, None, :] * kt[None, :, :]).reshape(-1, targets.size)
    loss = ((kx @ model.dual_coef_)[:, None] - t).ravel() ** 2 - sections @ model.price_coef_
    e = sections @ Game(pairs, Terms(model.radius, model.regularization)).ball.basis
    top = eigh((e.T * loss) @ e, e.T @ e, eigvals_only=True)[-1]
    k = np.exp(-((X - inputs.T) ** 2) / sigma**2)
    prices = np.mean((k * np.exp(-((y[:, None] - targets) ** 2) / tau**2)) @ model.price_coef_)
    risk = np.mean((k @ model.dual_coef_ - y) ** 2)
    gram = np.exp(-((inputs - inputs.T) ** 2) / sigma**2)
    norm = model.price_coef_ @ (gram * np.exp(-((targets[:, None] - targets) ** 2) / tau**2)) @ model.price_coef_
    penalty = model.regularization * model.dual_coef_ @ gram @ model.dual_coef_
    return max(top, risk - prices) + prices + model.radius * np.sqrt(norm) + penalty


def conic_value_on_a_grid(X, y, weights, support, model):
    """The value of the whole game, one input, from sums over a grid of pairs and a conic solver: no closed form."""
    import cvxpy as cp

    sigma, tau = float(model.kernel_.sigma), model.target_sigma_
    xi, eta = support[:, :1], support[:, 1]
    m = eta.size

    def inputs(x):
        return np.exp(-((x[:, None] - xi[:, 0]) ** 2) / sigma**2)

    def targets(t):
        return np.exp(-((t[:, None] - eta) ** 2) / tau**2)

    x, t = np.linspace(xi.min() - 6, xi.max() + 6, 161), np.linspace(eta.min() - 5, eta.max() + 5, 161)
    cell = (x[1] - x[0]) * (t[1] - t[0])
    sections = (inputs(x)[:, None] * targets(t)).reshape(-1, m)
    own = sections[:, model.adversary_support_]  # those that densities are made of
    r = own.shape[1]
    e = np.sqrt(cell) * own @ np.linalg.inv(np.linalg.cholesky(cell * own.T @ own)).T
    functions = np.linalg.inv(np.linalg.cholesky(inputs(xi[:, 0]))).T
    whitening = np.linalg.inv(np.linalg.cholesky(inputs(xi[:, 0]) * targets(eta))).T
    u, loss_y = np.repeat(inputs(x) @ functions, t.size, axis=0), np.tile(t, x.size)
    squares = np.einsum("gp,gq->gpq", e, e).reshape(-1, r * r)  # e eᵀ, a row for each pair of the grid
    C, a = cp.Variable((r, r), PSD=True), cp.Variable(nonneg=True)
    flat = cp.vec(C, order="C")
    at_sample = inputs(X[:, 0]) @ functions
    sample = at_sample.T @ (weights[:, None] * at_sample)
    curvature = [[(u[:, j] * u[:, k] @ squares) @ flat for k in range(m)] for j in range(m)]
    H = cp.bmat(curvature) + a * sample + model.regularization * np.eye(m)
    slope = ((u.T * loss_y) @ squares) @ flat + a * (at_sample.T @ (weights * y))
    value = (loss_y**2 @ squares) @ flat + a * float(weights @ y**2) - cp.matrix_frac(slope, (H + H.T) / 2)
    goal = whitening.T @ ((inputs(X[:, 0]) * targets(y)).T @ weights)
    away = ((sections @ whitening).T @ squares) @ flat - (1 - a) * goal
    ball = [cp.trace(C) + a == 1, cp.norm(away) <= model.radius, *([] if model.keep_sample else [a == 0])]
    problem = cp.Problem(cp.Maximize(value), ball)
    problem.solve(solver="CLARABEL")
    return problem.value
