"""Displays of sparse quadratures: landmarks over their sample, regularisation paths, the Υ-test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY
from mercer.kernels.tables import Table, is_frame
from mercer.plots.display import Display, one_scale
from mercer.plots.labels import COLOURS, Numbers, draw_classes, draw_legend, draw_numbers, read_labels

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.quadrature import ApproximateEigenpairs, QuadraturePath

_SAMPLE = "#b0b0b0"


@final
class LandmarksDisplay(Display):
    """Landmarks over the sample they stand for, the area of each in proportion to its weight.

    Make one by :meth:`from_estimator` or :meth:`from_result`.

    Parameters
    ----------
    points : array of shape (n, 2)
        The sample in the plane.
    indices : array of int
        Which of its rows are landmarks.
    weights : array
        Their weights.
    labels : array of shape (n,), optional
        What the sample is coloured by, as in :class:`EmbeddingDisplay`; grey crosses without.
    label_name : str, optional
        What the labels are.
    names : pair of str, optional
        What stands at the axes.

    Attributes
    ----------
    points, indices, weights : arrays
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self,
        points: Array,
        indices: Array,
        weights: Array,
        *,
        labels: Any = None,
        label_name: str | None = None,
        names: tuple[str, ...] = ("", ""),
    ) -> None:
        self.points, self.indices, self.weights = np.asarray(points), np.asarray(indices), np.asarray(weights)
        self.names = names
        self._labels = None if labels is None else read_labels(labels, len(self.points), name=label_name)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        labels: Any = None,
        ax: Any = None,
        columns: tuple[Any, Any] = (0, 1),
        label_name: str | None = None,
        **look: Any,
    ) -> LandmarksDisplay:
        """Draw the landmarks that a model chose.

        Parameters
        ----------
        model : QuadratureSparsifier or Landmarks
            A fitted estimator with ``indices_`` and ``weights_``.
        X : array or data frame of shape (n, d)
            The sample it was fitted to.
        labels : array of shape (n,), optional
            What the sample is coloured by, as in :class:`EmbeddingDisplay`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        columns : pair of int or of str, default=(0, 1)
            Which two columns of X to draw. A sample of one column is drawn on a horizontal line.
        label_name : str, optional
            What the labels are, above the legend or beside the colour bar.
        **look
            See :meth:`plot`.

        Returns
        -------
        LandmarksDisplay
            The display, drawn.
        """
        if not hasattr(model, "indices_"):
            raise ValueError(f"{type(model).__name__} has no indices_ to draw: fit it, or use from_result.")
        chosen = model.indices_, getattr(model, "weights_", np.ones(len(model.indices_)))
        return cls.from_result(chosen, X, labels=labels, ax=ax, columns=columns, label_name=label_name, **look)

    @classmethod
    def from_result(
        cls,
        result: Any,
        X: Any,
        *,
        labels: Any = None,
        ax: Any = None,
        columns: tuple[Any, Any] = (0, 1),
        label_name: str | None = None,
        **look: Any,
    ) -> LandmarksDisplay:
        """Draw rows of X with weights, (indices, weights) as ``path_.at(…)`` gives; see :meth:`from_estimator`."""
        points, names = _two_columns(X, columns)
        indices, weights = result[:2]
        display = cls(points, indices, weights, labels=labels, label_name=label_name, names=names)
        return display.plot(ax, **look)

    def plot(
        self,
        ax: Any = None,
        *,
        size: float = 150.0,
        sample_size: float = 8.0,
        colour: str = COLOURS[0],
        legend: bool = True,
        title: str | None = None,
    ) -> Self:
        """Draw sample and landmarks.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        size : float, default=150
            The area of the heaviest landmark in square points.
        sample_size : float, default=8
            That of a point of the sample; zero leaves the sample out.
        colour : str, optional
            The colour of the landmarks; black where the sample has labels.
        legend : bool, default=True
            Whether labels get their legend or colour bar.
        title : str, optional
            The title of the panel; the number of landmarks by default.

        Returns
        -------
        LandmarksDisplay
            The same display.
        """
        (ax,) = self._begin(ax, inches=5.0)
        area = size * self.weights / self.weights.max(initial=TINY)
        look: dict[str, Any] = {"color": colour, "alpha": 0.85, "linewidths": 0}
        if self._labels is not None:
            look = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.2}
        if sample_size > 0:
            self._draw_sample(ax, sample_size, legend)
        ax.scatter(*self.points[self.indices].T, s=area, zorder=3, **look)
        one_scale(ax, *self.points.T)
        ax.set_title(f"{self.indices.size} nodes of {len(self.points)} points" if title is None else title)
        ax.tick_params(which="both", labelsize=8)
        ax.set_xlabel(self.names[0], fontsize=8)
        ax.set_ylabel(self.names[1], fontsize=8)
        return self

    def _draw_sample(self, ax: Any, size: float, legend: bool) -> None:
        if self._labels is None:
            ax.scatter(*self.points.T, s=size, marker="x", color=_SAMPLE, linewidths=0.5)
        elif isinstance(self._labels, Numbers):
            draw_numbers(ax, self.points, self._labels, size=size, bar=legend)
        else:
            draw_classes(ax, self.points, self._labels, size=size)
            if legend:
                draw_legend(ax, self._labels.title, points=len(self.points))

    def __repr__(self) -> str:
        return f"LandmarksDisplay({self.indices.size} of {len(self.points)} points)"


