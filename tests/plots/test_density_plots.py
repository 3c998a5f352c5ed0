"""Densities as lines and contours: what is drawn is what the models say, and the picture holds nearly all mass."""

import numpy as np
import pytest

from mercer import Gaussian, SumOfSquaresDensity
from mercer.density.gaussian_squares import GaussianSquares
from mercer.plots import new_figure, plot_density


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(-1, 0.3, (30, 2)), rng.normal(1, 0.5, (30, 2))])


@pytest.fixture(scope="module")
def plane(X):
    return SumOfSquaresDensity(Gaussian(sigma=1.0), support=X[::4], regularization=1e-2, tol=1e-4).fit(X)


@pytest.fixture(scope="module")
def line(X):
    return SumOfSquaresDensity(Gaussian(sigma=1.0), support=X[::4, :1], regularization=1e-2, tol=1e-4).fit(X[:, :1])


@pytest.fixture(scope="module")
def space():
    """A Gaussian in three coordinates: one support point, p = N(z, σ²/4)."""
    return GaussianSquares(np.array([[0.0, 1.0, 2.0]]), np.ones((1, 1)), 2.0)


def test_a_line_is_the_density_and_holds_its_mass(line, X):
    (ax,) = plot_density(line, X[:, :1], title="one").axes
    x, values = ax.lines[0].get_data()
    np.testing.assert_allclose(values, line.density(x[:, None]), rtol=1e-12)
    assert np.trapezoid(values, x) == pytest.approx(1, abs=2e-3)
    assert x[0] < X[:, 0].min()
    assert x[-1] > X[:, 0].max()
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), X[:, 0])  # the rug
    np.testing.assert_array_equal(ax.lines[2].get_xdata(), line.support_[:, 0])
    assert ax.get_title() == "one"
    assert ax.get_ylim()[0] == 0


def test_a_histogram_has_mass_one(line, X):
    (ax,) = plot_density(line, X[:, 0], data="histogram", support=False).axes
    assert sum(bar.get_width() * bar.get_height() for bar in ax.patches) == pytest.approx(1)
    assert len(ax.lines) == 1


def test_two_lines_share_a_panel(line, X):
    _, (ax,) = new_figure()
    plot_density(line, None, ax, label="a", support=False)
    plot_density(GaussianSquares([[0.0]], [[1.0]], 0.4), None, ax, label="b", support=False, colour="black")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.get_ylim()[1] > ax.lines[1].get_ydata().max() > ax.lines[0].get_ydata().max()


def test_contours_are_those_of_the_density(plane, X):
    (ax,) = plot_density(plane, X, levels=[0.02, 0.05], resolution=60).axes
    lines = next(c for c in ax.collections if hasattr(c, "levels") and not c.filled)
    np.testing.assert_array_equal(lines.levels, [0.02, 0.05])
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        np.testing.assert_allclose(plane.density(path.vertices), level, rtol=0.1)
    points, support = (c for c in ax.collections if not hasattr(c, "levels"))
    np.testing.assert_array_equal(points.get_offsets(), X)
    np.testing.assert_array_equal(support.get_offsets(), plane.support_)


@pytest.mark.parametrize("points", [[[0.0]], [[0.0], [10.0]]])
def test_a_wide_density_makes_a_wide_picture(points):
    """Deviations of σ/2 = 10, about one point or two: the picture goes on to a hundredth of the maximum."""
    (ax,) = plot_density(GaussianSquares(points, np.eye(len(points)), 20.0)).axes
    values = ax.lines[0].get_ydata()
    assert max(values[0], values[-1]) <= 0.01 * values.max()
    assert min(values[0], values[-1]) > 1e-8 * values.max()  # nor much farther


def test_columns_are_marginals(space):
    (ax,) = plot_density(space, columns=2, resolution=101).axes
    x, values = ax.lines[0].get_data()
    np.testing.assert_allclose(values, np.exp(-((x - 2) ** 2) / 2) / np.sqrt(2 * np.pi), rtol=1e-10)
    (ax,) = plot_density(space, np.array([[5.0, 6.0, 7.0]]), columns=(2, 0), support=False).axes
    points = [c for c in ax.collections if not hasattr(c, "levels")]
    np.testing.assert_array_equal(points[0].get_offsets(), [[7.0, 5.0]])
    plot_density(space, np.array([[7.0, 5.0]]), columns=(2, 0), support=False)  # or the columns alone


def test_limits_are_kept(plane):
    (ax,) = plot_density(plane, limits=[(-2, 2), (-3, 3)], resolution=20).axes
    assert ax.get_xlim() == (-2, 2)
    assert ax.get_ylim() == (-3, 3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, r"^A density of 3 coordinates cannot be drawn: choose one or two of its columns\.$"),
        ({"columns": (0, 1, 2)}, r"^columns=\(0, 1, 2\) must be one or two column numbers\.$"),
        ({"columns": 3}, r"from 0 to 2"),
        ({"columns": 0, "data": "points"}, r"^data='points' must be one of 'auto', 'rug', 'histogram', 'none' for 1"),
        ({"columns": (0, 1), "data": "rug"}, r"^data='rug' must be one of 'auto', 'points', 'none' for 2 coord"),
        ({"columns": 0, "limits": (2, 1)}, r"^limits=\(2, 1\) must be \(low, high\)"),
        ({"columns": 0, "X": np.ones((4, 2))}, r"^X must be an array of finite numbers with 3 columns"),
        ({"columns": 0, "X": np.array([[np.nan, 0, 0]])}, r"^X must be an array of finite numbers"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(space, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_density(space, **options)


def test_a_look_that_does_not_exist_is_named():
    with pytest.raises(TypeError, match="'color'"):
        plot_density(GaussianSquares([[0.0]], [[1.0]], 0.4), color="black")
