"""Kernel principal components proved again from their vectors and the data, and models that were tampered with."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

from mercer import Gaussian, KernelPCA, Precomputed, Sigmoid, config_context, verify

_rng = np.random.default_rng(6)
X, MANY = (_rng.normal(size=(n, 3)) * [3.0, 2.0, 1.0] for n in (120, 1700))
WEIGHTS = np.ldexp(1.0 + np.arange(120) % 3, 7)
GAUSS = Gaussian(4.0)


def centred(K, w):
    h = np.eye(len(K)) - np.outer(np.ones(len(K)), w / w.sum())
    return np.sqrt(w)[:, None] * (h @ K @ h.T) * np.sqrt(w)


@pytest.fixture(scope="module")
def model():
    return KernelPCA(GAUSS, n_components=3, certify=True).fit(X, sample_weight=WEIGHTS)


def test_the_certificate_encloses_the_sum_of_the_leading_eigenvalues(model):
    values = np.linalg.eigvalsh(centred(GAUSS(X), WEIGHTS))[::-1]
    for proof in (model.certificate_, verify(model, X)):
        assert proof.lower <= values[:3].sum() <= proof.upper
        assert proof.holds(1e-9)
        assert proof.failure_probability == 0
    assert proof.n_products >= len(X)


@pytest.mark.filterwarnings("ignore::mercer.embedding.kernel_pca.IndefiniteKernelWarning")
@pytest.mark.parametrize(
    ("kernel", "options", "points"),
    [
        (GAUSS, {"landmarks": 40, "random_state": 0}, X),
        (Sigmoid(gamma=0.5, coef0=-1.0), {"indefinite": "lift"}, X),
        (Sigmoid(gamma=0.5, coef0=-1.0), {"indefinite": "clip"}, X),
        (Precomputed(), {}, GAUSS(X)),
        (GAUSS, {"random_state": 0}, MANY),
    ],
    ids=["landmarks", "lifted", "clipped", "matrix", "matrix-free"],
)
def test_every_kind_of_fit_is_proved_again(kernel, options, points):
    fitted = KernelPCA(kernel, **options).fit(points)
    assert fitted.certificate_ is None
    proof = verify(fitted, points, random_state=1)
    assert proof.holds(1e-8)
    values = np.linalg.eigvalsh(centred(np.asarray(fitted.kernel_(points)), np.ones(len(points))))[::-1]
    if "landmarks" not in options:
        assert proof.lower <= values[:2].sum() <= proof.upper


def test_a_fit_in_single_precision_is_proved_in_double():
    with config_context(dtype="float32"):
        fitted = KernelPCA(GAUSS, certify=True).fit(X)
        assert verify(fitted, X).holds(1e-5)


def test_vectors_that_are_not_the_leading_ones_are_seen_by_the_bounds():
    three, two = (KernelPCA(GAUSS, n_components=count).fit(X) for count in (3, 2))
    last = copy.copy(two)
    operator_parts = ("eigenvectors_", "eigenvalues_", "residual_bounds_", "explained_variance_", "embedding_")
    for name in (*operator_parts, "explained_variance_ratio_"):
        setattr(last, name, np.asarray(getattr(three, name))[..., 1:])
    functions = three._functions
    last._lengths = three._lengths[1:]
    last._functions = type(functions)(
        functions.kernel,
        functions.points,
        functions.support,
        functions.coefficients[:, 1:],
        functions.offset[1:],
        functions.at_points[:, 1:],
    )
    proof = verify(last, X)  # second and third: eigenpairs all right, but not those that capture most
    assert proof.relative_gap > 0.1
    assert proof.upper >= two.eigenvalues_.sum() * (1 - 1e-9)


TAMPERED = {
    "eigenvalues_": lambda v: 1.001 * v,
    "eigenvectors_": lambda v: v[::-1],
    "embedding_": lambda v: 1.001 * v,
    "residual_bounds_": lambda v: 1e-6 * v,
    "explained_variance_": lambda v: 2 * v,
    "explained_variance_ratio_": lambda v: 2 * v,
    "eigenvalue_bounds_": lambda v: 2 * v,
    "lift_": lambda v: 1.0,
    "sample_weight_": lambda v: 2 * v,
    "landmarks_": lambda v: np.arange(len(X)) % 7,
    "_lengths": lambda v: 2 * v,
    "certificate_": lambda v: type(v)(0.0, 1.0, 0.0, "forged", 0),
    "kernel_": lambda v: Gaussian(4.1),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_model_is_refused(name, model):
    other = copy.copy(model)
    setattr(other, name, TAMPERED[name](getattr(model, name)))
    with pytest.raises(ValueError, match="it is damaged"):
        verify(other, X)


@pytest.mark.parametrize("name", ["coefficients", "offset", "at_points", "points"])
def test_tampered_functions_are_refused(name, model):
    other, functions = copy.copy(model), copy.copy(model._functions)
    object.__setattr__(functions, name, 1.001 * getattr(functions, name))
    other._functions = functions
    with pytest.raises(ValueError, match="it is damaged"):
        verify(other, X)


def test_a_sparse_matrix_that_new_points_are_compared_with_is_that_of_the_data():
    K = csr_array(np.where(GAUSS(X) > 0.3, GAUSS(X), 0.0) + np.eye(len(X)))
    model = KernelPCA(Precomputed(), indefinite="clip").fit(K)
    assert verify(model, K).holds(1e-8)
    functions = copy.copy(model._functions)
    object.__setattr__(functions, "points", functions.points * (1 + 1e-8))
    model._functions = functions
    with pytest.raises(ValueError, match="not those of X: it is damaged"):
        verify(model, K)


def test_other_data_is_refused(model):
    with pytest.raises(ValueError, match="120 points"):
        verify(model, X[:-1])
    with pytest.raises(ValueError, match="it is damaged"):
        verify(model, X[::-1].copy())
