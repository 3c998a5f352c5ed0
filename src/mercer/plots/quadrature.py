"""Pictures of sparse quadratures: nodes and weights, paths, the Υ-test, and what taking nodes out costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.plots.figures import new_figure
from mercer.plots.labels import COLOURS
from mercer.plots.quadrature_displays import LandmarksDisplay, QuadraturePathDisplay, UpsilonDisplay

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.quadrature import ApproximateEigenpairs, EliminationSequence, MergeSequence, QuadraturePath


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
    """Draw the nodes of a quadrature over its sample; :class:`LandmarksDisplay` draws it, and can colour the sample.

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
    make = LandmarksDisplay.from_estimator if hasattr(model, "indices_") else LandmarksDisplay.from_result
    look: dict[str, Any] = {"title": title, "size": size, "sample_size": crosses, "colour": colour}
    return make(model, X, ax=ax, columns=columns, **look).figure_


def plot_quadrature_path(path: QuadraturePath, axes: Any = None) -> Any:
    """Draw a regularisation path in three panels; :class:`QuadraturePathDisplay` draws it.

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
    return QuadraturePathDisplay.from_result(path, ax=axes).figure_


def plot_upsilon(
    eigenpairs: ApproximateEigenpairs,
    ax: Any = None,
    *,
    label: str | None = None,
    colour: str = COLOURS[0],
    marker: str = "o",
    title: str = "Υ-test",
) -> Any:
    """Draw the Υ-test of approximate eigenpairs (QUAD 4.2); :class:`UpsilonDisplay` draws it.

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
    return UpsilonDisplay(eigenpairs).plot(ax, label=label, colour=colour, marker=marker, title=title).figure_


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
