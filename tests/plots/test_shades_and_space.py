"""Shaded scatter plots and scatter plots in space draw every point where it belongs."""

import numpy as np
import pytest

from mercer.plots import new_figure, plot_in_space, plot_shaded


@pytest.fixture
def ax():
    return new_figure(1)[1][0]


def test_stars_are_drawn_apart_from_dots(ax):
    points = np.arange(10.0).reshape(5, 2)
    values = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    stars = np.array([False, True, False, False, True])
    plot_shaded(ax, points, values, stars=stars, title="shades")
    dots, above = ax.collections
    np.testing.assert_array_equal(dots.get_array(), [2, 3, 5])  # high values last
    np.testing.assert_array_equal(dots.get_offsets(), points[[2, 0, 3]])
    np.testing.assert_array_equal(above.get_offsets(), points[stars])
    assert dots.get_clim() == above.get_clim() == (1, 5)
    assert ax.get_title() == "shades"


def test_one_coordinate_lies_on_a_line(ax):
    plot_shaded(ax, np.array([[2.0], [1.0]]), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), [[2, 0], [1, 0]])


def test_space_takes_the_place_of_the_flat_panel():
    figure, axes = new_figure(2)
    points = np.arange(12.0).reshape(3, 4)
    space = plot_in_space(axes[0], points, np.array([1, 0, 1]), title="space")
    assert axes[0] not in figure.axes
    assert space in figure.axes
    assert axes[1] in figure.axes
    assert [c.get_label() for c in space.collections] == ["0", "1"]
    x, y, z = space.collections[0]._offsets3d
    assert (x[0], y[0], z[0]) == (4, 5, 6)


def test_plane_in_space_has_height_zero(ax):
    space = plot_in_space(ax, np.array([[1.0, 2.0], [3.0, 4.0]]), values=np.array([0.0, 1.0]))
    np.testing.assert_array_equal(space.collections[0]._offsets3d[2], [0, 0])
    np.testing.assert_array_equal(space.collections[0].get_array(), [0, 1])
