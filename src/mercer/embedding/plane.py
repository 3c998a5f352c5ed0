"""A map in the plane of an embedding with more coordinates, and what the map cannot keep of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, to_numpy
from mercer.embedding.neighbourhoods import N_NEIGHBORS, nearest_points, shared
from mercer.kernels.checks import as_generator
from mercer.validation import whole_number

MISPLACED = 0.2  # a point that keeps less of its neighbours does not lie where it belongs
_START = 1e-4  # spread of the initial positions, as t-SNE wants it
_OTHERS = 0.01  # of the further coordinates in the initial positions
_SURROUNDINGS = 5  # nearest points that say where another one goes
_STEPS = 30  # of Weiszfeld's iteration
_SMALLEST = 1e-140  # of coordinates, whose squares then have all their digits; the largest is its inverse
_NEAR = 1e-6  # of the spread of the map: nearer, a position and a point are the same


@final
@dataclass(frozen=True, eq=False)
class PlaneMap:
    """Positions of points in the plane, and how far they can be believed; ``str(plane)`` says it in a line.

    Attributes
    ----------
    coordinates : array of shape (n, 2)
        The positions.
    kept : array of shape (n,)
        For every point the share of its nearest points by all coordinates that are its nearest in the plane too.
    embedding : array of shape (n, r)
        The coordinates that the map is of.
    fitted : array of int
        The rows that were laid out together; the others were placed among them, as new points are.
    n_neighbors : int
        How many neighbours ``kept`` is about.
    """

    coordinates: Array
    kept: Array
    embedding: Array
    fitted: Array
    n_neighbors: int

    @property
    def misplaced(self) -> Array:
        """Whether a point keeps fewer than a fifth of its neighbours: do not read anything into its position."""
        return self.kept < MISPLACED

    @property
    def summary(self) -> str:
        """What the map keeps, in a line."""
        if self.embedding.shape[1] <= 2:
            return "The map shows all coordinates as they are."
        return (
            f"The map keeps {self.kept.mean():.0%} of the {self.n_neighbors} nearest neighbours; "
            f"{int(self.misplaced.sum())} of {self.kept.size} points keep fewer than {MISPLACED:.0%}."
        )

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return f"PlaneMap({self.kept.size} points. {self.summary})"

    def place(self, Y: Any) -> Array:
        """Return positions of new points, given by all their coordinates, as from ``model.transform``.

        A new point goes to the middle of its five nearest among those laid out together: to their geometric median,
        weighted by one over the squared distance. A mean would fall between islands of the map. The map itself does
        not change, so a new point that is like nothing in it is placed all the same.
        """
        Y = check_array(to_numpy(Y), dtype=np.float64)
        if Y.shape[1] != self.embedding.shape[1]:
            raise ValueError(
                f"Y has {Y.shape[1]} columns, but the map is of {self.embedding.shape[1]} coordinates: pass "
                "model.transform(Y)."
            )
        return _in_plane(Y) if Y.shape[1] <= 2 else _placed(Y, self.embedding[self.fitted], self._laid_out)

    @property
    def _laid_out(self) -> Array:
        return self.coordinates[self.fitted]


def plane_map(
    embedding: Any,
    *,
    perplexity: float = 30.0,
    n_neighbors: int = N_NEIGHBORS,
    max_points: int = 5000,
    random_state: Any = None,
) -> PlaneMap:
    """Draw an embedding with more than two coordinates in the plane, and say for every point what is lost.

    All coordinates, those of all levels, are laid out by t-SNE, which starts from the first two of them, so that the
    arrangement at large is theirs. The proofs are about the coordinates: the map is a picture of them and proves
    nothing, but ``kept`` tells which of its points to believe. An embedding with two coordinates is its own map.

    Parameters
    ----------
    embedding : fitted estimator or array of shape (n, r)
        A model with ``embedding_``, such as :class:`~mercer.SDPEmbedding`, or coordinates.
    perplexity : float, default=30
        About how many neighbours t-SNE looks at; a third of the points at most.
    n_neighbors : int, default=15
        How many neighbours ``kept`` is about.
    max_points : int, default=5000
        Points laid out together; the others are placed among them as new points are.
    random_state : None, int or generator, default=None
        Which points those are; up to ``max_points`` nothing is random.

    Returns
    -------
    PlaneMap
        Positions, what each keeps, and a way to place new points.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SDPEmbedding, plane_map
    >>> model = SDPEmbedding(n_components=4, random_state=0).fit(load_iris().data)
    >>> plane = plane_map(model)
    >>> plane.coordinates.shape
    (150, 2)
    >>> bool(plane.kept.mean() > 0.8)
    True
    """
    E = _all_coordinates(embedding)
    n, r = E.shape
    count = min(whole_number(n_neighbors, "n_neighbors", 1), n - 1)
    if not 1 <= perplexity < np.inf:
        raise ValueError(f"perplexity={perplexity!r} must be a number of at least 1.")
    most = whole_number(max_points, "max_points", 10)
    fitted = np.arange(n)
    if r <= 2:
        positions = _in_plane(E)
    elif n <= most:
        positions = _laid_out(E, perplexity)
    else:
        fitted = np.sort(as_generator(random_state).choice(n, most, replace=False))
        positions = np.empty((n, 2))
        positions[fitted] = _laid_out(E[fitted], perplexity)
        others = np.setdiff1d(np.arange(n), fitted)
        positions[others] = _placed(E[others], E[fitted], positions[fitted])
    rows = np.arange(n)
    kept = shared(nearest_points(E, rows, count), nearest_points(positions, rows, count)) if r > 2 else np.ones(n)
    return PlaneMap(positions, kept, E, fitted, count)


def _all_coordinates(embedding: Any) -> Array:
    """The coordinates of a fitted model, or those given."""
    if hasattr(embedding, "get_params"):
        check_is_fitted(embedding, "embedding_")
        embedding = embedding.embedding_
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is named by scikit-learn
        E = check_array(to_numpy(embedding), dtype=np.float64, ensure_min_samples=4)
    if (E[:1] == E).all():
        raise ValueError("All points have the same coordinates: there is nothing to draw.")
    size = float(np.max(np.abs(E)))
    if not _SMALLEST < size < 1 / _SMALLEST:
        raise ValueError(f"The coordinates are of size {size:.0e}, whose squares leave double precision: scale them.")
    return E


def _in_plane(E: Array) -> Array:
    """Two coordinates as they are; one, and zero as the other."""
    return E.copy() if E.shape[1] == 2 else np.column_stack([E, np.zeros(E.shape[0])])


def _laid_out(E: Array, perplexity: float) -> Array:
    """Positions by t-SNE from the first two coordinates and a little of the others, which parts what agrees in two."""
    E = (E - E.mean(axis=0)) / np.ptp(E)
    angles = np.arange(E.shape[1] - 2)
    start = E[:, :2] + _OTHERS * E[:, 2:] @ np.column_stack([np.cos(angles), np.sin(angles)])
    start *= _START / start.std()
    method = TSNE(init=start.astype(np.float32), perplexity=min(perplexity, (E.shape[0] - 1) / 3))
    return np.asarray(method.fit_transform(E), dtype=np.float64)


def _placed(Y: Array, E: Array, positions: Array) -> Array:
    """Positions of new points: the weighted geometric median of those of their nearest points, by Weiszfeld's steps."""
    distances, near = NearestNeighbors(n_neighbors=min(_SURROUNDINGS, E.shape[0])).fit(E).kneighbors(Y)
    smallest = np.finfo(np.float64).tiny ** 0.25
    weights = 1.0 / np.maximum(distances / max(distances.max(), smallest), smallest) ** 2
    around, least = positions[near], _NEAR * np.ptp(positions)
    middle = _mean(around, weights)
    for _ in range(_STEPS):
        middle = _mean(around, weights / np.maximum(np.linalg.norm(around - middle[:, None], axis=2), least))
    return middle


def _mean(positions: Array, weights: Array) -> Array:
    shares = weights / weights.sum(axis=1, keepdims=True)
    return (shares[:, :, None] * positions).sum(axis=1)
