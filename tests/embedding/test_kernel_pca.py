"""Kernel principal components beside scikit-learn's, formulas of the survey and repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference

from mercer import Gaussian, KernelPCA, Linear, Polynomial, Precomputed, SelfTuning, Sigmoid, config_context
from mercer.embedding import preimage, principal_pairs
from mercer.embedding.degeneracy import RankWarning
from mercer.embedding.kernel_pca import IndefiniteKernelWarning
from mercer.operators.diffusion import DegenerateKernelError

_rng = np.random.default_rng(5)
SCALES = [3.0, 2.0, 1.0, 0.5]
X, NEW, MANY = (_rng.normal(size=(n, 4)) * SCALES for n in (160, 40, 600))
WEIGHTS = 1 + np.arange(160) % 3
GAUSS = Gaussian(4.0)
KERNELS = {
    "rbf": (GAUSS, {"kernel": "rbf", "gamma": 1 / 16}),
    "linear": (Linear(), {"kernel": "linear"}),
    "poly": (Polynomial(degree=3, gamma=0.2), {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1.0}),
    "sigmoid": (Sigmoid(gamma=0.02, coef0=1.0), {"kernel": "sigmoid", "gamma": 0.02, "coef0": 1.0}),
}
indefinite_is_fine = pytest.mark.filterwarnings("ignore::mercer.embedding.kernel_pca.IndefiniteKernelWarning")


def assert_same(ours, theirs, accuracy=1e-8):
    """Coordinates are the same up to the sign of each."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    signs = np.sign(np.sum(ours * theirs, axis=0))
    np.testing.assert_allclose(ours * signs, theirs, rtol=0, atol=accuracy * np.abs(theirs).max())


def centred(k, weights=None):
    """W^½ H K Hᵀ W^½, H = I - 1pᵀ."""
    w = np.ones(len(k)) if weights is None else np.asarray(weights, float)
    h = np.eye(len(k)) - np.outer(np.ones(len(k)), w / w.sum())
    return np.sqrt(w)[:, None] * (h @ k @ h.T) * np.sqrt(w)


def double_centred_squares(points):
    return -0.5 * np.sum((points[:, None] - points[None]) ** 2, axis=2)


# --- beside scikit-learn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [X, MANY], ids=["dense", "products"])
@pytest.mark.parametrize("name", KERNELS)
@indefinite_is_fine
def test_coordinates_are_those_of_scikit_learn(name, points):
    kernel, parameters = KERNELS[name]
    theirs = Reference(n_components=3, eigen_solver="dense", **parameters).fit(points)
    ours = KernelPCA(kernel, n_components=3, random_state=0).fit(points)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    assert_same(ours.eigenvectors_, theirs.eigenvectors_)
    assert_same(ours.embedding_, theirs.transform(points))
    assert_same(ours.transform(NEW), theirs.transform(NEW))
    assert_same(ours.transform(points), ours.embedding_)
    given = KernelPCA(Precomputed(), n_components=3).fit(kernel(points))
    assert_same(given.embedding_, ours.embedding_)
    assert_same(given.transform(kernel(NEW, points)), ours.transform(NEW))
    assert list(ours.get_feature_names_out()) == ["kernelpca0", "kernelpca1", "kernelpca2"]


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_preimages_are_those_of_scikit_learn(name):
    kernel, parameters = KERNELS[name]
    theirs = Reference(n_components=3, fit_inverse_transform=True, alpha=0.1, **parameters).fit(X)
    ours = KernelPCA(kernel, n_components=3, alpha=0.1).fit(X)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(NEW)), theirs.inverse_transform(theirs.transform(NEW)), atol=1e-6
    )


def test_many_components_by_products_are_those_of_a_dense_decomposition():
    few = Gaussian(0.5)
    model = KernelPCA(few, n_components=120, random_state=0).fit(MANY)
    values = np.linalg.eigvalsh(centred(few(MANY)))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:120], rtol=1e-9)
    np.testing.assert_allclose(model.eigenvectors_.T @ model.eigenvectors_, np.eye(120), atol=1e-12)


