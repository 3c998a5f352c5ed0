"""Pictures need no display and are written whole."""

import numpy as np
import pytest

from mercer.plots import new_figure, plot_heat_map, plot_points, plot_spectra, plot_spread, save_figure


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_plot_points_draws_every_point(columns):
    figure, (ax,) = new_figure(1)
    labels = np.array([0, 0, 1, -1])
    plot_points(ax, np.arange(4 * columns, dtype=float).reshape(4, columns), labels, title="points")
    assert sum(len(c.get_offsets()) for c in ax.collections) == 4
    assert ax.get_title() == "points"
    assert figure.axes == [ax]


def test_save_is_whole_or_not_at_all(tmp_path):
    figure, _ = new_figure(2)
    path = save_figure(figure, tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_mode & 0o777 == 0o644  # others may read it, as any file one saves
    before = path.read_bytes()
    figure.savefig = lambda *args, **kwargs: (_ for _ in ()).throw(RuntimeError("disk full"))
    with pytest.raises(RuntimeError, match="disk full"):
        save_figure(figure, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_missing_folder_is_named(tmp_path):
    figure, _ = new_figure()
    with pytest.raises(FileNotFoundError, match="does not exist"):
        save_figure(figure, tmp_path / "none" / "a.png")


def test_panels_in_rows_and_none_too_many():
    figure, axes = new_figure(3, rows=2)
    assert len(axes) == len(figure.axes) == 3
    assert axes[2].get_subplotspec().rowspan.start == 1


def test_heat_map_is_white_at_zero():
    _, (ax,) = new_figure()
    plot_heat_map(ax, np.array([[-1.0, 0.0], [2.0, 0.5]]), extent=(0, 1, 0, 1), title="kernel")
    assert ax.images[0].get_clim() == (-2, 2)
    assert ax.images[0].get_extent() == [0, 1, 0, 1]


def test_spectra_of_unequal_lengths():
    _, (ax,) = new_figure()
    plot_spectra(ax, [0.1, 0.2], [np.array([0.9, 0.1]), np.array([1.0])], count=3, title="spectra")
    plot_spectra(ax, [0.1], [np.array([0.8])], count=1, crosses=True)
    np.testing.assert_array_equal([line.get_ydata() for line in ax.lines[:3]], [[0.9, 1.0], [0.1, 0], [0, 0]])
    assert ax.lines[3].get_linestyle() == "None"
    assert ax.get_title() == "spectra"


def test_spread_leaves_a_gap_where_no_run_has_a_score():
    _, (ax,) = new_figure()
    scores = np.array([[np.nan, np.nan], [1.0, 0.5], [0.25, np.nan]])
    plot_spread(ax, [0.1, 0.2, 0.3], scores, label="a", colour="black", marker="o")
    np.testing.assert_array_equal(ax.containers[0].lines[0].get_xydata(), [[0.2, 0.75], [0.3, 0.25]])
