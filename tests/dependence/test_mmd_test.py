"""The kernel two-sample test: statistics, nulls, invariants."""

import itertools
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer
from mercer import (
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    MeanEmbedding,
    Precomputed,
    explain_difference,
    k_sample_test,
    mmd,
    mmd_test,
)
from mercer.dependence.block_length import autocorrelation_time, series_block_length
from mercer.dependence.fast_nulls import (
    centred_eigenvalues,
    centred_traces,
    contrast_traces,
    permutation_moments,
    spectral_draws,
)
from mercer.dependence.kernel_collection import column_units

rng = np.random.default_rng(7)
X = rng.normal(size=(30, 2))
Y = rng.normal(size=(22, 2)) + 0.7
A = rng.uniform(0.5, 2.0, 30)
B = rng.uniform(0.5, 2.0, 22)


def relabelled(kernel, X, Y, labels, estimator):
    pooled = np.concatenate([X, Y])
    return mmd(pooled[labels], pooled[~labels], kernel, estimator=estimator)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_every_labelling_of_small_samples(estimator):
    """Few labellings are all counted, and each has the statistic that the discrepancy of the relabelled samples is."""
    X, Y = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    result = mmd_test(X, Y, Laplacian(1.3), estimator=estimator)
    labels = np.zeros((35, 7), dtype=bool)
    for row, chosen in zip(labels, itertools.combinations(range(7), 3), strict=True):
        row[list(chosen)] = True
    expected = np.array([relabelled(Laplacian(1.3), X, Y, row, estimator) for row in labels])
    np.testing.assert_allclose(np.r_[result.statistic, result.null_distribution], expected, rtol=1e-12, atol=1e-15)
    assert result.n_resamples == 34
    assert result.pvalue == np.mean(expected >= expected[0] - 1e-13)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_statistic_is_the_discrepancy(estimator):
    result = mmd_test(X, Y, Gaussian(1.2), estimator=estimator, n_resamples=50, rng=0)
    np.testing.assert_allclose(result.statistic, mmd(X, Y, Gaussian(1.2), estimator=estimator), rtol=1e-12)
    assert result.null_distribution.shape == (50,)
    assert result.sizes == (30, 22)


def test_tiles_threads_and_memory_change_nothing(monkeypatch):
    """Many small tiles, of a kernel with negative values too, give what one gives."""
    kernels = [Gaussian(0.8), Linear()]
    whole = mmd_test(X, Y, kernels, n_resamples=40, rng=3)
    monkeypatch.setattr("mercer.dependence.mmd_statistics._TILE", 16)
    with mercer.config_context(n_threads=2):
        tiled = mmd_test(X, Y, kernels, n_resamples=40, rng=3)
    np.testing.assert_allclose(tiled.null_distribution, whole.null_distribution, rtol=1e-9)
    seen: list[float] = []
    with mercer.config_context(n_threads=1):
        again = mmd_test(X, Y, kernels, n_resamples=40, rng=3, progress=seen.append)
    np.testing.assert_allclose(seen, np.arange(1, 5) / 4)  # a row of tiles each
    np.testing.assert_array_equal(again.null_distribution, tiled.null_distribution)


