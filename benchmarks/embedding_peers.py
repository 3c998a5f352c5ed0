"""Embeddings at their defaults: ours and the peers, each made from a seed alone.

The first registry has what a call without arguments gives (PCA alone must be told how many coordinates); the second the
same methods asked for ten coordinates, where they take that argument. umap-learn and pacmap are in the extra ``bench``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Notes = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """An embedding: how to compute it, whether its seed matters, and its rough cost beside the others."""

    title: str
    embed: Callable[[Array, int], tuple[Array, Notes]]
    cost: float  # seconds for 3000 points, roughly: cells are run in the order of their cost
    random: bool = True
    ten: bool = False  # asked for ten coordinates
    ours: bool = False
    large: int | None = None  # the number of points from which it runs other code, which is compiled by itself


def _pca(X: Array, seed: int, n: int = 2) -> tuple[Array, Notes]:
    from sklearn.decomposition import PCA

    return PCA(min(n, X.shape[1]), random_state=seed).fit_transform(X), {}


def _spectral(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from sklearn.manifold import SpectralEmbedding

    return SpectralEmbedding(random_state=seed, **options).fit_transform(X), {}


def _isomap(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from sklearn.manifold import Isomap

    return Isomap(**options).fit_transform(X), {}


def _tsne(X: Array, seed: int) -> tuple[Array, Notes]:
    from sklearn.manifold import TSNE

    return TSNE(random_state=seed).fit_transform(X), {}


def _umap(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from umap import UMAP

    return UMAP(random_state=seed, **options).fit_transform(X), {}


def _pacmap(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from pacmap import PaCMAP

    return PaCMAP(random_state=seed, **options).fit_transform(X), {}


def _maps(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from mercer import DiffusionMaps

    return DiffusionMaps(random_state=seed, **options).fit_transform(X), {}


def _sdp(X: Array, seed: int, **options: Any) -> tuple[Array, Notes]:
    from mercer import SDPEmbedding

    model = SDPEmbedding(random_state=seed, **options).fit(X)
    levels = getattr(model, "levels_", (model,))
    proofs = [getattr(level, "certificate", None) or model.certificate_ for level in levels]
    ranks = [getattr(level, "rank", None) or model.rank_ for level in levels]
    return model.embedding_, {"ranks": ranks, "gaps": [proof.relative_gap for proof in proofs]}


def _papers(X: Array, seed: int) -> tuple[Array, Notes]:
    from mercer import Gaussian

    return _sdp(X, seed, kernel=Gaussian("median"))


def _plane(X: Array, seed: int) -> tuple[Array, Notes]:
    from mercer import SDPEmbedding, plane_map

    return plane_map(SDPEmbedding(random_state=seed).fit(X), random_state=seed).coordinates, {}


METHODS: dict[str, Method] = {
    "pca": Method("PCA(2)", _pca, 0.1, random=False),
    "spectral": Method("SpectralEmbedding()", _spectral, 2),
    "isomap": Method("Isomap()", _isomap, 8, random=False),
    "tsne": Method("TSNE()", _tsne, 30),
    "umap": Method("UMAP()", _umap, 12, large=4096),
    "pacmap": Method("PaCMAP()", _pacmap, 6),
    "maps": Method("DiffusionMaps()", _maps, 3, random=False, ours=True),
    "papers": Method('SDPEmbedding(Gaussian("median"))', _papers, 15, ours=True),
    "sdp": Method("SDPEmbedding()", _sdp, 10, ours=True),
    "plane": Method("plane_map(SDPEmbedding())", _plane, 35, ours=True),
    "pca10": Method("PCA(10)", partial(_pca, n=10), 0.1, random=False, ten=True),
    "spectral10": Method("SpectralEmbedding(10)", partial(_spectral, n_components=10), 3, ten=True),
    "isomap10": Method("Isomap(n_components=10)", partial(_isomap, n_components=10), 9, random=False, ten=True),
    "umap10": Method("UMAP(n_components=10)", partial(_umap, n_components=10), 14, ten=True, large=4096),
    "pacmap10": Method("PaCMAP(10)", partial(_pacmap, n_components=10), 8, ten=True),
    "maps10": Method(
        "DiffusionMaps(n_components=10)", partial(_maps, n_components=10), 4, random=False, ten=True, ours=True
    ),
    "sdp10": Method("SDPEmbedding(n_components=10)", partial(_sdp, n_components=10), 20, ten=True, ours=True),
}
