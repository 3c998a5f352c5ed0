"""Worst expectations in an MMD ball: optima, proofs on points and on boxes, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

import mercer
from mercer import Gaussian, Laplacian, Matern, MeanEmbedding, worst_case_expectation
from mercer.certificates.kernel_sums import KernelSum
from mercer.certificates.supremum import bound_supremum
from mercer.certificates.worst_case import BallAround, Values
from mercer.kernels import Sobolev
from mercer.robust.worst_case_function import KernelIntegrand, PlainIntegrand, feature_modulus

KERNEL = Gaussian(sigma=1.0)
GRID = np.linspace(-2, 2, 81)[:, None]


def gap(worst):
    return worst.certificate.upper - worst.certificate.lower


def conic_worst(kernel, points, shares, values, radius):
    """The largest expectation by a conic solver."""
    cvxpy = pytest.importorskip("cvxpy")
    a = cvxpy.Variable(points.shape[0], nonneg=True)
    levels, vectors = np.linalg.eigh(kernel(points))
    root = (vectors * np.sqrt(np.maximum(levels, 0))).T
    kept = [cvxpy.sum(a) == 1, cvxpy.norm(root @ (a - shares)) <= radius]
    return cvxpy.Problem(cvxpy.Maximize(values @ a), kept).solve(solver="CLARABEL")


@pytest.mark.parametrize(
    ("theta", "radius"), [(0.0, 0.5), (0.0, 1.2), (0.4, 1.18), (0.45, 1.27), (0.33, 1.0), (1.5, 0.7)]
)
def test_the_paper_s_adversary_is_that_of_a_conic_solver(theta, radius):
    returns = MeanEmbedding(KERNEL, [[theta]])
    worst = worst_case_expectation(returns, [[0.0]], radius, candidates=GRID, sense="min", tol=1e-6)
    shares = np.where(GRID[:, 0] == 0, 1.0, 0.0)
    expected = -conic_worst(KERNEL, GRID, shares, -KERNEL(GRID, [[theta]])[:, 0], radius)
    assert gap(worst) <= 1e-6
    assert worst.certificate.lower - 2e-7 <= expected <= worst.certificate.upper + 2e-7
    assert worst.weights.min() >= 0
    assert worst.weights.sum() == pytest.approx(1, abs=1e-14)
    assert worst.embedding.distance(MeanEmbedding(KERNEL, [[0.0]])) <= radius * (1 + 1e-9)
    assert worst.embedding([[theta]])[0] == pytest.approx(worst.value, abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.45])
def test_it_is_the_projection_of_a_relaxed_adversary(theta):
    """No distribution is nearer to φ(0) - τ φ(θ), τ one over the price of the ball: the angle at a projection."""
    returns, data = MeanEmbedding(KERNEL, [[theta]]), MeanEmbedding(KERNEL, [[0.0]])
    worst = worst_case_expectation(returns, [[0.0]], 1.0, candidates=GRID, sense="min", tol=1e-8)
    tau = worst.embedding.distance(data) / worst.dual.norm()
    rest = worst.embedding - (data - tau * returns)
    along = rest(GRID) - rest @ worst.embedding
    assert along.min() > -1e-5
    assert (worst.embedding - data + tau * worst.dual).norm() < 1e-4  # h is a multiple of w - v


def test_any_function_on_a_weighted_sample_is_that_of_a_conic_solver():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((30, 2)), rng.uniform(0.2, 1.0, 30)
    more, kernel = rng.uniform(-2, 2, (40, 2)), Matern(1.5, 1.0)

    def loss(x):
        return np.abs(x[:, 0]) + (x[:, 1] > 0.5)

    worst = worst_case_expectation(loss, X, 0.3, kernel=kernel, candidates=more, sample_weight=weights, tol=1e-6)
    points = worst.candidates
    shares = np.concatenate([weights / weights.sum(), np.zeros(40)])
    order = [int(np.flatnonzero(np.all(points == row, axis=1))[0]) for row in np.concatenate([X, more])]
    placed = np.zeros(70)
    placed[order] = shares
    expected = conic_worst(kernel, points, placed, loss(points), 0.3)
    assert worst.certificate.lower - 1e-6 <= expected <= worst.certificate.upper + 1e-6
    assert gap(worst) <= 1e-6 * np.ptp(loss(points)) * 1.01
    assert worst.covers == "points"
    repeated = worst_case_expectation(loss, np.repeat(X, 2, axis=0), 0.3, kernel=kernel, candidates=more, tol=1e-6)
    plain = worst_case_expectation(loss, X, 0.3, kernel=kernel, candidates=more, tol=1e-6)
    assert repeated.value == pytest.approx(plain.value, abs=1e-5)


def test_the_ball_grows_and_the_relaxation_is_worse():
    """E_sample ≤ over the sample's points ≤ over the box ≤ over the Hilbert ball, for every radius."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (20, 1))
    f = MeanEmbedding(KERNEL, [[-0.5], [0.8]], [1.0, -2.0])
    before = -np.inf
    for radius in (0.0, 0.05, 0.2, 0.6):
        on_sample = worst_case_expectation(f, X, radius)
        on_box = worst_case_expectation(f, X, radius, box=(-1.5, 1.5))
        relaxed = worst_case_expectation(f, X, radius, relaxation="rkhs")
        assert f(X).mean() - 1e-12 <= on_sample.certificate.upper
        assert on_sample.certificate.lower <= on_box.certificate.upper
        assert on_box.certificate.lower <= relaxed.certificate.upper
        assert relaxed.value == pytest.approx(f(X).mean() + radius * f.norm(), abs=1e-12)
        assert gap(relaxed) < 1e-12
        assert relaxed.embedding @ f == pytest.approx(relaxed.value, abs=1e-9)
        assert on_box.value >= before - 1e-4
        assert on_box.covers == "box"
        before = on_box.value
    nothing = worst_case_expectation(f, X, 0.0)
    assert nothing.value == pytest.approx(f(X).mean(), abs=1e-14)
    assert gap(nothing) < 1e-13