def test_no_matrix_of_all_pairs():
    """The kernel matrix of these rows would take 72 MB; the labels are bits, and tiles keep to the memory limit."""
    points = rng.normal(size=(3000, 2))
    mmd_test(points[:9], points[9:18], Gaussian(1.0), n_resamples=9)
    tracemalloc.start()
    with mercer.config_context(memory_limit="64MB", n_threads=1):
        result = mmd_test(points[:1000], points[1000:], Gaussian(1.0), n_resamples=49, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.n_resamples == 49
    assert peak < 25e6


def test_weights_are_repeated_rows_in_the_statistic_and_travel():
    counts = [rng.integers(1, 4, size) for size in (30, 22)]
    weighted = mmd_test(X, Y, Gaussian(1.0), estimator="biased", x_weights=counts[0], y_weights=counts[1], rng=0)
    repeated = mmd_test(np.repeat(X, counts[0], 0), np.repeat(Y, counts[1], 0), Gaussian(1.0), estimator="biased")
    np.testing.assert_allclose(weighted.statistic, repeated.statistic, rtol=1e-12)
    plain = mmd_test(X, Y, rng=0)
    equal = mmd_test(X, Y, x_weights=2.0, y_weights=np.full(22, 2.0), rng=0)
    assert (plain.statistic, plain.pvalue) == (equal.statistic, equal.pvalue)
    for estimator in ("biased", "unbiased"):
        few = mmd_test(X[:3], Y[:3], Laplacian(1.0), estimator=estimator, x_weights=A[:3], y_weights=B[:3])
        points, weights = np.concatenate([X[:3], Y[:3]]), np.concatenate([A[:3], B[:3]])
        expected = []
        for chosen in itertools.combinations(range(6), 3):
            a, b = list(chosen), [i for i in range(6) if i not in chosen]
            parts = {"x_weights": weights[a] / weights[a].sum(), "y_weights": weights[b] / weights[b].sum()}
            expected.append(mmd(points[a], points[b], Laplacian(1.0), estimator=estimator, **parts))
        np.testing.assert_allclose(np.r_[few.statistic, few.null_distribution], expected, rtol=1e-11, atol=1e-15)


def test_rows_without_weight_are_not_there():
    a, b = A.copy(), B.copy()
    a[5:], b[9:] = 0.0, 0.0
    some = mmd_test(X, Y, x_weights=a, y_weights=b, n_resamples=99, rng=1)
    gone = mmd_test(X[:5], Y[:9], x_weights=a[:5], y_weights=b[:9], n_resamples=99, rng=1)
    assert (some.pvalue, some.statistic, some.sizes) == (gone.pvalue, gone.statistic, (5, 9))


def test_precomputed_is_the_same_test():
    kernel = Gaussian(1.1)
    joint = kernel(np.concatenate([X, Y]))
    given = mmd_test(joint[:30], joint[30:], Precomputed(), x_weights=A, y_weights=B, rng=4)
    points = mmd_test(X, Y, kernel, x_weights=A, y_weights=B, rng=4)
    np.testing.assert_allclose(given.null_distribution, points.null_distribution, atol=1e-14)
    Z = rng.normal(size=(5, 2))
    np.testing.assert_allclose(given.witness(kernel(Z, np.concatenate([X, Y]))), points.witness(Z), rtol=1e-9)
    with pytest.raises(ValueError, match="one column for each of the 52 rows"):
        mmd_test(joint[:30, :30], joint[30:, 30:], Precomputed())
    with pytest.raises(ValueError, match="Z has 3 columns"):
        given.witness(np.zeros((2, 3)))


def test_ties_count_against_rejection():
    """On a few values most relabellings have exactly the statistic of another: last bits must not decide."""
    x, y = np.array([0, 0, 1, 1, 2, 1, 0, 2])[:, None] * 0.1, np.array([1, 2, 2, 1, 2, 0, 2, 2])[:, None] * 0.1
    result = mmd_test(x, y, Gaussian(0.37), n_resamples=13_000)
    labels = np.array(list(itertools.combinations(range(16), 8)))
    pooled = np.rint(np.concatenate([x, y])[:, 0] * 10).astype(int)
    counts = np.stack([(pooled[labels] == value).sum(1) for value in range(3)], axis=1)
    total = np.bincount(pooled)
    gram = Gaussian(0.37)(np.arange(3)[:, None] * 0.1)
    gap = (2 * counts - total) / 8
    exact = np.round(np.einsum("ci,ij,cj->c", gap, gram, gap), 12)  # but for a constant, the unbiased statistic
    assert result.pvalue == np.mean(exact >= exact[0])
    assert result.pvalue > (1 + np.sum(result.null_distribution >= result.statistic)) / exact.size


def test_formulas_know_the_moments_of_all_reorderings():
    n, m = 4, 3
    kernel, points = Laplacian(1.0), rng.normal(size=(7, 2))
    every = mmd_test(points[:n], points[n:], kernel, estimator="biased")
    values = np.r_[every.statistic, every.null_distribution]
    traces = centred_traces(kernel.matrix(points))
    mean, variance = permutation_moments(traces, contrast_traces(n, m), 7)
    np.testing.assert_allclose([mean, variance], [values.mean(), values.var()], rtol=1e-10)


@pytest.mark.parametrize("null", ["gamma", "spectral"])
def test_formulas_agree_with_relabelling(null):
    for shift in (0.0, 0.25):
        one, two = rng.normal(size=(80, 2)), rng.normal(size=(50, 2)) + shift
        exact = mmd_test(one, two, Gaussian(), n_resamples=1999, rng=0)
        quick = mmd_test(one, two, null=null, n_resamples=1999, rng=0)
        assert quick.statistic == pytest.approx(exact.statistic, rel=1e-12)
        assert abs(quick.pvalue - exact.pvalue) < 0.05
        assert "approximation of chance" in str(quick)


def test_low_rank_spectrum_is_the_spectrum(monkeypatch):
    gram = GramOperator(Gaussian(1.0), rng.normal(size=(150, 2)))
    exact = centred_eigenvalues(gram, np.random.default_rng(0))
    centring = np.eye(150) - 1 / 150
    np.testing.assert_allclose(exact[:20], np.linalg.eigvalsh(centring @ gram.to_dense() @ centring)[::-1][:20])
    monkeypatch.setattr("mercer.dependence.fast_nulls._DENSE", 100)
    low = centred_eigenvalues(gram, np.random.default_rng(0))
    np.testing.assert_allclose(low[:10], exact[:10], rtol=1e-3)


def test_spectral_draws_have_the_moments_and_the_skewness():
    eigenvalues = np.array([3.0, 1.0, 0.5])
    draws = spectral_draws(eigenvalues, 2.0, 4.0, 200_000, np.random.default_rng(0))
    np.testing.assert_allclose([draws.mean(), draws.var()], [2.0, 4.0], rtol=0.02)
    skewness = 8 * np.sum(eigenvalues**3) / (2 * np.sum(eigenvalues**2)) ** 1.5
    assert np.mean(((draws - 2) / 2) ** 3) == pytest.approx(skewness, rel=0.05)
    assert (spectral_draws(np.zeros(0), 2.0, 0.0, 3, np.random.default_rng(0)) == 2.0).all()


def test_formulas_hold_in_many_dimensions():
    """Eigenvalues of few points in many dimensions say nothing of the law; their moments must be right all the same."""
    for null in ("gamma", "spectral"):
        samples = [(rng.normal(size=(20, 100)), rng.normal(size=(12, 100))) for _ in range(80)]
        pvalues = [mmd_test(one, two, null=null, n_resamples=199, rng=0).pvalue for one, two in samples]
        assert 0.08 < np.mean(np.array(pvalues) <= 0.2) < 0.35


def test_no_formula_calls_anything_impossible():
    far = mmd_test(np.arange(900.0) % 7, 1e3 + np.arange(900.0) % 7, null="gamma")
    assert 0 < far.pvalue < 1e-300


def test_numbers_that_are_the_same_everywhere_say_nothing_beside_categories():
    frames = [pd.DataFrame({"one": np.ones(20), "kind": list("ab" * 5) + [kind] * 10}) for kind in "ab"]
    alone = mmd_test(*(frame[["kind"]] for frame in frames), n_resamples=99, rng=0)
    beside = mmd_test(*frames, n_resamples=99, rng=0)
    assert beside.pvalue == alone.pvalue < 0.05
    assert beside.statistic == pytest.approx(alone.statistic, rel=1e-9)
    np.testing.assert_allclose(beside.witness(frames[0]), alone.witness(frames[0][["kind"]]), atol=1e-12)
    assert "'kind'" in str(mercer.explain_difference(*frames, n_resamples=99, rng=0))
    assert mercer.hsic_test(frames[0], np.arange(20.0) > 9, n_resamples=99, rng=0).pvalue < 0.05


def test_bandwidths_of_many_rows_come_from_rows_drawn_anew():
    """Those at fixed places would tell the samples apart: beyond a thousand rows, chance decides which are looked at."""
    points = np.random.default_rng(0).normal(size=(1300, 1))
    few, many = (
        {mmd_test(points[:n], points[n : 2 * n], Gaussian(), compress=4, rng=seed).kernel.sigma for seed in range(3)}
        for n in (400, 650)
    )
    assert (len(few), len(many)) == (1, 3)


def test_bandwidths_do_not_depend_on_the_labels():
    """A bandwidth from one sample alone would make the test inexact: swapping samples changes nothing."""
    one = mmd_test(X, Y, n_resamples=9, rng=0)
    two = mmd_test(Y, X, n_resamples=9, rng=0)
    for left, right in zip(one.kernel, two.kernel, strict=True):
        assert left.sigma == pytest.approx(right.sigma, rel=1e-12)
    scaled = mmd_test(X * [1.0, 100.0], Y * [1.0, 100.0], n_resamples=9, rng=0)
    assert scaled.kernel[0].sigma[1] > 50 * scaled.kernel[0].sigma[0]  # a unit for each column
    for left, right in zip(one.parts, two.parts, strict=True):
        assert left.statistic == pytest.approx(right.statistic, rel=1e-9, abs=1e-15)


def test_series_are_relabelled_in_blocks_and_shifts():
    blocks = mmd_test(X, Y, Gaussian(1.0), scheme="blocks", block_length=7, n_resamples=999)
    assert blocks.n_resamples == 34  # 4 of 7 blocks, every choice once
    shifts = mmd_test(X, Y, Gaussian(1.0), scheme="shifts", n_resamples=999)
    assert shifts.n_resamples == 51
    pooled = np.concatenate([X, Y])
    expected = [
        mmd(pooled[labels], pooled[~labels], Gaussian(1.0), estimator="unbiased")
        for labels in (np.roll(np.arange(52) < 30, step) for step in range(1, 52))
    ]
    np.testing.assert_allclose(np.sort(shifts.null_distribution), np.sort(expected), rtol=1e-9, atol=1e-14)


def autoregression(n, rho):
    series = rng.normal(size=n)
    for i in range(1, n):
        series[i] += rho * series[i - 1]
    return series[:, None]


def test_block_length_follows_the_dependence():
    slow, fast = autoregression(20_000, 0.8), rng.normal(size=(20_000, 1))
    assert autocorrelation_time(slow) == pytest.approx(9.0, rel=0.15)  # (1 + ρ) / (1 - ρ); of ranks a little less
    assert autocorrelation_time(fast) == pytest.approx(1.0, abs=0.1)
    assert autocorrelation_time(fast * np.exp(slow)) > 2  # of its size alone
    assert autocorrelation_time(np.ones((5, 2))) == 1.0
    assert series_block_length(slow[:1000], fast[:216]) > 2 * series_block_length(fast[:1000], fast[:216])
    assert series_block_length(slow[:12], slow[:12]) == 2


def test_blocks_hold_the_level_of_a_series():
    """Relabelling single rows of a series rejects far too often, blocks do not."""
    rates = {}
    for scheme in ("rows", "blocks"):
        pvalues = [
            mmd_test(
                autoregression(60, 0.6), autoregression(60, 0.6), Gaussian(), scheme=scheme, n_resamples=99, rng=0
            ).pvalue
            for _ in range(60)
        ]
        rates[scheme] = np.mean(np.array(pvalues) <= 0.1)
    assert rates["rows"] > 0.25
    assert rates["blocks"] < 0.22


def test_data_frames_with_mixed_columns():
    pandas = pytest.importorskip("pandas")
    size = rng.normal(size=160)
    colour = np.where(rng.uniform(size=160) < 0.5, "red", "blue")
    first = pandas.DataFrame({"size": size, "colour": colour})[:80]
    swapped = pandas.DataFrame({"size": size, "colour": np.where(size > 0, "red", "blue")})[80:]
    found = mmd_test(first, swapped, n_resamples=199, rng=0)
    assert found.pvalue < 0.02
    assert [part.pvalue < 0.02 for part in found.parts] == [False] * 4 + [True]  # neither column alone differs
    assert found.witness(first.head(3)).shape == (3,)
    lengths = pandas.DataFrame(np.concatenate([X, Y]) * [1.0, 8.0], columns=["height", "weight"])
    scaled = mmd_test(lengths[:30], lengths[30:], n_resamples=99, rng=0)
    assert scaled.pvalue == mmd_test(lengths[:30] / [1.0, 8.0], lengths[30:] / [1.0, 8.0], n_resamples=99, rng=0).pvalue
    other = pandas.DataFrame({"size": rng.normal(size=60), "colour": rng.permutation(colour[:60])})
    assert mmd_test(first, other, n_resamples=199, rng=0).pvalue > 0.05


def test_columns_have_one_unit_unless_they_differ_tenfold():
    rng = np.random.default_rng(0)
    people = np.column_stack([rng.normal(40, 12, 90), rng.lognormal(10, 1, 90)])  # years and an income
    units = column_units(people, None)
    assert 100 < units[1] / units[0] < 1e5
    np.testing.assert_allclose(column_units(people * 1e200, None), units * 1e200)
    assert column_units(people[:, :1], None) is None
    images = rng.random((90, 30))
    images[:, :2] *= 1e-4  # pixels at the edge
    assert column_units(images, None) is None
    images[:, :12] *= 1e-4
    assert column_units(images, None) is not None
    skew = np.column_stack(
        [rng.normal(size=90), np.where(np.arange(90) < 8, rng.normal(size=90), 0.01 * rng.random(90))]
    )
    skew /= skew.std(axis=0)
    assert column_units(skew, None) is None  # its median difference is small, its deviation is not
    found = mmd_test(people[:45], people[45:] + np.array([15.0, 0.0]), rng=0)
    assert found.rejects(0.01)  # years are not drowned by the income
    assert {len(part.kernel.sigma) for part in found.parts} == {2}


def test_vectors_are_samples_of_one_variable():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30), rng.normal(size=25) + 1.0
    as_columns = mmd_test(x[:, None], y[:, None], rng=0)
    before, after = pd.Series(x, name="before"), pd.Series(y, name="after")  # names of one variable at two times
    for first, second in ((x, y), (x.tolist(), y.tolist()), (before, after), (pl.Series(x), pl.Series(y))):
        found = mmd_test(first, second, rng=0)
        assert found.pvalue == as_columns.pvalue
        assert found.statistic == as_columns.statistic
    np.testing.assert_array_equal(found.witness(x[:3]), as_columns.witness(x[:3, None]))
    assert mmd(x, y) == mmd(x[:, None], y[:, None])
    assert k_sample_test(x, y, rng=0).pvalue == k_sample_test(x[:, None], y[:, None], rng=0).pvalue
    assert explain_difference(x, y, rng=0).features[0].pvalue <= 0.05