def test_linear_components_are_those_of_pca():
    ours, theirs = KernelPCA(Linear(), n_components=3).fit(X), PCA(3).fit(X)
    assert_same(ours.embedding_, theirs.transform(X))
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_ * 159 / 160, rtol=1e-10)


# --- the survey ---------------------------------------------------------------------------------------------------


def test_eigenfunctions_of_the_survey():
    model = KernelPCA(GAUSS, n_components=4).fit(X)
    n, delta, v = 160, model.eigenvalues_, model.eigenvectors_
    k, across = GAUSS(X), GAUSS(NEW, X)
    new = across - across.mean(axis=1)[:, None] - k.mean(axis=0) + k.mean()  # (65) with its third term put right
    functions = model.eigenfunctions(X)
    np.testing.assert_allclose(functions, np.sqrt(n) * v, atol=1e-10)  # (100)
    np.testing.assert_allclose(model.eigenfunctions(NEW), np.sqrt(n) / delta * (new @ v), atol=1e-10)  # (99)
    np.testing.assert_allclose(model.eigenfunctions(NEW), new @ functions / delta, atol=1e-10)  # (129), δ = nλ
    np.testing.assert_allclose(np.mean(functions**2, axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        model.transform(NEW), np.sqrt(delta / n) * model.eigenfunctions(NEW), atol=1e-12
    )  # (101)


def test_lemma_10_the_eigenvalues_of_the_empirical_operator():
    model = KernelPCA(GAUSS, n_components=3).fit(X)
    functions = model.eigenfunctions(X)
    applied = centred(GAUSS(X)) @ functions / 160  # K_{p,n} f of (90) at the points of the sample
    np.testing.assert_allclose(applied, functions * model.eigenvalues_ / 160, atol=1e-12)


def test_lemma_11_the_eigenvalues_of_the_covariance_of_features():
    """Lemma 11 of the survey: those of the centred matrix, divided by n."""
    two = X[:, :2]
    root = np.sqrt(2.0)
    features = np.column_stack([two**2, root * two[:, 0] * two[:, 1], root * two, np.ones(160)])
    covariance = np.cov(features.T, bias=True)
    model = KernelPCA(Polynomial(degree=2, gamma=1.0), n_components=5).fit(two)
    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(covariance)[::-1][:5], rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)


# --- weights and landmarks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("indefinite", ["clip", "lift"])
@pytest.mark.parametrize("name", ["rbf", "sigmoid"])
@indefinite_is_fine
def test_weights_are_repetitions(name, indefinite):
    kernel = KERNELS[name][0]
    weighted = KernelPCA(kernel, n_components=3, indefinite=indefinite).fit(X, sample_weight=WEIGHTS)
    repeated = KernelPCA(kernel, n_components=3, indefinite=indefinite).fit(np.repeat(X, WEIGHTS, axis=0))
    np.testing.assert_allclose(
        weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-6 if indefinite == "lift" else 1e-9
    )
    assert weighted.negative_share_ == pytest.approx(repeated.negative_share_, rel=1e-8)
    assert_same(weighted.transform(NEW), repeated.transform(NEW), 1e-7)
    assert_same(np.repeat(weighted.embedding_, WEIGHTS, axis=0), repeated.embedding_, 1e-7)
    assert_same(weighted.eigenfunctions(NEW), repeated.eigenfunctions(NEW))
    if indefinite == "clip":
        np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(weighted.explained_variance_ratio_, repeated.explained_variance_ratio_, rtol=1e-9)
    if name == "rbf":
        coordinates = repeated.transform(NEW) * np.sign(np.sum(repeated.transform(NEW) * weighted.transform(NEW), 0))
        back = repeated.inverse_transform(repeated.transform(NEW))
        np.testing.assert_allclose(weighted.inverse_transform(coordinates), back, atol=1e-6)


def test_points_of_weight_zero_take_no_part():
    weights = np.where(np.arange(160) < 100, 1.0, 0.0)
    weighted = KernelPCA(GAUSS).fit(X, sample_weight=weights)
    part = KernelPCA(GAUSS).fit(X[:100])
    assert_same(weighted.embedding_, part.transform(X))


