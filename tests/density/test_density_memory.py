"""The memory limit bounds what is allocated beyond data and answer, or is refused before the work starts."""

import gc
import tracemalloc
import warnings

import numpy as np
import pytest

from mercer import (
    Gaussian,
    Laplacian,
    Matern,
    MeanEmbedding,
    RobustKernelRidge,
    SumOfSquaresDensity,
    config_context,
    mmd,
)

LIMIT = 40_000_000


def peak(work):
    """Bytes allocated at most, beyond what was there; once before, for what is made only once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()
        gc.collect()
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def sample(n, d):
    return np.random.default_rng(0).standard_normal((n, d))


@pytest.mark.parametrize(
    "work",
    [
        lambda: SumOfSquaresDensity(Gaussian(0.8), support=150, max_iter=3, random_state=0).fit(sample(400, 2)),
        lambda: SumOfSquaresDensity(Gaussian(0.8), support=20, random_state=0).fit(sample(8000, 1)),
        lambda: SumOfSquaresDensity(Laplacian(1.0), support=20, random_state=0).fit(sample(300, 2)),
        lambda: SumOfSquaresDensity(Matern(1.5, 1.0), support=20, random_state=0).fit(sample(300, 1)),
        lambda: SumOfSquaresDensity(Gaussian(3.0), support=30, random_state=0).fit(sample(300, 6)),
        lambda: RobustKernelRidge(support=25, max_iter=5, random_state=0).fit(sample(200, 1), sample(200, 1)[:, 0]),
        lambda: mmd(sample(6000, 3), sample(6000, 3) + 1, Gaussian(1.0)),
        lambda: mmd(sample(6000, 3), sample(6000, 3) + 1, Gaussian(1.0), estimator="unbiased"),
        lambda: MeanEmbedding(Gaussian(1.0), sample(9000, 3)).norm(),
    ],
    ids=["density", "rows", "laplacian", "quadrature", "many features", "robust", "mmd", "unbiased", "embedding"],
)
def test_the_limit_is_kept(work):
    with config_context(memory_limit=LIMIT):
        assert peak(work) < LIMIT


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (
            lambda: SumOfSquaresDensity(Gaussian(0.8), support=600).fit(sample(600, 2)),
            r"^A density on 600 support points",
        ),
        (
            lambda: SumOfSquaresDensity(Gaussian(3.0)).fit(sample(2000, 6)),
            r"^A density on 100 support points takes about",
        ),
        (
            lambda: SumOfSquaresDensity(Matern(1.5, 1.0)).fit(sample(200, 2)),
            r"^The quadrature of Matern.* takes \d+ MB",
        ),
        (
            lambda: RobustKernelRidge(support=90).fit(sample(90, 2), sample(90, 1)[:, 0]),
            r"^The integrals of the loss on 90",
        ),
        (lambda: mmd(sample(20_000, 3), sample(20_000, 3), Gaussian(1.0)), r"^Sums over the pairs of 40000 points"),
        (lambda: MeanEmbedding(Gaussian(1.0), sample(50_000, 3)).norm(), r"^Sums over the pairs of 50000 points"),
    ],
    ids=["density", "many features", "quadrature", "robust", "mmd", "embedding"],
)
def test_what_does_not_fit_is_refused_before_the_work(work, sentence):
    with config_context(memory_limit=LIMIT), pytest.raises(ValueError, match=sentence + r".*memory_limit\.$"):
        work()
