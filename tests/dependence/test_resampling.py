"""Reorderings of rows, the p-value that counts them, and one p-value over several kernels."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chi2, norm

import mercer
from mercer.dependence.aggregation import aggregated, standardised
from mercer.dependence.resampling import permutation_pvalue, permutations
from mercer.dependence.result import KernelPart, KernelTestResult


@dataclass(frozen=True, eq=False)
class Outcome(KernelTestResult):
    def _found(self):
        return "Something is there"

    def _not_found(self):
        return "No sign of anything"

    def _statistic_name(self):
        return "T"


def outcome(pvalue, null="permutation", n_resamples=999):
    return Outcome(0.0123, pvalue, np.zeros(n_resamples), null, n_resamples, None, (KernelPart(None, 1.0, 0.5),))


def test_result_unpacks_pickles_and_speaks():
    result = pickle.loads(pickle.dumps(outcome(0.001)))
    statistic, pvalue = result
    assert (statistic, pvalue) == (0.0123, 0.001)
    assert str(result) == "Something is there: T = 0.0123, as large in 1 of 1000 random relabellings (p = 0.001)."
    assert str(outcome(0.43)).startswith("No sign of anything: T = 0.0123, as large in 430 of 1000")
    formula = str(outcome(0.00002, "gamma", 0))
    assert formula == "Something is there: T = 0.0123, by the gamma approximation of chance (p = 2e-05)."
    assert result.rejects()
    assert result.rejects(0.001)
    assert not result.rejects(0.0005)
    with pytest.raises(ValueError, match="level"):
        result.rejects(1.5)


def test_pvalue_counts_the_observed_and_ties():
    assert permutation_pvalue(3.0, np.array([1.0, 3.0, 5.0])) == 0.75
    assert permutation_pvalue(9.0, np.arange(9.0)) == 0.1
    assert permutation_pvalue(0.3, np.array([0.1 + 0.2 - 1e-16, 0.3 - 1e-15]), rounding=1e-14) == 1.0


def test_what_is_no_number_never_rejects():
    assert permutation_pvalue(np.nan, np.arange(9.0)) == 1.0
    assert permutation_pvalue(9.0, np.array([1.0, np.nan, 2.0])) == 0.5


@pytest.mark.parametrize(
    "options",
    [{}, {"scheme": "blocks", "block_length": 3}, {"scheme": "shifts"}, {"strata": np.arange(10) % 3}],
    ids=str,
)
def test_same_reorderings_whatever_the_memory(options):
    one = np.concatenate(list(permutations(10, 7, 5, **options)))
    with mercer.config_context(memory_limit=8 * 10 * 3 * 8 * 2):
        parts = list(permutations(10, 7, 5, **options))
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate(parts), one)
    assert one.shape == (7, 10)
    assert (np.sort(one, axis=1) == np.arange(10)).all()


def test_what_each_scheme_keeps():
    blocks = np.concatenate(list(permutations(10, 50, 0, scheme="blocks", block_length=3)))
    assert (blocks[:, 9] == 9).all()
    assert (blocks[:, 0:9:3] % 3 == 0).all()
    assert (np.diff(blocks[:, :9].reshape(50, 3, 3)) == 1).all()
    shifts = np.concatenate(list(permutations(10, 50, 0, scheme="shifts")))
    assert sorted(shifts[:, 0]) == list(range(1, 10))
    strata = np.array(list("abacabba"))
    inside = np.concatenate(list(permutations(8, 20, 0, strata=strata)))
    assert (strata[inside] == strata).all()
    assert len(np.unique(inside, axis=0)) > 10
    rows = np.concatenate(list(permutations(3, 6000, 0)))
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 120


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scheme": "cols"}, "scheme='cols' must be one of"),
        ({"block_length": 3}, "block_length belongs to"),
        ({"scheme": "blocks", "block_length": 6}, "10 rows make 1 blocks of 6"),
        ({"scheme": "shifts", "strata": np.zeros(10)}, "strata belong to"),
        ({"strata": np.zeros(9)}, "one label a row"),
    ],
)
def test_bad_schemes(options, words):
    with pytest.raises(ValueError, match=words):
        next(permutations(10, 7, 5, **options))


def test_one_kernel_twice_is_that_kernel():
    row = np.random.default_rng(0).chisquare(3, size=200)
    both = aggregated(np.stack([row, 5 * row - 3]))
    assert both.pvalue == permutation_pvalue(row[0], row[1:])
    np.testing.assert_array_equal(both.part_pvalues, both.pvalue)


def test_aggregated_ranks_are_uniform():
    """Every column is as likely to be the largest: kernels of any null law, any dependence."""
    rng = np.random.default_rng(1)
    ranks = []
    for _ in range(150):
        z = rng.normal(size=(3, 20))
        table = np.stack([z[0], z[0] ** 2, np.round(z[1])])
        result = aggregated(table)
        shuffled = rng.permutation(20)
        moved = aggregated(table[:, shuffled])
        np.testing.assert_allclose(
            np.r_[moved.observed, moved.null], np.r_[result.observed, result.null][shuffled], rtol=1e-12
        )
        ranks.append(result.pvalue)
    for level in (0.05, 0.25, 0.5):
        assert np.mean(np.array(ranks) <= level + 1e-12) < level + 3 * np.sqrt(level * (1 - level) / 150)


def test_ties_stay_ties_through_rounding():
    """Statistics that are equal but for their last bits must not be told apart by the score."""
    rng = np.random.default_rng(2)
    table = rng.integers(0, 3, size=(2, 100)).astype(float)
    table[0, 0] = 2.0
    noisy = table + 1e-15 * rng.normal(size=table.shape)
    assert aggregated(noisy, 1e-13).pvalue == aggregated(table).pvalue
    assert aggregated(noisy, 0.0).pvalue != aggregated(table).pvalue


def test_skewed_kernels_do_not_drown_normal_ones():
    """The scores of a χ² and of a normal row have nearly the same tail."""
    q = (np.arange(2000) + 0.5) / 2000
    for law in (chi2(1), chi2(4), norm):
        row = np.append(law.ppf(1 - 1e-4), law.ppf(q))
        score = aggregated(row[None]).observed
        assert abs(score - norm.ppf(1 - 1e-4)) < 0.35


def test_each_entry_is_compared_with_the_others_alone():
    row = -np.random.default_rng(4).exponential(size=30)  # skewed to the left: no cube root is taken
    for k, score in enumerate(standardised(row[None])[0]):
        others = np.delete(row, k)
        assert score == pytest.approx((row[k] - others.mean()) / others.std(), rel=1e-9)


def test_a_constant_kernel_says_nothing():
    table = np.stack([np.ones(50), np.arange(50.0)[::-1]])
    result = aggregated(table)
    assert result.pvalue == 0.02
    assert result.part_pvalues[0] == 1.0


def test_a_handicap_is_a_prior():
    rows = np.random.default_rng(3).normal(size=(2, 500))
    rows[0, 0] = 2.2
    plain, trusted = aggregated(rows), aggregated(rows, 0.0, [0.0, 1.0])
    assert trusted.pvalue < plain.pvalue
    np.testing.assert_array_equal(plain.part_pvalues, trusted.part_pvalues)
    only = aggregated(rows, 0.0, [0.0, 100.0])
    assert only.pvalue == only.part_pvalues[0]