def test_landmarks_solve_the_weighted_problem_and_extend_it():
    rows, weights = np.arange(0, 160, 4), np.linspace(1, 3, 40)
    by_rows = KernelPCA(Gaussian("median"), n_components=3, landmarks=(rows, weights)).fit(X)
    kernel = Gaussian("median").resolve(X)  # of all points, not of the landmarks
    assert by_rows.kernel_.sigma == kernel.sigma
    alone = KernelPCA(kernel, n_components=3).fit(X[rows], sample_weight=weights)
    assert_same(by_rows.embedding_, alone.transform(X))
    assert_same(by_rows.embedding_[rows], alone.embedding_)
    np.testing.assert_array_equal(by_rows.landmarks_, rows)
    given = KernelPCA(Precomputed(), n_components=3, landmarks=(rows, weights)).fit(kernel(X))
    assert_same(given.embedding_, by_rows.embedding_)
    assert_same(given.transform(kernel(NEW, X)), by_rows.transform(NEW))
    assert by_rows.inverse_transform(by_rows.embedding_).shape == X.shape


def test_landmark_mds_of_precomputed_distances():
    """Of points in the plane the distances to three landmarks or more say where all the others are."""
    plane = X[:, :2]
    model = KernelPCA(Precomputed(), landmarks=[3, 50, 70, 99]).fit(double_centred_squares(plane))
    assert model.negative_share_ < 1e-10
    for got in (model.embedding_, model.transform(double_centred_squares(plane))):
        np.testing.assert_allclose(double_centred_squares(got), double_centred_squares(plane), atol=1e-9)


def test_all_rows_as_landmarks_are_no_landmarks():
    every = KernelPCA(GAUSS, n_components=3, landmarks=np.arange(160)).fit(X)
    assert_same(every.embedding_, KernelPCA(GAUSS, n_components=3).fit(X).embedding_)


# --- indefinite kernels -------------------------------------------------------------------------------------------


def distances_no_plane_has(n=90):
    """Minus half the squares of random distances: about half of the spectrum is negative."""
    d = np.random.default_rng(0).uniform(1, 2, size=(n, n))
    d = np.triu(d, 1)
    return -0.5 * (d + d.T) ** 2


@pytest.mark.parametrize("weights", [None, 1.0 + np.arange(90) % 4], ids=["equal", "weighted"])
def test_the_negative_share_is_that_of_the_whole_spectrum(weights):
    k = distances_no_plane_has()
    values = np.linalg.eigvalsh(centred(k, weights))
    share = -values[values < 0].sum() / np.abs(values).sum()
    assert share > 0.1
    with pytest.warns(IndefiniteKernelWarning, match=rf"on these points: {share:.2g} of its spectrum is negative"):
        model = KernelPCA("precomputed").fit(k, sample_weight=weights)
    assert model.negative_share_ == pytest.approx(share, rel=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, values[:-3:-1] / values[values > 0].sum(), rtol=1e-10)
    with pytest.raises(ValueError, match=r"^Precomputed\(new_diagonal=None\) is not positive semi-definite on these p"):
        KernelPCA("precomputed", indefinite="refuse").fit(k, sample_weight=weights)
    assert KernelPCA(GAUSS, indefinite="refuse").fit(X).negative_share_ == 0


def test_lifting_adds_a_constant_to_every_squared_distance():
    k = distances_no_plane_has()
    values = np.linalg.eigvalsh(centred(k))
    model = KernelPCA("precomputed", n_components=60, indefinite="lift")
    with pytest.warns(RankWarning):
        model.fit(k)
    assert -values[0] <= model.lift_ <= -values[0] * (1 + 1e-6)
    found = int(np.sum(model.eigenvalues_ > 0))
    np.testing.assert_allclose(model.eigenvalues_[:found], values[::-1][:found] + model.lift_, rtol=1e-9)
    whole, vectors = np.linalg.eigh(centred(k) + model.lift_ * (np.eye(90) - 1 / 90))
    everything = vectors * np.sqrt(np.clip(whole, 0, None))
    off = ~np.eye(90, dtype=bool)
    np.testing.assert_allclose((-2 * double_centred_squares(everything) + 2 * k)[off], 2 * model.lift_, rtol=1e-6)
    assert_same(model.embedding_[:, :found], everything[:, ::-1][:, :found], 1e-6)
    assert_same(model.transform(k)[:, :found], model.embedding_[:, :found], 1e-6)


