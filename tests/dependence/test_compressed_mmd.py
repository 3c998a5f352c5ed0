"""Two-sample statistics from landmarks and from coresets: what they estimate, and that their level is exact."""

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.base import BaseEstimator

import mercer
from mercer import Gaussian, Landmarks, Laplacian, Linear, Precomputed, QuadratureSparsifier, Sigmoid, mmd, mmd_test
from mercer.dependence import compressed_mmd, landmark_features, thinning
from mercer.dependence.bins import cut, discrepancies, size_of_bins
from mercer.dependence.compressed_mmd import compressed_statistics
from mercer.dependence.landmark_features import LandmarkFeatures
from mercer.dependence.pooled_sample import PooledSample
from mercer.dependence.relabelling import Drawing
from mercer.dependence.resampling import permutation_pvalue
from mercer.dependence.thinning import planned, thinned

KERNEL = Gaussian(2.0)


class FirstRows(BaseEstimator):
    """An estimator that chooses the first rows of what it is shown."""

    def __init__(self, count=10):
        self.count = count

    def fit(self, X, y=None):
        self.indices_ = np.arange(self.count)
        return self


def pooled(n, m, d=3, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n + m, d))
    points[n:] *= scale
    return pool_of(points, n)


def pool_of(points, n, weights=None):
    weights = np.ones(points.shape[0]) if weights is None else weights
    return PooledSample((KERNEL,), points, weights, n, points.shape[0] - n, np.zeros(1), None)


def drawn(seed, resamples):
    return Drawing(resamples, np.random.default_rng(seed), "rows", None)


def statistics(pool, compress, *, seed=0, resamples=99, kernels=(KERNEL,), unbiased=True):
    return compressed_statistics(pool._replace(kernels=kernels), compress, drawn(seed, resamples), unbiased=unbiased)


# --- bins -----------------------------------------------------------------------------------------------------------


def test_bins_cover_both_samples_once_and_what_is_left_over_stays():
    bins = cut((103, 58), 10, np.random.default_rng(0))
    assert sorted(bins.rows) == list(range(161))
    sizes = np.diff(np.append(bins.starts, 161))
    assert sorted(sizes[bins.exchanged]) == [10] * 15
    assert sorted(sizes[~bins.exchanged]) == [3, 8]
    labels = bins.labels(drawn(1, 200))
    assert np.array_equal(labels[0], bins.groups == 0)
    assert (labels[:, bins.exchanged].sum(axis=1) == 10).all()
    assert (labels[:, ~bins.exchanged] == (bins.groups == 0)[~bins.exchanged]).all()
    assert 0.5 < labels[1:, bins.exchanged].mean() < 0.8


def test_a_large_sample_beside_a_small_one_has_a_bounded_number_of_bins():
    bins = cut((100_000, 50), size_of_bins((100_000, 50), 128), np.random.default_rng(0))
    assert bins.starts.size == 1024 + 1 + 50
    assert bins.rows.size == 100_050


@pytest.mark.parametrize("unbiased", [True, False])
def test_bins_of_one_row_give_the_statistic_of_the_whole_matrix(unbiased):
    pool = pooled(30, 20)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 50)
    matrix = weights[:, None] * KERNEL(pool.points) * weights
    labels = np.arange(50) < 30
    found = discrepancies(matrix, weights, labels[None], unbiased=unbiased)[0]
    X, Y, a, b = pool.points[:30], pool.points[30:], weights[:30], weights[30:]
    a, b = a / a.sum(), b / b.sum()
    estimator = "unbiased" if unbiased else "biased"
    assert found == pytest.approx(mmd(X, Y, KERNEL, x_weights=a, y_weights=b, estimator=estimator), rel=1e-9)


# --- landmarks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [True, False])
def test_with_every_row_a_landmark_the_statistic_is_that_of_the_kernel(unbiased):
    pool = pooled(40, 30, scale=1.5)
    X, Y = pool.points[:40], pool.points[40:]
    found = statistics(pool, 70, unbiased=unbiased).values[0, 0]
    assert found == pytest.approx(mmd(X, Y, KERNEL, estimator="unbiased" if unbiased else "biased"), rel=1e-4)


