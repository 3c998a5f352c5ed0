"""Goodness of fit: the Stein kernel against derivatives by differences and against its own identity, levels, refusals."""

import pickle

import numpy as np
import pytest
from scipy import stats

from mercer import Gaussian, Laplacian, Matern, SumOfSquaresDensity, stein_test
from mercer.dependence.stein import SteinForm, stein_sums
from mercer.dependence.stein_test import InverseMultiquadric, _radial

KERNELS = [
    (Gaussian(sigma=(0.8, 1.7)), 2e-6),
    (Matern(nu=2.5, length_scale=1.2), 2e-6),
    (Matern(nu=1.5, length_scale=1.2), 1e-4),
    (Matern(nu=np.inf, length_scale=0.9), 2e-6),
]


def normal_score(x):
    return -x


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(80, 1))
    return SumOfSquaresDensity(support=8, random_state=0).fit(X)


@pytest.mark.parametrize(("kernel", "accuracy"), KERNELS, ids=str)
def test_the_stein_kernel_is_made_of_derivatives(kernel, accuracy):
    """In coordinates over their lengths, by central differences of the kernel itself."""
    rng = np.random.default_rng(1)
    x, s, h = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), 1e-4
    form = _radial(kernel, 2)
    lengths, found = form.lengths, SteinForm(form, x, s).block(slice(0, 3))
    score = s * lengths
    for i in range(3):
        for j in range(3):
            expected = 0.0
            if i != j:
                k = lambda a, b: kernel((x[i] + a)[None], (x[j] + b)[None])[0, 0]  # noqa: B023, E731
                expected = k(0, 0) * (score[i] @ score[j])
                for c, step in enumerate(h * np.diag(lengths)):
                    expected += score[i, c] * (k(0, step) - k(0, -step)) / (2 * h)
                    expected += score[j, c] * (k(step, 0) - k(-step, 0)) / (2 * h)
                    corners = k(step, step) - k(step, -step) - k(-step, step) + k(-step, -step)
                    expected += corners / (4 * h**2)
            assert found[i, j] == pytest.approx(expected, abs=accuracy)


