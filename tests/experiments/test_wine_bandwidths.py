"""PSD22 Fig 5: the SDP embedding spreads over the points, diffusion maps fall for outliers, early stops are named."""

import numpy as np
import pytest

from mercer.experiments import Verdict, wine_bandwidths


@pytest.fixture(scope="module")
def result():
    return wine_bandwidths((3.0, 10.0), shown=(10.0, 1.5), stopped=(1.0, 3.0))


def test_every_bandwidth_is_certified(result):
    assert sorted(result.sdp) == [1.0, 1.5, 3.0, 10.0]
    assert all(model.certificate_.holds(1e-6) for model in result.sdp.values())
    assert result.sdp[10.0].rank_ == 2


def test_the_stop_is_a_stop_only_where_the_kernel_is_narrow(result):
    narrow, wide, outliers = result.comparisons
    assert "σ = 1.0" in narrow.quantity
    assert narrow.verdict is Verdict.DIFFERS
    assert "5000 steps" in narrow.reason
    assert wide.verdict is Verdict.AGREES
    assert outliers.verdict is Verdict.AGREES


def test_one_wine_takes_the_first_eigenvector_for_itself(result):
    vector = result.diffusion_maps[1.5].embedding_[:, 0]
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert np.abs(vector).max() > 0.95
    sizes = np.abs(result.sdp[1.5].embedding_[:, 0])
    assert sizes.max() / np.linalg.norm(sizes) < 0.2


def test_two_rows_of_embeddings_and_one_of_spectra(result):
    titles = [ax.get_title().split(",")[0] for ax in result.figure().axes]
    assert titles == ["SDP embedding", "Diffusion maps"] * 2 + ["Eigenvalues of B / Tr B", "Largest eigenvalues of Ā"]
