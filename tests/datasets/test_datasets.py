"""Generators are reproducible and have the shapes they promise; real data is found or its absence explained."""

import numpy as np
import pytest

from mercer.datasets import data_folder, halton_square, interval, load_real, three_clusters, two_moons


def test_interval():
    points = interval(5)
    np.testing.assert_allclose(points[:, 0], [-1, -0.5, 0, 0.5, 1])


def test_halton_points_count_in_bases_two_and_three():
    """Point k is the digits of k in each base, mirrored at the point; k = 0, the corner, is left out."""
    points = halton_square(9)
    np.testing.assert_allclose(points[:4, 0], [0, -0.5, 0.5, -0.75])
    np.testing.assert_allclose(points[[0, 1, 2, 8], 1], [-1 / 3, 1 / 3, -7 / 9, -25 / 27])
    assert len(np.unique(halton_square(500), axis=0)) == 500


@pytest.mark.parametrize("seed", [0, 7])
def test_three_clusters(seed):
    X, labels = three_clusters(30, 12, random_state=seed)
    assert X.shape == (102, 2)
    assert np.bincount(labels + 1).tolist() == [12, 30, 30, 30]
    np.testing.assert_array_equal(X, three_clusters(30, 12, random_state=seed)[0])
    centers = np.array([X[labels == c].mean(axis=0) for c in range(3)])
    distances = np.linalg.norm(X[labels == -1][:, None] - centers, axis=2).min(axis=1)
    assert distances.min() > 1.2


def test_no_outliers():
    X, labels = three_clusters(10, 0)
    assert X.shape == (30, 2)
    assert -1 not in labels


def test_two_moons_lie_on_half_circles():
    X, labels = two_moons(101, noise=0.0)
    assert np.bincount(labels).tolist() == [50, 51]
    np.testing.assert_allclose(np.linalg.norm(X[labels == 0], axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(X[labels == 1] - [1, 0.5], axis=1), 1)


def test_without_the_folder_the_error_names_the_variable(monkeypatch):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    assert data_folder() is None
    with pytest.raises(FileNotFoundError, match="MERCER_DATA"):
        load_real("htru2")


def test_an_unknown_set_lists_those_there_are(monkeypatch, tmp_path):
    np.savez(tmp_path / "toy.npz", X=np.arange(3))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    assert load_real("toy")["X"].tolist() == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="it has toy"):
        load_real("htru2")


@pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")
def test_htru2_as_described():
    data = load_real("htru2")
    assert data["X"].shape == (17898, 8)
    assert np.bincount(data["y"]).tolist() == [16259, 1639]
