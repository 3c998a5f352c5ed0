"""Pictures of sparse quadratures: nodes and weights, paths, the Υ-test, and what taking nodes out costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY
from mercer.plots.figures import new_figure
from mercer.plots.scatter import COLOURS

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.quadrature import ApproximateEigenpairs, EliminationSequence, MergeSequence, QuadraturePath


_SAMPLE = "#b0b0b0"


def plot_quadrature(
    model: Any,
    X: Any,
    ax: Any = None,
    *,
    columns: tuple[int, int] = (0, 1),
    title: str | None = None,
    size: float = 150.0,
    crosses: float = 8.0,
    colour: str = COLOURS[0],
) -> Any:
    """Draw the nodes of a quadrature over its sample, the area of each in proportion to its weight.

    Parameters
    ----------
    model : QuadratureSparsifier or (indices, weights)
        A fitted estimator; or rows of X and their weights, such as ``path_.at(…)`` gives.
    X : array of shape (n, d)
        The sample, drawn as grey crosses.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    columns : (int, int), default=(0, 1)
        Which two columns of X to draw. A sample of one column is drawn on a horizontal line.
    title : str, optional
        The title of the panel; the number of nodes by default.
    size : float, default=150
        The area of the heaviest node in square points.
    crosses : float, default=8
        The area of a cross in square points; zero leaves the sample out.
    colour : str, optional
        The colour of the nodes.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    indices, weights = (model.indices_, model.weights_) if hasattr(model, "indices_") else model[:2]
    indices, weights = np.asarray(indices), np.asarray(weights)
    if ax is None:
        _, (ax,) = new_figure(1, panel_inches=5.0)
    points = _two_columns(np.asarray(X), columns)
    if crosses > 0:
        ax.scatter(*points.T, s=crosses, marker="x", color=_SAMPLE, linewidths=0.5)
    area = size * weights / weights.max(initial=TINY)
    ax.scatter(*points[indices].T, s=area, color=colour, alpha=0.85, linewidths=0, zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_title(f"{indices.size} nodes of {len(points)} points" if title is None else title)
    ax.tick_params(which="both", labelsize=8)
    return ax.figure


def _two_columns(X: Array, columns: tuple[int, int]) -> Array:
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(len(X))])
    if not all(-X.shape[1] <= column < X.shape[1] for column in columns):
        raise ValueError(f"columns={columns!r} do not exist: X has {X.shape[1]} columns.")
    return X[:, list(columns)]


def plot_quadrature_path(path: QuadraturePath, axes: Any = None) -> Any:
    """Draw nodes, discrepancy D and penalty α over ϰ = dᵀv along a regularisation path (as in QUAD Fig 8.4).

    Parameters
    ----------
    path : QuadraturePath
        ``path_`` of a model fitted with ``solver="path"``.
    axes : three matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    if axes is None:
        _, axes = new_figure(3)
    nodes, discrepancy, penalty = axes
    nodes.step(path.kappas, path.n_nodes, where="post", color=COLOURS[0], linewidth=0.8)
    nodes.set(title="Nodes", ylim=(0, None))
    discrepancy.semilogy(path.kappas, path.discrepancies, color=COLOURS[0])
    discrepancy.set_title("Discrepancy D")
    penalty.semilogy(path.kappas, path.alphas, color=COLOURS[0])
    penalty.set_title("Penalty α")
    for ax in axes:
        ax.set_xlabel("ϰ")
        ax.tick_params(which="both", labelsize=8)
    return nodes.figure


def plot_upsilon(
    eigenpairs: ApproximateEigenpairs,
    ax: Any = None,
    *,
    label: str | None = None,
    colour: str = COLOURS[0],
    marker: str = "o",
    title: str = "Υ-test",
) -> Any:
    """Draw the Υ-test of approximate eigenpairs: one for an eigenfunction, less the farther from one (QUAD 4.2).

    Called again with the same axes it draws a second family beside the first.

    Parameters
    ----------
    eigenpairs : ApproximateEigenpairs
        What ``model.eigenpairs(n)`` returned, with the test.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        A name for the legend, which is drawn where there is one.
    colour, marker : str, optional
        How the points look.
    title : str, default="Υ-test"
        The title of the panel.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    if eigenpairs.upsilon is None:
        raise ValueError("These eigenpairs were not tested: compute them with upsilon=True.")
    if ax is None:
        _, (ax,) = new_figure()
    place = np.arange(1, eigenpairs.upsilon.size + 1)
    ax.plot(place, eigenpairs.upsilon, marker, color=colour, markersize=4, label=label)
    ax.set(title=title, xlabel="direction l", ylabel="Υ", ylim=(min(ax.get_ylim()[0], 0.0), 1.03))
    ax.xaxis.get_major_locator().set_params(integer=True)
    if label:
        ax.legend(fontsize=8)
    ax.tick_params(which="both", labelsize=8)
    return ax.figure


def plot_merging(
    sequence: MergeSequence | EliminationSequence,
    ax: Any = None,
    *,
    label: str | None = None,
    colour: str = COLOURS[0],
    title: str = "Nodes taken out",
) -> Any:
    """Draw the discrepancy as nodes are taken out, by merging or by elimination (QUAD 7.2).

    Parameters
    ----------
    sequence : MergeSequence or EliminationSequence
        ``reduction_`` of a model.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        A name for the legend, which is drawn where there is one.
    colour : str, optional
        The colour of the curve.
    title : str, optional
        The title of the panel.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    if ax is None:
        _, (ax,) = new_figure()
    ax.semilogy(sequence.n_nodes, sequence.values, color=colour, label=label)
    ax.set(title=title, xlabel="nodes left", ylabel="discrepancy D")
    if not ax.xaxis_inverted():
        ax.invert_xaxis()  # from left to right as nodes go
    if label:
        ax.legend(fontsize=8)
    ax.tick_params(which="both", labelsize=8)
    return ax.figure
