"""Tests reject as often as they say where there is nothing to be found, and the harness sees those that do not.

The whole table, of 2 000 data sets a cell, is that of benchmarks/testing_levels.py; ``-m slow`` runs a part of it.
"""

from __future__ import annotations

from types import SimpleNamespace

import level_harness as harness
import numpy as np
import pytest
from level_harness import SUBJECTS, Subject, attainable, band, found, rate, rates, study
from level_samples import SOURCES, pairs, stream, two_samples
from scipy.stats import binom

import mercer

IMPOSSIBLE = 1e-4  # chance of a count that is taken for a fault: hundreds of entries are looked at
PRESENT = [name for name, subject in SUBJECTS.items() if hasattr(mercer, subject.function)]


def faults(cell):
    """Entries of a cell that chance does not explain: the p-value from above, the sharp one from both sides."""
    own, sharp, resamples = (np.array(column) for column in zip(*cell, strict=True))
    out = []
    for level in harness.LEVELS:
        count, reached = np.count_nonzero(own <= level + 1e-12), attainable(level, int(resamples.max()))
        if binom.sf(count - 1, len(own), reached) < IMPOSSIBLE:
            out.append(f"{count} of {len(own)} p-values at most {level}")
        count = np.count_nonzero(sharp <= level)
        if min(binom.sf(count - 1, len(sharp), level), binom.cdf(count, len(sharp), level)) < IMPOSSIBLE:
            out.append(f"{count} of {len(sharp)} sharp p-values at most {level}")
    return out


# --- the harness itself ---------------------------------------------------------------------------------------


def test_the_band_holds_99_per_cent_and_no_narrower_one_does():
    for level in (0.01, 0.05, 0.1):
        low, high = band(level, 2000)
        law = binom(2000, level)
        assert law.cdf(low - 1) <= 0.005 < law.cdf(low)
        assert law.sf(high) <= 0.005 < law.sf(high - 1)
    assert band(0.05, 2000) == (76, 126)


def test_the_level_that_resamples_can_attain():
    assert attainable(0.05, 99) == 0.05
    assert attainable(0.05, 18) == 0.0
    assert attainable(0.05, 20) == pytest.approx(1 / 21)
    assert attainable(0.05, 0) == 0.05  # a formula


def test_null_samples_are_of_their_kind_and_the_same_in_every_process():
    for kind in SOURCES:
        X, Y = two_samples(kind, 7, 9, 3)
        again = two_samples(kind, 7, 9, 3)
        assert X.shape[0] == 7
        assert Y.shape[0] == 9
        np.testing.assert_array_equal(X, again[0])
        assert pairs(kind, 7, 3)[1].shape == (7, 1)
    series = pairs("autocorrelated", 20_000, 0)[0][:, 0]
    assert np.corrcoef(series[1:], series[:-1])[0, 1] == pytest.approx(0.5, abs=0.03)
    assert stream("a", 1).random() != stream("a", 2).random()


def made_up(draw):
    """A test whose statistic and resamples are what ``draw`` gives; it takes part in the harness like any other."""

    class MadeUp(Subject):
        def __call__(self, kind, n, m, seed):
            values = draw(stream("made up", seed))
            p = np.count_nonzero(values[1:] >= values[0]) + 1
            return SimpleNamespace(statistic=values[0], null_distribution=values[1:], pvalue=p / values.size)

    return MadeUp("made_up", {})


def cell(subject, datasets=1000):
    return [found(subject, "normal", 10, 10, seed) for seed in range(datasets)]


def test_an_exact_test_is_in_the_band_and_ties_make_it_conservative_only():
    exact = cell(made_up(lambda rng: rng.standard_normal(100)))
    assert not faults(exact)
    tied = cell(made_up(lambda rng: rng.integers(4, size=100).astype(float)))
    assert not faults(tied)
    own, sharp = rates(tied)
    assert all(one.verdict == "below" for one in own[:2])
    assert all(one.verdict == "in" for one in sharp)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.standard_normal(100) + np.r_[0.3, np.zeros(99)],  # the data are not one of the resamples
        lambda rng: rng.standard_normal(100) * np.r_[1.3, np.ones(99)],
        lambda rng: rng.integers(4, size=100) + 1e-15 * np.r_[1.0, np.zeros(99)],  # a tie that rounding breaks
    ],
    ids=["shifted", "wider", "rounding"],
)
def test_a_test_that_rejects_too_often_is_seen(draw):
    assert faults(cell(made_up(draw)))


def test_a_rate_is_compared_with_the_level_that_can_be_attained():
    pvalues = np.repeat([1 / 21, 1.0], [95, 1905])
    assert rate(pvalues, 0.05, attainable(0.05, 20)).verdict == "in"
    assert rate(np.repeat([1 / 21, 1.0], [130, 1870]), 0.05, attainable(0.05, 20)).verdict == "above"
    assert rate(np.ones(2000), 0.05, 0.05).verdict == "below"


# --- the tests of the library ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in ("mmd_test, median Gaussian", "hsic_test, median Gaussians") if n in PRESENT]
)
def test_levels_on_discrete_data(name):
    assert not faults(study(name, "discrete", 10, 12, range(150)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PRESENT if SUBJECTS[name].exact])
def test_exact_levels(name):
    for kind in SUBJECTS[name].kinds(SOURCES):
        for n, m in ((10, 20), (60, 40)):
            assert not faults(study(name, kind, n, m, range(500))), (kind, n, m)