def test_relabellings_are_those_of_the_completed_kernel(monkeypatch):
    """Against the definition: every relabelling by the dense matrix of the features, bins of several rows."""
    monkeypatch.setattr(compressed_mmd, "BINS", 8)
    pool, kept = pooled(45, 34, scale=1.3), {}
    original = compressed_mmd.landmark_features

    def remembered(*args):
        kept["features"] = original(*args)
        return kept["features"]

    monkeypatch.setattr(compressed_mmd, "landmark_features", remembered)
    found = statistics(pool, 12, unbiased=False, resamples=20).values[0]
    F = kept["features"].transform(pool.points)
    rng = np.random.default_rng(0)
    bins = cut((45, 34), 4, rng)
    labels = bins.labels(Drawing(20, rng, "rows", None))
    of_row = np.repeat(np.arange(bins.starts.size), np.diff(np.append(bins.starts, 79)))
    for value, label in zip(found, labels, strict=True):
        in_x = np.empty(79, bool)
        in_x[bins.rows] = label[of_row]
        w = pool.weights
        gap = w[in_x] @ F[in_x] / w[in_x].sum() - w[~in_x] @ F[~in_x] / w[~in_x].sum()
        assert value == pytest.approx(gap @ gap, rel=1e-8)


def test_a_weight_counts_as_repetitions():
    pool, counts = pooled(20, 15), np.random.default_rng(5).integers(1, 4, 35)
    features = LandmarkFeatures(KERNEL, pool.points[::3])
    repeated = pool_of(np.repeat(pool.points, counts, axis=0), int(counts[:20].sum()))
    values = []
    for each, weights in ((pool, counts.astype(float)), (repeated, repeated.weights)):
        each = each._replace(weights=weights)
        bins = cut((each.n, each.m), 1, None)
        matrix = compressed_mmd.feature_matrix(features, each.points, weights, bins).values
        values.append(discrepancies(matrix, bins.sums(weights), (bins.groups == 0)[None], unbiased=False)[0])
    assert values[0] == pytest.approx(values[1], rel=1e-10)


@pytest.mark.parametrize("compress", [15, "landmarks", Landmarks(15), QuadratureSparsifier(n_nodes=8), "thinning"])
def test_every_way_finds_a_large_difference_and_repeats_itself(compress):
    pool = pooled(150, 120, scale=2.0)
    one, two = (statistics(pool, compress, kernels=(KERNEL, Laplacian(3.0))).values for _ in range(2))
    assert one.shape == (2, 100)
    assert np.array_equal(one, two)
    assert (one[:, 0] > one[:, 1:].max(axis=1)).all()


def test_the_result_is_the_same_for_any_number_of_threads_and_nearly_so_in_single_precision():
    pool = pooled(1800, 1500, scale=1.1)
    values = []
    for threads in (1, 3):
        with mercer.config_context(n_threads=threads):
            values.append([statistics(pool, compress).values for compress in ("landmarks", "thinning")])
    assert np.array_equal(values[0], values[1])
    single = pool_of(pool.points.astype(np.float32), pool.n)
    found = statistics(single, FirstRows(40)).values
    assert found == pytest.approx(statistics(pool, FirstRows(40)).values, abs=2e-4 * KERNEL(pool.points[:1])[0, 0])


# --- level ----------------------------------------------------------------------------------------------------------


def rejections(compress, count=150, n=6, m=40):
    """How often samples of one law in 40 dimensions, where few landmarks see little, are told apart at 5 %."""
    rejected = 0
    for seed in range(count):
        pool = pooled(n, m, d=40, seed=seed)
        found = statistics(pool, compress, seed=seed + 9999, resamples=19, kernels=(Gaussian(6.0),), unbiased=False)
        rejected += permutation_pvalue(found.values[0, 0], found.values[0, 1:], found.roundings[0]) <= 0.05
    return rejected / count


def test_the_level_is_exact_even_if_the_choice_goes_by_the_order_of_rows(monkeypatch):
    """Of 150 tests at 5 % fewer than 12 % reject, four standard deviations; with landmarks of X alone most do."""
    assert rejections(FirstRows(6)) < 0.12
    monkeypatch.setattr(landmark_features, "_shuffled", lambda n, rng: np.arange(n))
    assert rejections(FirstRows(6), count=30) > 0.5