def test_vectors_of_texts_are_categories():
    few, many = ["a", "b"] * 15, ["a", "c", "c"] * 10
    frames = mmd_test(pd.DataFrame({"0": few}), pd.DataFrame({"0": many}), rng=0)
    for kind in (list, np.array, pd.Series, partial(pd.Series, dtype="category"), pl.Series):
        assert mmd_test(kind(few), kind(many), rng=0).statistic == frames.statistic
    assert frames.rejects(0.01)
    with pytest.raises(ValueError, match="X is a vector of texts and Y is not: give both as texts or both as numbers"):
        mmd_test(few, [1.0, 2.0])


def test_float32_tensors_and_pickles():
    double = mmd_test(X, Y, n_resamples=99, rng=2)
    with mercer.config_context(dtype="float32"):
        single = mmd_test(X.astype(np.float32), Y.astype(np.float32), n_resamples=99, rng=2)
    np.testing.assert_allclose(single.null_distribution, double.null_distribution, atol=2e-4)
    torch = pytest.importorskip("torch")
    tensors = mmd_test(torch.as_tensor(X), torch.as_tensor(Y), n_resamples=99, rng=2)
    np.testing.assert_allclose(tensors.null_distribution, double.null_distribution, atol=1e-10)
    again = pickle.loads(pickle.dumps(double))
    np.testing.assert_array_equal(again.witness(X), double.witness(X))
    assert str(again) == str(double)


