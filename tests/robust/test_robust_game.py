"""The game of a robust regression and its relaxation: integrals, derivatives, bounds."""

import numpy as np
import pytest
from robust_oracle import SIGMA, TAU, small_game, small_pairs, small_relaxation

from mercer.backends.balls import ball
from mercer.certificates.game import certify_saddle_point, response_bound, risk_bound
from mercer.kernels.integrals.squared_loss import PairSupport, SquaredLossIntegrals
from mercer.problems.robust_regression import Adversary
from mercer.solvers.game.barrier import Barrier
from mercer.solvers.run import Goal, solve


def solved(game, tol=1e-8):
    point = solve(game.problem, Barrier(), goal=Goal(tol)).point
    return point, certified(game, point)


def certified(game, point):
    return certify_saddle_point(game.problem, game.enclosures, point)


def random_adversary(problem, rng, rank=2):
    factor = rng.normal(size=(problem.order, rank))
    return problem.admissible(Adversary(factor @ factor.T, float(rng.uniform(0, 3) * np.sum(factor**2))))


# --- integrals ----------------------------------------------------------------------------------------------------


def loss_matrix(losses, alpha):
    squares = alpha @ np.tensordot(alpha, losses.quadratic, 1)
    return losses.entries.unpack(squares - 2 * alpha @ losses.linear + losses.constant)


def test_the_loss_integrals_are_those_of_a_fine_grid():
    """The trapezoidal rule is exact to rounding for Gaussians that vanish at both ends."""
    rng = np.random.default_rng(1)
    inputs, targets = rng.normal(size=(4, 1)), rng.normal(size=4)
    losses = SquaredLossIntegrals(PairSupport(inputs, targets, SIGMA, TAU), np.eye(4), np.eye(4))
    x, y = np.linspace(-9, 9, 721), np.linspace(-9, 9, 721)
    kx = np.exp(-((x[:, None] - inputs[:, 0]) ** 2) / SIGMA**2)
    ky = np.exp(-((y[:, None] - targets) ** 2) / TAU**2)
    alpha = rng.normal(size=4)
    residual = (kx @ alpha)[:, None] - y
    cell = (x[1] - x[0]) * (y[1] - y[0])
    sections = kx[:, None, :] * ky[None, :, :]
    expected = cell * np.einsum("xy,xyp,xyq->pq", residual**2, sections, sections, optimize=True)
    expected /= np.sqrt(np.pi * SIGMA**2 / 2) * np.sqrt(np.pi * TAU**2 / 2)
    found = loss_matrix(losses, alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_the_loss_integrals_in_three_dimensions_by_monte_carlo():
    """p_pp is a Gaussian around a support point, so its loss is a mean over draws."""
    rng = np.random.default_rng(2)
    inputs, targets, alpha = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    losses = SquaredLossIntegrals(PairSupport(inputs, targets, SIGMA, TAU), np.eye(3), np.eye(3))
    found = loss_matrix(losses, alpha)
    for p in range(3):
        x = inputs[p] + SIGMA / 2 * rng.normal(size=(400_000, 3))
        y = targets[p] + TAU / 2 * rng.normal(size=400_000)
        f = np.exp(-np.sum((x[:, None] - inputs) ** 2, axis=2) / SIGMA**2) @ alpha
        draws = (f - y) ** 2
        assert abs(found[p, p] - draws.mean()) < 5 * draws.std() / np.sqrt(400_000)


def test_derivatives_are_those_of_differences():
    game = small_game(3).problem
    rng = np.random.default_rng(3)
    beta, step, C = rng.normal(size=game.n_functions), rng.normal(size=game.n_functions), np.eye(game.order)
    N, slopes = game.loss_derivatives(beta)
    np.testing.assert_allclose(N, game.loss_matrix(beta), rtol=1e-12, atol=1e-12)
    ahead, behind = game.loss_matrix(beta + step), game.loss_matrix(beta - step)
    np.testing.assert_allclose(np.tensordot(step, slopes, 1), (ahead - behind) / 2, rtol=1e-7, atol=1e-7)
    curvature = step @ game.loss_curvature(C) @ step
    np.testing.assert_allclose(curvature, np.trace(ahead + behind - 2 * N) / 2, rtol=1e-6)


# --- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_every_bound_is_one(seed):
    """Any learner with any prices is above, any admissible distribution below."""
    formulation = small_game(seed)
    game, (_, certificate) = formulation.problem, solved(formulation)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        adversary = random_adversary(game, rng)
        assert np.linalg.norm(game.displacement(adversary)) <= game.radius * (1 + 1e-9)
        assert np.trace(adversary.matrix) + adversary.share == pytest.approx(1, abs=1e-12)
        assert game.best_response(adversary)[1] <= certificate.upper
        beta, prices = rng.normal(size=game.n_functions), rng.normal(size=game.goal.size)
        risk = game.worst_case(beta, prices)
        assert risk + game.regularization * beta @ beta >= certificate.lower
        loss = np.sum(game.loss_matrix(beta) * adversary.matrix) + adversary.share * game.sample.value(beta)
        assert loss <= risk * (1 + 1e-12)


def test_a_spoilt_answer_is_found_out():
    game = small_game(7)
    found, certificate = solved(game)
    worse = certified(game, found._replace(beta=found.beta + 0.1))
    assert worse.relative_gap > 100 * certificate.relative_gap
    worse = certified(game, found._replace(prices=0 * found.prices))
    assert worse.upper > certificate.upper * 1.01
    tilted = Adversary(np.eye(game.problem.order), found.adversary.share)
    assert certified(game, found._replace(adversary=tilted)).lower < certificate.lower * 0.999


def test_what_is_not_positive_is_cut_off():
    """A certificate counts no distribution that is none: mass 6 where the loss is large, -5 where it is small."""
    game = small_game(8, radius=1.4)
    found, certificate = solved(game)
    vectors = np.linalg.eigh(game.problem.loss_matrix(found.beta))[1]
    tilted = 6 * np.outer(vectors[:, -2], vectors[:, -2]) - 5 * np.outer(vectors[:, 0], vectors[:, 0])
    assert game.problem.best_response(Adversary(tilted, 0.0))[1] > certificate.upper
    judged = certified(game, found._replace(adversary=Adversary(tilted, -1.0)))
    assert judged.lower < 0.999 * certificate.upper


# --- extended precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3])
def test_the_proved_bounds_are_those_of_double_precision(d):
    """On a support that is far apart, where double precision is enough."""
    formulation = small_game(10, m=5, d=d)
    game, precise = formulation.problem, formulation.enclosures
    rng = np.random.default_rng(d)
    beta, prices = rng.normal(size=game.n_functions), rng.normal(size=game.goal.size)
    alpha = ball(formulation.functions @ beta)
    assert float(precise.squared_norm(alpha).hi) == pytest.approx(beta @ beta, rel=1e-9)
    assert risk_bound(game, precise, beta, prices) == pytest.approx(game.worst_case(beta, prices), rel=1e-8)
    fair = game.admissible(Adversary(np.eye(game.order), 1.0))
    assert response_bound(game, precise, fair) == pytest.approx(game.best_response(fair)[1], rel=1e-8)


def test_integrals_in_extended_precision_are_the_same():
    rng = np.random.default_rng(13)
    arguments = small_pairs(13).support, rng.normal(size=(6, 4)), rng.normal(size=(6, 5))
    one, other = (SquaredLossIntegrals(*arguments, dtype) for dtype in (np.float64, np.longdouble))
    for name in ("constant", "linear", "quadratic"):
        values = getattr(other, name)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, getattr(one, name), rtol=1e-12, atol=1e-13)


