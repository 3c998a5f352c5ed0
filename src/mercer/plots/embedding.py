"""The picture of an embedding: points in the plane, coloured by their labels."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.plots.display import Display
from mercer.plots.labels import (
    Classes,
    Numbers,
    area_of_dots,
    draw_classes,
    draw_legend,
    draw_numbers,
    read_labels,
)


@final
class EmbeddingDisplay(Display):
    """Points in the plane, one colour a class with a legend, or in the shades of a number with a colour bar.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    coordinates : array of shape (n, 1) or (n, 2)
        Positions; a single coordinate is drawn against the number of the row.
    labels : array of shape (n,), optional
        What the points are coloured by. Text, truth values, categories and whole numbers of up to twenty values are
        classes, with a legend; other numbers are quantities, with a colour bar. Pass text for classes of more values.
    label_name : str, optional
        What the labels are, above the legend or beside the colour bar; a column of a data frame has a name.
    classes : bool, optional
        Whether labels are classes or quantities, where their type does not say it.
    outlier : optional
        The label of points that belong to no class, such as -1: they are drawn as red stars.
    misplaced : array of bool, optional
        Points in whose position nothing should be read, drawn as rings.
    names : pair of str, optional
        What stands at the axes; without it they have no ticks either.
    title : str, optional
        What stands above the panel.

    Attributes
    ----------
    coordinates, misplaced : arrays
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self,
        coordinates: Any,
        *,
        labels: Any = None,
        label_name: str | None = None,
        classes: bool | None = None,
        outlier: Any = None,
        misplaced: Array | None = None,
        names: tuple[str, ...] = (),
        title: str = "",
    ) -> None:
        self.coordinates = _in_plane(coordinates)
        self.misplaced, self.names, self.title = misplaced, names, title
        self._labels = read_labels(labels, len(self.coordinates), name=label_name, classes=classes, outlier=outlier)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        labels: Any = None,
        ax: Any = None,
        components: Any = (0, 1),
        **look: Any,
    ) -> EmbeddingDisplay:
        """Draw points by a fitted model: two of their coordinates, or a map of all of them.

        Parameters
        ----------
        model : fitted estimator
            One with ``transform``, of Mercer or of scikit-learn; or with ``embedding_``, for the points of the fit.
        X : array or data frame of shape (n, d), optional
            The points to draw. Left out they are those of the fit, whose coordinates need not be computed.
        labels : array of shape (n,), optional
            What the points are coloured by, see :class:`EmbeddingDisplay`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        components : pair of int or "map", default=(0, 1)
            Which two coordinates are drawn; or ``"map"`` for :func:`mercer.plane_map` of all of them, where points that
            it misplaces are rings and the title says what it keeps.
        **look
            ``label_name``, ``classes`` and ``outlier``, see :class:`EmbeddingDisplay`; ``size``, ``legend``,
            ``equal_axes`` and ``title``, see :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
            The display, drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import SDPEmbedding
        >>> from mercer.plots import EmbeddingDisplay
        >>> X, kinds = load_iris(return_X_y=True)
        >>> model = SDPEmbedding(random_state=0).fit(X)
        >>> display = EmbeddingDisplay.from_estimator(model, X, labels=kinds, label_name="kind of iris")
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['0', '1', '2']
        """
        return cls.from_predictions(_coordinates(model, X), labels=labels, ax=ax, components=components, **look)

    @classmethod
    def from_predictions(
        cls,
        coordinates: Any,
        *,
        labels: Any = None,
        ax: Any = None,
        components: Any = (0, 1),
        label_name: str | None = None,
        classes: bool | None = None,
        outlier: Any = None,
        **look: Any,
    ) -> EmbeddingDisplay:
        """Draw coordinates that are known already, such as ``transform`` gave; see :meth:`from_estimator`."""
        E = np.asarray(to_numpy(coordinates), dtype=np.float64)
        if E.ndim != 2 or not E.shape[1] or not np.isfinite(E).all():
            raise ValueError(f"Coordinates must be finite numbers in rows and columns, not of shape {E.shape}.")
        positions, made = _mapped(E, components) if isinstance(components, str) else _chosen(E, components)
        display = cls(positions, labels=labels, label_name=label_name, classes=classes, outlier=outlier, **made)
        return display.plot(ax, **look)

    def plot(
        self,
        ax: Any = None,
        *,
        size: float | None = None,
        legend: bool = True,
        equal_axes: bool = True,
        title: str | None = None,
    ) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        size : float, optional
            The area of a dot in square points; by default less for more points. Outliers are five times as large.
        legend : bool, default=True
            Whether to draw the legend or the colour bar.
        equal_axes : bool, default=True
            One scale for both coordinates, so that distances can be read off; otherwise the points fill the panel.
        title : str, optional
            The title of the panel; by default that of the display.

        Returns
        -------
        EmbeddingDisplay
            The same display.
        """
        (ax,) = self._begin(ax, inches=5.0)
        points, size = self.coordinates, area_of_dots(len(self.coordinates)) if size is None else size
        if points.shape[1] == 1:
            points = np.column_stack([np.arange(len(points)), points])
        elif equal_axes:
            ax.set_aspect("equal", adjustable="datalim")
        if isinstance(self._labels, Numbers):
            draw_numbers(ax, points, self._labels, size=size, rings=self.misplaced, bar=legend)
        else:
            draw_classes(ax, points, self._labels, size=size, rings=self.misplaced)
        self._name_axes(ax)
        ax.set_title(self.title if title is None else title, **({"fontsize": 9} if self.misplaced is not None else {}))
        if legend:
            draw_legend(ax, self._labels.title if isinstance(self._labels, Classes) else "", points=len(points))
        return self

    def _name_axes(self, ax: Any) -> None:
        ax.tick_params(labelsize=8)
        if not self.names:
            ax.set_xticks([])  # positions of a map have no unit
            ax.set_yticks([])
        elif any(self.names):
            ax.set_xlabel(self.names[0], fontsize=8)
            ax.set_ylabel(self.names[1], fontsize=8)

    def __repr__(self) -> str:
        labels = self._labels
        if isinstance(labels, Numbers):
            by = " by numbers"
        else:
            by = f" of {len(labels.names)} classes" if any(labels.names) else ""
        return f"EmbeddingDisplay({len(self.coordinates)} points{by})"


def _in_plane(coordinates: Any) -> Array:
    E = np.asarray(to_numpy(coordinates), dtype=np.float64)
    if E.ndim != 2 or E.shape[1] not in (1, 2):
        raise ValueError(f"Points of the plane have one or two coordinates, these have shape {E.shape}: choose two.")
    return E


def _coordinates(model: Any, X: Any) -> Any:
    """Those of X by the model, or those of the points of its fit."""
    if X is not None and hasattr(model, "transform"):
        return model.transform(X)
    embedding = getattr(model, "embedding_", None)
    if embedding is None:
        wanted = "fit it first" if hasattr(model, "fit") else "pass a fitted estimator, or use from_predictions"
        if X is None and hasattr(model, "transform"):
            wanted = "fit it, and pass X"
        raise ValueError(f"{type(model).__name__} has no embedding_ to draw: {wanted}.")
    if X is not None and len(X) != len(embedding):
        raise ValueError(f"{type(model).__name__} has no transform for new points: leave X out.")
    return embedding


def _chosen(E: Array, components: Any) -> tuple[Array, dict[str, Any]]:
    """Two coordinates, or the only one, and what stands at the axes."""
    if E.shape[1] == 1:
        return E, {"names": ("row", "coordinate 1")}
    chosen = list(components)
    if len(chosen) != 2 or not all(isinstance(k, (int, np.integer)) and 0 <= k < E.shape[1] for k in chosen):
        raise ValueError(
            f'components={components!r} must be "map" or two of the {E.shape[1]} coordinates, numbered from 0.'
        )
    return E[:, chosen], {"names": tuple(f"coordinate {k + 1}" for k in chosen)}


def _mapped(E: Array, components: str) -> tuple[Array, dict[str, Any]]:
    """A map of all coordinates, which of its points to doubt, and what it keeps."""
    if components != "map":
        raise ValueError(f'components={components!r} must be "map" or two numbers of coordinates.')
    from mercer.embedding import plane_map  # estimators load scikit-learn, which a picture need not

    plane = plane_map(E, random_state=0)
    return plane.coordinates, {"misplaced": plane.misplaced, "title": str(plane).replace("; ", ";\n")}
