"""The game of a robust regression: integrals, bounds, solver."""

import numpy as np
import pytest
from robust_oracle import SIGMA, TAU, conic_value, precise_game, small_game, small_pairs

from mercer.backends.balls import ball
from mercer.certificates.game import certify_saddle_point, response_bound, risk_bound
from mercer.kernels.integrals.squared_loss import SquaredLossIntegrals, packed, unpacked
from mercer.problems.robust_regression import Adversary
from mercer.robust.game import function_basis, make_relaxed
from mercer.solvers.game.newton import minimise_by_newton
from mercer.solvers.game.saddle_point import solve_saddle_point
from mercer.solvers.solution import Status


def solved(game, tol=1e-8, **options):
    found = solve_saddle_point(game, game.bounds, tol=tol, **options)
    return found, certified(game, found.beta, found.prices, found.adversary)


def certified(game, *found):
    return certify_saddle_point(game, game.precise, *found)


def random_adversary(game, rng, rank=2):
    factor = rng.normal(size=(game.order, rank))
    return game.admissible(factor @ factor.T, float(rng.uniform(0, 3) * np.sum(factor**2)))


# --- integrals ----------------------------------------------------------------------------------------------------


def test_packed_vectors_have_the_inner_products_of_their_matrices():
    rng = np.random.default_rng(0)
    A, B = (M + M.transpose(0, 2, 1) for M in rng.normal(size=(2, 3, 5, 5)))
    np.testing.assert_allclose(packed(A) @ packed(B).T, np.einsum("aij,bij->ab", A, B), rtol=1e-13)
    np.testing.assert_allclose(unpacked(packed(A)), A, rtol=1e-15)


def test_the_loss_integrals_are_those_of_a_fine_grid():
    """The trapezoidal rule is exact to rounding for Gaussians that vanish at both ends."""
    rng = np.random.default_rng(1)
    inputs, targets = rng.normal(size=(4, 1)), rng.normal(size=4)
    losses = SquaredLossIntegrals(inputs, targets, SIGMA, TAU, np.eye(4), np.eye(4))
    x, y = np.linspace(-9, 9, 721), np.linspace(-9, 9, 721)
    kx = np.exp(-((x[:, None] - inputs[:, 0]) ** 2) / SIGMA**2)
    ky = np.exp(-((y[:, None] - targets) ** 2) / TAU**2)
    alpha = rng.normal(size=4)
    residual = (kx @ alpha)[:, None] - y
    cell = (x[1] - x[0]) * (y[1] - y[0])
    sections = kx[:, None, :] * ky[None, :, :]
    expected = cell * np.einsum("xy,xyp,xyq->pq", residual**2, sections, sections, optimize=True)
    expected /= np.sqrt(np.pi * SIGMA**2 / 2) * np.sqrt(np.pi * TAU**2 / 2)
    found = unpacked(alpha @ np.tensordot(alpha, losses.quadratic, 1) - 2 * alpha @ losses.linear + losses.constant)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_the_loss_integrals_in_three_dimensions_by_monte_carlo():
    """p_pp is a Gaussian around a support point, so its loss is a mean over draws."""
    rng = np.random.default_rng(2)
    inputs, targets, alpha = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    losses = SquaredLossIntegrals(inputs, targets, SIGMA, TAU, np.eye(3), np.eye(3))
    found = unpacked(alpha @ np.tensordot(alpha, losses.quadratic, 1) - 2 * alpha @ losses.linear + losses.constant)
    for p in range(3):
        x = inputs[p] + SIGMA / 2 * rng.normal(size=(400_000, 3))
        y = targets[p] + TAU / 2 * rng.normal(size=400_000)
        f = np.exp(-np.sum((x[:, None] - inputs) ** 2, axis=2) / SIGMA**2) @ alpha
        draws = (f - y) ** 2
        assert abs(found[p, p] - draws.mean()) < 5 * draws.std() / np.sqrt(400_000)


def test_derivatives_are_those_of_differences():
    _, game = small_game(3)
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
    _, game = small_game(seed)
    _, certificate = solved(game)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        adversary = random_adversary(game, rng)
        assert np.linalg.norm(game.displacement(adversary)) <= game.radius * (1 + 1e-9)
        assert np.trace(adversary.matrix) + adversary.share == pytest.approx(1, abs=1e-12)
        assert game.best_response(adversary)[1] <= certificate.upper
        beta, prices = rng.normal(size=game.n_functions), rng.normal(size=game.goal.size)
        risk = game.worst_case(beta, prices)
        assert risk + game.regularization * beta @ beta >= certificate.lower
        loss = np.sum(game.loss_matrix(beta) * adversary.matrix) + adversary.share * game.sample_loss(beta)
        assert loss <= risk * (1 + 1e-12)


@pytest.mark.parametrize(
    ("seed", "radius", "sample", "d"),
    [
        (0, 0.2, True, 1),
        (1, 0.05, True, 1),
        (2, 0.6, True, 2),
        (3, 0.4, False, 1),
        (4, 1.4, True, 1),
        (5, 0.1, True, 3),
    ],
)
def test_the_value_is_that_of_a_conic_solver(seed, radius, sample, d):
    pytest.importorskip("cvxpy")
    _, game = small_game(seed, radius=radius, sample=sample, m=5, d=d)
    _, certificate = solved(game)
    assert certificate.holds(1e-8)
    assert conic_value(game) == pytest.approx(certificate.upper, rel=2e-6)


