"""Classical scaling, Isomap, locally linear embedding and Laplacian eigenmaps as kernel PCA, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.manifold import Isomap, LocallyLinearEmbedding, SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier

from mercer import (
    SSIM,
    FromDistance,
    Geodesic,
    GraphLaplacian,
    KernelPCA,
    LocallyLinear,
    Precomputed,
    config_context,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*is not positive semi-definite on these points")

ROLL, ALONG = make_swiss_roll(700, random_state=0)
NEW = make_swiss_roll(25, random_state=1)[0]


def agree(ours, theirs, atol):
    """Columns up to their sign."""
    signs = np.sign(np.sum(ours * theirs, axis=0))
    assert_allclose(ours * signs, theirs, atol=atol * np.abs(theirs).max())


def directions(coordinates):
    return coordinates / np.linalg.norm(coordinates, axis=0)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_classical_scaling(metric):
    manifold = pytest.importorskip("sklearn.manifold")
    if not hasattr(manifold, "ClassicalMDS"):
        pytest.skip("this scikit-learn has no classical scaling")
    theirs = manifold.ClassicalMDS(n_components=2, metric=metric).fit_transform(ROLL)
    ours = KernelPCA(FromDistance(metric)).fit(ROLL)
    agree(ours.embedding_, theirs, 1e-8)
    agree(ours.transform(ROLL), theirs, 1e-8)


def test_distances_that_are_given():
    D = np.abs(ROLL[:, None] - ROLL[None]).sum(axis=2)
    agree(
        KernelPCA(Precomputed()).fit_transform(-0.5 * D**2),
        KernelPCA(FromDistance("manhattan")).fit_transform(ROLL),
        1e-8,
    )


def test_isomap():
    theirs = Isomap(n_neighbors=8, n_components=2).fit(ROLL)
    ours = KernelPCA(Geodesic(8)).fit(ROLL)
    agree(ours.embedding_, theirs.embedding_, 1e-8)
    agree(ours.transform(NEW), theirs.transform(NEW), 1e-8)
    assert_allclose(ours.eigenvalues_, theirs.kernel_pca_.eigenvalues_, rtol=1e-9)


def test_isomap_through_landmarks():
    rows = np.arange(0, 700, 4)
    whole, ours = KernelPCA(Geodesic(8)).fit(ROLL), KernelPCA(Geodesic(8), landmarks=rows).fit(ROLL)
    D = ours.kernel_.distances(ROLL)
    own = Isomap(n_neighbors=8).fit(ROLL)
    assert_allclose(D, own.dist_matrix_, rtol=1e-10)  # along the graph of all points, not of the landmarks
    agree(ours.embedding_, whole.embedding_, 0.1)
    alone = KernelPCA(Precomputed()).fit(-0.5 * D[np.ix_(rows, rows)] ** 2)
    agree(ours.embedding_[rows], alone.embedding_, 1e-8)


@pytest.mark.parametrize("n_neighbors", [8, 12])
def test_locally_linear_embedding(n_neighbors):
    theirs = LocallyLinearEmbedding(n_neighbors=n_neighbors, n_components=2, eigen_solver="dense").fit(ROLL)
    ours = KernelPCA(LocallyLinear(n_neighbors)).fit(ROLL)
    agree(directions(ours.embedding_), theirs.embedding_, 1e-6)
    scale = np.linalg.norm(ours.embedding_, axis=0)
    agree(ours.transform(NEW) / scale, theirs.transform(NEW), 1e-6)
    assert_allclose(np.sum(1 / ours.eigenvalues_), theirs.reconstruction_error_, rtol=1e-6)


def test_laplacian_eigenmaps():
    theirs = SpectralEmbedding(2, affinity="nearest_neighbors", n_neighbors=11, eigen_solver="arpack", random_state=0)
    kernel = GraphLaplacian(10).resolve(ROLL)
    ours = KernelPCA(kernel).fit(ROLL, sample_weight=kernel.degrees_)
    agree(directions(ours.embedding_), directions(theirs.fit_transform(ROLL)), 1e-6)
    plain = KernelPCA(GraphLaplacian(10)).fit(ROLL)
    values, vectors = np.linalg.eigh(kernel._known.matrix.toarray())
    agree(directions(plain.embedding_), vectors[:, 1:3], 1e-8)
    assert_allclose(plain.eigenvalues_, 1 / values[1:3], rtol=1e-9)


def test_a_sheet_is_unrolled_by_its_paths_alone():
    geodesic, straight = (KernelPCA(kernel).fit(ROLL).embedding_[:, 0] for kernel in (Geodesic(8), FromDistance()))
    assert abs(np.corrcoef(geodesic, ALONG)[0, 1]) > 0.99
    assert abs(np.corrcoef(straight, ALONG)[0, 1]) < 0.6


@pytest.mark.parametrize("n", [2500, pytest.param(20_000, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize("kernel", [Geodesic(8), LocallyLinear(8), GraphLaplacian(8), FromDistance("manhattan")])
def test_landmarks_need_no_matrix_of_all_points(kernel, n):
    X, along = make_swiss_roll(n, random_state=0)
    landmarks = np.arange(0, n, n // 60)
    with config_context(memory_limit=1.5 * 8 * n * (landmarks.size + 30)):
        model = KernelPCA(kernel, landmarks=landmarks).fit(X)
    assert model.embedding_.shape == (n, 2)
    if not isinstance(kernel, FromDistance):
        assert abs(np.corrcoef(model.embedding_[:, 0], along)[0, 1]) > 0.95


@pytest.mark.parametrize("kernel", [Geodesic(8), LocallyLinear(8), GraphLaplacian(8)])
def test_a_number_of_landmarks_and_a_table(kernel):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROLL, columns=["x", "y", "z"])
    whole, model = KernelPCA(kernel).fit(ROLL), KernelPCA(kernel, landmarks=80, random_state=0).fit(table)
    for ours, theirs in zip(model.embedding_.T, whole.embedding_.T, strict=True):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) > 0.97
    assert_allclose(model.transform(table[:5]), model.embedding_[:5], rtol=1e-6)


def test_what_is_negative():
    """Paths on a circle are no distances in any space; distances by structural similarity are."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    model = KernelPCA(Geodesic(2)).fit(circle)
    digits = load_digits().data[:120]
    similar = KernelPCA(SSIM((8, 8), data_range=16, window="uniform", size=5)).fit(digits)
    values = np.linalg.eigvalsh(model.kernel_(circle))
    assert model.negative_share_ == pytest.approx(-values[values < 0].sum() / np.abs(values).sum(), rel=1e-6)
    assert model.negative_share_ > 0.1
    assert similar.negative_share_ < 1e-10
    with pytest.raises(ValueError, match="negative"):
        KernelPCA(Geodesic(2), indefinite="refuse").fit(circle)
    lifted = KernelPCA(Geodesic(2), indefinite="lift", n_components=3).fit(circle)
    assert_allclose(lifted.eigenvalues_[:2], model.eigenvalues_ + lifted.lift_)
    assert -values[0] <= lifted.lift_ < -1.01 * values[0]


def test_digits_by_structural_similarity():
    data = load_digits()
    X, labels = data.data[:300], data.target[:300]
    kernel = SSIM((8, 8), data_range=16, window="uniform", size=5)
    similar = KernelPCA(kernel, n_components=6).fit(X)
    new, known = similar.transform(data.data[300:500]), data.target[300:500]
    assert KNeighborsClassifier(5).fit(similar.embedding_, labels).score(new, known) > 0.8
