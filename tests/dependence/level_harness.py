"""How often a test rejects where there is nothing to be found, and whether chance explains it.

A permutation p-value is a multiple of 1/(1 + B), so that the level that can be attained is the largest multiple of it
below the nominal one. Where statistics tie, as on discrete data, even that is an upper bound. A tie broken at random
gives the *sharp* p-value, which is uniform whatever the data: it is looked at from both sides, the test's own p-value
from above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from level_samples import IN_ORDER, pairs, stream, two_samples
from scipy.stats import binom

import mercer
from mercer import Gaussian, Laplacian

LEVELS = (0.01, 0.05, 0.1)
RESAMPLES = 99  # 1 + 99 times each of the levels is a whole number
_TIE = 1e-9  # of the largest statistic: closer statistics count as equal
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Subject:
    """A test with its options.

    Attributes
    ----------
    function : str
        Its name in the library.
    options : dict
        What it is called with.
    exact : bool
        Whether its level is exact at any size, by the exchangeability of rows.
    series : bool
        Whether it is meant for rows that depend on their neighbours.
    """

    function: str
    options: dict[str, Any]
    exact: bool = True
    series: bool = False

    @property
    def paired(self) -> bool:
        return self.function == "hsic_test"

    def kinds(self, kinds: Iterable[str]) -> list[str]:
        """The kinds of data that it claims to be valid for."""
        return [kind for kind in kinds if (kind == IN_ORDER) == self.series]

    def __call__(self, kind: str, n: int, m: int, seed: int) -> Any:
        options, rng = dict(self.options), stream("test", kind, n, m, seed)
        if options.get("null", "permutation") not in ("gamma", "spectral"):
            options.setdefault("n_resamples", RESAMPLES)
        X, Y = pairs(kind, n, seed) if self.paired else two_samples(kind, n, m, seed)
        return getattr(mercer, self.function)(X, Y, rng=rng, **options)


def _subjects() -> dict[str, Subject]:
    median, both = {"kernel": Gaussian("median")}, {"x_kernel": Gaussian("median"), "y_kernel": Gaussian("median")}
    several = {"kernel": [Gaussian(0.5), Gaussian(2.0), Laplacian(1.0)]}
    return {
        "mmd_test": Subject("mmd_test", {}),
        "mmd_test, median Gaussian": Subject("mmd_test", median),
        "mmd_test, biased": Subject("mmd_test", {**median, "estimator": "biased"}),
        "mmd_test, linear": Subject("mmd_test", {**median, "estimator": "linear"}),
        "mmd_test, three kernels": Subject("mmd_test", several),
        "mmd_test, landmarks": Subject("mmd_test", {"compress": "landmarks"}),
        "mmd_test, thinning": Subject("mmd_test", {"compress": "thinning"}),
        "mmd_test, gamma": Subject("mmd_test", {**median, "estimator": "biased", "null": "gamma"}, exact=False),
        "mmd_test, spectral": Subject("mmd_test", {**median, "estimator": "biased", "null": "spectral"}, exact=False),
        "mmd_test, blocks": Subject("mmd_test", {"scheme": "blocks"}, exact=False, series=True),
        "mmd_test, shifts": Subject("mmd_test", {"scheme": "shifts"}, exact=False, series=True),
        "hsic_test": Subject("hsic_test", {}),
        "hsic_test, median Gaussians": Subject("hsic_test", both),
        "hsic_test, unbiased": Subject("hsic_test", {**both, "estimator": "unbiased"}),
        "hsic_test, landmarks": Subject("hsic_test", {"compress": "landmarks"}),
        "hsic_test, gamma": Subject("hsic_test", {**both, "null": "gamma"}, exact=False),
        "hsic_test, spectral": Subject("hsic_test", {**both, "null": "spectral"}, exact=False),
        "hsic_test, wild bootstrap": Subject("hsic_test", {**both, "null": "wild bootstrap"}, exact=False, series=True),
        "hsic_test, blocks": Subject("hsic_test", {"scheme": "blocks"}, exact=False, series=True),
        "hsic_test, shifts": Subject("hsic_test", {"scheme": "shifts"}, exact=False, series=True),
    }


SUBJECTS = _subjects()


class Found(NamedTuple):
    """What one data set gave: the p-value, the one with ties broken at random, and how many resamples there were."""

    pvalue: float
    sharp: float
    resamples: int


def found(subject: Subject, kind: str, n: int, m: int, seed: int) -> Found:
    """The p-values of one data set."""
    result = subject(kind, n, m, seed)
    null = np.asarray(result.null_distribution)
    if not null.size:
        return Found(result.pvalue, result.pvalue, 0)
    tie = _TIE * max(np.abs(null[np.isfinite(null)]).max(initial=0.0), abs(result.statistic), 1e-300)
    observed = result.statistic
    above = np.count_nonzero(null > observed + tie)
    equal = np.count_nonzero((null >= observed - tie) | (null == observed)) - above
    broken = stream("tie", kind, n, m, seed).uniform()
    return Found(result.pvalue, (above + broken * (1 + equal)) / (1 + null.size), null.size)


def attainable(level: float, resamples: int) -> float:
    """The largest p-value at most the level that can occur."""
    return np.floor(level * (1 + resamples) + 1e-9) / (1 + resamples) if resamples else level


def band(level: float, datasets: int) -> tuple[int, int]:
    """The numbers of rejections that chance explains with 99 %."""
    low, high = binom.ppf([0.005, 0.995], datasets, level)
    return int(low), int(high)


class Rate(NamedTuple):
    """How often a level was reached, beside the band: ``verdict`` is "in", "above" or "below" it."""

    share: float
    verdict: str


def rate(pvalues: Array, level: float, attained: float) -> Rate:
    """The share of p-values at most the level; the band is that of the level that can be attained."""
    count = int(np.count_nonzero(np.asarray(pvalues) <= level + 1e-12))
    low, high = band(attained, len(pvalues))
    return Rate(count / len(pvalues), "above" if count > high else "below" if count < low else "in")


def rates(found: list[Found]) -> tuple[list[Rate], list[Rate]]:
    """Of one cell: the rates of the test's own p-value, and of the sharp one."""
    own, sharp, resamples = (np.array(column) for column in zip(*found, strict=True))
    most = int(resamples.max())
    return (
        [rate(own, level, attainable(level, most)) for level in LEVELS],
        [rate(sharp, level, level) for level in LEVELS],
    )


def study(name: str, kind: str, n: int, m: int, seeds: Iterable[int]) -> list[Found]:
    """The p-values of one test on many data sets without anything to be found."""
    subject: Callable[..., Any] = SUBJECTS[name]
    with mercer.config_context(n_threads=1):
        return [found(subject, kind, n, m, seed) for seed in seeds]