# --- the relaxation -----------------------------------------------------------------------------------------------


def relaxed(seed):
    """On inputs that are far enough apart for formulas of the fourth degree to keep their digits."""
    relaxation = small_relaxation(seed, d=3)
    return relaxation.pairs, relaxation.functions, relaxation.problem


def test_the_norm_of_a_square_is_the_sum_over_four_sections():
    pairs, U, problem = relaxed(0)
    beta = np.random.default_rng(0).normal(size=U.shape[1])
    alpha, points = U @ beta, pairs.support.inputs
    m = len(points)
    a, b = (index.ravel() for index in np.indices((m, m)))
    middle = (points[a] + points[b]) / 2
    weights = alpha[a] * alpha[b] * np.exp(-np.sum((points[a] - points[b]) ** 2, axis=1) / (2 * SIGMA**2))
    gram = np.exp(-2 * np.sum((middle[:, None] - middle) ** 2, axis=2) / SIGMA**2)  # bandwidth σ/√2
    np.testing.assert_allclose(problem.square_norm(beta) ** 2, weights @ gram @ weights, rtol=1e-8)
    x = np.random.default_rng(1).normal(size=(7, 3))
    f = np.exp(-np.sum((x[:, None] - points) ** 2, axis=2) / SIGMA**2) @ alpha
    as_sections = np.exp(-2 * np.sum((x[:, None] - middle) ** 2, axis=2) / SIGMA**2) @ weights
    np.testing.assert_allclose(as_sections, f**2, rtol=1e-8, atol=1e-12)  # they do represent f²


def test_derivatives_of_the_relaxed_objective():
    _, U, problem = relaxed(1)
    rng = np.random.default_rng(1)
    beta, step = rng.normal(size=(2, U.shape[1]))
    h = 1e-5
    slope = (problem.value(beta + h * step) - problem.value(beta - h * step)) / (2 * h)
    assert problem.gradient(beta) @ step == pytest.approx(slope, rel=1e-6)
    bend = (problem.gradient(beta + h * step) - problem.gradient(beta - h * step)) / (2 * h)
    np.testing.assert_allclose(problem.hessian(beta) @ step, bend, rtol=1e-5, atol=1e-6)


def test_the_relaxed_objective_is_strongly_convex():
    _, U, problem = relaxed(2)
    rng = np.random.default_rng(2)
    for _ in range(30):
        one, other = rng.normal(size=(2, U.shape[1])) * rng.uniform(0.1, 3, 2)[:, None]
        middle = problem.value((one + other) / 2)
        bend = problem.regularization * np.sum((one - other) ** 2) / 4
        assert middle <= (problem.value(one) + problem.value(other)) / 2 - bend + 1e-9
