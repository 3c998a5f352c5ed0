"""On all points a kernelised method is the kernel method: against scikit-learn's own, and against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as PeerKernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from mercer import Gaussian, Kernelized, Laplacian, Linear, Polynomial
from mercer.datasets import standardized, two_moons, wine

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 3))
NEW = rng.normal(size=(25, 3))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2
LABELS = np.digitize(y, [0.0, 0.6])
SIGNS = np.where(y > 0.2, 1, -1)
GAUSSIAN = Gaussian(1.5)
K, K_NEW = GAUSSIAN(X), GAUSSIAN(NEW, X)
KERNELS = [GAUSSIAN, Laplacian(2.0), Polynomial(3, 0.5, 1.0)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
H = np.eye(90) - 1 / 90


@every_kernel
@pytest.mark.parametrize("targets", [y, np.column_stack([y, X[:, 2]])], ids=["one", "two"])
def test_ridge_is_kernel_ridge(kernel, targets):
    weights = rng.uniform(0.5, 2.0, 90)
    peer = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel(X), targets, sample_weight=weights)
    ours = Kernelized(Ridge(alpha=0.1, fit_intercept=False), kernel).fit(X, targets, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(NEW), peer.predict(kernel(NEW, X)), rtol=0, atol=1e-8)
    assert ours.trace_left_out_ < 1e-11 * ours.trace_


def test_an_intercept_centres_the_kernel_and_the_targets():
    ours = Kernelized(Ridge(alpha=0.3), GAUSSIAN).fit(X, y)
    centred = (K_NEW - K.mean(0)) @ H
    expected = y.mean() + centred @ np.linalg.solve(H @ K @ H + 0.3 * np.eye(90), y - y.mean())
    np.testing.assert_allclose(ours.predict(NEW), expected, rtol=0, atol=1e-8)


@every_kernel
def test_pca_is_kernel_pca(kernel):
    peer = PeerKernelPCA(4, kernel="precomputed").fit(kernel(X))
    ours = Kernelized(PCA(4), kernel)
    signs = np.sign(np.sum(ours.fit_transform(X) * peer.transform(kernel(X)), axis=0))
    scale = kernel.diag(X).max()
    np.testing.assert_allclose(signs * ours.transform(NEW), peer.transform(kernel(NEW, X)), rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(ours.estimator_.explained_variance_ * 89, peer.eigenvalues_, rtol=1e-10)


@every_kernel
def test_support_vector_machines_are_those_of_the_kernel_matrix(kernel):
    precomputed = {"C": 5.0, "kernel": "precomputed", "tol": 1e-10}
    linear = precomputed | {"kernel": "linear"}
    gram, new = kernel(X), kernel(NEW, X)
    machine, peer = Kernelized(SVC(**linear), kernel).fit(X, LABELS), SVC(**precomputed).fit(gram, LABELS)
    np.testing.assert_allclose(machine.decision_function(NEW), peer.decision_function(new), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(machine.estimator_.support_, peer.support_)
    np.testing.assert_array_equal(machine.predict(NEW), peer.predict(new))
    ours, theirs = Kernelized(SVR(**linear), kernel).fit(X, y), SVR(**precomputed).fit(gram, y)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(new), rtol=0, atol=1e-6)


def test_a_linear_machine_with_squared_hinges_in_kernel_form():
    """Newton's method of Chapelle 2007: α = (K + λ/2)⁻¹ y on the points with a margin below one, zero elsewhere."""
    penalty, alpha, inside = 0.5, np.zeros(90), np.ones(90, bool)
    for _ in range(50):
        alpha[:] = 0
        alpha[inside] = np.linalg.solve(K[np.ix_(inside, inside)] + penalty / 2 * np.eye(inside.sum()), SIGNS[inside])
        before, inside = inside, SIGNS * (K @ alpha) < 1
    assert np.array_equal(before, inside)
    ours = Kernelized(LinearSVC(C=1 / penalty, fit_intercept=False, dual=False, tol=1e-12), GAUSSIAN).fit(X, SIGNS)
    np.testing.assert_allclose(ours.decision_function(NEW), K_NEW @ alpha, rtol=0, atol=1e-6)


