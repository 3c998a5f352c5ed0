"""RobustKernelRidge: limits, promises, adversaries, covariate shift."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from robust_oracle import conic_value_on_a_grid, upper_bound_on_a_grid
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from mercer import Gaussian, Laplacian, RobustKernelRidge, mmd
from mercer.solvers import Status

SIGMA, LAMBDA = 1.0, 1e-3
N = 40


def wave(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def ridge(X, y, weights=None):
    """Kernel ridge regression of the same kernel, mean loss and regularisation."""
    return KernelRidge(alpha=LAMBDA * len(X), kernel="rbf", gamma=1 / SIGMA**2).fit(X, y, sample_weight=weights)


def robust(radius, **options):
    return RobustKernelRidge(
        Gaussian(SIGMA), **{"radius": radius, "regularization": LAMBDA, "support": N, "target_sigma": 1.0, **options}
    )


@cache
def fitted_to_wave(radius, **options):
    """One fit for all tests that look at it."""
    return robust(radius, **options).fit(*wave())


@pytest.fixture(scope="module")
def sample():
    return wave()


@pytest.fixture(scope="module")
def fitted():
    return fitted_to_wave(0.05)


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relaxation", [None, "rkhs"])
def test_no_radius_is_kernel_ridge(sample, relaxation):
    X, y = sample
    model = fitted_to_wave(0.0, relaxation=relaxation)
    grid = np.linspace(-3, 3, 50)[:, None]
    np.testing.assert_allclose(model.predict(grid), ridge(X, y).predict(grid), atol=1e-6)
    assert model.sample_share_ == 1.0
    assert model.adversary_ is None
    assert np.all(model.adversary_density(X, y) == 0.0)
    assert model.robust_risk_ == pytest.approx(model.sample_risk_, rel=1e-12)
    assert model.certificate_.holds(1e-9)


@pytest.mark.parametrize("relaxation", [None, "rkhs"])
def test_a_vanishing_radius_tends_to_kernel_ridge(sample, relaxation):
    X, y = sample
    plain = ridge(X, y).predict(X)
    away = [
        np.abs(robust(radius, relaxation=relaxation, tol=1e-5).fit(X, y).predict(X) - plain).max()
        for radius in (1e-2, 1e-3, 1e-4)
    ]
    assert away[2] < 0.15 * away[1] < 0.15 * away[0]
    assert away[2] < 1e-2


def test_sample_weights_are_those_of_kernel_ridge(sample):
    X, y = sample
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    weights *= len(X) / weights.sum()
    np.testing.assert_allclose(robust(0.0).fit(X, y, weights).predict(X), ridge(X, y, weights).predict(X), atol=1e-6)


def test_repeated_rows_are_weights(sample):
    X, y = sample
    twice = np.concatenate([np.arange(N), np.arange(15)])
    repeated = robust(0.05).fit(X[twice], y[twice])
    weighted = robust(0.05).fit(X, y, np.where(np.arange(N) < 15, 2.0, 1.0))
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), atol=1e-5)
    assert repeated.robust_risk_ == pytest.approx(weighted.robust_risk_, rel=1e-5)


def test_units_of_the_targets_do_not_matter(fitted, sample):
    (X, y), one = sample, fitted
    other = robust(0.05, target_sigma=1e3).fit(X, 1e3 * y)
    np.testing.assert_allclose(other.predict(X), 1e3 * one.predict(X), rtol=1e-4, atol=1e-2)
    assert other.robust_risk_ == pytest.approx(1e6 * one.robust_risk_, rel=1e-5)
    assert other.certificate_.upper == pytest.approx(1e6 * one.certificate_.upper, rel=1e-5)


# --- what is promised ---------------------------------------------------------------------------------------------


def test_the_risk_grows_with_the_ball():
    risks = [fitted_to_wave(radius).certificate_ for radius in (0.0, 0.01, 0.05, 0.1, 0.3)]
    assert all(small.upper < large.lower for small, large in pairwise(risks))
    assert all(certificate.holds(1e-6) for certificate in risks)


def test_a_finer_truncation_gives_the_adversary_more():
    coarse = [fitted_to_wave(0.1, truncation=truncation).certificate_ for truncation in (1e-2, 1e-4)]
    risks = [*coarse, fitted_to_wave(0.1).certificate_]
    assert all(coarse.upper < fine.lower for coarse, fine in pairwise(risks))


def test_a_ball_without_sample_is_smaller():
    with_sample, without = fitted_to_wave(0.1), fitted_to_wave(0.1, keep_sample=False)
    assert without.sample_share_ == 0.0
    assert without.certificate_.lower <= with_sample.certificate_.upper
    assert without.certificate_.holds(1e-6)


@pytest.fixture(scope="module")
def grid_masses(fitted):
    """The density part of the worst distribution on a grid of pairs, where the trapezoidal rule is exact to rounding."""
    x, t = np.linspace(-7, 7, 141), np.linspace(-5, 5, 121)
    pairs = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1).reshape(-1, 2)
    return pairs, fitted.adversary_density(pairs[:, :1], pairs[:, 1]) * (x[1] - x[0]) * (t[1] - t[0])


def test_the_worst_distribution_costs_what_is_said(fitted, sample, grid_masses):
    """Its loss on a grid, independent of every closed form, and the sample's own loss."""
    X, y = sample
    pairs, masses = grid_masses
    moved = masses @ (fitted.predict(pairs[:, :1]) - pairs[:, 1]) ** 2
    assert fitted.sample_share_ * fitted.sample_risk_ + moved == pytest.approx(fitted.robust_risk_, rel=2e-6)
    assert 0 < fitted.sample_share_ < 1
    assert fitted.sample_risk_ == pytest.approx(np.mean((fitted.predict(X) - y) ** 2), rel=1e-6)


