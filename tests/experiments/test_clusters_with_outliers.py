"""PSD22 Fig 1: rank two, certified, outliers kept apart from the clusters."""

import numpy as np
import pytest

from mercer.experiments import Verdict, clusters_with_outliers


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_outliers_stay_far_and_clusters_stay_apart(seed):
    result = clusters_with_outliers(random_state=seed)
    assert result.sdp.rank_ == 2
    assert result.sdp.certificate_.holds(1e-6)
    assert result.outlier_reach(result.sdp.embedding_) > 1.5
    assert result.outlier_reach(result.diffusion_maps.embedding_) < 1  # λu is small where the data are sparse
    assert result.outlier_reach(result.diffusion_maps.embedding_) < result.outlier_reach(result.markov_maps.embedding_)
    directions = result.sdp.embedding_ / np.linalg.norm(result.sdp.embedding_, axis=1, keepdims=True)
    means = np.array([directions[result.labels == c].mean(axis=0) for c in range(3)])
    nearest = np.argmax(directions[result.labels >= 0] @ means.T, axis=1)
    assert np.mean(nearest == result.labels[result.labels >= 0]) > 0.97


def test_figure_has_both_conventions():
    figure = clusters_with_outliers().figure()
    titles = [ax.get_title().split(":")[0].split(" (")[0] for ax in figure.axes]
    assert titles == ["Data", "SDP embedding", "Diffusion maps, λu", "Diffusion maps, λψ"]


def test_comparisons_with_and_without_outliers():
    assert [c.verdict for c in clusters_with_outliers().comparisons] == [Verdict.AGREES] * 3
    assert [c.quantity for c in clusters_with_outliers(n_outliers=0).comparisons] == ["rank of B"]