def test_a_bound_on_the_box_holds_for_distributions_that_the_search_did_not_see():
    """Points anywhere in the box, mixed with the sample as far as the ball allows, against the proved bound."""
    rng = np.random.default_rng(2)
    X, radius = rng.uniform(-1, 1, (8, 2)), 0.4

    def loss(x):
        return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])  # |∇f| ≤ 3

    worst = worst_case_expectation(loss, X, radius, kernel=KERNEL, box=(-1, 1), candidates=64, lipschitz=3.0, tol=2e-2)
    assert worst.covers == "box"
    assert gap(worst) <= 2e-2 * 2
    best = -np.inf
    for _ in range(300):
        more, tilt = rng.uniform(-1, 1, (3, 2)), rng.uniform(0, 8)
        shares = np.exp(tilt * loss(more))
        shares /= shares.sum()
        away = mercer.mmd(more, X, KERNEL, x_weights=shares, squared=False)
        part = min(1.0, radius / away)
        best = max(best, part * float(shares @ loss(more)) + (1 - part) * float(loss(X).mean()))
    assert best <= worst.certificate.upper


def test_without_a_constant_the_bound_is_of_the_candidates():
    """A peak between the candidates is not seen, and the answer says what it is about."""

    def peak(x):
        return np.exp(-((x[:, 0] - 0.05) ** 2) / 1e-4)

    seen = worst_case_expectation(peak, [[-1.0], [1.0]], 0.8, kernel=KERNEL, box=(-2, 2), candidates=41)
    assert seen.covers == "points"
    assert seen.certificate.upper < 0.1
    found = worst_case_expectation(
        peak, [[-1.0], [1.0]], 0.8, kernel=KERNEL, box=(-2, 2), candidates=41, lipschitz=90.0, tol=3e-2
    )
    assert found.covers == "box"
    assert found.certificate.lower > 0.5