def test_ties_do_not_reject():
    """All rows equal: every statistic is zero to rounding, which must not decide."""
    pool = pool_of(np.full((64, 2), 0.3), 32)
    for compress in (4, "thinning"):
        found = statistics(pool, compress)
        assert permutation_pvalue(found.values[0, 0], found.values[0, 1:], found.roundings[0]) == 1.0


def test_rounding_of_tied_data_is_allowed_for():
    """Rows of two values only: relabellings with the same counts have the same statistic in exact arithmetic."""
    rng = np.random.default_rng(0)
    without = 0
    for seed in range(40):
        points = rng.integers(0, 2, (24, 3)) * np.array([0.1, 0.7, 1.3])
        points = points[rng.integers(0, 2, 24)]  # two different rows
        found = statistics(pool_of(points, 12), 6, seed=seed)
        observed, null, rounding = found.values[0, 0], found.values[0, 1:], found.roundings[0]
        same = np.abs(null - observed) <= 1e-7  # the lattice of exact values is far coarser
        assert (np.abs(null[same] - observed) <= rounding).all()
        without += permutation_pvalue(observed, null) < permutation_pvalue(observed, null, rounding)
    assert without > 0


# --- thinning -------------------------------------------------------------------------------------------------------


def test_coresets_are_rows_of_their_bins_and_far_better_than_random_ones():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1024, 2))
    plan = planned(512, 512)._replace(size=512, halvings=4)
    bins = cut((512, 512), 512, rng, rest=False)
    coresets = thinned([KERNEL], points, bins, plan, rng)
    assert coresets.shape == (2, 32)
    for bin_, coreset in enumerate(coresets):
        rows = bins.rows[512 * bin_ : 512 * (bin_ + 1)]
        assert np.unique(coreset).size == 32
        assert np.isin(coreset, rows).all()
        random = [mmd(points[rng.choice(rows, 32, replace=False)], points[rows], KERNEL) for _ in range(20)]
        assert mmd(points[coreset], points[rows], KERNEL) < 0.15 * np.mean(random)


def test_the_half_that_is_kept_is_unbiased():
    """Each row is kept half of the time: a coin decides which half is which."""
    points = np.random.default_rng(0).normal(size=(8, 2))
    plan, bins = planned(8, 8)._replace(size=8, halvings=1), cut((8, 0), 8, None, rest=False)
    kept = np.zeros(8)
    for seed in range(160):
        kept[thinned([KERNEL], points, bins, plan, np.random.default_rng(seed))[0]] += 1 / 160
    assert np.abs(kept - 0.5).max() < 0.17


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compress", "sentence"),
    [
        ("landmark", 'must be "landmarks", a number of landmarks'),
        (True, 'must be "landmarks", a number of landmarks'),
        (1, "must be a whole number of at least 2"),
        (2.5, 'must be "landmarks", a number of landmarks'),
        (Landmarks(3).fit(np.eye(5)), "is fitted already"),
    ],
)
def test_bad_ways_of_compressing_are_named(compress, sentence):
    with pytest.raises(ValueError, match=sentence):
        statistics(pooled(20, 20), compress)


def test_what_a_way_cannot_do_is_said():
    pool = pooled(20, 20)
    with pytest.raises(ValueError, match="takes no weights"):
        statistics(pool._replace(weights=np.arange(1.0, 41.0)), "thinning")
    with pytest.raises(ValueError, match="no features"):
        statistics(pool, 5, kernels=(Sigmoid(0.1, -1.0),))
    with pytest.raises(ValueError, match="vanishes"):
        statistics(pool_of(np.zeros((40, 2)), 20), 5, kernels=(Linear(),))


def test_tensors_give_what_arrays_give():
    torch = pytest.importorskip("torch")
    pool = pooled(60, 50, scale=1.4)
    tensors = pool_of(torch.as_tensor(pool.points), 60, pool.weights)
    for compress in (10, "thinning"):
        assert statistics(tensors, compress).values == pytest.approx(statistics(pool, compress).values, rel=1e-6)


