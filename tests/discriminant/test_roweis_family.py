"""The family against its definition, written out with dense matrices, and against scikit-learn at its corners."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.covariance import ShrunkCovariance
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer import FisherDiscriminant, Gaussian, Polynomial, RoweisDiscriminant, SupervisedPCA


def same_up_to_signs(found, expected, tolerance=1e-8):
    assert found.shape == expected.shape
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


def printed_formula(Z, y, r1, r2, count, penalty=0.0, K_y=None):
    """R₁U = R₂UΛ of the paper with points as rows: its r in place of ours, and its sums in place of our means."""
    n = Z.shape[0]
    H = np.eye(n) - 1 / n
    r1, r2 = (r / (r + n * (1 - r)) for r in (r1, r2))
    K_y = (y[:, None] == y).astype(float) if K_y is None else K_y
    within = sum((Z[y == c] - Z[y == c].mean(0)).T @ (Z[y == c] - Z[y == c].mean(0)) for c in np.unique(y))
    identity = np.eye(Z.shape[1])
    R1 = Z.T @ H @ (r1 * K_y + (1 - r1) * np.eye(n)) @ H @ Z + (1 - r1) * n * penalty * identity
    R2 = r2 * (within + n * penalty * identity) + (1 - r2) * identity
    vectors = eigh(R1, R2)[1]
    return H @ Z @ vectors[:, ::-1][:, :count]


def our_matrices(X, y, r1, r2, penalty):
    """R₁ and R₂ with means in place of sums, as the class states them."""
    n, d = X.shape
    H, identity = np.eye(n) - 1 / n, np.eye(d)
    within = sum(np.mean(y == c) * np.cov(X[y == c].T, bias=True) for c in np.unique(y))
    dependence = X.T @ H @ (y[:, None] == y) @ H @ X / n**2
    R1 = r1 * dependence + (1 - r1) * (np.cov(X.T, bias=True) + penalty * identity)
    return R1, r2 * (within + penalty * identity) + (1 - r2) * identity


@pytest.fixture(scope="module", params=[load_iris, load_wine, load_digits], ids=["iris", "wine", "digits"])
def data(request):
    return request.param(return_X_y=True)


# --- corners --------------------------------------------------------------------------------------------------------


def test_the_first_corner_is_pca(data):
    X, _ = data
    model, peer = RoweisDiscriminant(0, 0, n_components=4).fit(X), PCA(4).fit(X)
    same_up_to_signs(model.transform(X), peer.transform(X))
    same_up_to_signs(model.components_.T, peer.components_.T)
    np.testing.assert_allclose(model.eigenvalues_, peer.explained_variance_ * (len(X) - 1) / len(X), rtol=1e-10)


def test_fishers_corner_is_lda(data):
    X, y = data
    model, peer = FisherDiscriminant().fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
    assert model.regularization_ == 0.0
    same_up_to_signs(model.transform(X), peer.transform(X))
    ratios = model.eigenvalues_ - 1
    np.testing.assert_allclose(ratios / ratios.sum(), peer.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_probabilities_are_those_of_lda(load):
    X, y = load(return_X_y=True)
    peer = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)  # whose covariance is the mean, as ours
    model = FisherDiscriminant().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), peer.predict_proba(X), atol=1e-10)


def test_a_penalty_is_that_of_regularised_lda():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    within = sum(np.mean(y == c) * np.cov(X[y == c].T, bias=True) for c in range(3))
    part = 0.3 * np.trace(within) / 13 / 0.7 / np.trace(np.cov(X.T, bias=True))
    model = FisherDiscriminant(regularization=part).fit(X, y)
    peer = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=ShrunkCovariance(shrinkage=0.3)).fit(X, y)
    # the peer's covariance is 0.7 times ours, so that its distances are larger
    scores = peer.decision_function(X) - np.log(peer.priors_)
    ours = model.predict_log_proba(X) - np.log(peer.priors_)
    np.testing.assert_allclose(0.7 * (scores - scores[:, :1]), ours - ours[:, :1], atol=1e-9)


def test_supervised_components_maximise_the_independence_criterion():
    X, y = load_iris(return_X_y=True)
    model = SupervisedPCA().fit(X, y)
    H = np.eye(150) - 1 / 150
    K_y = (y[:, None] == y).astype(float)
    values, vectors = np.linalg.eigh(X.T @ H @ K_y @ H @ X / 150**2)
    same_up_to_signs(model.components_.T, vectors[:, ::-1][:, :2])
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-10)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    hsic = np.trace(H @ K_y @ H @ model.transform(X) @ model.transform(X).T) / 150**2
    assert hsic == pytest.approx(model.eigenvalues_.sum())


# --- the whole square -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r1", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("r2", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("penalty", [0.0, 0.02])
def test_every_mixture_is_the_printed_one(r1, r2, penalty):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0) + 5.0
    model = RoweisDiscriminant(r1, r2, n_components=2, regularization=penalty).fit(X, y)
    expected = printed_formula(X, y, r1, r2, 2, penalty * 13 if r2 else 0.0)
    R1, R2 = our_matrices(X, y, r1, r2, penalty * 13 if r2 else 0.0)
    U = model.components_.T
    np.testing.assert_allclose(U.T @ R2 @ U, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(R1 @ U, R2 @ U * model.eigenvalues_, atol=1e-9)
    if r2 == 0:  # UᵀU = I in either
        same_up_to_signs(model.transform(X), expected)
    else:
        scale = np.linalg.norm(model.transform(X), axis=0) / np.linalg.norm(expected, axis=0)
        same_up_to_signs(model.transform(X), expected * scale)


@pytest.mark.parametrize("r1", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("r2", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kernel", [Gaussian(4.0), Polynomial(2)], ids=repr)
def test_a_kernel_is_the_formula_on_its_features(r1, r2, kernel):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    values, vectors = np.linalg.eigh(kernel(X) if kernel.is_resolved else kernel.resolve(X)(X))
    kept = values > 1e-10 * values[-1]
    Z = vectors[:, kept] * np.sqrt(values[kept])
    part = 0.05
    model = RoweisDiscriminant(r1, r2, kernel, n_components=2, regularization=part).fit(X, y)
    penalty = part * np.sum((Z - Z.mean(0)) ** 2) / len(Z) if r2 else 0.0
    expected = printed_formula(Z, y, r1, r2, 2, penalty)
    expected *= np.linalg.norm(model.transform(X), axis=0) / np.linalg.norm(expected, axis=0)
    same_up_to_signs(model.transform(X), expected, 1e-7)
    assert model.components_ is None