def test_the_worst_distribution_is_one_and_lies_in_the_ball(fitted, sample, grid_masses):
    """Its density integrates to what it should, and its MMD from the sample is the one stated, both on a grid."""
    X, y = sample
    pairs, masses = grid_masses
    assert masses.min() >= 0
    assert masses.sum() == pytest.approx(1 - fitted.sample_share_, abs=1e-8)
    data = np.column_stack([X, y])  # both bandwidths are one
    adversary = np.concatenate([pairs, data])
    weights = np.concatenate([masses, np.full(N, fitted.sample_share_ / N)])
    distance = mmd(adversary, data, Gaussian(1.0), x_weights=weights, squared=False)
    assert distance == pytest.approx(fitted.mmd_, rel=1e-5)
    assert fitted.distance_ == pytest.approx(0.05, rel=1e-5)
    assert fitted.distance_ <= fitted.mmd_


@pytest.mark.parametrize(("offset", "radius", "support"), [(0.0, 0.01, 20), (10.0, 0.01, 20), (10.0, 0.1, 30)])
def test_rounding_does_not_spoil_the_proof(offset, radius, support):
    """Targets far from zero: the closed forms in the bases of the solver are wrong by 1e-4 there, the proof is not."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=100) + offset
    model = RobustKernelRidge(radius=radius, support=support, random_state=0).fit(X, y)
    assert model.certificate_.holds(1e-6)
    true = upper_bound_on_a_grid(model, X, y)
    assert true * (1 - 1e-8) <= model.certificate_.upper <= true * (1 + 1e-6)


@pytest.mark.parametrize(("seed", "radius", "keep"), [(0, 0.05, True), (1, 0.3, True), (2, 1.2, True), (3, 0.6, False)])
def test_the_whole_game_is_that_of_a_grid_and_a_conic_solver(seed, radius, keep):
    pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=15) + seed
    weights = rng.uniform(0.5, 1.5, 15)
    support = np.column_stack([X, y])[:5]
    model = robust(
        radius, keep_sample=keep, support=support, target_sigma=0.8, regularization=10.0 ** -(1 + seed), tol=1e-8
    ).fit(X, y, weights)
    value = conic_value_on_a_grid(X, y, weights / weights.sum(), support, model)
    assert value == pytest.approx(model.certificate_.upper, rel=2e-6)


def test_a_game_that_rounding_spoils_is_played_again():
    """A weak penalty, a narrow kernel and a wide one of the targets: in double precision the game is another one."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)
    model = RobustKernelRidge(
        Gaussian(0.55), radius=0.8, regularization=4e-5, support=25, target_sigma=3.4, random_state=1
    ).fit(X, y)
    assert model.certificate_.holds(1e-6)
    true = upper_bound_on_a_grid(model, X, y)
    assert true * (1 - 1e-8) <= model.certificate_.upper <= true * (1 + 1e-6)


def test_targets_far_from_the_others_do_not_lose_the_path():
    """With a weight that grew tenfold and thirty steps for each the gap stayed at 3e-2."""
    rng = np.random.default_rng(6)
    x = rng.normal(0, 0.6, 60)
    wrong = rng.random(60) < 0.1
    y = np.sin(2 * x) + 0.5 * x + 0.3 * rng.normal(size=60) + 4.0 * wrong
    model = robust(0.01, support=60, target_sigma=Gaussian().resolve(y[:, None]).sigma / 4, tol=1e-4)
    assert model.fit(x[:, None], y).certificate_.holds(1e-4)


