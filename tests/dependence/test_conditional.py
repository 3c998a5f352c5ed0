"""Conditional independence: level by simulation, power beside partial correlation, exactness with categories."""

import pickle

import numpy as np
import pytest
from scipy import stats

from mercer import Gaussian, Linear, Precomputed, conditional_independence_test
from mercer.dependence.cells import neighbour_cells
from mercer.dependence.conditional import _reorderings
from mercer.dependence.conditional_residuals import regressors, residuals
from mercer.dependence.principal_features import principal_features
from mercer.dependence.residual_covariance import ResidualCovariance

QUICK = {"n_resamples": 99}


def confounded(n, rng, effect=0.0):
    """X and Y that Z drives along curves, with noise that grows with Z; a part of X's noise may go into Y."""
    z = rng.normal(size=n)
    e, f = rng.normal(size=(2, n)) * (0.5 + 0.2 * np.abs(z))
    return np.sin(2 * z) + e, z**2 + f + effect * e, z


@pytest.mark.parametrize("method", ["neighbours", "residuals"])
def test_finds_what_z_does_not_explain_and_nothing_else(method):
    rejections = np.zeros((2, 6))
    for seed in range(6):
        for row, effect in enumerate((0.0, 0.8)):
            data = confounded(100, np.random.default_rng(seed), effect)
            rejections[row, seed] = conditional_independence_test(*data, method=method, rng=seed, **QUICK).rejects()
    assert rejections[0].sum() <= 2  # a level of 0.05 has more once in 450 runs of this test
    assert rejections[1].sum() >= 4


def test_sees_shapes_that_partial_correlation_does_not():
    rng = np.random.default_rng(1)
    z, e = rng.normal(size=(2, 150))
    x, y = z + e, z + e**2 + 0.3 * rng.normal(size=150)
    left = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert stats.pearsonr(*left).pvalue > 0.05
    assert conditional_independence_test(x, y, z, rng=0, **QUICK).pvalue <= 0.02


def test_sees_an_effect_that_changes_its_sign_with_z():
    rng = np.random.default_rng(2)
    z, e, f = rng.normal(size=(3, 200))
    result = conditional_independence_test(e, f + 0.8 * e * np.sign(z), z, x_kernel=Linear(), y_kernel=Linear(), rng=0)
    everywhere, by_place = result.parts
    assert everywhere.kernel[2] is None
    assert everywhere.pvalue > 0.05
    assert by_place.pvalue <= 0.005
    assert result.rejects(0.01)


def test_is_exact_where_z_has_few_values():
    """Y is a fair coin within each category: p-values of an exact test are uniform on k/(1 + B) or above it."""
    rng, levels = np.random.default_rng(0), []
    for seed in range(30):
        z = rng.choice(["a", "b", "c"], size=24)
        shift = np.array([{"a": 0, "b": 2, "c": 5}[value] for value in z])
        x, y = shift + rng.integers(0, 2, 24), shift + rng.integers(0, 2, 24)
        levels.append(conditional_independence_test(x, y, z, rng=seed, n_resamples=19).pvalue)
    for level in (0.1, 0.25, 0.5):
        assert stats.binom.sf(np.sum(np.array(levels) <= level) - 1, 30, level) > 1e-3


def test_rows_are_reordered_among_their_neighbours_alone():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 5, 60)
    moved = 0
    for reorder in _reorderings(cells, 20, rng):
        np.testing.assert_array_equal(reorder(cells[:, None])[:, 0], cells)
        moved += np.count_nonzero(reorder(np.arange(60)[:, None])[:, 0] != np.arange(60))
    assert moved > 20 * 30


def test_equal_statistics_are_ties_whatever_the_last_bits():
    """Rows 20 apart are equal in X: exchanging their Y changes nothing but the order of sums, hence their rounding."""
    rng = np.random.default_rng(0)
    left, right = np.tile(rng.normal(size=(20, 3)), (2, 1)), rng.normal(size=(40, 2))
    covariance = ResidualCovariance([left], [right])
    orders = [np.where(np.tile(rng.random(20) < 0.5, 2), (np.arange(40) + 20) % 40, np.arange(40)) for _ in range(30)]
    found = covariance.statistics(iter([lambda v, o=o: v[o] for o in orders]), 30, None)
    assert 0 < np.ptp(found) <= covariance.roundings(found)[0]
    assert covariance.roundings(found)[0] < 1e-9 * found[0, 0]


def test_the_statistic_is_the_covariance_of_residuals():
    rng = np.random.default_rng(0)
    r, s, other = rng.normal(size=(3, 20, 2))
    covariance = ResidualCovariance([r, other], [s])
    order, signs = rng.permutation(20), rng.choice((-1.0, 1.0), size=(20, 1))
    found = covariance.statistics(iter([lambda v: v[order], lambda v: v * signs]), 2, None)
    for k, left in enumerate((r, other)):
        for j, right in enumerate((s, s[order], s * signs)):
            np.testing.assert_allclose(found[k, j], np.sum((left @ left.T) * (right @ right.T)) / 20)


