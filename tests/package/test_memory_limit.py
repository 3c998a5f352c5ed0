"""The memory limit bounds what a fit takes beyond its data and its answer."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import mercer
from mercer import DiffusionMaps, Gaussian, KernelPCA, SDPEmbedding


def sample(n):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(n // 3, 6)) + shift for shift in (0, 2, 4)])


def peak_beyond(work):
    """Bytes that a piece of work takes at most beyond those it leaves behind."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert kept is not None
    return peak - before


@pytest.mark.parametrize(
    "model",
    [
        SDPEmbedding(Gaussian(4.0), random_state=0),
        SDPEmbedding(Gaussian(4.0), random_state=0, solver="accelerated", max_iter=30, certify=False),
        DiffusionMaps(Gaussian(4.0), random_state=0),
        KernelPCA(Gaussian(4.0), n_components=5, random_state=0),
    ],
    ids=["embedding", "accelerated", "diffusion maps", "kernel PCA"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_keeps_to_the_limit(model, request):
    X = sample(6000)
    model.fit(X[:300])  # compiled loops and caches are nobody's
    with mercer.config_context(memory_limit="16MB"):
        assert peak_beyond(lambda: model.fit(X)) <= 16e6


def test_a_limit_that_cannot_be_kept_is_refused_before_the_work():
    sentence = (
        "An embedding of 20001 points in initial_rank=10 dimensions takes about 24 MB .* memory_limit=17 MB: lower"
    )
    with mercer.config_context(memory_limit="17MB"), pytest.raises(MemoryError, match=sentence):
        SDPEmbedding(Gaussian(4.0)).fit(sample(20_001))


def test_what_is_hardly_anything_is_not_counted():
    with mercer.config_context(memory_limit="1kB"):
        assert SDPEmbedding(Gaussian(4.0), random_state=0).fit(sample(150)).certificate_.holds(1e-6)