def test_the_negative_part_of_a_large_matrix_is_estimated_and_bounded(monkeypatch):
    k = distances_no_plane_has(520)
    exact = KernelPCA("precomputed", n_components=3, indefinite="lift").fit(k)
    monkeypatch.setattr(principal_pairs, "_WHOLE_SPECTRUM_UP_TO", 0)
    monkeypatch.setattr("mercer.certificates.eigenvalues._DENSE_UP_TO", 0)
    model = KernelPCA("precomputed", n_components=3, indefinite="lift", random_state=0).fit(k)
    assert model.negative_share_ == pytest.approx(exact.negative_share_, rel=0.1)
    np.testing.assert_allclose(model.eigenvalues_ - model.lift_, exact.eigenvalues_ - exact.lift_, rtol=1e-9)
    assert exact.lift_ * (1 - 1e-9) <= model.lift_ <= 1.3 * exact.lift_
    with pytest.raises(ValueError, match="is not positive semi-definite on these points"):
        KernelPCA("precomputed", indefinite="refuse").fit(k)
    few = Gaussian(3.0)(MANY[:550])
    assert KernelPCA("precomputed", random_state=0).fit(few).negative_share_ == 0


# --- proofs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, 1.0 + np.arange(600) % 4], ids=["equal", "weighted"])
def test_bounds_hold_and_are_tight(weights):
    model = KernelPCA(GAUSS, n_components=5, certify=True, random_state=0).fit(MANY, sample_weight=weights)
    values = np.linalg.eigvalsh(centred(GAUSS(MANY), weights))[::-1]
    distance = np.abs(values[:, None] - model.eigenvalues_).min(axis=0)
    assert np.all(distance <= model.residual_bounds_ + 1e-12 * values[0])
    assert np.all(model.residual_bounds_ < 1e-9 * values[0])
    lower, upper = model.eigenvalue_bounds_.T
    assert np.all(lower <= values[:5] + 1e-12 * values[0])
    assert np.all(values[:5] <= upper + 1e-12 * values[0])
    assert np.all(upper - lower < 1e-8 * values[0])
    assert values[5] <= model.largest_left_out_ <= values[4]


def test_bounds_of_single_precision_are_of_the_exact_kernel():
    single, weights = MANY.astype(np.float32), np.random.default_rng(1).uniform(0.5, 2.0, len(MANY))
    with config_context(dtype="float32"):
        model = KernelPCA(GAUSS, n_components=3, certify=True, random_state=0).fit(single, sample_weight=weights)
    assert model.embedding_.dtype == np.float32
    values = np.linalg.eigvalsh(centred(GAUSS(single.astype(float)), weights))[::-1][:3]
    off = np.abs(values - model.eigenvalues_)
    assert off.max() > 1e-9 * values[0]  # single precision was at work
    assert np.all(off <= model.residual_bounds_)
    assert np.all((model.eigenvalue_bounds_[:, 0] <= values) & (values <= model.eigenvalue_bounds_[:, 1]))


# --- data of every kind -------------------------------------------------------------------------------------------


def test_more_components_than_dimensions_are_zero():
    with pytest.warns(RankWarning, match=r"^n_components=6 exceeds the number of dimensions, 4: the other coord"):
        model = KernelPCA(Linear(), n_components=6, certify=True).fit(X + 100.0)
    for each in (model.embedding_, model.transform(NEW), model.eigenfunctions(NEW), model.eigenvectors_):
        assert each.shape[1] == 6
        assert not each[:, 4:].any()
    assert np.all(model.eigenvalues_[:4] > 1)
    assert not model.eigenvalues_[4:].any()
    assert model.eigenvalue_bounds_.shape == (4, 2)
    np.testing.assert_allclose(model.inverse_transform(model.transform(NEW)).shape, (40, 4))


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-100, 2.0**100, 2.0**400])
def test_the_unit_of_points_does_not_matter(unit):
    """Eigenvalues may be such that their squares are no numbers."""
    model, other = (KernelPCA(Linear(), certify=True).fit(size * X) for size in (1.0, unit))
    assert_same(other.embedding_ / unit, model.embedding_)
    np.testing.assert_allclose(other.residual_bounds_ / unit**2, model.residual_bounds_, rtol=1e-3)
    np.testing.assert_allclose(other.explained_variance_ratio_, model.explained_variance_ratio_, rtol=1e-12)


