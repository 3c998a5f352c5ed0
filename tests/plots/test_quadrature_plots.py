"""Nodes by their weight, paths over ϰ, tests and merging: what is drawn is what the models say."""

import numpy as np
import pytest

from mercer import Gaussian, QuadratureSparsifier
from mercer.datasets import halton_square
from mercer.plots import new_figure, plot_merging, plot_quadrature, plot_quadrature_path, plot_upsilon


@pytest.fixture(scope="module")
def X():
    return halton_square(120)


@pytest.fixture(scope="module")
def model(X):
    return QuadratureSparsifier(Gaussian(sigma=0.6), trace_fraction=0.7, solver="path").fit(X)


def test_areas_are_in_proportion_to_the_weights(model, X):
    (ax,) = plot_quadrature(model, X, size=90.0).axes
    sample, nodes = ax.collections
    np.testing.assert_array_equal(sample.get_offsets(), X)
    np.testing.assert_array_equal(nodes.get_offsets(), X[model.indices_])
    np.testing.assert_allclose(nodes.get_sizes(), 90 * model.weights_ / model.weights_.max())
    assert ax.get_title() == f"{model.indices_.size} nodes of 120 points"


def test_points_of_the_path_and_pairs_are_measures_too(model, X):
    point = model.path_.at(kappa=0.4)
    _, (left, right) = new_figure(2)
    plot_quadrature(point, X, left, crosses=0.0)
    plot_quadrature((point.indices, point.weights), X, right, title="a pair")
    np.testing.assert_array_equal(left.collections[0].get_offsets(), right.collections[1].get_offsets())
    assert right.get_title() == "a pair"


def test_columns_are_chosen_and_checked(model, X):
    wide = np.column_stack([np.zeros(120), X])
    (ax,) = plot_quadrature(model, wide, columns=(2, 1)).axes
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), X[:, ::-1])
    with pytest.raises(ValueError, match="columns=\\(0, 3\\) do not exist: X has 3 columns"):
        plot_quadrature(model, wide, columns=(0, 3))


def test_a_single_column_lies_on_a_line(model, X):
    (ax,) = plot_quadrature(model, X[:, :1]).axes
    np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 1], 0)


def test_path_panels(model):
    nodes, discrepancy, penalty = plot_quadrature_path(model.path_).axes
    np.testing.assert_array_equal(nodes.lines[0].get_ydata(), model.path_.n_nodes)
    np.testing.assert_array_equal(discrepancy.lines[0].get_ydata(), model.path_.discrepancies)
    np.testing.assert_array_equal(penalty.lines[0].get_ydata(), model.path_.alphas)
    for ax in (nodes, discrepancy, penalty):
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), model.path_.kappas)
        assert ax.get_xlabel() == "ϰ"


def test_two_tests_in_one_panel(model):
    _, (ax,) = new_figure()
    plot_upsilon(model.eigenpairs(5), ax, label="paper")
    plot_upsilon(model.eigenpairs(5, refine=True), ax, label="refined", colour="black", marker="x")
    np.testing.assert_array_equal(ax.lines[0].get_xydata()[:, 1], model.eigenpairs(5).upsilon)
    np.testing.assert_array_equal(ax.lines[0].get_xydata()[:, 0], [1, 2, 3, 4, 5])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["paper", "refined"]
    assert ax.get_ylim() == (0.0, 1.03)


def test_untested_eigenpairs_are_refused(model):
    with pytest.raises(ValueError, match="upsilon=True"):
        plot_upsilon(model.eigenpairs(3, upsilon=False))


@pytest.mark.parametrize("merge", ["strong", "eliminate"])
def test_both_kinds_of_sequences(X, merge):
    model = QuadratureSparsifier(Gaussian(sigma=0.6), trace_fraction=0.7, merge=merge, n_nodes=3).fit(X)
    (ax,) = plot_merging(model.reduction_, label=merge).axes
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), model.reduction_.n_nodes)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.reduction_.values)
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    plot_merging(model.reduction_, ax)
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
