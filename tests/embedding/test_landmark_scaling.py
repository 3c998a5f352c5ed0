"""Landmark MDS and landmark Isomap: kernel PCA of distances through landmarks, against their own formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.manifold import Isomap

from mercer import FromDistance, Geodesic, KernelPCA, Landmarks, QuadratureSparsifier
from mercer.datasets import swiss_roll
from mercer.landmarks import STRATEGIES

# These distances are of no Euclidean space, and the warning says so; what is left of them is compared.
pytestmark = pytest.mark.filterwarnings("ignore::mercer.embedding.kernel_pca.IndefiniteKernelWarning")
X = np.random.default_rng(5).normal(size=(120, 4)) * [4.0, 2.0, 1.0, 0.5]
ROWS = np.arange(0, 120, 4)


def landmark_mds(between, towards, count, weights=None):
    """De Silva and Tenenbaum (2004), with weights: the coordinates of points by distances to landmarks.

    Squared distances between landmarks are centred and decomposed; a point lies at -½ L# (δ - mean δ of landmarks).
    """
    m = len(between)
    w = np.full(m, 1 / m) if weights is None else weights / weights.sum()
    D = between**2
    centred = D - D @ w - (w @ D)[:, None] + w @ D @ w
    root = np.sqrt(w)
    values, V = np.linalg.eigh(-0.5 * root[:, None] * centred * root)
    values, V = values[::-1][:count], V[:, ::-1][:, :count]
    inverse = V.T * root / np.sqrt(values)[:, None]  # L#
    return -0.5 * (towards**2 - D @ w) @ inverse.T


def same(found, expected, atol=1e-8):
    np.testing.assert_allclose(found * np.sign(np.sum(found * expected, axis=0)), expected, atol=atol)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
def test_equal_weights_are_landmark_mds(metric):
    name, new = {"manhattan": "cityblock"}.get(metric, metric), X[:7] + 0.3
    between, towards, further = (cdist(points, X[ROWS], name) for points in (X[ROWS], X, new))
    expected = landmark_mds(between, towards, 2)
    weighted = KernelPCA(FromDistance(metric), landmarks=(ROWS, np.ones(len(ROWS)))).fit(X)
    same(weighted.embedding_, expected)
    same(KernelPCA(FromDistance(metric), landmarks=ROWS).fit(X).embedding_, expected)
    same(weighted.transform(new), landmark_mds(between, further, 2))


def test_weights_of_landmarks_are_those_of_the_formula():
    chosen = Landmarks(30, strategy="k-means", random_state=0).fit(X)
    model = KernelPCA(FromDistance("manhattan"), landmarks=chosen).fit(X)
    rows = chosen.indices_
    same(
        model.embedding_,
        landmark_mds(cdist(X[rows], X[rows], "cityblock"), cdist(X, X[rows], "cityblock"), 2, chosen.weights_),
    )


@pytest.mark.parametrize("chooser", [*STRATEGIES, "quadrature", "number"])
def test_euclidean_distances_are_recovered_whoever_chooses(chooser):
    """Enough landmarks in general position fix all points (Lemma 17 of the survey, in distances)."""
    landmarks = {"quadrature": QuadratureSparsifier(n_nodes=12), "number": 12}.get(
        chooser, Landmarks(12, strategy=chooser, random_state=0)
    )
    model = KernelPCA(FromDistance(), n_components=4, landmarks=landmarks, random_state=0).fit(X)
    np.testing.assert_allclose(cdist(model.embedding_, model.embedding_), cdist(X, X), atol=1e-7)
    assert model.landmarks_.size == 12


def test_landmark_isomap_is_the_formula_in_geodesic_distances_and_near_isomap():
    roll, _ = swiss_roll(400, random_state=0)
    model = KernelPCA(Geodesic(8), landmarks=60, random_state=0).fit(roll)
    rows, weights = model.landmarks_, model.sample_weight_
    assert rows.size == 60
    assert weights.sum() == pytest.approx(400)
    towards = model.kernel_.distances(roll, roll[rows])
    same(model.embedding_, landmark_mds(towards[rows], towards, 2, weights), atol=1e-6)
    full = Isomap(n_neighbors=8, n_components=2).fit_transform(roll)
    for ours, theirs in zip(model.embedding_.T, full.T, strict=True):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) > 0.99
