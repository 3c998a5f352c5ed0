"""The test of independence: exact p-values, every way to its statistics, what it accepts and says."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom

from mercer import Gaussian, Laplacian, Linear, Precomputed, config_context, hsic, hsic_test
from mercer.dependence import shift_sums as sums_module
from mercer.dependence.centred_gram import CentredGram
from mercer.dependence.hsic_nulls import centred_autoregressions
from mercer.dependence.hsic_test import _pairs
from mercer.dependence.reorderings import affine
from mercer.dependence.shift_sums import shift_sums
from mercer.dependence.variables import variable


def two_variables(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.sin(2 * x[:, :1]) + 0.3 * rng.normal(size=(n, 1))


@pytest.mark.parametrize("n", [9, 12])
@pytest.mark.parametrize("room", [2**28, 1])
def test_transforms_give_the_sums_of_all_shifts(n, room, monkeypatch):
    monkeypatch.setattr(sums_module, "_PANEL_BYTES", room)
    if room == 1:
        monkeypatch.setattr(sums_module, "_IN_ONE_CALL", 1)
        monkeypatch.setattr(sums_module, "_LEAST_ROWS", 2)
    x, y = two_variables(n)
    of_x = [CentredGram(k, x) for k in (Gaussian(1.0), Laplacian(2.0))]
    of_y = [CentredGram(Gaussian(0.5), y)]
    order, others = np.random.default_rng(1).permutation(n), [np.arange(n), (5 * np.arange(n)) % n]
    found = shift_sums(of_x, of_y, order, others)
    for p, one in enumerate(of_x):
        a, b = one.block(order, order), of_y[0].block(slice(None), slice(None))
        for m, other in enumerate(others):
            moved = [np.roll(other, -s) for s in range(n)]
            expected = [np.vdot(a, b[np.ix_(rows, rows)]) for rows in moved]
            np.testing.assert_allclose(found.values[p, 0, m], expected, atol=found.roundings[p, 0])


@pytest.mark.parametrize(("n", "kernels"), [(7, (Gaussian(), Gaussian())), (5, ())])
def test_pvalues_over_a_whole_group_are_uniform(n, kernels):
    """Of one kernel, and of the largest of many: all n(n - 1) affine maps of a prime n are looked at."""
    x, y = two_variables(n)
    order = n * (n - 1)
    base = affine(n, order - 1, np.random.default_rng(0), "rows", 1).x_order
    found = []
    for a in range(1, n):
        for s in range(n):
            moved = np.empty_like(y)
            moved[base] = y[base[(a * (np.arange(n) + s)) % n]]
            found.append(hsic_test(x, moved, *kernels, n_resamples=order - 1, rng=0).pvalue)
    ranks = np.rint(order * np.sort(found)) - np.arange(1, order + 1)
    assert ranks.min() >= 0  # never too small
    assert np.count_nonzero(ranks) <= (0 if kernels else 4)  # narrow kernels of few points tie


def test_the_statistic_is_the_criterion_and_shapes_are_found():
    for n in (30, 100):
        x, y = two_variables(n)
        result = hsic_test(x, y, Gaussian(), Gaussian(), rng=0)
        assert result.statistic == pytest.approx(hsic(x, y), rel=1e-12)
        assert result.pvalue < 0.05
        assert result.n_resamples == result.null_distribution.size == 999


def test_few_rows_are_reordered_in_all_ways():
    x, y = two_variables(5)
    K, L = Gaussian(1.0)(x), Gaussian(1.0)(y)
    centring = np.eye(5) - 1 / 5
    every = [np.vdot(centring @ K @ centring, L[np.ix_(order, order)]) / 16 for order in permutations(range(5))]
    result = hsic_test(x, y, Gaussian(1.0), Gaussian(1.0))
    assert result.n_resamples == 119
    np.testing.assert_allclose(np.sort(result.null_distribution), np.sort(every[1:]), rtol=1e-10)
    assert result.pvalue == np.mean(np.array(every) >= every[0] - 1e-12)


def test_bandwidths_do_not_heed_the_order_of_rows():
    x, _ = two_variables(1300)  # more than bandwidths are chosen from
    moved = x[np.random.default_rng(0).permutation(1300)]
    assert repr(variable(x, None, "X", several=True).kernels) == repr(variable(moved, None, "X", several=True).kernels)


def test_customary_pairs_of_kernels_start_ahead():
    x, y = two_variables(30)
    sides = [variable(each, None, "X", several=True) for each in (x, y)]
    found = _pairs(*sides)
    ahead = [pair for pair, handicap in zip(found.kernels, found.handicaps, strict=True) if handicap == 0]
    assert [repr(pair) for pair in ahead] == [repr((sides[0].kernels[k], sides[1].kernels[k])) for k in (3, 4)]
    assert (np.delete(found.handicaps, np.flatnonzero(found.handicaps == 0)) > 0.5).all()


def test_weights_do_not_reach_the_bandwidths_of_y():
    """They stay with X where Y is reordered: a bandwidth of Y by weights would change with the order."""
    rng = np.random.default_rng(0)
    x, y, weights = rng.normal(size=40), rng.normal(size=40) ** 3, rng.exponential(size=40) + 0.1
    kernels = [
        [repr(part.kernel[1]) for part in hsic_test(x, y[order], sample_weight=weights, n_resamples=9, rng=0).parts]
        for order in (np.arange(40), np.argsort(y), np.argsort(-y))
    ]
    assert kernels[0] == kernels[1] == kernels[2]


@pytest.mark.parametrize("n", [40, 101])
def test_ties_count_against_a_rejection(n):
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 2, (2, n)).astype(float)
    result = hsic_test(x, y, rng=0)
    null, observed = result.null_distribution, result.statistic
    exact = (1 + np.count_nonzero(np.round(null, 10) >= np.round(observed, 10))) / 1000
    assert result.pvalue == exact
    assert (1 + np.count_nonzero(null >= observed)) / 1000 < exact  # what the last bits would say


@pytest.mark.parametrize("null", ["gamma", "spectral"])
def test_fast_nulls_are_near_the_exact_one(null):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(2, 150))
        y = y + 0.15 * x
        exact = hsic_test(x, y, Gaussian(), Gaussian(), n_resamples=2999, rng=0).pvalue
        assert hsic_test(x, y, null=null, n_resamples=2999, rng=0).pvalue == pytest.approx(exact, abs=0.03)


def autoregression(rng, n, correlation=0.9):
    noise = rng.normal(size=n)
    for t in range(1, n):
        noise[t] += correlation * noise[t - 1]
    return noise


def test_series_need_their_own_resamples():
    ways = {
        "rows": {},
        "blocks": {"scheme": "blocks", "block_length": 20},
        "shifts": {"scheme": "shifts"},
        "wild": {"null": "wild bootstrap", "block_length": 20},
    }
    rejected = dict.fromkeys(ways, 0)
    found = dict.fromkeys(ways, 0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y = autoregression(rng, 200), autoregression(rng, 200)
        for way, options in ways.items():
            rejected[way] += hsic_test(x, y, "rbf", "rbf", n_resamples=199, rng=1, **options).rejects()
            found[way] += hsic_test(x, y + x, "rbf", "rbf", n_resamples=199, rng=1, **options).rejects()
    assert rejected["rows"] >= 3  # rows of a series are not exchangeable
    assert max(rejected[way] for way in ("blocks", "shifts", "wild")) <= 3
    assert min(found.values()) >= 7


def test_multipliers_of_a_wild_bootstrap_keep_their_variance_without_their_mean():
    w = centred_autoregressions(20_000, 30, np.exp(-1 / 6), np.random.default_rng(0))
    np.testing.assert_allclose(w.mean(axis=1), 0, atol=1e-14)
    assert np.mean(w**2) == pytest.approx(1, abs=0.02)  # standard error 0.004; 0.66 if only the mean is taken away
    assert np.mean(w[:, 10] * w[:, 11]) > 0.6  # rows next to each other are alike


def test_a_wild_bootstrap_of_a_short_series_rejects_as_often_as_it_says():
    rng = np.random.default_rng(0)
    pvalues = [
        hsic_test(
            autoregression(rng, 50, 0.5),
            autoregression(rng, 50, 0.5),
            "rbf",
            "rbf",
            null="wild bootstrap",
            n_resamples=99,
            rng=rng,
        ).pvalue
        for _ in range(300)
    ]
    assert np.count_nonzero(np.array(pvalues) <= 0.1) <= binom.ppf(0.999, 300, 0.1)  # twice that without the variance


def test_weights_count_rows_and_stay_with_x():
    x, y = two_variables(30)
    counts = np.random.default_rng(1).integers(0, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    kernels = Gaussian(1.0), Laplacian(1.0)
    weighed = hsic_test(x, y, *kernels, sample_weight=counts, rng=0)
    assert weighed.statistic == pytest.approx(hsic(x[rows], y[rows], *kernels), rel=1e-10)
    there = counts > 0
    again = hsic_test(x[there], y[there], *kernels, sample_weight=counts[there], rng=0)
    np.testing.assert_allclose(weighed.null_distribution, again.null_distribution, rtol=1e-10)
    ones = hsic_test(x, y, *kernels, sample_weight=np.ones(30), rng=0)
    np.testing.assert_allclose(ones.null_distribution, hsic_test(x, y, *kernels, rng=0).null_distribution, rtol=1e-8)


def test_the_witness_has_unit_norm_and_shows_where():
    x, y = two_variables(40)
    result = hsic_test(x, y, rng=0)
    everywhere = result.witness(np.repeat(x, 40, axis=0), np.tile(y, (40, 1)))
    gap = result.witness(x, y).mean() - everywhere.mean()
    assert gap == pytest.approx(np.sqrt(hsic(x, y, *result.kernel)) * 39 / 40, rel=1e-10)
    line = np.linspace(-1, 1, 60)
    straight = hsic_test(line, line, rng=0)
    on, off = straight.witness([-0.5, 0.5], [-0.5, 0.5]), straight.witness([-0.5, 0.5], [0.5, -0.5])
    assert (on > 0).all()
    assert (off < 0).all()


def test_matrices_frames_texts_tensors_threads_and_pickles():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    x, y = two_variables(70)
    plain = hsic_test(x, y, rng=0)
    assert hsic_test(torch.as_tensor(x), torch.as_tensor(y), rng=0).pvalue == plain.pvalue
    with config_context(n_threads=1):
        np.testing.assert_array_equal(hsic_test(x, y, rng=0).null_distribution, plain.null_distribution)
    alone = hsic_test(x, y, Gaussian(), Gaussian(), rng=0)
    matrices = [Gaussian().resolve(values)(values) for values in (x, y)]
    given = hsic_test(*matrices, Precomputed(), Precomputed(), rng=0)
    np.testing.assert_allclose(given.null_distribution, alone.null_distribution, rtol=1e-9)
    texts = np.where(y[:, 0] > 0, "high", "low")
    frame = pandas.DataFrame({"level": texts, "other": np.random.default_rng(0).normal(size=70)})
    assert hsic_test(x, texts, rng=0).rejects()
    mixed = hsic_test(x, frame, rng=0)
    assert mixed.rejects()
    assert mixed.witness(x[:3], frame[:3]).shape == (3,)
    again = pickle.loads(pickle.dumps(mixed))
    np.testing.assert_array_equal(again.witness(x[:3], frame[:3]), mixed.witness(x[:3], frame[:3]))
    statistic, pvalue = again
    assert (statistic, pvalue) == (mixed.statistic, mixed.pvalue)


def test_a_column_of_noise_does_not_hide_the_other_kind():
    pandas = pytest.importorskip("pandas")
    x, y = two_variables(60)
    rng = np.random.default_rng(0)
    noise = rng.choice(list("abcdefgh"), 60)
    assert hsic_test(pandas.DataFrame({"x": x[:, 0], "noise": noise}), y, rng=0).pvalue <= 0.01
    sides = np.where(y[:, 0] > 0, "high", "low")
    frame = pandas.DataFrame({"side": sides, "noise": rng.normal(size=60)})
    assert hsic_test(frame, x, rng=0).pvalue <= 0.01


def test_its_parts_and_its_sentence():
    x, y = two_variables(70)
    result = hsic_test(x, y, [Gaussian(), Laplacian("median")], Gaussian(), rng=0)
    assert [part.pvalue for part in result.parts] == [0.001, 0.001]
    assert result.parts[0].statistic == pytest.approx(hsic(x, y), rel=1e-10)
    assert str(result).startswith("Y depends on X: the largest standardised HSIC = ")
    assert str(result).endswith("as large in 1 of 1000 reorderings of Y (p = 0.001).")
    chance = hsic_test(x, np.random.default_rng(0).normal(size=70), Gaussian(), Gaussian(), rng=0)
    assert str(chance).startswith("No sign that Y depends on X: HSIC = ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"null": "normal"}, "null='normal' must be one of"),
        ({"scheme": "columns"}, "scheme='columns' must be one of"),
        ({"n_resamples": 0}, "n_resamples=0 must be a whole number"),
        ({"block_length": 3}, "block_length belongs to"),
        ({"scheme": "blocks", "block_length": 16}, "take a smaller block_length"),
        ({"null": "gamma", "estimator": "unbiased"}, "law of the biased estimator"),
        ({"null": "spectral", "scheme": "shifts"}, 'belongs to null="permutation"'),
        ({"null": "gamma", "sample_weight": np.ones(30)}, "sample_weight belongs to"),
        ({"null": "gamma", "x_kernel": ["rbf", "laplacian"]}, "aggregated over resamples"),
        ({"compress": "zip"}, "compress='zip' must be"),
        ({"rng": "dice"}, "random generator"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, sentence):
    x, y = two_variables(30)
    with pytest.raises(ValueError, match=sentence):
        hsic_test(x, y, **options)


@pytest.mark.parametrize("options", [{}, {"null": "gamma"}, {"scheme": "shifts"}, {"null": "wild bootstrap"}])
def test_progress_ends_with_one(options):
    seen: list[float] = []
    hsic_test(*two_variables(30), rng=0, progress=seen.append, **options)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


def test_a_kernel_that_misses_dependence_is_named():
    x, y = two_variables(30)
    with pytest.warns(UserWarning, match="not characteristic"):
        hsic_test(x, y, Linear(), Gaussian())
    with pytest.raises(ValueError, match="pass points"):
        hsic_test(np.eye(30), y, Precomputed(), rng=0).witness(x, y)