def test_logistic_regression_in_kernel_form_by_newton_steps():
    """(K W K + λK) α = K (W K α + y p): iteratively reweighted least squares on the coefficients of the kernel."""
    alpha, penalty = np.zeros(90), 0.2
    for _ in range(30):
        values = K @ alpha
        slope = -SIGNS / (1 + np.exp(SIGNS * values))
        curvature = slope * (-SIGNS - slope)
        alpha = np.linalg.solve(curvature[:, None] * K + penalty * np.eye(90), curvature * values - slope)
    ours = Kernelized(LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=10_000), GAUSSIAN)
    ours.fit(X, SIGNS)
    np.testing.assert_allclose(ours.decision_function(NEW), K_NEW @ alpha, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-K_NEW @ alpha)), rtol=0, atol=1e-6)


def kernel_k_means(gram, labels, n_clusters):
    """Lloyd's steps by ‖φ(x) - μ_c‖² = k(x, x) - 2 Σ k(x, i)/n_c + Σ k(i, j)/n_c², from an assignment to a fixed one."""
    while True:
        members = (labels == np.arange(n_clusters)[:, None]) / np.bincount(labels, minlength=n_clusters)[:, None]
        distances = np.diag(gram)[:, None] - 2 * gram @ members.T + np.einsum("ci,ij,cj->c", members, gram, members)
        new = distances.argmin(1)
        if np.array_equal(new, labels):
            return labels, distances.min(1).sum()
        labels = new


@pytest.mark.parametrize("seed", range(5))
def test_k_means_is_kernel_k_means_from_the_same_start(seed):
    points, _ = two_moons(n_points=80)
    kernel = Gaussian(0.6)
    gram = kernel(points)
    start = np.random.default_rng(seed).integers(0, 3, 80)
    labels, cost = kernel_k_means(gram, start, 3)
    values = Kernelized(PCA(), kernel).fit(points)._features.transform(points)
    centres = np.array([values[start == c].mean(0) for c in range(3)])
    ours = Kernelized(KMeans(3, init=centres, n_init=1, tol=0.0), kernel).fit(points)
    np.testing.assert_array_equal(ours.labels_, labels)
    assert ours.estimator_.inertia_ == pytest.approx(cost, rel=1e-6)
    np.testing.assert_array_equal(ours.predict(points), labels)


def test_linear_discriminants_in_kernel_form():
    """w = Φᵀα, (1 - γ) N/n + μK for the scatter within classes, of N = Σ_c K_c H_c K_cᵀ (Mika et al. 1999)."""
    shrinkage, counts = 0.2, np.bincount(LABELS)
    ours = Kernelized(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage), GAUSSIAN).fit(X, LABELS)
    means = np.array([K[:, c == LABELS].mean(1) for c in range(3)])
    centred = K - means[LABELS].T  # columns kᵢ - mean of the class of i
    blocks = [K[np.ix_(c == LABELS, c == LABELS)] for c in range(3)]
    traces = np.array([np.trace(block - block.mean(0)) for block in blocks])
    ridge = shrinkage * (traces / 90).sum() / ours.indices_.size
    scatter = (1 - shrinkage) * centred @ centred.T / 90 + ridge * K
    alpha = np.linalg.lstsq(scatter, means.T, rcond=1e-13)[0]
    intercept = -0.5 * np.einsum("ij,ji->i", means, alpha) + np.log(counts / 90)
    np.testing.assert_allclose(ours.decision_function(NEW), K_NEW @ alpha + intercept, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), LogisticRegression(tol=1e-12), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3)],
    ids=lambda each: type(each).__name__,
)
def test_the_linear_kernel_gives_the_linear_method(estimator):
    targets = LABELS if is_classifier(estimator) else y
    ours, plain = Kernelized(estimator, Linear()).fit(X, targets), clone(estimator).fit(X, targets)
    answer = "decision_function" if is_classifier(estimator) else "predict"
    np.testing.assert_allclose(getattr(ours, answer)(NEW), getattr(plain, answer)(NEW), rtol=0, atol=1e-6)
    assert ours.indices_.size == 3


def test_a_kernel_of_low_rank_has_no_more_features_and_whitening_them_is_safe():
    """Without shrinkage the discriminant scales every feature to the same scatter: one of rounding would be as good."""
    points, labels = load_wine(return_X_y=True)
    points = StandardScaler().fit_transform(points)
    plain, ours = LinearDiscriminantAnalysis(), Kernelized(LinearDiscriminantAnalysis(), Linear())
    expected, found = plain.fit_transform(points, labels), ours.fit_transform(points, labels)
    assert ours.indices_.size == 13
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(np.abs(ours.transform(points)), np.abs(expected), atol=1e-8)
    through = Kernelized(LinearDiscriminantAnalysis(), Linear(), landmarks=np.arange(0, 178, 4)).fit(points, labels)
    assert through.indices_.size == 13
    np.testing.assert_allclose(np.abs(through.transform(points)), np.abs(expected), atol=1e-8)


