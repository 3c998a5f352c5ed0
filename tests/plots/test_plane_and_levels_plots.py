"""The map shows which of its points to doubt, and the spectra of levels carry their proofs."""

import dataclasses

import numpy as np
import pytest

from mercer import SDPEmbedding
from mercer.datasets import two_moons
from mercer.embedding import PlaneMap
from mercer.plots import new_figure, plot_levels, plot_plane_map


@pytest.fixture
def plane():
    rng = np.random.default_rng(0)
    kept = np.where(np.arange(60) % 10 == 0, 0.1, 0.9)
    return PlaneMap(rng.normal(size=(60, 2)), kept, rng.normal(size=(60, 4)), np.arange(60), 15)


def test_misplaced_points_are_rings(plane):
    labels = np.repeat(["a", "b", "c"], 20)
    _, (ax,) = new_figure(1)
    assert plot_plane_map(ax, plane, labels) is ax
    filled, rings = ax.collections[::2], ax.collections[1::2]
    assert [len(each.get_offsets()) for each in filled] == [18, 18, 18]
    assert [len(each.get_offsets()) for each in rings] == [2, 2, 2]
    np.testing.assert_allclose(rings[0].get_offsets(), plane.coordinates[[0, 10]])
    assert all(len(each.get_facecolor()) == 0 for each in rings)
    assert ax.get_title() == str(plane).replace("; ", ";\n")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]


@pytest.mark.parametrize("classes", [10, 30])
def test_colours_of_many_classes(plane, classes):
    _, (ax,) = new_figure(1)
    plot_plane_map(ax, plane, np.arange(60) % classes, title="map")
    colours = {tuple(each.get_edgecolor()[0]) for each in ax.collections[1::2] if len(each.get_offsets())}
    assert ax.get_title() == "map"
    assert (ax.get_legend() is None) == (classes == 30)
    assert len({tuple(each.get_facecolor()[0]) for each in ax.collections[::2]}) == 10
    assert colours


def test_no_labels_and_wrong_labels(plane):
    _, (ax,) = new_figure(1)
    plot_plane_map(ax, plane)
    assert ax.get_legend() is None
    assert len(ax.collections) == 2
    with pytest.raises(ValueError, match="labels has 3 entries, but there are 60 points"):
        plot_plane_map(ax, plane, [1, 2, 3])


def test_spectra_of_levels_and_their_proofs():
    levels = SDPEmbedding(n_levels=2, random_state=0).fit(two_moons(60)[0]).levels_
    assert len(levels) > 1
    levels = (*levels[:-1], dataclasses.replace(levels[-1], certificate=None))
    _, (ax,) = new_figure(1)
    assert plot_levels(ax, levels) is ax
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, np.concatenate([level.eigenvalues for level in levels]))
    captions = [text.get_text() for text in ax.texts]
    assert captions[0] == (f"level 1\ngap {levels[0].certificate.relative_gap:.0e}\nkeeps {levels[0].correlation:.0%}")
    assert "not certified" in captions[-1]
    assert len(captions) == len(levels)
