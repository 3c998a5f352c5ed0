"""How good an embedding of a labelled sample is: clusters, neighbours, and what two embeddings have in common.

Outliers (label -1) are embedded with the others and k-means sees them, for nobody knows them in advance; every score
counts the other points alone.
"""

from __future__ import annotations

import base64
import warnings
import zlib
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import trustworthiness
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
NEIGHBOURS, FOLDS, KMEANS_SEEDS = 5, 5, (0, 1, 2)
TRUSTED, MOST_TRUSTED = 10, 3000
PROBES, PROBED = 200, 10  # points whose nearest neighbours are kept, to compare seeds
MOST_SHOWN = 1000  # points kept for a picture


def scores(X: Array, labels: Array, Z: Array) -> Row:
    """All scores of the embedding Z of X."""
    inlier = labels >= 0
    plane = Z[:, :2]
    row = {
        "dimensions": Z.shape[1],
        "nmi": clusters_found(Z, labels),
        "nmi_inliers": clusters_found(Z[inlier], labels[inlier]),
        "knn": neighbours_right(Z[inlier], labels[inlier]),
        "trust": trusted(X[inlier], Z[inlier]),
    }
    if Z.shape[1] <= 2:
        return row | {"nmi2": row["nmi"], "knn2": row["knn"], "trust2": row["trust"]}
    return row | {
        "nmi2": clusters_found(plane, labels),
        "knn2": neighbours_right(plane[inlier], labels[inlier]),
        "trust2": trusted(X[inlier], plane[inlier]),
    }


def clusters_found(Z: Array, labels: Array) -> float:
    """NMI of k-means on all points with the classes of those that are no outliers, the mean over a few seeds."""
    inlier = labels >= 0
    classes = np.unique(labels[inlier]).size
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than classes: the score says it
        for seed in KMEANS_SEEDS:
            groups = KMeans(classes, n_init=5, random_state=seed).fit_predict(Z)
            found.append(normalized_mutual_info_score(labels[inlier], groups[inlier]))
    return float(np.mean(found))


def neighbours_right(Z: Array, labels: Array) -> float:
    """The accuracy of five nearest neighbours in stratified five-fold cross-validation."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return float(cross_val_score(KNeighborsClassifier(NEIGHBOURS), Z, labels, cv=folds).mean())


def trusted(X: Array, Z: Array) -> float:
    """Trustworthiness of ten neighbours: whether neighbours in the embedding are neighbours in the data."""
    if len(X) > MOST_TRUSTED:
        rows = np.random.default_rng(0).choice(len(X), MOST_TRUSTED, replace=False)
        X, Z = X[rows], Z[rows]
    return float(trustworthiness(X, Z, n_neighbors=TRUSTED))


# --- what two seeds have in common ----------------------------------------------------------------------------------


def probed_neighbours(Z: Array, labels: Array) -> str:
    """The ten nearest neighbours of two hundred points among those that are no outliers, packed."""
    Z = Z[labels >= 0]
    probes = np.random.default_rng(0).choice(len(Z), min(PROBES, len(Z)), replace=False)
    near = NearestNeighbors(n_neighbors=PROBED + 1).fit(Z).kneighbors(Z[probes], return_distance=False)
    others = [row[row != probe][:PROBED] for row, probe in zip(near, probes, strict=True)]
    return packed(np.asarray(others, dtype=np.uint16))


def overlap(first: str, second: str) -> float:
    """The share of neighbours that two embeddings have in common."""
    pair = [unpacked(text, np.uint16).reshape(-1, PROBED) for text in (first, second)]
    return float(np.mean([np.intersect1d(a, b).size / PROBED for a, b in zip(*pair, strict=True)]))


# --- what a picture needs -------------------------------------------------------------------------------------------


def shown_rows(n: int) -> Array:
    """The points of a picture."""
    return np.sort(np.random.default_rng(0).choice(n, min(n, MOST_SHOWN), replace=False))


def packed_plane(Z: Array) -> str:
    """The first two coordinates of the points of a picture, in 65536 steps from the least to the largest."""
    plane = np.zeros((len(Z), 2))
    plane[:, : min(2, Z.shape[1])] = Z[:, :2]
    plane = plane[shown_rows(len(Z))]
    extent = np.ptp(plane, axis=0).max() or 1.0
    return packed(np.round((plane - plane.min(axis=0)) / extent * 65535).astype(np.uint16))


def unpacked_plane(text: str) -> Array:
    return unpacked(text, np.uint16).reshape(-1, 2) / 65535


def packed(values: Array) -> str:
    return base64.b64encode(zlib.compress(values.tobytes())).decode()


def unpacked(text: str, dtype: Any) -> Array:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=dtype)