def test_a_gap_that_falls_slowly_at_first_is_no_end():
    """Two weights in a row that left more than half of it ended the solver at a gap of .4."""
    X = np.array([-0.06748031, -0.0090839, -0.05519162, 0.17818981, -0.03428639, -0.03243289])[:, None]
    y = np.array([-4500.249153, -4760.22484823, -1819.50941352, -13447.22360241, 5466.2751974, -4366.21893933])
    model = RobustKernelRidge(radius=1.0, regularization=1e-5, truncation=1e-3, random_state=45)
    assert model.fit(X, y, np.array([0.0, 2, 2, 2, 2, 1])).certificate_.holds(1e-6)


def test_the_relaxation_is_proved_whatever_the_regularisation():
    """The penalty is of the fourth degree in coefficients that are large: a sum over them in extended precision."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=80)
    for regularization in (1e-5, 1e-3):
        model = robust(0.1, relaxation="rkhs", regularization=regularization, random_state=0).fit(X, y)
        assert model.certificate_.holds(1e-6)
        alpha, points = (np.asarray(v, np.longdouble) for v in (model.dual_coef_, model.support_[:, :-1]))
        squares = np.sum((points[:, None] - points) ** 2, axis=2)
        middle = np.exp(-squares / 2) @ (alpha[:, None] * np.exp(-squares / 2))
        penalty = 0.1 * np.sqrt(alpha @ middle**2 @ alpha) + regularization * alpha @ np.exp(-squares) @ alpha
        assert model.certificate_.upper == pytest.approx(model.sample_risk_ + float(penalty), rel=1e-8)


def test_a_worst_distribution_that_is_the_sample():
    """No density on the support is worse than a sample that no function on it can fit."""
    X, y = np.array([[10.0], [11.0]]), np.array([5.0, 5.0])
    model = robust(0.1, support=np.array([[0.0, 0.0], [0.5, 0.0]])).fit(X, y)
    assert model.certificate_.holds(1e-6)
    assert model.sample_share_ == 1.0
    assert model.mmd_ == model.distance_ == 0.0
    assert model.adversary_ is None


def test_it_is_safer_than_kernel_ridge_and_the_relaxation_in_its_ball(fitted, sample, grid_masses):
    """Against the worst distribution found, the two others lose more than the robust one can lose at all."""
    X, y = sample
    pairs, masses = grid_masses
    for other in (ridge(X, y), fitted_to_wave(0.05, relaxation="rkhs")):
        moved = masses @ (other.predict(pairs[:, :1]) - pairs[:, 1]) ** 2
        risk = fitted.sample_share_ * np.mean((other.predict(X) - y) ** 2) + moved
        assert risk > 1.02 * fitted.robust_risk_


def test_a_stiff_learner_under_covariate_shift():
    """One in ten training points comes from a region that half of the test points come from.

    The learner is too smooth to fit both regions. Kernel ridge gives up the small one, the relaxation too; the robust
    one evens the errors out.
    """

    def draw(n, share, rng):
        right = rng.random(n) < share
        x = np.where(right, rng.normal(1.2, 0.3, n), rng.normal(-1.0, 0.4, n))
        return x[:, None], np.abs(x) + 0.1 * rng.normal(size=n)

    errors = {"ridge": [], "relaxed": [], "robust": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = draw(60, 0.1, rng)
        new, truth = draw(2000, 0.5, rng)
        common = {"regularization": 1e-2, "support": 20, "target_sigma": 0.2, "tol": 1e-4, "random_state": 0}
        models = {
            "ridge": KernelRidge(alpha=60 * 1e-2, kernel="rbf", gamma=1 / 16).fit(X, y),
            "relaxed": RobustKernelRidge(Gaussian(4.0), radius=0.1, relaxation="rkhs", **common).fit(X, y),
            "robust": RobustKernelRidge(Gaussian(4.0), radius=0.1, **common).fit(X, y),
        }
        for name, model in models.items():
            errors[name].append(np.mean((model.predict(new) - truth) ** 2))
    assert np.mean(errors["robust"]) < 0.8 * np.mean(errors["ridge"])
    assert np.mean(errors["robust"]) < 0.8 * np.mean(errors["relaxed"])


# --- the support --------------------------------------------------------------------------------------------------


def test_supports_of_every_kind(sample):
    X, y = sample
    given = np.column_stack([X[:12], y[:12]])
    model = robust(0.05, support=given).fit(X, y)
    np.testing.assert_allclose(model.support_, given, rtol=1e-12)
    assert model.dual_coef_.shape == (12,)
    assert robust(0.05, support=("kmeans", 9), random_state=0).fit(X, y).support_.shape == (9, 2)
    drawn = robust(0.05, support=10, random_state=3)
    np.testing.assert_array_equal(drawn.fit(X, y).support_, clone(drawn).fit(X, y).support_)


def test_targets_that_are_all_equal(sample):
    X, _ = sample
    model = RobustKernelRidge(support=10, random_state=0).fit(X, np.full(N, 2.0))
    assert model.target_sigma_ == 1.0
    assert np.all(RobustKernelRidge(support=10, random_state=0, tol=1e-3).fit(X, np.zeros(N)).predict(X) < 0.1)


def test_many_features():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 40))
    model = RobustKernelRidge(radius=0.05, support=30).fit(X, X[:, 0])
    assert model.certificate_.holds(1e-6)


def test_pairs_that_share_an_input():
    X = np.repeat(np.linspace(-1, 1, 8)[:, None], 2, axis=0)
    y = np.sin(3 * X[:, 0]) + np.tile([0.1, -0.1], 8)
    model = RobustKernelRidge(radius=0.05, support=16).fit(X, y)
    assert model.certificate_.holds(1e-6)


# --- warnings and refusals ------------------------------------------------------------------------------------------


def test_an_uncertified_answer_warns(sample):
    with pytest.warns(ConvergenceWarning, match=r"^The certified relative gap is .* raise max_iter"):
        model = robust(0.05, max_iter=12).fit(*sample)
    assert model.status_ is Status.MAX_ITER
    assert model.certificate_.lower <= fitted_to_wave(0.05).certificate_.upper


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kernel": Laplacian(1.0)}, r"^kernel=Laplacian\(sigma=1.0\) has no closed form for the integrals"),
        ({"radius": -0.1}, r"^radius=-0.1 must be at least 0\.$"),
        ({"radius": "wide"}, r"^radius='wide' must be a number of at least 0, 'sampling' or 'cv'\.$"),
        ({"regularization": 0.0}, r"^regularization=0.0 must be greater than 0\.$"),
        ({"target_sigma": 0}, r"^target_sigma=0 must be greater than 0\.$"),
        ({"target_sigma": "mean"}, r"^target_sigma='mean' must be a positive number or one of"),
        ({"relaxation": "hilbert"}, r"^relaxation='hilbert' must be None or 'rkhs'\.$"),
        ({"keep_sample": 1}, r"^keep_sample=1 must be True or False\.$"),
        ({"keep_sample": False, "radius": 0}, r"^radius=0 leaves no density in the ball"),
        (
            {"keep_sample": False, "radius": 1e-3},
            r"^radius=0.001 is not above 0\.\d+, the distance of the nearest density",
        ),
        ({"truncation": 0.0}, r"^truncation=0.0 must lie strictly between 0 and 1\.$"),
        ({"support": 0}, r"^support=0 must be a whole number of at least 1\.$"),
        ({"support": np.ones((3, 5))}, r"^support has shape \(3, 5\): it must be points with 2 features"),
        ({"tol": 0.0}, r"^tol=0.0 must be greater than 0\.$"),
        ({"max_iter": 0}, r"^max_iter=0 must be a whole number of at least 1\.$"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(sample, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RobustKernelRidge(**{"kernel": Gaussian(1.0), "support": 8, "random_state": 0, **options}).fit(*sample)


def test_other_bad_input(fitted, sample):
    from mercer import config_context

    X, y = sample
    with pytest.raises(
        ValueError, match=r"^y has shape \(3,\): it must have one entry for each of the 40 rows of X\.$"
    ):
        fitted.adversary_density(X, y[:3])
    with pytest.warns(ConvergenceWarning, match=r": take radius=0, or accept the gap\.$"):
        robust(1e-9, support=10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"^y has entries of size .*e-20., whose squares leave double precision: resc"):
        RobustKernelRidge(support=5).fit(X, 1e-200 * y)
    with pytest.raises(ValueError, match="n_samples=1|1 sample"):
        RobustKernelRidge().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"^sample_weight is negative"):
        RobustKernelRidge().fit(X, y, -np.ones(N))
    with (
        config_context(memory_limit=1000),
        pytest.raises(ValueError, match=r"take a smaller support, or raise memory_limit\.$"),
    ):
        robust(0.05).fit(X, y)