def test_residuals_are_those_of_the_best_ridge_regression():
    """Errors of rows left out against refits without each row, and the residuals against the dense formula."""
    rng = np.random.default_rng(0)
    z, ridges, H = np.linspace(-2, 2, 25)[:, None], np.logspace(-6, 1, 15) * 25, np.eye(25) - 1 / 25
    features = np.hstack([np.sin(2 * z), np.cos(z)]) + 0.4 * rng.normal(size=(25, 2))
    gram = Gaussian(sigma=1.0)(z)
    found = residuals(features, [regressors(Gaussian(sigma=1.0), z, np.random.default_rng(0))])
    errors = np.zeros((15, 2))
    for i in range(25):
        rest, inner = np.delete(np.arange(25), i), np.eye(24) - 1 / 24  # the intercept is free
        part, mean = gram[np.ix_(rest, rest)], features[rest].mean(axis=0)
        row, centred = (gram[i, rest] - part.mean(axis=0)) @ inner, inner @ part @ inner
        for k, ridge in enumerate(ridges):
            fit = np.linalg.solve(centred + ridge * np.eye(24), features[rest] - mean)
            errors[k] += (features[i] - mean - row @ fit) ** 2
    for column, k in enumerate(errors.argmin(axis=0)):
        smoothed = H @ gram @ H @ np.linalg.solve(H @ gram @ H + ridges[k] * np.eye(25), H @ features[:, column])
        np.testing.assert_allclose(found.values[:, column], H @ features[:, column] - smoothed, atol=1e-4)
    total = np.sum((H @ features) ** 2) * (25 / 24) ** 2
    assert found.explained == pytest.approx(1 - errors.min(axis=0).sum() / total, abs=1e-4)


def test_cells_hold_neighbours_and_never_part_equal_rows():
    values = np.sort(np.random.default_rng(0).normal(size=100))[:, None]
    cells = neighbour_cells(values, 8)
    assert (np.diff(cells) != 0).sum() == np.unique(cells).size - 1  # intervals
    assert np.bincount(cells).min() >= 8
    assert np.bincount(cells).max() < 16
    tied = np.repeat([0.0, 1.0, 5.0], [30, 3, 20])[:, None]
    for value in (0.0, 1.0, 5.0):
        assert np.unique(neighbour_cells(tied, 8)[tied[:, 0] == value]).size == 1
    assert np.unique(neighbour_cells(np.ones((40, 2)), 8)).size == 1


def test_features_are_the_centred_kernel_matrix():
    x = np.random.default_rng(0).normal(size=(40, 1))
    features, H = principal_features(Gaussian(sigma=2.0), x, 40, np.random.default_rng(0)), np.eye(40) - 1 / 40
    expected = H @ Gaussian(sigma=2.0)(x) @ H
    assert np.linalg.norm(features @ features.T - expected) <= 5e-3 * np.linalg.norm(expected)


def test_frames_texts_matrices_and_a_pickle():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.normal(size=60), "site": rng.choice(["n", "s"], 60)})
    x = rng.normal(size=60)
    result = conditional_independence_test(x, np.where(x > 0, "yes", "no"), frame, rng=0, **QUICK)
    assert result.rejects()
    assert "beyond what Z explains" in str(result)
    assert len(result.null_distribution) == 99
    again = pickle.loads(pickle.dumps(result))
    assert again.pvalue == result.pvalue
    assert again.explained == result.explained
    points = x[:, None]
    kernel, y = Gaussian(sigma=1.0), rng.normal(size=60)
    by_points = conditional_independence_test(points, y, frame, x_kernel=kernel, rng=0, **QUICK)
    by_matrix = conditional_independence_test(kernel(points), y, frame, x_kernel=Precomputed(), rng=0, **QUICK)
    assert by_points.pvalue == by_matrix.pvalue


def test_a_seed_decides_everything_and_threads_nothing():
    from mercer import config_context

    data, seen = confounded(60, np.random.default_rng(0)), []
    first = conditional_independence_test(*data, rng=3, progress=seen.append, **QUICK)
    with config_context(n_threads=1):
        second = conditional_independence_test(*data, rng=3, **QUICK)
    np.testing.assert_array_equal(first.null_distribution, second.null_distribution)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "magic"}, "method='magic' must be one of"),
        ({"n_neighbors": 1}, "n_neighbors=1 must be a whole number of at least 2"),
        ({"n_resamples": 0}, "n_resamples=0"),
        ({"Z": np.ones(20)}, "Z is the same in all 20 rows"),
        ({"Y": np.arange(19.0)}, "X has 20 rows, Y 19 and Z 20"),
        ({"X": np.full(20, np.nan)}, "X has nan in row 0"),
    ],
)
def test_bad_input_is_named(change, sentence):
    given = {"X": np.arange(20.0), "Y": np.arange(20.0) ** 2, "Z": np.cos(np.arange(20.0)), **change}
    with pytest.raises(ValueError, match=sentence):
        conditional_independence_test(given.pop("X"), given.pop("Y"), given.pop("Z"), **given)