# --- mmd_test(compress=…) ---------------------------------------------------------------------------------------------


def test_the_test_of_two_samples_takes_it():
    chance = np.random.default_rng(0)
    X, Y = chance.normal(size=(300, 2)), chance.normal(size=(260, 2)) * 1.5
    for compress in ("landmarks", 40, "thinning"):
        result = mmd_test(X, Y, n_resamples=199, compress=compress, rng=0)
        assert result.pvalue == 0.005
        assert len(result.parts) > 1
        assert result.witness(X[:2]).shape == (2,)
    with_weights = mmd_test(X, Y, KERNEL, x_weights=np.ones(300), y_weights=np.ones(260), compress=30, rng=1)
    assert with_weights.statistic == pytest.approx(mmd_test(X, Y, KERNEL, compress=30, rng=1).statistic)


def test_few_rows_have_all_their_labellings():
    X, Y = np.array([[0.0], [0.1], [0.2], [0.3]]), np.array([[5.0], [5.1], [5.2], [5.3]])
    result = mmd_test(X, Y, Gaussian(1.0), compress=4, rng=0)
    assert result.n_resamples == 69
    assert result.pvalue == pytest.approx(2 / 70)


def test_bins_of_consecutive_rows_for_series():
    """An autoregression of correlation 0.95: bins of two rows reject far too often, long ones do not."""
    short = long = 0
    for seed in range(30):
        noise = np.random.default_rng(seed).normal(size=(2, 400, 1))
        series = lfilter([1.0], [1.0, -0.95], noise, axis=1)
        options = {"n_resamples": 39, "compress": 12, "scheme": "blocks", "rng": seed}
        short += mmd_test(*series, Gaussian(3.0), block_length=2, **options).rejects(0.05)
        long += mmd_test(*series, Gaussian(3.0), block_length=57, **options).rejects(0.05)
    assert short > 18
    assert long < 9


def test_frames_with_categories():
    pd = pytest.importorskip("pandas")
    chance = np.random.default_rng(0)
    X, Y = (
        pd.DataFrame({"x": chance.normal(size=200), "kind": chance.choice(["a", "b"], 200, p=[p, 1 - p])})
        for p in (0.7, 0.3)
    )
    for compress in (20, "thinning"):
        assert mmd_test(X, Y, n_resamples=99, compress=compress, rng=0).pvalue == 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"null": "gamma"}, "knows no compress"),
        ({"estimator": "linear"}, "does not go with compress"),
        ({"scheme": "shifts"}, "scheme='shifts' does not go with compress=10"),
        ({"scheme": "blocks", "compress": "thinning"}, "scheme='blocks' does not go with compress='thinning'"),
        ({"compress": "landmark"}, "compress='landmark' must be"),
    ],
)
def test_what_does_not_go_together_is_said(options, sentence):
    pool = pooled(20, 20)
    with pytest.raises(ValueError, match=sentence):
        mmd_test(pool.points[:20], pool.points[20:], KERNEL, **{"compress": 10, **options})


def test_a_matrix_and_three_rows_are_not_compressed():
    points = pooled(20, 20).points
    K = KERNEL(points)
    with pytest.raises(ValueError, match="has them all"):
        mmd_test(K[:20], K[20:], Precomputed(), compress=10)
    with pytest.raises(ValueError, match="needs 4 rows in each sample"):
        mmd_test(points[:3], points[3:], KERNEL, compress=10)


def test_the_level_of_thinning_is_held(monkeypatch):
    """Of 50 tests at 10 % with coresets of half of the rows, fewer than 28 % reject: four standard deviations."""
    monkeypatch.setattr(thinning, "_BINS", 4)
    assert thinning.planned(256, 256) == (64, 1)
    rejected = 0
    for seed in range(50):
        points = np.random.default_rng(seed).integers(0, 4, (512, 2)).astype(float)
        found = mmd_test(points[:256], points[256:], KERNEL, n_resamples=29, compress="thinning", rng=seed)
        rejected += found.rejects(0.1)
    assert rejected < 14