def test_witness_is_the_gap_of_the_telling_kernel():
    result = mmd_test(X, Y, [Gaussian(1.0), Gaussian(1e-3)], n_resamples=99, rng=0)
    first, second = (MeanEmbedding(Gaussian(1.0), each) for each in (X, Y))
    np.testing.assert_allclose(result.witness(X), first.witness(second, X), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "best"}, "estimator='best' must be one of"),
        ({"null": "normal"}, "null='normal' must be one of"),
        ({"null": "gamma", "kernel": [Gaussian(), Laplacian()]}, "knows no several kernels"),
        ({"null": "gamma", "x_weights": A, "y_weights": B}, "knows no weights"),
        ({"null": "spectral", "scheme": "shifts"}, "knows no scheme='shifts'"),
        ({"estimator": "linear", "x_weights": A, "y_weights": B}, "does not go with weights"),
        ({"x_weights": A}, "y_weights is left out"),
        ({"x_weights": -A, "y_weights": B}, "negative at index"),
        ({"kernel": []}, "empty list"),
        ({"kernel": [Gaussian(), Precomputed()]}, "stands alone"),
        ({"kernel": [Gaussian(), 3]}, "must be a kernel"),
        ({"n_resamples": 0}, "n_resamples=0 must be"),
        ({"block_length": 3}, "block_length belongs to"),
        ({"rng": "seed"}, "rng='seed' must be"),
        ({"scheme": "blocks", "block_length": 23}, "block_length=23 is longer"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mmd_test(X, Y, **options)


def test_bad_samples():
    with pytest.raises(ValueError, match="X has 2 features and Y has 1"):
        mmd_test(X, Y[:, :1])
    with pytest.raises(ValueError, match="Y has one row"):
        mmd_test(X, Y[:1])
    assert mmd_test(X, Y[:1], estimator="biased").sizes == (30, 1)
    with pytest.raises(ValueError, match="no rows"):
        mmd_test(X[:0], Y)
    with pytest.raises(ValueError, match="All points are equal, in all samples: there is no difference"):
        mmd_test(np.ones((5, 1)), np.ones((6, 1)))
    with pytest.raises(ValueError, match="X has nan in row 0"):
        mmd_test(X * np.nan, Y)
    with pytest.raises(ValueError, match="linear estimator needs two"):
        mmd_test(X[:3], Y[:3], estimator="linear")