@pytest.mark.parametrize("sample", [True, False])
def test_the_answer_is_a_saddle_point(sample):
    """The learner answers the adversary, and the adversary pays the prices where it has mass."""
    _, game = small_game(6, radius=0.25, sample=sample)
    found, certificate = solved(game, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert certificate.holds(1e-9)
    adversary = game.admissible(*found.adversary)
    answer, value = game.best_response(adversary)
    np.testing.assert_allclose(answer, found.beta, atol=2e-4)
    assert value == pytest.approx(certificate.lower, rel=1e-9)
    priced = game.loss_matrix(found.beta) - game.priced(found.prices)
    top = np.linalg.eigvalsh(priced)[-1]
    paid = np.sum(priced * adversary.matrix)
    assert paid == pytest.approx(top * np.trace(adversary.matrix), abs=1e-6)
    assert np.linalg.norm(game.displacement(adversary)) == pytest.approx(game.radius, rel=1e-4)


def test_a_spoilt_answer_is_found_out():
    _, game = small_game(7)
    found, certificate = solved(game)
    worse = certified(game, found.beta + 0.1, found.prices, found.adversary)
    assert worse.relative_gap > 100 * certificate.relative_gap
    worse = certified(game, found.beta, 0 * found.prices, found.adversary)
    assert worse.upper > certificate.upper * 1.01
    tilted = Adversary(np.eye(game.order), found.adversary.share)
    assert certified(game, found.beta, found.prices, tilted).lower < certificate.lower * 0.999


def test_what_is_not_positive_is_cut_off():
    """A certificate counts no distribution that is none: mass 6 where the loss is large, -5 where it is small."""
    _, game = small_game(8, radius=1.4)
    found, certificate = solved(game)
    vectors = np.linalg.eigh(game.loss_matrix(found.beta))[1]
    tilted = 6 * np.outer(vectors[:, -2], vectors[:, -2]) - 5 * np.outer(vectors[:, 0], vectors[:, 0])
    assert game.best_response(Adversary(tilted, 0.0))[1] > certificate.upper
    judged = certified(game, found.beta, found.prices, Adversary(tilted, -1.0))
    assert judged.lower < 0.999 * certificate.upper


def test_a_callback_stops_and_history_narrows():
    _, game = small_game(9)
    seen = []
    found, _ = solved(game, callback=lambda line: seen.append(line) or len(seen) == 3)
    assert found.status is Status.STOPPED
    assert len(seen) == 3
    found, _ = solved(game)
    widths = [line.objective - line.lower for line in found.history]
    assert np.all(np.diff(widths) <= 0)
    assert solved(game, max_iter=5)[0].status is Status.MAX_ITER


# --- extended precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3])
def test_the_proved_bounds_are_those_of_double_precision(d):
    """On a support that is far apart, where double precision is enough."""
    _, U, game, _ = precise_game(10, m=5, d=d)
    rng = np.random.default_rng(d)
    beta, prices = rng.normal(size=game.n_functions), rng.normal(size=game.goal.size)
    assert float(game.precise.squared_norm(ball(U @ beta)).hi) == pytest.approx(beta @ beta, rel=1e-9)
    assert risk_bound(game, game.precise, beta, prices) == pytest.approx(game.worst_case(beta, prices), rel=1e-8)
    fair = game.admissible(np.eye(game.order), 1.0)
    assert response_bound(game, game.precise, fair) == pytest.approx(game.best_response(fair)[1], rel=1e-8)


def test_integrals_in_extended_precision_are_the_same():
    pairs = small_pairs(13)
    rng = np.random.default_rng(13)
    arguments = (
        pairs.support_inputs,
        pairs.support_targets,
        SIGMA,
        TAU,
        rng.normal(size=(6, 4)),
        rng.normal(size=(6, 5)),
    )
    one, other = (SquaredLossIntegrals(*arguments, dtype) for dtype in (np.float64, np.longdouble))
    for name in ("constant", "linear", "quadratic"):
        values = getattr(other, name)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, getattr(one, name), rtol=1e-12, atol=1e-13)


# --- the relaxation -----------------------------------------------------------------------------------------------


def relaxed(seed, radius=0.3, regularization=1e-2):
    pairs = small_pairs(seed, d=3)  # far enough apart for formulas of the fourth degree to keep their digits
    U, features = function_basis(pairs)
    return pairs, U, make_relaxed(pairs, U, features, radius=radius, regularization=regularization)


def test_the_norm_of_a_square_is_the_sum_over_four_sections():
    pairs, U, problem = relaxed(0)
    beta = np.random.default_rng(0).normal(size=U.shape[1])
    alpha, points = U @ beta, pairs.support_inputs
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


def test_newton_finds_what_a_general_method_finds():
    from scipy.optimize import minimize

    _, _, problem = relaxed(3)
    found = minimise_by_newton(problem, problem.start(), tol=1e-14)
    assert found.status is Status.CONVERGED
    assert np.all(np.diff(found.history) < 0)
    other = minimize(problem.value, problem.start(), jac=problem.gradient, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found.x, other.x, atol=1e-5)
    assert minimise_by_newton(problem, problem.start() + 5, tol=1e-14, max_iter=1).status is Status.MAX_ITER
