"""Tests of several samples: the statistic, the level, which pairs differ."""

import pickle

import numpy as np
import pytest

from mercer import Gaussian, Landmarks, Laplacian, Mixed, Precomputed, k_sample_test, mmd, mmd_test
from mercer.dependence.k_sample import _holm

KERNEL = Gaussian(1.5)
rng = np.random.default_rng(7)
A, B, C = rng.normal(size=(25, 2)), rng.normal(size=(20, 2)), rng.normal(size=(30, 2)) + 1.2


def by_definition(samples, estimator="unbiased"):
    N = sum(len(each) for each in samples)
    return sum(
        len(one) * len(other) / N**2 * mmd(one, other, KERNEL, estimator=estimator)
        for i, one in enumerate(samples)
        for other in samples[:i]
    )


@pytest.mark.parametrize("compress", [None, 75])
def test_the_statistic_is_the_mean_discrepancy_of_the_pairs(compress):
    result = k_sample_test(A, B, C, kernel=KERNEL, n_resamples=19, compress=compress, rng=0)
    assert result.statistic == pytest.approx(by_definition([A, B, C]), rel=1e-10 if compress is None else 1e-4)
    assert result.sizes == (25, 20, 30)


@pytest.mark.parametrize("compress", [None, 40])
def test_relabellings_average_to_nothing(compress):
    null = k_sample_test(A, B, C, kernel=KERNEL, n_resamples=1000, compress=compress, pairwise=False, rng=0)
    assert abs(null.null_distribution.mean()) < 4 * null.null_distribution.std() / np.sqrt(1000)


def test_of_two_samples_it_is_the_test_of_two_samples():
    ours = k_sample_test(A, C[:25] - 0.9, kernel=KERNEL, n_resamples=999, rng=0)
    theirs = mmd_test(A, C[:25] - 0.9, KERNEL, rng=1)
    assert ours.statistic == pytest.approx(theirs.statistic / 4, rel=1e-9)
    assert ours.pvalue == pytest.approx(theirs.pvalue, abs=0.05)
    assert ours.pairs[0].corrected == ours.pairs[0].pvalue


@pytest.mark.parametrize("compress", [None, "landmarks", Landmarks(20)])
def test_it_says_which_samples_differ(compress):
    result = k_sample_test(A, B, C, n_resamples=199, compress=compress, rng=0)
    assert result.pvalue == 0.005
    assert result.differing() == [(0, 2), (1, 2)]
    assert str(result).startswith("The 3 samples are not all alike (samples 0 and 2, 1 and 2 differ): the largest of ")
    assert len(result.parts) > 2
    copy = pickle.loads(pickle.dumps(result))
    assert copy.pvalue == result.pvalue
    assert copy.pairs == result.pairs


def test_no_sign_where_there_is_none_and_one_seed_one_answer():
    one, two = (k_sample_test(A, B, A[::-1] + 1e-3, kernel=KERNEL, n_resamples=99, rng=3) for _ in range(2))
    assert "No sign that the 3 samples differ: their spread" in str(one)
    assert one.differing() == []
    assert np.array_equal(one.null_distribution, two.null_distribution)


def test_the_level_is_held_for_tied_data_and_unequal_sizes():
    """Of 80 tests at 10 % fewer than 24 % reject: four standard deviations."""
    rejected = 0
    for seed in range(80):
        chance = np.random.default_rng(seed)
        samples = [chance.integers(0, 3, (n, 1)).astype(float) for n in (5, 9, 7)]
        options = {"kernel": [KERNEL, Laplacian(1.0)], "n_resamples": 39, "pairwise": False, "rng": seed}
        rejected += k_sample_test(*samples, **options).rejects(0.1)
    assert rejected < 19


def test_equal_rows_are_no_difference():
    same = [np.full((n, 2), 0.3) for n in (6, 5, 8)]
    for compress in (None, 5):
        assert k_sample_test(*same, kernel=KERNEL, n_resamples=99, compress=compress, rng=0).pvalue == 1.0


@pytest.mark.parametrize("compress", [None, 2])
def test_rounding_of_tied_data_is_allowed_for(compress):
    """Rows of two values: many relabellings have the very statistic of the data, and the last bits must not decide."""
    for seed in range(12):
        chance = np.random.default_rng(seed)
        values = np.array([[0.1, 0.7, 1.3], [0.4, 0.2, 0.9]])
        samples = [values[chance.integers(0, 2, n)] for n in (9, 7, 8)]
        result = k_sample_test(*samples, kernel=KERNEL, n_resamples=99, pairwise=False, compress=compress, rng=seed)
        as_large = np.count_nonzero(result.null_distribution >= result.statistic - 1e-7)
        assert result.pvalue == pytest.approx((1 + as_large) / 100)


def test_holm():
    assert _holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert _holm([0.6, 0.9]) == [1.0, 1.0]


def test_frames_with_categories():
    pd = pytest.importorskip("pandas")
    chance = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"x": chance.normal(size=40), "kind": chance.choice(["a", "b"], 40, p=[p, 1 - p])})
        for p in (0.9, 0.1, 0.9)
    ]
    for kernel in (None, Mixed()):
        found = k_sample_test(*frames, kernel=kernel, n_resamples=99, rng=0)
        assert found.pvalue == 0.01
        assert found.differing() == [(0, 1), (1, 2)]


def test_tensors_and_single_precision_give_what_arrays_give():
    plain = k_sample_test(A, B, C, kernel=KERNEL, n_resamples=49, rng=0)
    single = k_sample_test(*(each.astype(np.float32) for each in (A, B, C)), kernel=KERNEL, n_resamples=49, rng=0)
    assert single.null_distribution == pytest.approx(plain.null_distribution, abs=1e-6)
    torch = pytest.importorskip("torch")
    tensors = k_sample_test(*map(torch.as_tensor, (A, B, C)), kernel=KERNEL, n_resamples=49, rng=0)
    assert tensors.null_distribution == pytest.approx(plain.null_distribution, rel=1e-8)


@pytest.mark.parametrize(
    ("samples", "options", "sentence"),
    [
        ((A,), {}, "1 sample is given"),
        ((A, B[:, :1]), {}, "Sample 1 has 1 features and sample 0 has 2"),
        ((A, B[:1]), {}, "Sample 1 has one row"),
        ((A, B[:0]), {}, "sample 1 has no rows"),
        ((A, np.full((3, 2), np.nan)), {}, "sample 1 has nan in row 0"),
        ((A, B), {"kernel": Precomputed()}, "pass points, not Precomputed"),
        ((A, B), {"kernel": []}, "empty list"),
        ((A, B), {"compress": "thinning"}, "compress='thinning' must be"),
        ((A, B), {"n_resamples": 0}, "n_resamples=0 must be a whole number"),
    ],
)
def test_bad_input_is_named(samples, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        k_sample_test(*samples, **options)