def test_partial_least_squares_in_kernel_form():
    """Rosipal, Trejo 2001: t = K̃u/‖K̃u‖, deflated; predictions K̃_new U (TᵀK̃U)⁻¹ TᵀY."""
    targets = np.column_stack([y, X[:, 2] * X[:, 0]])
    centred = targets - targets.mean(0)
    gram, left = H @ K @ H, centred.copy()
    deflated, T, U = gram.copy(), [], []
    for _ in range(3):
        c = np.linalg.svd(left.T @ deflated @ left)[0][:, 0]
        u = left @ c
        t = deflated @ u / np.linalg.norm(deflated @ u)
        P = np.eye(90) - np.outer(t, t)
        deflated, left = P @ deflated @ P, left - np.outer(t, t @ left)
        T.append(t)
        U.append(u)
    T, U = np.array(T).T, np.array(U).T
    new = (K_NEW - K.mean(0)) @ H
    expected = targets.mean(0) + new @ U @ np.linalg.solve(T.T @ gram @ U, T.T @ centred)
    ours = Kernelized(PLSRegression(3, scale=False, tol=1e-14, max_iter=5000), GAUSSIAN).fit(X, targets)
    np.testing.assert_allclose(ours.predict(NEW), expected, rtol=0, atol=1e-6)


def test_canonical_correlations_in_kernel_form():
    """Through a few landmarks, K_IX P_Y K_XI α = ρ² K_IX H K_XI α; on all points every correlation is one."""
    landmarks, targets = np.arange(0, 90, 9), np.column_stack([y, X[:, 2] ** 2])
    columns = H @ K[:, landmarks]
    of_targets = np.linalg.qr(H @ targets)[0]
    shared = columns.T @ of_targets
    correlations = np.sqrt(eigh(shared @ shared.T, columns.T @ columns, eigvals_only=True)[::-1][:2])
    ours = Kernelized(CCA(2, tol=1e-12, max_iter=5000), GAUSSIAN, landmarks=landmarks)
    first, second = ours.fit_transform(X, targets)
    found = [np.corrcoef(first[:, k], second[:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(found, correlations, atol=1e-6)
    again = ours.transform(X, y=targets)
    np.testing.assert_allclose(again[0], first, atol=1e-6)
    np.testing.assert_allclose(again[1], second, atol=1e-6)


def test_equal_points_have_equal_features():
    repeated = np.concatenate([X[:30], X[:30]])
    ours = Kernelized(Ridge(fit_intercept=False), GAUSSIAN).fit(repeated, np.tile(y[:30], 2))
    peer = KernelRidge(kernel="precomputed").fit(GAUSSIAN(repeated), np.tile(y[:30], 2))
    assert ours.indices_.size <= 30
    np.testing.assert_allclose(ours.predict(NEW), peer.predict(GAUSSIAN(NEW, repeated)), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        RidgeClassifier(),
        LogisticRegression(C=10.0),
        LinearSVC(C=10.0),
        LinearDiscriminantAnalysis(shrinkage=0.1, solver="lsqr"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_moons_are_separated_by_what_is_linear_in_the_space_of_the_kernel(estimator):
    points, labels = two_moons(n_points=120)
    assert estimator.fit(points, labels).score(points, labels) < 0.95
    assert Kernelized(estimator, Gaussian(0.5)).fit(points, labels).score(points, labels) == 1.0
    assert (
        Kernelized(estimator, Gaussian(0.5), landmarks=30, random_state=0).fit(points, labels).score(points, labels)
        == 1.0
    )


def test_mini_batches_of_k_means():
    points, _ = two_moons(n_points=80)
    model = Kernelized(MiniBatchKMeans(2, n_init=3), Gaussian(0.6), random_state=0)
    assert model.fit_predict(points).shape == (80,)
    assert model.transform(points).shape == (80, 2)


def test_what_rounding_leaves_of_a_matrix_of_low_rank_is_no_feature():
    """Discriminant analysis divides features by their spread: of the linear kernel it is what it is on the columns."""
    data, classes = wine()
    data = standardized(data)
    plain = LinearDiscriminantAnalysis().fit(data, classes)
    kernelized = Kernelized(LinearDiscriminantAnalysis(), Linear()).fit(data, classes)
    assert kernelized.indices_.size == data.shape[1]
    for one, other in zip(plain.transform(data).T, kernelized.transform(data).T, strict=True):
        assert abs(np.corrcoef(one, other)[0, 1]) == pytest.approx(1, abs=1e-9)