def test_the_window_of_the_paper():
    """The player who knows distributions leaves θ = 0 for 1.18 ≤ ε ≤ 1.27, proved on the whole interval."""

    def least(theta, radius):
        returns = MeanEmbedding(KERNEL, [[theta]])
        return worst_case_expectation(returns, [[0.0]], radius, box=(-2, 2), sense="min").certificate

    for radius, moves in ((1.1, False), (1.22, True), (1.32, False)):
        stays = least(0.0, radius)
        others = [least(theta, radius) for theta in (0.42, 0.45)]
        if moves:
            assert max(other.lower for other in others) > stays.upper
        else:
            assert max(other.upper for other in others) < stays.lower


@pytest.mark.parametrize(
    "kernel", [Gaussian(sigma=0.7), Laplacian(sigma=0.9), Matern(0.5, 1.1), Matern(2.5, 0.8), Sobolev(2.0, 0.5)]
)
def test_the_modulus_bounds_distances_in_the_kernel_s_space(kernel):
    rng = np.random.default_rng(0)
    sides = 10.0 ** rng.uniform(-6, 0.5, (50, 2))
    corners = sides * rng.choice([-1.0, 1.0], sides.shape)
    apart = np.array([MeanEmbedding(kernel, [c]).distance(MeanEmbedding(kernel, [[0.0, 0.0]])) for c in corners])
    bound = feature_modulus(kernel, sides)
    assert np.all(apart <= bound)
    assert feature_modulus(Gaussian(sigma=1.0), np.full((1, 1), 1e-9))[0] >= np.sqrt(2) * 1e-9  # 1 - k rounds to zero
    assert np.all(bound <= 1.01 * apart + 1e-6)


def test_values_of_kernel_sums_keep_their_errors():
    """Against sums of twice the precision; cancelling coefficients show what is lost."""
    rng = np.random.default_rng(0)
    X, c = rng.standard_normal((40, 3)), 1e6 * rng.standard_normal(40)
    h = KernelSum(Gaussian(sigma=1.3), X, c)
    exact = np.exp(-(((X[:, None] - X[None]).astype(np.longdouble) ** 2).sum(axis=2)) / np.longdouble(1.3) ** 2)
    values, errors = h.values(X)
    true = exact @ c
    assert np.all(np.abs(values - true) <= errors)
    assert np.max(errors) < 1e-5
    square = h.squared_norm
    assert square.lower <= float(c @ true) <= square.upper
    assert h.norm_below <= np.sqrt(float(c @ true)) <= h.norm_above


def test_coefficients_that_are_not_exact_and_values_that_cancel_widen_a_norm():
    slipped = KernelSum(KERNEL, np.zeros((1, 1)), np.ones(1), np.full(1, 1e-3))
    assert slipped.squared_norm.upper >= 1.001**2
    assert slipped.squared_norm.lower <= 0.999**2
    assert slipped.values(np.zeros((1, 1)))[1][0] >= 1e-3
    X, c = np.array([[0.0], [1e-5]]), np.array([1e6, -1e6])  # values of 1e-4 from terms of 1e6
    apart = np.sqrt(2e12) * np.sqrt(-np.expm1(-1e-10))
    norm = KernelSum(KERNEL, X, c)
    assert norm.norm_below <= apart <= norm.norm_above
    assert norm.squared_norm.error > 1e-5


@pytest.mark.parametrize("kind", ["plain", "kernel"])
def test_growth_in_a_cell_counts_the_function_and_its_dual(kind):
    rng = np.random.default_rng(0)
    h = KernelSum(KERNEL, rng.uniform(-1, 1, (5, 2)), rng.standard_normal(5))
    f = KernelSum(KERNEL, rng.uniform(-1, 1, (4, 2)), rng.standard_normal(4))
    if kind == "kernel":
        integrand = KernelIntegrand(f)
    else:
        integrand = PlainIntegrand(lambda x: 2 * x[:, 0] + x[:, 1], KERNEL, -1.0, np.sqrt(5.0))
    growth = integrand.modulus(h)
    for _ in range(30):
        centre, sides = rng.uniform(-1, 1, (1, 2)), 10.0 ** rng.uniform(-3, 0, (1, 2))
        X = np.concatenate([centre, centre + sides * rng.uniform(-1, 1, (300, 2))])
        rest = integrand.values(X).numbers - h.values(X)[0]
        assert np.max(rest) <= rest[0] + growth(sides)[0]
    steepest = np.linalg.norm(h.coefficients) if kind == "plain" else 0.0
    assert growth(np.full((1, 2), 1e-2))[0] >= 1e-2 * (np.sqrt(10.0) if kind == "plain" else 0.0) + 1e-4 * steepest


