"""Discrepancies and mean embeddings of tensors: the numbers of NumPy, in the library of the points."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, Laplacian, MeanEmbedding, SumOfSquaresDensity, config_context, mmd

torch = pytest.importorskip("torch")


def samples(n=70, m=90, d=3):
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((n, d)), rng.standard_normal((m, d)) + 0.3
    Y[:5] = X[:5]  # what they have in common
    return X, Y, rng.uniform(0.1, 1, n)


ESTIMATORS = [
    {},
    {"weighted": True},
    {"estimator": "unbiased"},
    {"estimator": "unbiased", "weighted": True},
    {"estimator": "linear"},
    {"estimator": "linear", "block_size": 3, "return_std": True},
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [None, Laplacian(1.0)], ids=str)
@pytest.mark.parametrize("options", ESTIMATORS, ids=str)
def test_a_discrepancy_of_tensors_is_that_of_arrays_and_nothing_leaves_the_library(options, kernel, dtype, request):
    X, Y, a = samples()
    options = dict(options)
    weighted = options.pop("weighted", False)
    with config_context(dtype=dtype):
        expected = mmd(X, Y, kernel, **options, **({"x_weights": a} if weighted else {}))
        T, S, w = (torch.from_numpy(part) for part in (X, Y, a))
        request.getfixturevalue("refuse_numpy")
        ours = mmd(T, S, kernel, **options, **({"x_weights": w} if weighted else {}))
    tolerance = 1e-12 if dtype == "float64" else 2e-6  # of the terms, which are of the size of the squared weights
    size = float(np.sum(a)) ** 2 if weighted else 1.0
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * size)


def test_one_heavy_weight_keeps_its_digits_on_tensors():
    X, Y, a = samples()
    a[0] = 1e9
    expected = mmd(X, Y, Gaussian(1.0), x_weights=a, estimator="unbiased")
    T, S, w = (torch.from_numpy(part) for part in (X, Y, a))
    assert mmd(T, S, Gaussian(1.0), x_weights=w, estimator="unbiased") == pytest.approx(expected, rel=1e-12)


def test_what_samples_have_in_common_leaves_no_rounding():
    X, _, _ = samples()
    T = torch.from_numpy(X)
    assert mmd(T, T.flip(0), Gaussian(1.0)) == 0.0
    assert mmd(T, X[::-1], Gaussian(1.0)) == 0.0  # brought over


def test_embeddings_of_tensors_are_those_of_arrays_and_nothing_leaves_the_library(request):
    X, Y, a = samples()
    kernel = Gaussian(1.2)
    v, w = MeanEmbedding(kernel, X, a), MeanEmbedding(kernel, Y)
    expected = [v @ w, v.norm(), v.distance(w), (2 * v - w / 3).norm()]
    values, witness = (torch.from_numpy(part) for part in (v(Y), v.witness(w, Y)))
    T, S, weights = (torch.from_numpy(part) for part in (X, Y, a))
    request.getfixturevalue("refuse_numpy")
    p, q = MeanEmbedding(kernel, T, weights), MeanEmbedding(kernel, S)
    np.testing.assert_allclose([p @ q, p.norm(), p.distance(q), (2 * p - q / 3).norm()], expected, rtol=1e-12)
    assert torch.allclose(p(S), values, rtol=1e-13)
    assert torch.allclose(p.witness(q, S), witness, atol=1e-13)
    assert torch.allclose(p(Y), values, rtol=1e-13)


def test_embeddings_of_both_libraries_meet():
    X, Y, a = samples()
    kernel = Gaussian(1.2)
    v, q = MeanEmbedding(kernel, X, a), MeanEmbedding(kernel, torch.from_numpy(Y))
    w = MeanEmbedding(kernel, Y)
    assert v @ q == pytest.approx(v @ w, rel=1e-13)
    assert v.distance(q) == pytest.approx(v.distance(w), rel=1e-12)
    assert isinstance(v(torch.from_numpy(Y)), np.ndarray)
    assert isinstance(q(Y), torch.Tensor)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=lambda k: type(k).__name__)
def test_densities_of_tensors_are_embedded_as_those_of_arrays(kernel):
    X = np.random.default_rng(0).standard_normal((50, 1))
    T = torch.from_numpy(X)
    plain, ours = (SumOfSquaresDensity(kernel, support=8, random_state=0, tol=1e-10).fit(points) for points in (X, T))
    v, p = MeanEmbedding.of_density(plain), MeanEmbedding.of_density(ours)
    assert isinstance(p(T), torch.Tensor)
    np.testing.assert_allclose(p(T), v(X), rtol=0, atol=1e-5)  # the root of the objective's gap
    away = v.distance(MeanEmbedding(kernel, X))
    assert p.distance(MeanEmbedding(kernel, T)) == pytest.approx(away, rel=1e-4)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("options", [{}, {"estimator": "unbiased"}, {"estimator": "linear", "block_size": 7}], ids=str)
def test_a_discrepancy_has_the_same_bits_for_any_number_of_threads(options, library):
    X, Y, _ = samples(900, 1100)
    X, Y = (X, Y) if library == "numpy" else (torch.from_numpy(X), torch.from_numpy(Y))
    answers = set()
    for threads in (1, 2, 5):
        with config_context(n_threads=threads):
            answers.add(mmd(X, Y, Gaussian(1.0), **options))
    assert len(answers) == 1
