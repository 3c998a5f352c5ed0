"""Which columns and rows make two samples different: error rates over families, oracles, frames, refusals."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from mercer import Gaussian, Precomputed, explain_difference, mmd
from mercer.dependence.difference import step_down_pvalues
from mercer.dependence.feature_contrasts import contrast_statistics


def test_names_the_columns_that_differ_and_what_is_left_without_them():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 5)), rng.normal(size=(70, 5))
    Y[:, 2] += 1.0
    Y[:, 4] *= 3.0
    result = explain_difference(X, Y, rng=0, n_resamples=199)
    assert {feature.name for feature in result.ranking[:2]} == {2, 4}
    assert [feature.pvalue <= 0.01 for feature in result.features] == [False, False, True, False, True]
    assert all(feature.pvalue_without <= 0.05 for feature in result.features)  # the other one is still there
    assert str(result).startswith("2 of 5 columns differ: ")
    alone = explain_difference(X[:, :3], Y[:, :3], rng=0, n_resamples=199)
    assert alone.features[2].pvalue_without > 0.05
    assert alone.features[0].pvalue_without == 0.005


def test_one_false_name_in_a_family_is_as_rare_as_promised():
    """Four of five columns do not differ, and depend on each other; the fifth is far off and found every time."""
    rng, false, found = np.random.default_rng(1), 0, 0
    for seed in range(25):
        common = rng.normal(size=(40, 1))
        pooled = np.round(common + rng.normal(size=(40, 5)))  # with ties
        pooled[:20, 0] += 4.0
        result = explain_difference(pooled[:20], pooled[20:], rng=seed, n_resamples=39, leave_out=False)
        found += result.features[0].pvalue <= 0.1
        false += any(feature.pvalue <= 0.1 for feature in result.features[1:])
    assert found == 25
    assert stats.binom.sf(false - 1, 25, 0.1) > 1e-3


def test_step_down_is_the_closed_test_of_the_largest_scores():
    """Against its definition: a hypothesis falls if every set of hypotheses that holds it does."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.normal(size=(4, 20))
        found = step_down_pvalues(scores)
        for k in range(4):
            sets = [list(s) for size in range(1, 5) for s in combinations(range(4), size) if k in s]
            of_sets = [np.mean(scores[s].max(axis=0) >= scores[s, 0].max()) for s in sets]
            assert found[k] == pytest.approx(max(of_sets))


def test_statistics_are_mmds_of_relabelled_rows():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2))
    kernel = Gaussian(sigma=1.0)
    factor = np.linalg.cholesky(kernel(points) + 1e-13 * np.eye(12))
    found, rounding = contrast_statistics([factor], (5, 7), 3, np.random.default_rng(7))
    from mercer.dependence.resampling import permutations

    orders = np.concatenate([np.arange(12)[None], *permutations(12, 3, np.random.default_rng(7))])
    expected = [mmd(points[order[:5]], points[order[5:]], kernel) for order in orders]
    np.testing.assert_allclose(found[0], expected, atol=1e-11)
    assert 0 < rounding[0] < 1e-11


def test_the_telling_rows_are_those_that_the_other_sample_has_not():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 2)), rng.normal(size=(60, 2))
    X[:12] += 6.0
    result = explain_difference(X, Y, rng=0, n_resamples=19)
    x_rows, y_rows = result.telling_rows(12)
    assert set(x_rows) == set(range(12))
    assert y_rows.shape == (12,)
    gram = result.kernel(np.vstack([X, Y]))
    expected = np.delete(gram[3, :50], 3).mean() - gram[3, 50:].mean()
    assert result.x_values[3] == pytest.approx(expected)
    expected = gram[54, :50].mean() - np.delete(gram[54, 50:], 4).mean()
    assert result.y_values[4] == pytest.approx(expected)


def test_frames_with_categories_and_constants():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def frame(sites):
        return pandas.DataFrame(
            {"size": rng.normal(size=50), "site": rng.choice(sites, 50), "flag": rng.random(50) > 0.5, "unit": 1}
        )

    result = explain_difference(frame(["a", "b"]), frame(["a", "c", "c"]), rng=0, n_resamples=99)
    assert [feature.name for feature in result.features] == ["size", "site", "flag", "unit"]
    assert result.ranking[0].name == "site"
    assert str(result) == "1 of 4 columns differ: 'site' (p = 0.01)."
    assert result.features[3].pvalue == 1.0
    assert pickle.loads(pickle.dumps(result)).features == result.features
    same = frame(["a", "b"])
    assert str(explain_difference(same, same, rng=0, n_resamples=19)).startswith("No column alone shows a difference: ")


def test_bad_input_is_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    for call, sentence in [
        (lambda: explain_difference(X, X[:, :1]), "they must agree"),
        (lambda: explain_difference(X, X[:1]), "needs two of each"),
        (lambda: explain_difference(X, X, Precomputed()), "pass points"),
        (lambda: explain_difference(X, X, n_resamples=0), "n_resamples=0"),
        (lambda: explain_difference(X, X, rng=0, n_resamples=9).telling_rows(0), "count=0"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()
    assert explain_difference(X[:, :1], X[:, :1] + 3, rng=0, n_resamples=9).features[0].pvalue_without is None
