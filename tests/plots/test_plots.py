"""Pictures need no display and are written whole."""

import numpy as np
import pytest

from mercer.plots import new_figure, plot_points, save_figure


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