def _two_columns(X: Any, columns: tuple[Any, Any]) -> tuple[Array, tuple[str, ...]]:
    """Two columns by number or name, and what they are called in a data frame."""
    names: tuple[str, ...] = ()
    if is_frame(X):
        table = Table.of(X)
        X, names = table.coded(X), tuple(table.names)
        columns = tuple(names.index(column) if column in names else column for column in columns)  # type: ignore[assignment]
    X = np.asarray(X)
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(len(X))]), (names[0] if names else "", "")
    whole = all(isinstance(column, (int, np.integer)) for column in columns)
    if not whole or not all(-X.shape[1] <= column < X.shape[1] for column in columns):
        raise ValueError(f"columns={columns!r} do not exist: X has {X.shape[1]} columns.")
    return X[:, list(columns)], tuple(names[column] for column in columns) if names else ("", "")


@final
class QuadraturePathDisplay(Display):
    """Nodes, discrepancy D and penalty α over ϰ = dᵀv along a regularisation path (as in QUAD Fig 8.4).

    Make one by :meth:`from_estimator` or :meth:`from_result`.

    Parameters
    ----------
    path : QuadraturePath
        The path.

    Attributes
    ----------
    path : QuadraturePath
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(self, path: QuadraturePath) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None) -> QuadraturePathDisplay:
        """Draw ``path_`` of a fitted :class:`mercer.QuadratureSparsifier`; X is not used, see :meth:`from_result`."""
        if getattr(model, "path_", None) is None:
            raise ValueError(f'{type(model).__name__} has no path_ to draw: fit it with solver="path".')
        return cls.from_result(model.path_, ax=ax)

    @classmethod
    def from_result(cls, path: QuadraturePath, X: Any = None, *, ax: Any = None) -> QuadraturePathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : QuadraturePath
            ``path_`` of a model fitted with ``solver="path"``.
        X : ignored
            Here so that every display takes the same arguments.
        ax : three matplotlib Axes, or one, optional
            Where to draw; the place of a single one is divided. A new figure by default.

        Returns
        -------
        QuadraturePathDisplay
            The display, drawn.
        """
        return cls(path).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the three panels, in a new figure or in the given ones."""
        nodes, discrepancy, penalty = self._begin(ax, 3)
        path = self.path
        nodes.step(path.kappas, path.n_nodes, where="post", color=COLOURS[0], linewidth=0.8)
        nodes.set(title="Nodes", ylim=(0, None))
        discrepancy.semilogy(path.kappas, path.discrepancies, color=COLOURS[0])
        discrepancy.set_title("Discrepancy D")
        penalty.semilogy(path.kappas, path.alphas, color=COLOURS[0])
        penalty.set_title("Penalty α")
        for panel in self.axes_:
            panel.set_xlabel("ϰ")
            panel.tick_params(which="both", labelsize=8)
        return self

    def __repr__(self) -> str:
        return f"QuadraturePathDisplay({len(self.path.kappas)} points of a path)"


@final
class UpsilonDisplay(Display):
    """The Υ-test of approximate eigenpairs: one for an eigenfunction, less the farther from one (QUAD 4.2).

    Make one by :meth:`from_estimator` or :meth:`from_result`.

    Parameters
    ----------
    eigenpairs : ApproximateEigenpairs
        What ``model.eigenpairs(n)`` returned, with the test.

    Attributes
    ----------
    upsilon : array
        The values that are drawn.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(self, eigenpairs: ApproximateEigenpairs) -> None:
        if eigenpairs.upsilon is None:
            raise ValueError("These eigenpairs were not tested: compute them with upsilon=True.")
        self.upsilon = np.asarray(eigenpairs.upsilon)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, ax: Any = None, n: int = 10, refine: bool = False, **look: Any
    ) -> UpsilonDisplay:
        """Test n approximate eigenpairs of a fitted :class:`mercer.QuadratureSparsifier`; X is not used."""
        return cls.from_result(model.eigenpairs(n, refine=refine), ax=ax, **look)

    @classmethod
    def from_result(
        cls, eigenpairs: ApproximateEigenpairs, X: Any = None, *, ax: Any = None, **look: Any
    ) -> UpsilonDisplay:
        """Draw the test of eigenpairs, see :meth:`plot`; with axes that have one it draws a second beside the first."""
        return cls(eigenpairs).plot(ax, **look)

    def plot(
        self,
        ax: Any = None,
        *,
        label: str | None = None,
        colour: str = COLOURS[0],
        marker: str = "o",
        title: str = "Υ-test",
    ) -> Self:
        """Draw the test.

        Parameters
        ----------
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
        UpsilonDisplay
            The same display.
        """
        (ax,) = self._begin(ax)
        place = np.arange(1, self.upsilon.size + 1)
        ax.plot(place, self.upsilon, marker, color=colour, markersize=4, label=label)
        ax.set(title=title, xlabel="direction l", ylabel="Υ", ylim=(min(ax.get_ylim()[0], 0.0), 1.03))
        ax.xaxis.get_major_locator().set_params(integer=True)
        if label:
            draw_legend(ax)
        ax.tick_params(which="both", labelsize=8)
        return self

    def __repr__(self) -> str:
        low, high = self.upsilon.min(), self.upsilon.max()
        return f"UpsilonDisplay({self.upsilon.size} directions, Υ from {low:.2g} to {high:.2g})"