def test_its_expectation_under_the_density_is_zero(fitted):
    """Stein's identity at any y, by a fine sum over x; and that of another density is not."""
    grid = np.linspace(-8, 8, 2001)[:, None]
    masses = fitted.density(grid) * 0.008
    kernel = _radial(InverseMultiquadric((0.7,)), 1)
    form = SteinForm(kernel, np.vstack([grid, [[0.3]]]), fitted.log_gradient(np.vstack([grid, [[0.3]]])))
    assert masses.sum() == pytest.approx(1, abs=1e-8)
    assert abs(form.block(slice(2001, 2002))[0, :2001] @ masses) < 1e-8
    other = stats.norm.pdf(grid[:, 0], 1.0) * 0.008
    assert abs(form.block(slice(2001, 2002))[0, :2001] @ other) > 0.005


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reference": "gaussian"},
        {"reference": ([0.0, 0.5], np.array([[2.0, 0.3], [0.3, 1.0]]))},
        {"kernel": Matern(1.5, 1.0), "box": (-4, 4)},
    ],
    ids=["lebesgue", "gaussian", "covariance", "matern"],
)
def test_gradients_of_densities_are_those_of_their_logarithm(options):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SumOfSquaresDensity(support=10, random_state=0, **options).fit(X)
    by_differences = [(model.score_samples(X + h) - model.score_samples(X - h)) / 2e-5 for h in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(model.log_gradient(X), np.stack(by_differences, axis=1), rtol=1e-6, atol=1e-7)
    far = model.log_gradient(np.array([[60.0, 0.0]]))  # where every kernel value underflows
    assert np.isfinite(far).all()
    assert far[0, 0] < 0


def test_gradients_of_tensors_are_tensors():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(20, 1))
    model = SumOfSquaresDensity(support=5, random_state=0)
    expected = model.fit(X).log_gradient(X)
    found = model.fit(torch.as_tensor(X)).log_gradient(torch.as_tensor(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)


def test_samples_of_the_density_give_an_exact_level():
    rng, found = np.random.default_rng(0), []
    for seed in range(40):
        X = rng.standard_t(3, size=(8, 1))
        result = stein_test(
            lambda x: -4 * x / (3 + x**2),
            X,
            sampler=lambda n, draws: draws.standard_t(3, size=(n, 1)),
            rng=seed,
            n_resamples=19,
        )
        assert result.null == "parametric bootstrap"
        found.append(result.pvalue)
    for level in (0.05, 0.2, 0.5):
        count = np.sum(np.array(found) <= level)
        assert min(stats.binom.sf(count - 1, 40, level), stats.binom.cdf(count, 40, level)) > 2e-3


def test_samples_of_the_density_are_compared_by_lengths_of_its_own():
    """Lengths of X would treat the data and the samples differently, and the p-value would not be exact."""
    X = np.random.default_rng(1).normal(size=(20, 2))
    options = {"sampler": lambda n, rng: rng.normal(size=(n, 2)), "n_resamples": 9, "rng": 0}
    one, other = (stein_test(normal_score, points, **options) for points in (X, 9 * X))
    assert repr(one.kernel) == repr(other.kernel)


def test_signs_have_about_their_level_and_find_a_shift():
    rng, level, power = np.random.default_rng(3), 0, 0
    for seed in range(40):
        X = rng.normal(size=(60, 2))
        level += stein_test(normal_score, X, rng=seed, n_resamples=99).rejects()
        power += stein_test(normal_score, X + 0.4, rng=seed, n_resamples=99).rejects()
    assert level <= 6  # more once in 300 runs at a level of 0.05
    assert power >= 32


def test_finds_the_points_that_do_not_fit(fitted):
    X = np.concatenate([fitted.sample(85, random_state=1), np.full((15, 1), 3.0)])
    result = stein_test(fitted, X, rng=0, n_resamples=99)
    assert result.pvalue == 0.01
    assert set(np.argsort(result.contributions)[-15:]) == set(range(85, 100))
    assert str(result).startswith("The density does not fit the sample: the largest standardised KSD²")
    assert pickle.loads(pickle.dumps(result)).pvalue == result.pvalue
    one = stein_test(fitted, X, Gaussian(), rng=0, n_resamples=99, null="wild bootstrap")
    assert one.parts == ()
    assert one.statistic == pytest.approx(one.contributions.mean())


def test_densities_fitted_to_their_own_samples_are_nearer_to_them(fitted):
    """Which is why a density that was fitted to X is compared with such ones."""
    X = np.random.default_rng(0).normal(size=(80, 1))
    naive = stein_test(fitted, X, Gaussian(1.0), rng=0, n_resamples=99)
    again = stein_test(fitted, X, Gaussian(1.0), rng=0, n_resamples=9, refit=True)
    assert again.refitted
    assert again.statistic == naive.statistic
    assert again.null_distribution.max() < np.quantile(naive.null_distribution, 0.9)


def test_equal_statistics_of_signs_are_ties():
    """Rows 20 apart are equal, so that exchanging their signs changes nothing but the order of sums."""
    rng = np.random.default_rng(0)
    x, one = np.tile(rng.normal(size=(20, 2)), (2, 1)), rng.choice((-1.0, 1.0), size=40)
    flips = [np.where(np.tile(rng.random(20) < 0.5, 2), np.roll(one, 20), one) for _ in range(30)]
    sums = stein_sums(SteinForm(_radial(InverseMultiquadric((0.5, 0.5)), 2), x, -x), np.stack(flips, axis=1))
    assert 0 < np.ptp(sums.forms) <= sums.rounding
    assert sums.rounding < 1e-10 * np.abs(sums.rows).max()
    whole = stein_sums(SteinForm(_radial(InverseMultiquadric((0.5, 0.5)), 2), x, -x), np.ones((40, 1)))
    assert whole.rows.mean() == pytest.approx(whole.forms[0])


def test_bad_input_is_named(fitted):
    X = np.random.default_rng(0).normal(size=(20, 1))
    box = SumOfSquaresDensity(support=5, box=(-5, 5), random_state=0).fit(X)
    rough = SumOfSquaresDensity(Laplacian(1.0), support=5, box=(-5, 5), random_state=0).fit(X)
    for call, sentence in [
        (lambda: stein_test(box, X, null="wild bootstrap"), "does not fall to zero"),
        (lambda: stein_test(box, X + 10), "outside the box"),
        (lambda: stein_test(rough, X), "no gradient in closed form"),
        (lambda: stein_test(fitted, X, Laplacian()), "no second derivatives"),
        (lambda: stein_test(normal_score, X, null="parametric bootstrap"), "pass sampler="),
        (lambda: stein_test(normal_score, X, refit=True), "fits the density again"),
        (lambda: stein_test(fitted, X, refit=True, null="wild bootstrap"), "needs samples"),
        (lambda: stein_test(lambda x: x[:, 0], X), r"shape \(20,\)"),
        (lambda: stein_test(lambda x: x / 0 * 0, X), "no finite number in row 0"),
        (lambda: stein_test(normal_score, X[:1]), "needs two"),
        (lambda: stein_test(normal_score, X, []), "empty list"),
    ]:
        with pytest.raises(ValueError, match=sentence), np.errstate(all="ignore"):
            call()
    with pytest.raises(TypeError, match="must be a fitted SumOfSquaresDensity"):
        stein_test(3.0, X)
    assert stein_test(box, X, rng=0, n_resamples=9).null == "parametric bootstrap"
    with pytest.raises(ValueError, match="exceed the largest number"):
        stein_test(lambda x: -x, 1e200 * np.random.default_rng(0).normal(size=(20, 2)), n_resamples=19)