def test_a_distribution_is_not_believed_to_be_in_the_ball():
    ball = BallAround(KERNEL, GRID, np.where(GRID[:, 0] == 0, 1.0, 0.0), 0.3)
    far = np.full(81, 1 / 81)
    inside, reached = ball.brought_inside(far)
    assert reached <= 0.3
    assert MeanEmbedding(KERNEL, GRID, inside).distance(MeanEmbedding(KERNEL, [[0.0]])) <= 0.3
    assert inside.sum() == pytest.approx(1, abs=1e-14)
    # with a radius that rounding alone exceeds, only the sample itself is left
    tiny = BallAround(KERNEL, GRID, ball.shares, 1e-20)
    assert tiny.brought_inside(far)[0] is tiny.shares


def test_any_dual_function_is_a_bound_and_errors_of_the_function_count():
    rng, shares = np.random.default_rng(0), np.full(81, 1 / 81)
    ball = BallAround(KERNEL, GRID, shares, 0.25)
    values = Values(np.sin(3 * GRID[:, 0]), np.zeros(81))
    best = worst_case_expectation(lambda x: np.sin(3 * x[:, 0]), GRID, 0.25, kernel=KERNEL, tol=1e-7)
    for _ in range(20):
        h = KernelSum(KERNEL, GRID, rng.standard_normal(81) * rng.uniform(0, 0.2))
        assert ball.bound(values, h) >= best.certificate.lower
    loose = Values(values.numbers, np.full(81, 0.1))
    zero = KernelSum(KERNEL, GRID, np.zeros(81))
    assert ball.bound(loose, zero) >= ball.bound(values, zero) + 0.1
    assert ball.expectation(loose, shares).lower <= ball.expectation(values, shares).lower - 0.1


def test_weights_of_many_equal_rows_are_added_without_rounding():
    """A hundred thousand tenths added one by one are off by 1e-12 of their sum, more than the proof allows for."""
    weights = np.append(np.full(100_000, 0.1), 1e4)
    points = np.append(np.zeros(100_000), 1.0)[:, None]
    worst = worst_case_expectation(lambda x: x[:, 0], points, 0.0, kernel=KERNEL, sample_weight=weights)
    true = float(Fraction(1e4) / (Fraction(1e4) + 100_000 * Fraction(0.1)))
    assert worst.certificate.lower <= true <= worst.certificate.upper
    assert gap(worst) < 1e-14


def test_at_radius_zero_a_kernel_must_tell_distributions_apart():
    """Those with the mean of the sample are all within zero of it under a linear kernel."""
    with pytest.raises(ValueError, match="characteristic"):
        worst_case_expectation(lambda x: x[:, 0] ** 2, GRID, 0.0, kernel=mercer.Linear())
    small = worst_case_expectation(lambda x: x[:, 0] ** 2, GRID, 1e-6, kernel=mercer.Linear())
    assert small.certificate.upper == pytest.approx(4.0, abs=1e-3)


def test_a_supremum_is_bounded_whenever_the_search_ends():
    def wave(x):
        return np.sin(7 * x[:, 0]) + np.cos(5 * x[:, 1] + 1)

    def growth(sides):
        return np.sqrt(74) * np.linalg.norm(sides, axis=1)

    corners = np.array([-1.0, -2.0]), np.array([2.0, 1.0])
    for most in (10, 1000, 100_000):
        found = bound_supremum(wave, growth, corners, tolerance=1e-2, most=most)
        assert found.bound >= 2.0
        assert np.all((found.points >= corners[0] - 1e-12) & (found.points <= corners[1] + 1e-12))
    assert found.bound <= 2.0 + 1e-2
    assert found.values.max() > 1.98


