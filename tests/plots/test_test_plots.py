"""Pictures of tests: the null with the observed statistic, and the witness."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.dependence.result import KernelTestResult
from mercer.io import read_table
from mercer.plots import plot_dependence, plot_null, plot_sample_pairs, plot_witness


@dataclass(frozen=True, eq=False)
class Outcome(KernelTestResult):
    """A test whose witness is known."""

    witness: object = None

    def _found(self):
        return "Yes"

    def _not_found(self):
        return "No"

    def _statistic_name(self):
        return "T"


def outcome(witness=None, null=(0.0, 1.0, 2.0, 3.0), statistic=2.0, pvalue=0.6):
    return Outcome(statistic, pvalue, np.asarray(null), "permutation", len(null), None, (), witness)


def test_the_null_splits_at_the_observed_statistic():
    null = np.random.default_rng(0).standard_normal(999)
    figure = plot_null(outcome(null=null, statistic=1.0, pvalue=0.16))
    (ax,) = figure.axes
    heights, edges = np.histogram(null, np.unique([bar.get_x() for bar in ax.containers[0]]))
    assert heights.sum() >= 998  # the last bar's right edge is not among the left ones
    below, above = ax.containers
    assert sum(bar.get_height() for bar in below) == 999
    assert sum(bar.get_height() for bar in above) == (null >= 1.0).sum()
    assert np.isclose(edges, 1.0).any()  # no bar holds values of both sides
    assert ax.lines[0].get_xdata()[0] == 1.0
    assert ax.get_title() == "as large in 160 of 1000 (p = 0.16)"


@pytest.mark.parametrize("null", [np.zeros(9), np.r_[np.zeros(8), 1.0], np.full(5, 2.0), 1e-12 * np.arange(9.0)])
def test_the_null_of_ties_and_of_statistics_far_apart(null):
    (ax,) = plot_null(outcome(null=null)).axes
    assert sum(bar.get_height() for bar in ax.containers[0]) == null.size
    assert len(ax.containers[0]) < 155
    ax.figure.canvas.draw()


def test_a_formula_has_no_resamples_to_draw():
    with pytest.raises(ValueError, match="is a formula"):
        plot_null(outcome(null=()))


def test_the_witness_of_one_column_is_a_curve_over_both_rugs():
    X, Y = np.linspace(0, 1, 30)[:, None], np.linspace(1, 3, 5000)
    result = outcome(lambda Z: 1 - np.asarray(Z)[:, 0])
    (ax,) = plot_witness(result, X, Y, labels=("old", "new"), names=["weight"]).axes
    curve, _, first, second = ax.lines
    np.testing.assert_allclose(curve.get_ydata(), 1 - curve.get_xdata())
    assert curve.get_xdata()[0] < 0
    assert curve.get_xdata()[-1] > 3
    assert first.get_xdata().size == 30
    assert second.get_xdata().size == 1000  # of 5000, with both ends
    assert second.get_xdata()[[0, -1]].tolist() == [1.0, 3.0]
    assert ax.get_xlabel() == "weight"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["old", "new"]


def test_the_witness_of_two_columns_has_shades_behind_the_points():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 2)), 2 + rng.standard_normal((30, 2))
    (ax,) = plot_witness(outcome(lambda Z: 1 - np.asarray(Z).sum(axis=1)), X, Y).axes
    shades, first, _, second, _ = ax.collections
    np.testing.assert_array_equal(first.get_offsets(), X)
    np.testing.assert_array_equal(second.get_offsets(), Y)
    assert shades.get_clim()[0] == -shades.get_clim()[1]  # white is zero
    assert (first.get_facecolor() != second.get_facecolor()).any()
    assert ax.get_title().endswith(", as by chance")
    found = plot_witness(outcome(lambda Z: Z[:, 0], pvalue=0.01), X, Y, labels=("old", "new")).axes[0]
    assert found.get_title() == "where old (blue) and new (red) have more"


def test_of_more_columns_the_two_that_tell_most_are_drawn():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 5)), rng.standard_normal((150, 5))
    result = outcome(lambda Z: np.cos(3 * Z[:, 3]) + 0.5 * Z[:, 1])  # not linear, so that correlations would miss it
    (ax,) = plot_witness(result, X, Y).axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x[1]", "x[3]")
    first, _, second, _ = ax.collections
    np.testing.assert_array_equal(second.get_offsets(), Y[:, [1, 3]])
    np.testing.assert_allclose(first.get_array(), result.witness(X))
    assert first.get_clim() == second.get_clim()
    (chosen,) = plot_witness(result, X, Y, columns=(4, 0)).axes
    np.testing.assert_array_equal(chosen.collections[0].get_offsets(), X[:, [4, 0]])
    with pytest.raises(ValueError, match="no column 7"):
        plot_witness(result, X, Y, columns=(7, 0))


def test_categories_have_their_names_on_the_axis(tmp_path):
    (tmp_path / "a.csv").write_text("size,colour\n" + "".join(f"{k},{'red' if k % 3 else 'blue'}\n" for k in range(30)))
    table = read_table(tmp_path / "a.csv")
    X, Y = table.take(np.arange(10)), table.take(np.arange(10, 30))
    result = outcome(lambda Z: np.array([value == "red" for value in Z["colour"].to_list()], dtype=float))
    (ax,) = plot_witness(result, X, Y).axes
    assert ax.get_ylabel() == "colour"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["blue", "red"]
    np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 0], np.arange(10))
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame({part.name: part.to_list() for part in sample.parts}) for sample in (X, Y)]
    plot_witness(outcome(lambda Z: (Z["colour"] == "red").to_numpy(dtype=float)), *frames).canvas.draw()


def test_the_pairs_of_an_independence_test():
    x, y = np.random.default_rng(0).standard_normal((2, 300))
    seen = np.stack([y, np.cos(2 * x)], axis=1)
    (ax,) = plot_dependence(outcome(lambda x, y: x[:, 0] ** 2 * y[:, 1]), x, seen, y_names=["noise", "wave"]).axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "wave")
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.stack([x, seen[:, 1]], axis=1))
    words = np.array(["a", "b"])[(x > 0).astype(int)]
    (ax,) = plot_dependence(outcome(lambda x, y: x[:, 0]), x, words).axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]


def test_which_of_several_samples_differ():
    found = {(0, 1): 0.003, (0, 2): 0.4, (1, 2): 0.06}
    pairs = [SimpleNamespace(first=i, second=j, corrected=p) for (i, j), p in found.items()]
    (ax,) = plot_sample_pairs(SimpleNamespace(pairs=pairs, sizes=(9, 8, 7)), labels=["a", "b", "c"]).axes
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {(0, 1): "0.003", (0, 2): "0.4", (1, 2): "0.06"}
    image = ax.images[0]
    np.testing.assert_allclose(image.get_array().filled(np.nan), np.log10([[0.003, np.nan], [0.4, 0.06]]))
    low, high, bottom, top = image.get_extent()
    assert (low, high, bottom, top) == (-0.5, 1.5, 2.5, 0.5)  # the squares lie under their texts
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["b", "c"]
    with pytest.raises(ValueError, match="pairwise=True"):
        plot_sample_pairs(SimpleNamespace(pairs=(), sizes=(9, 8)))


def test_many_categories_are_named_here_and_there_and_long_titles_broken(tmp_path):
    days = [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in range(120)]
    (tmp_path / "a.csv").write_text("day,x\n" + "".join(f"{day},{k % 7}\n" for k, day in enumerate(days)))
    table = read_table(tmp_path / "a.csv")
    names = ("measurements-of-the-first-half-year.csv", "measurements-of-the-second.csv")
    figure = plot_witness(outcome(lambda rows: np.arange(len(rows)) - 30.0), table, table, labels=names)
    (ax,) = figure.axes
    assert 0 < len([tick for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()) if "2024" in tick.get_text()]) <= 20
    assert max(map(len, ax.get_title().splitlines())) <= 44
    figure.canvas.draw()
    box = ax.title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_a_name_for_every_row_tells_nothing_of_the_witness(tmp_path):
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 60))
    lines = [f"name {k},{x[k]},{noise[k]}\n" for k in range(60)]
    (tmp_path / "a.csv").write_text("who,noise,x\n" + "".join(lines))
    table = read_table(tmp_path / "a.csv")
    half = np.arange(60) < 30
    where = outcome(lambda rows: np.asarray(rows[:, 1].values))
    (ax,) = plot_witness(where, table.take(half), table.take(~half)).axes
    assert {ax.get_xlabel(), ax.get_ylabel()} == {"noise", "x"}
