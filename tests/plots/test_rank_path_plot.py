"""The picture of a path shows every rank and names every band."""

import numpy as np
import pytest

from mercer import Matern, rank_path
from mercer.datasets import three_clusters
from mercer.plots import new_figure, plot_rank_path, save_figure


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=15, n_outliers=3)[0]


def _texts(ax):
    return [text.get_text() for text in ax.texts]


def test_bands_are_named_and_ranks_written(X, tmp_path):
    path = rank_path(X, [1e-6, 0.05, 2.0, 4.0, 400.0, 1e9], random_state=0, max_products=2000)
    figure = plot_rank_path(path)
    left, right = figure.axes
    names = {"isolated", "nearly isolated", "nearly constant", "constant"}
    for ax in (left, right):
        assert ax.get_xscale() == "log"
        assert ax.get_xlabel() == "σ"
        assert names <= set(_texts(ax))
        assert ax.get_xlim()[0] < 1e-6
        assert ax.get_xlim()[1] > 1e9
    assert [text for text in _texts(left) if text not in names] == [str(rank) for rank in path.ranks if rank]
    assert [text for text in _texts(right) if text not in names] == []
    line, *curves = right.lines
    assert line.get_label() == "suggested"
    assert list(line.get_xdata()) == [path.suggested.sigma] * 2
    assert len(curves) == 5
    np.testing.assert_allclose(curves[0].get_ydata(), path.diffusion_eigenvalues[:, 0])
    assert save_figure(figure, tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_bands_meet_halfway(X):
    path = rank_path(X, [1e-8, 1e-6, 2.0], random_state=0)
    left, _ = plot_rank_path(path).axes
    (band,) = left.patches
    low, high = band.get_x(), band.get_x() + band.get_width()
    assert low == pytest.approx(1e-9)
    assert high == pytest.approx(np.sqrt(1e-6 * 2.0))


def test_own_axes_and_one_bandwidth(X):
    figure, axes = new_figure(2)
    path = rank_path(X, [3.0], kernel=Matern(), random_state=0)
    assert plot_rank_path(path, axes) is figure
    assert axes[0].get_xlabel() == "length_scale"
    assert _texts(axes[0]) == [str(path.ranks[0])]


def test_path_without_any_embedding(X):
    figure = plot_rank_path(rank_path(X, [1e-9, 1e-8]))
    assert _texts(figure.axes[0]) == ["isolated"]
    assert "suggested" not in {line.get_label() for line in figure.axes[0].lines}
