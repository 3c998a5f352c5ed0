"""NoveltyDetector: its score by plain NumPy, leave-one-out, weights, thresholds, and what it finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import Gaussian, Mixed, NoveltyDetector, config_context
from mercer.datasets import three_clusters

rng = np.random.default_rng(7)
X = np.concatenate([rng.normal(size=(60, 3)), 0.3 * rng.normal(size=(30, 3)) + 4, rng.uniform(-8, 8, (6, 3))])
NEW = rng.uniform(-6, 6, (25, 3))
WIDE = rng.normal(size=(70, 20)) * np.linspace(1, 0.3, 20)  # more columns than a tree takes
ATTRIBUTES = ("offset_", "dimension_", "n_neighbors_")


def distances(rows, others):
    return np.sqrt(((rows[:, None] - others) ** 2).sum(axis=2))


def kernel_distances(kernel, rows, others):
    squares = kernel.diag(rows)[:, None] + kernel.diag(others) - 2 * kernel(rows, others)
    return np.sqrt(np.maximum(squares, 0))


def levels(k, between):
    """log R_k(y) without units for all rows, given their distances; a row does not count itself."""
    apart = between + np.diag(np.full(len(between), np.inf))
    return np.sort(apart, axis=1)[:, k - 1]


def plain_parts(x, rows, model, measure=distances):
    """The distances and the ratio of one point from the rows of a fit, sorted and averaged one by one."""
    rule, total = model._reference.rule, 0.0
    between, to_x = measure(rows, rows), measure(x[None], rows)[0]

    def logarithm(radius, unit):
        return 0.5 * np.log((radius / unit) ** 2 + 0.1**2)

    near = np.argsort(to_x, kind="stable")
    for k, unit in zip(rule.counts.astype(int), rule.units, strict=True):
        own, theirs = logarithm(to_x[near[k - 1]], unit), logarithm(levels(k, between)[near[:k]], unit)
        total += own - theirs.mean()
    return logarithm(to_x[near[int(rule.wide) - 1]], rule.wide_unit), own, total / len(model.n_neighbors_)


def plain_score(x, rows, model, measure=distances):
    """The score: the most unusual of three sums of the parts, by the quartiles that the model has of its rows."""
    (far, near, ratio), views = plain_parts(x, rows, model, measure), model._reference.views
    return max(
        (level + c * ratio - middle) / spread
        for level, c, middle, spread in zip((far, near, near), views.weights, views.middles, views.spreads, strict=True)
    )


def plain_dimension(between, k=20):
    near = np.sort(between + np.diag(np.full(len(between), np.inf)), axis=1)[:, :k]
    return 1 / np.log(near[:, -1:] / near[:, :-1]).mean()


# --- the score ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [X, WIDE], ids=["tree", "all pairs"])
def test_the_score_of_new_points_is_the_one_of_the_docstring(points):
    model = NoveltyDetector(n_neighbors=(3, 10), locality=0.5, standardize=False).fit(points)
    scale = model.divisors_[0]
    assert np.all(model.divisors_ == scale)
    assert np.log2(scale) == round(np.log2(scale))
    between = distances(points, points) / scale
    rule = model._reference.rule
    most = len(points) // 4
    assert (list(rule.counts), rule.wide) == ([3, 10], most)
    units = [np.quantile(levels(k, between), 0.5, method="inverted_cdf") for k in (3, 10, most)]
    np.testing.assert_allclose([*rule.units, rule.wide_unit], units, rtol=1e-12)
    assert model.dimension_ == pytest.approx(plain_dimension(between), rel=1e-12)
    np.testing.assert_allclose(model._reference.views.weights, 0.5 * model.dimension_ * np.array([0.125, 0.125, 1]))
    new = np.random.default_rng(0).normal(size=(12, points.shape[1])) * 3
    expected = [plain_score(x, points / scale, model) for x in new / scale]
    np.testing.assert_allclose(model.novelty(new), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.score_samples(new), -model.novelty(new))
    np.testing.assert_array_equal(model.decision_function(new), model.score_samples(new) - model.offset_)


@pytest.mark.parametrize("points", [X, WIDE], ids=["tree", "all pairs"])
def test_a_training_row_has_the_score_that_all_other_rows_give_it(points):
    model = NoveltyDetector(n_neighbors=(2, 5, 20), standardize=False).fit(points)
    rows = points / model.divisors_
    expected = [plain_score(rows[i], np.delete(rows, i, axis=0), model) for i in range(len(rows))]
    np.testing.assert_allclose(model.novelty(points), expected, rtol=1e-10, atol=1e-12)
    parts = np.array([plain_parts(rows[i], np.delete(rows, i, axis=0), model) for i in range(len(rows))])
    views = model._reference.views
    sums = parts[:, [0, 1, 1]] + parts[:, 2:] * views.weights
    low, middle, high = np.quantile(sums, (0.25, 0.5, 0.75), axis=0, method="inverted_cdf")
    np.testing.assert_allclose(views.middles, middle, rtol=1e-9)
    np.testing.assert_allclose(views.spreads, high - low, rtol=1e-9)
    shifted = model.novelty(points + 1e-9)  # as new points, with a copy of themselves among the neighbours
    assert np.mean(shifted < model.novelty(points)) > 0.8


def test_the_distance_of_a_kernel():
    kernel = Gaussian(2.0)
    model = NoveltyDetector(kernel, n_neighbors=(4, 9)).fit(X)
    assert model.divisors_ is None
    for name, rows in (("new", NEW), ("training", X)):
        expected = [
            plain_score(
                x,
                X if name == "new" else np.delete(X, i, axis=0),
                model,
                lambda rows, others: kernel_distances(kernel, rows, others),
            )
            for i, x in enumerate(rows)
        ]
        np.testing.assert_allclose(model.novelty(rows), expected, rtol=1e-7)
    linear = NoveltyDetector("linear", n_neighbors=(4, 9)).fit(X)
    euclidean = NoveltyDetector(n_neighbors=(4, 9), standardize=False).fit(X)
    np.testing.assert_allclose(linear.novelty(NEW), euclidean.novelty(NEW), rtol=1e-6)


def test_words_and_numbers():
    table = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))})
    model = NoveltyDetector(Mixed(), n_neighbors=5).fit(table)
    assert model.novelty(table).shape == (len(X),)
    assert model.novelty(table.assign(a=table["a"] + 50)).min() > model.novelty(table).max() - 2
    with pytest.raises(ValueError, match="holds categories"):
        NoveltyDetector().fit(table)


# --- rows that count several times ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=["Euclidean", "kernel"])
@pytest.mark.parametrize("threshold", [{}, {"contamination": 0.07}, {"false_alarms": 0.05}], ids=str)
def test_weights_are_repeated_rows(kernel, threshold):
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    counts[0] = 12  # more copies than the smallest neighbourhood
    detector = NoveltyDetector(kernel, n_neighbors=(3, 8), **threshold)
    weighted = mercer.NoveltyDetector(**detector.get_params(deep=False)).fit(X, sample_weight=counts)
    repeated = detector.fit(np.repeat(X, counts, axis=0))
    for rows in (NEW, X, X[counts == 0]):
        np.testing.assert_allclose(weighted.novelty(rows), repeated.novelty(rows), rtol=1e-9)
        np.testing.assert_array_equal(weighted.predict(rows), repeated.predict(rows))
    np.testing.assert_array_equal(weighted.fit_predict(X, sample_weight=counts), weighted.predict(X))
    for name in ATTRIBUTES:
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-9)


def test_parts_of_rows_count_as_parts():
    whole = NoveltyDetector(n_neighbors=4, standardize=False).fit(X)
    halves = NoveltyDetector(n_neighbors=2, standardize=False).fit(X, sample_weight=np.full(len(X), 0.5))
    np.testing.assert_allclose(halves._reference.radii, whole._reference.radii, rtol=1e-12)
    np.testing.assert_allclose(
        halves.novelty(NEW),
        NoveltyDetector(n_neighbors=4, standardize=False).fit(X).novelty(NEW),
        rtol=1e-10,
        atol=1e-12,
    )


def test_a_copy_is_a_neighbour_and_the_row_itself_is_not():
    alone = NoveltyDetector(n_neighbors=1, locality=0, standardize=False).fit(X)
    twice = NoveltyDetector(n_neighbors=1, locality=0, standardize=False).fit(np.concatenate([X, X[:1]]))
    # Of six neighbours the copy is one, so that the row reaches as far as five of the others, not six.
    apart = np.sort(distances(X[:1], X)[0])[1:]
    for model, lengths in ((alone, apart[[5, 0]]), (twice, [apart[4], 0.0])):
        rule, views = model._reference.rule, model._reference.views
        units = np.array([rule.wide_unit, rule.units[0]]) * model.divisors_[0]
        empty = 0.5 * np.log((lengths / units) ** 2 + 0.01)
        assert model.novelty(X[:1])[0] == pytest.approx(np.max((empty - views.middles[:2]) / views.spreads[:2]))


def test_many_copies_stay_finite():
    points = np.concatenate([np.zeros((50, 2)), np.ones((50, 2)), [[3.0, 3.0]]])
    model = NoveltyDetector().fit(points)
    scores = model.novelty(np.concatenate([points, [[0.5, 0.5], [1e300, -1e300]]]))
    assert np.all(np.isfinite(scores))
    assert np.argmax(scores[:101]) == 100
    assert scores[-1] == scores.max()


# --- columns -------------------------------------------------------------------------------------------------------


def test_units_do_not_matter_where_they_differ():
    scaled = X * [1.0, 1e4, 1e-3]
    first, second = NoveltyDetector().fit(scaled), NoveltyDetector().fit(scaled * [1e3, 1e-3, 7.0])
    np.testing.assert_allclose(
        first.novelty(NEW * [1.0, 1e4, 1e-3]), second.novelty(NEW * [1e3, 10.0, 7e-3]), rtol=1e-9
    )
    same = NoveltyDetector(standardize=True).fit(X)
    np.testing.assert_allclose(first.novelty(scaled), same.novelty(X), rtol=1e-9)
    quartiles = np.quantile(X, (0.25, 0.75), axis=0, method="inverted_cdf")
    ratio = same.divisors_ / ((quartiles[1] - quartiles[0]) / 1.349)
    np.testing.assert_allclose(ratio, ratio[0])


def test_columns_of_one_unit_are_left_alone():
    model = NoveltyDetector().fit(X * [1.0, 4.0, 2.0])
    assert np.ptp(model.divisors_) == 0
    pixels = np.random.default_rng(0).integers(0, 256, (100, 30)) * 1.0
    pixels[:, :6] = 0
    pixels[3, :6] = 255  # a rim that one image reaches
    assert np.ptp(NoveltyDetector().fit(pixels).divisors_) == 0


def test_a_column_of_mostly_one_value_is_divided_by_its_deviation():
    table = np.column_stack([1e3 * X[:, 0], X[:, 1], np.arange(len(X)) % 10 == 0])
    model = NoveltyDetector().fit(table)
    expected = table[:, 2].std() / (
        (np.subtract(*np.quantile(table[:, 1], (0.75, 0.25), method="inverted_cdf"))) / 1.349
    )
    assert model.divisors_[2] / model.divisors_[1] == pytest.approx(expected)


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_the_score_has_no_unit(factor):
    plain, scaled = NoveltyDetector().fit(X), NoveltyDetector().fit(factor * X)
    np.testing.assert_allclose(scaled.novelty(factor * NEW), plain.novelty(NEW), rtol=1e-9)
    np.testing.assert_allclose(scaled.novelty(factor * X), plain.novelty(X), rtol=1e-9)


# --- thresholds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [1e160, 1e200, 1e300, 1.7e308])
def test_one_row_far_out_does_not_hide_the_others(far):
    X = np.random.default_rng(2).normal(size=(120, 3))
    X[:2] += 9.0
    model = NoveltyDetector().fit(np.concatenate([X, [[far] * 3]]))
    expected = NoveltyDetector().fit(np.concatenate([X, [[1e20] * 3]]))
    assert model.score_samples(X) == pytest.approx(expected.score_samples(X), rel=1e-5)
    assert (model.predict([[10.0] * 3, [0.0] * 3, [1e305] * 3]) == [-1, 1, -1]).all()
    widest = X / abs(X).max() * 1.7e308
    assert NoveltyDetector().fit(widest).score_samples(widest) == pytest.approx(
        NoveltyDetector().fit(X).score_samples(X), rel=1e-9
    )


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.25, 0.5])
def test_contamination_is_exactly_the_share_of_the_training_rows(share):
    points = np.random.default_rng(3).normal(size=(300, 2))
    detector = NoveltyDetector(contamination=share)
    labels = detector.fit_predict(points)
    assert np.sum(labels == -1) == round(300 * share)
    np.testing.assert_array_equal(labels, detector.predict(points))
    np.testing.assert_array_equal(labels == -1, detector.decision_function(points) < 0)
    assert set(np.argsort(detector.score_samples(points))[: round(300 * share)]) == set(np.flatnonzero(labels == -1))


def test_the_rate_of_false_alarms_holds_on_fresh_rows():
    alarms, fresh, rate = 0, 400, 0.05
    runs = 40
    for seed in range(runs):
        points = np.random.default_rng(seed).normal(size=(150 + fresh, 2))
        detector = NoveltyDetector(n_neighbors=(5, 10), false_alarms=rate).fit(points[:150])
        alarms += int(np.sum(detector.predict(points[150:]) == -1))
    # Given its training rows, a detector's rate is a Beta variable of (7, 144): the mean is 7/151.
    mean, spread = 7 / 151, np.sqrt(7 * 144 / (151**2 * 152))
    deviation = np.sqrt(runs * (fresh * mean * (1 - mean) + (fresh * spread) ** 2))
    assert abs(alarms - runs * fresh * mean) < 4 * deviation
    assert alarms <= binom.ppf(0.9999, runs * fresh, rate) + 4 * np.sqrt(runs) * fresh * spread


def test_a_training_row_is_as_likely_of_any_rank_as_a_new_one():
    # The mean rank of a fresh row among the scores of the training rows is one half, up to what one row more or less in
    # two hundred does. Counting a row as its own neighbour makes it .53.
    ranks = []
    for seed in range(60):
        points = np.random.default_rng(100 + seed).normal(size=(240, 2))
        model = NoveltyDetector(n_neighbors=(4, 16), standardize=False).fit(points[:200])
        known, fresh = model.novelty(points[:200]), model.novelty(points[200:])
        ranks.append(np.mean(fresh[:, None] > known))
    assert abs(np.mean(ranks) - 0.5) < 4 * np.std(ranks) / np.sqrt(len(ranks)) + 0.005


def test_the_fence_is_that_of_the_box_plot():
    detector = NoveltyDetector().fit(X)
    low, high = np.quantile(detector.score_samples(X), (0.25, 0.75), method="inverted_cdf")
    assert detector.offset_ == low - 1.5 * (high - low)


# --- what it finds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_outliers_around_clusters(share):
    points, labels = three_clusters(200, round(600 * share / (1 - share)), random_state=11)
    detector = NoveltyDetector().fit(points)
    assert roc_auc_score(labels == -1, detector.novelty(points)) > 0.98


def test_a_group_of_other_density_is_not_novel():
    # A wide cluster beside a narrow one, and a point near the narrow one: locality finds it, distances alone do not.
    wide, narrow = np.random.default_rng(0).normal(size=(200, 2)), 0.02 * np.random.default_rng(1).normal(size=(200, 2))
    points = np.concatenate([wide, narrow + 6, [[6.3, 6.0]]])
    assert np.argmax(NoveltyDetector(locality=3).fit(points).novelty(points)) == 400
    assert np.argmax(NoveltyDetector(locality=0).fit(points).novelty(points)) < 200


def test_a_small_group_far_away_is_novel_though_its_rows_have_neighbours():
    # Thirty rows that are near each other differ from their neighbours in nothing. In a sum with the distance to many
    # others that hides them behind rows that differ from theirs by chance: it has .61 here.
    rng = np.random.default_rng(4)
    group = 0.3 * rng.normal(size=(30, 12)) + 7 * np.eye(12)[0]
    points, odd = np.concatenate([rng.normal(size=(570, 12)), group]), np.arange(600) >= 570
    assert roc_auc_score(odd, NoveltyDetector().fit(points).novelty(points)) > 0.95


def test_rows_of_a_grid_are_alike_and_one_beside_it_is_not():
    # All rows of a ring of equal steps have the same distances up to rounding, which is no spread to measure by.
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    model = NoveltyDetector().fit(ring)
    assert np.all(np.abs(model.novelty(ring)) < 1e-6)
    assert np.all(model.novelty([[0.0, 0.0], [1.3, 0.0]]) > 0.1)


# --- in company ----------------------------------------------------------------------------------------------------


def test_pipeline_and_grid_search():
    points, labels = three_clusters(60, 20, random_state=3)
    pipe = make_pipeline(StandardScaler(), NoveltyDetector(contamination=0.1))
    found = pipe.fit_predict(points)
    assert roc_auc_score(labels == -1, -pipe.score_samples(points)) > 0.95
    np.testing.assert_array_equal(found, pipe.predict(points))
    search = GridSearchCV(
        pipe,
        {"noveltydetector__locality": [0.0, 1 / 3], "noveltydetector__n_neighbors": [4, (8, 16)]},
        scoring="roc_auc",
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ).fit(points, labels != -1)
    assert search.best_score_ > 0.95


def test_single_precision_and_tensors():
    torch = pytest.importorskip("torch")
    model = NoveltyDetector().fit(X)
    narrow = NoveltyDetector().fit(X.astype(np.float32))
    np.testing.assert_allclose(narrow.novelty(NEW), model.novelty(NEW), atol=1e-4)
    with config_context(dtype="float32"):
        np.testing.assert_allclose(NoveltyDetector().fit(X).novelty(NEW), model.novelty(NEW), atol=1e-4)
    tensor = NoveltyDetector().fit(torch.as_tensor(X))
    scores = tensor.novelty(torch.as_tensor(NEW))
    assert torch.is_tensor(scores)
    np.testing.assert_array_equal(scores.numpy(), model.novelty(NEW))
    assert torch.is_tensor(tensor.predict(torch.as_tensor(NEW)))
    kernel = NoveltyDetector(Gaussian(2.0), n_neighbors=4).fit(torch.as_tensor(X))
    np.testing.assert_allclose(
        kernel.novelty(torch.as_tensor(NEW)).numpy(),
        NoveltyDetector(Gaussian(2.0), n_neighbors=4).fit(X).novelty(NEW),
        rtol=1e-6,
    )


def test_a_saved_model_says_the_same(tmp_path):
    model = NoveltyDetector(false_alarms=0.1).fit(X, sample_weight=np.arange(1.0, len(X) + 1))
    mercer.save(model, tmp_path / "a.mercer")
    again = mercer.load(tmp_path / "a.mercer")
    for rows in (X, NEW):
        np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again.offset_ == model.offset_


def test_the_answer_does_not_depend_on_the_threads():
    points = np.random.default_rng(5).normal(size=(9000, 2))
    with config_context(n_threads=1):
        one = NoveltyDetector().fit(points).novelty(points)
    with config_context(n_threads=3):
        np.testing.assert_array_equal(NoveltyDetector().fit(points).novelty(points), one)


@pytest.mark.parametrize("size", [2, 3, 5, 9])
def test_few_rows(size):
    model = NoveltyDetector().fit(X[:size])
    assert np.all(np.isfinite(model.novelty(X[:20])))
    assert model.n_neighbors_ == (max(1, size // 4),)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"contamination": 0.6}, "contamination=0.6 must be 'auto' or a share of the rows above 0 and up to 0.5"),
        ({"contamination": "some"}, "contamination='some' must be 'auto'"),
        ({"contamination": True}, "contamination=True must be 'auto'"),
        ({"contamination": 0.1, "false_alarms": 0.1}, "give one of them"),
        ({"false_alarms": 0}, "false_alarms=0 must lie strictly between 0 and 1"),
        ({"false_alarms": 0.001}, "false_alarms=0.001 is rarer than 96 rows can tell: pass 999 rows, or false_alarms=0.011"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": ()}, "n_neighbors is empty"),
        ({"n_neighbors": (3, 2.5)}, "n_neighbors"),
        ({"locality": 1e308}, "locality=1e.308 must be at most"),
        ({"locality": -1}, "locality"),
        ({"standardize": "yes"}, "standardize='yes' must be one of"),
        ({"kernel": Gaussian(), "standardize": True}, "standardize=True is for Euclidean distances"),
        ({"kernel": "precomputed"}, "pass points, not Precomputed"),
        ({"kernel": mercer.SelfTuning()}, "compares neighbours alone"),
        ({"kernel": mercer.Sigmoid()}, "is not positive definite, so it has no distance"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_parameters_are_one_sentence(parameters, sentence):
    detector = NoveltyDetector(**parameters)
    with pytest.raises((ValueError, TypeError), match="(?s)" + sentence.replace("(", r"\(")):
        detector.fit(X)
    assert not hasattr(detector, "offset_")


def test_wrong_rows_are_one_sentence():
    with pytest.raises(ValueError, match="All points are equal"):
        NoveltyDetector().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="sample_weight counts rows, and its sum is 1:"):
        NoveltyDetector().fit(X, sample_weight=np.full(len(X), 1 / len(X)))
    with pytest.raises(ValueError, match="negative"):
        NoveltyDetector().fit(X, sample_weight=-np.ones(len(X)))
    with config_context(memory_limit="20MB"), pytest.raises(MemoryError, match="lower n_neighbors"):
        NoveltyDetector(n_neighbors=2000).fit(np.random.default_rng(0).normal(size=(3000, 2)))
    model = NoveltyDetector().fit(X)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])
