"""Pulsar candidates, as in PSD22 section 5.1: a quick part of the sample always, the whole training size when asked."""

import numpy as np
import pytest

from mercer import Gaussian, SDPEmbedding
from mercer.datasets import data_folder, htru2

pytestmark = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")


@pytest.mark.parametrize(
    "n_points", [pytest.param(1500, id="quick"), pytest.param(12528, id="whole", marks=pytest.mark.slow)]
)
def test_pulsars_are_certified_and_extended(n_points):
    data, _ = htru2()
    order = np.random.default_rng(0).permutation(len(data))
    X, new = data[order[:n_points]], data[order[n_points:]]
    model = SDPEmbedding(Gaussian(sigma=10.0), random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    assert model.n_products_ < 100
    assert model.certificate_.failure_probability <= 1e-9
    np.testing.assert_allclose((model.embedding_**2).sum(axis=1), model.diagonal_, rtol=1e-8)
    scale = np.sqrt(model.diagonal_.max())
    assert np.abs(model.transform(X[:500]) - model.embedding_[:500]).max() < 1e-5 * scale
    assert np.isfinite(model.transform(new)).all()
    assert np.isfinite(model.novelty(new)).all()
