"""Estimators, kernels, certificates and results of tests say what they are in one line."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge

import mercer
from mercer import (
    FromDistance,
    Gaussian,
    Geodesic,
    GraphLaplacian,
    Kernelized,
    KernelPCA,
    Laplacian,
    LocallyLinear,
    Matern,
    MaximumVarianceUnfolding,
    Mixed,
    Polynomial,
    Precomputed,
    QuadratureSparsifier,
    RobustKernelClassifier,
    RobustKernelRegressor,
    RobustKernelRidge,
    SDPEmbedding,
    SelfTuning,
    Sobolev,
    SumOfSquaresDensity,
    conditional_independence_test,
    explain_difference,
    hsic_test,
    k_sample_test,
    mmd_test,
    plane_map,
    rank_path,
    stein_test,
    worst_case_expectation,
)
from mercer.datasets import three_clusters
from mercer.kernels import Kernel
from mercer.kernels.base import spelled
from mercer.wording import LINE, size_in_words, time_in_words

ESTIMATORS = [
    kind
    for kind in (getattr(mercer, name) for name in mercer.__all__ if name != "__version__")
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
]


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=20, n_outliers=0)[0]


def fits(thing):
    text = repr(thing)
    return "\n" not in text and 0 < len(text) <= LINE


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators(kind):
    made = kind(Ridge()) if kind is Kernelized else kind()
    assert fits(made)
    names = [name for name in made.get_params(deep=False) if name != "estimator"]
    made.set_params(**dict.fromkeys(names, np.arange(5000.0).reshape(50, 100)))
    assert fits(made)
    assert "<array of shape (50, 100)>" in repr(made)
    assert repr(made).startswith(f"{kind.__name__}(")


def test_an_estimator_shows_what_is_no_default_and_leaves_the_rest_out():
    assert repr(SDPEmbedding()) == "SDPEmbedding()"
    assert repr(SDPEmbedding(Gaussian(2.0), tol=1e-3)) == "SDPEmbedding(kernel=Gaussian(sigma=2.0), tol=0.001)"
    assert repr(SDPEmbedding(callback=print)) == "SDPEmbedding(callback=<print>)"


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(sigma=np.ones(500)),
        Gaussian(1.0) + Laplacian(2.0) * Matern(0.5, 3.0) + Polynomial(3, 1.0, 2.0) ** 2 + 3.0 * Sobolev(3, 1.0),
        SelfTuning(),
        Geodesic(),
        GraphLaplacian(),
        LocallyLinear(),
        FromDistance(),
        Gaussian(1.0).on(list(range(200))),
        Mixed(),
        Precomputed(),
    ],
)
def test_kernels(kernel):
    assert fits(kernel)
    if isinstance(kernel, (SelfTuning, Geodesic, GraphLaplacian, LocallyLinear)):
        resolved = kernel.resolve(np.random.default_rng(0).normal(size=(60, 2)))
        assert fits(resolved)
        assert "of 60 points" in repr(resolved)


def test_all_plain_kernels():
    for name in mercer.__all__:
        kind = getattr(mercer, name)
        if inspect.isclass(kind) and issubclass(kind, Kernel) and kind is not Kernel and name != "SSIM":
            assert fits(kind())


def test_what_is_left_out_of_a_line_is_not_left_out_of_a_comparison(X):
    """Proofs compare kernels by their whole spelling, not by the line a person sees."""
    one, two = np.ones(500), np.ones(500)
    two[250] += 1e-12
    assert repr(Gaussian(one)) == repr(Gaussian(two))
    assert spelled(Gaussian(one)) != spelled(Gaussian(two))
    assert spelled(Gaussian(one).on([0])) != spelled(Gaussian(two).on([0]))
    assert spelled(1.0 * Gaussian(one)) == spelled(1.0 * Gaussian(one.copy()))
    assert spelled(SelfTuning().resolve(X)) != spelled(SelfTuning().resolve(X + np.arange(60)[:, None]))


def test_certificates_and_what_models_hold(X):
    y = X[:, 0] > X[:, 1]
    embedding = SDPEmbedding(random_state=0).fit(X)
    quadrature = QuadratureSparsifier(trace_fraction=0.5, solver="path").fit(X)
    reduced = QuadratureSparsifier(n_nodes=5).fit(X)
    models = [
        embedding,
        quadrature,
        KernelPCA(certify=True).fit(X),
        MaximumVarianceUnfolding(connect=True).fit(X),
        SumOfSquaresDensity(support=10, random_state=0).fit(X),
        RobustKernelRidge(support=5, radius=0.05, tol=1e-3, random_state=0).fit(X, X[:, 0]),
        RobustKernelRegressor(radius=0.05, tol=1e-3).fit(X, X[:, 0]),
        RobustKernelClassifier(radius=0.05, tol=1e-3).fit(X, y),
    ]
    for model in models:
        proof = model.certificate_
        assert fits(proof), repr(proof)
        assert repr(proof).startswith(f"{type(proof).__name__}(lower={proof.lower:.8g}, upper={proof.upper:.8g}, ")
    held = [embedding.levels_[0], quadrature.eigenpairs(3), quadrature.path_.at(kappa=0.3), reduced.reduction_]
    for thing in (*held, plane_map(embedding), rank_path(X, [1.0, 2.0], random_state=0)):
        assert fits(thing), repr(thing)
    assert fits(rank_path(X, [1.0, 2.0], random_state=0).entries[0])
    assert fits(worst_case_expectation(lambda x: x[:, 0], X, 0.1))


def test_results_of_tests(X):
    few = {"n_resamples": 99, "rng": 0}
    density = SumOfSquaresDensity(support=10, random_state=0).fit(X)
    results = [
        mmd_test(X[:30], X[30:], **few),
        hsic_test(X[:, 0], X[:, 1], **few),
        k_sample_test(X[:20], X[20:40], X[40:], **few),
        conditional_independence_test(X[:, 0], X[:, 1], X[:, 0], **few),
        stein_test(density, X, **few),
    ]
    for result in results:
        assert fits(result), repr(result)
        assert f"pvalue={result.pvalue:.8g}" in repr(result)
    assert fits(explain_difference(X[:30], X[30:], **few))


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (480, "0.48 kB"),
        (48_000, "48 kB"),
        (9.6e6, "9.6 MB"),
        (24_400_000, "24 MB"),
        (999e6, "999 MB"),
        (8e12, "8000.0 GB"),
    ],
)
def test_sizes_in_words(size, said):
    assert size_in_words(size) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.034, "0.034 s"), (3, "3 s"), (42.4, "42 s"), (150, "2 min"), (5400, "90 min"), (9000, "2.5 h")],
)
def test_times_in_words(seconds, said):
    assert time_in_words(seconds) == said