def test_many_points_take_a_stand_in_and_the_proof_is_of_the_kernel(monkeypatch):
    monkeypatch.setattr("mercer.robust.worst_case_solve._DENSE", 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    worst = worst_case_expectation(lambda x: x[:, 0] ** 2, X, 0.1, kernel=Gaussian(sigma=2.0))
    assert gap(worst) <= 1e-4 * np.ptp(X[:, 0] ** 2)
    assert worst.mmd <= 0.1


def test_frames_single_precision_and_constant_functions():
    pandas = pytest.importorskip("pandas")
    X = np.linspace(-1, 1, 9, dtype=np.float32)[:, None]
    one = worst_case_expectation(lambda x: x[:, 0], X, 0.2, kernel=KERNEL)
    other = worst_case_expectation(lambda x: x[:, 0], pandas.DataFrame(X), 0.2, kernel=KERNEL)
    assert one.value == other.value
    flat = worst_case_expectation(lambda x: np.full(x.shape[0], 3.0), X, 0.2, kernel=KERNEL)
    assert flat.value == pytest.approx(3.0, abs=1e-14)
    assert gap(flat) < 1e-12
    none = worst_case_expectation(0.0 * MeanEmbedding(KERNEL, [[0.0]]), X, 0.2, relaxation="rkhs")
    assert none.value == pytest.approx(0.0, abs=1e-100)


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((3, GRID, 0.1), {}, "must be a function of points"),
        ((np.sin, GRID, -0.1), {}, "radius"),
        ((np.sin, GRID, 0.1), {}, "must return 81 numbers"),
        ((lambda x: x[:, 0] / 0 * 0, GRID, 0.1), {}, "it must be finite"),
        ((lambda x: x[:, 0], [[0.0]], 0.1), {}, "single point"),
        ((lambda x: x[:, 0], GRID, 0.1), {"relaxation": "rkhs"}, "give a MeanEmbedding"),
        ((lambda x: x[:, 0], GRID, 0.1), {"relaxation": "none"}, "relaxation='none' must be one of"),
        ((lambda x: x[:, 0], GRID, 0.1), {"sense": "up"}, "sense='up' must be one of"),
        ((lambda x: x[:, 0], GRID, 0.1), {"box": (-1, 1)}, "lie outside the box"),
        ((lambda x: x[:, 0], GRID, 0.1), {"box": 3}, "must be a pair"),
        ((lambda x: x[:, 0], GRID, 0.1), {"box": (2, -2)}, "its lower corner below"),
        ((lambda x: x[:, 0], GRID, 0.1), {"box": (-3, 3), "candidates": [[4.0]]}, "candidates lie outside"),
        ((lambda x: x[:, 0], GRID, 0.1), {"candidates": [[1.0, 2.0]]}, "have 2 features where X has 1"),
        ((lambda x: x[:, 0], GRID, 0.1), {"kernel": mercer.Precomputed()}, "evaluate the kernel"),
        ((lambda x: x[:, 0], GRID, 0.1), {"kernel": mercer.Sigmoid(1.0, 0.0)}, "not positive semi-definite"),
        ((lambda x: x[:, 0], GRID, 0.1), {"sample_weight": np.zeros(81)}, "weight"),
        (
            (lambda x: x[:, 0], GRID, 0.1),
            {"kernel": mercer.Linear(), "box": (-3, 3), "lipschitz": 1.0},
            "leave lipschitz out",
        ),
        ((MeanEmbedding(KERNEL, [[0.0]]), GRID, 0.1), {"lipschitz": 1.0}, "lipschitz goes with a plain function"),
        ((MeanEmbedding(KERNEL, [[0.0]]), GRID, 0.1), {"kernel": Gaussian(sigma=2.0)}, "different spaces"),
        (
            (MeanEmbedding(KERNEL, [[0.0]]), GRID, 0.1),
            {"relaxation": "rkhs", "box": (-3, 3)},
            "leave box and candidates",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value:RuntimeWarning")
def test_bad_input_is_refused_in_one_sentence(arguments, options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        worst_case_expectation(*arguments, **options)