def test_what_cannot_be_embedded_is_refused_in_one_sentence():
    with pytest.raises(DegenerateKernelError, match=r"^All points look alike under Gaussian\(sigma=1.0\): no eigenval"):
        KernelPCA(Gaussian(1.0)).fit(np.ones((9, 2)))
    with pytest.raises(DegenerateKernelError, match=r"^No eigenvalue of Precomputed\(.*\) is positive on these points"):
        KernelPCA("precomputed", indefinite="lift").fit(-np.eye(5))
    with pytest.raises(ValueError, match=r"^Linear\(\) is not a finite number of float64 at .*: bring the points"):
        KernelPCA(Linear()).fit(1e154 * X)
    with pytest.raises(ValueError, match=r"^indefinite='cut' must be one of 'clip', 'lift', 'refuse'\.$"):
        KernelPCA(indefinite="cut").fit(X)
    with pytest.raises(ValueError, match=r"^alpha"):
        KernelPCA(alpha=0.0).fit(X)
    model = KernelPCA(GAUSS).fit(X)
    with pytest.raises(ValueError, match=r"^X has 3 coordinates, and the model 2\.$"):
        model.inverse_transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match="inverse_transform gives points"):
        KernelPCA("precomputed").fit(GAUSS(X)).inverse_transform(np.ones((4, 2)))


@indefinite_is_fine
@pytest.mark.parametrize("kernel", [GAUSS, Sigmoid(gamma=0.02)], ids=repr)
def test_tensors_give_the_same(kernel):
    torch = pytest.importorskip("torch")
    ours = KernelPCA(kernel, n_components=3, certify=True, random_state=0).fit(MANY, sample_weight=1.0 + np.arange(600) % 2)  # fmt: skip
    model = KernelPCA(kernel, n_components=3, certify=True, random_state=0)
    model.fit(torch.as_tensor(MANY), sample_weight=torch.as_tensor(1.0 + np.arange(600) % 2))
    for name in ("embedding_", "eigenvectors_"):
        assert isinstance(getattr(model, name), torch.Tensor)
        assert_same(getattr(model, name), getattr(ours, name))
    for name in ("eigenvalues_", "explained_variance_ratio_", "negative_share_"):
        np.testing.assert_allclose(getattr(model, name), getattr(ours, name), rtol=1e-9)
    assert_same(model.transform(torch.as_tensor(NEW)), ours.transform(NEW))
    back = model.inverse_transform(model.embedding_[:7])
    assert isinstance(back, torch.Tensor)
    np.testing.assert_allclose(back, ours.inverse_transform(ours.embedding_[:7]), atol=1e-6)


@indefinite_is_fine
def test_sparse_matrices_and_graphs_of_neighbours():
    kernel = SelfTuning(8).resolve(MANY)
    dense = KernelPCA(Precomputed()).fit(kernel(MANY))
    for model, data in ((KernelPCA(SelfTuning(8)), MANY), (KernelPCA("precomputed"), scipy.sparse.csr_array(kernel(MANY)))):  # fmt: skip
        assert_same(model.fit(data).embedding_, dense.embedding_, 1e-7)
        assert_same(model.transform(data), dense.embedding_, 1e-7)
    assert dense.inverse_transform is not None
    back = KernelPCA(SelfTuning(8), n_components=4).fit(MANY)
    assert back.inverse_transform(back.embedding_).shape == MANY.shape


def test_preimages_of_many_points_are_those_of_few(monkeypatch):
    model = KernelPCA(GAUSS, n_components=2, alpha=0.5).fit(X, sample_weight=WEIGHTS)
    dense = model.inverse_transform(model.embedding_)
    monkeypatch.setattr(preimage, "_DENSE_UP_TO", 0)
    model.fit(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), dense, atol=1e-3)
