"""Data-dependent bandwidths: resolving, the median rule, the slope rule."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist

from mercer.kernels import ChiSquared, Gaussian, Laplacian, Linear, Matern, Sobolev
from mercer.kernels.base import UnresolvedKernelError

RULED = [
    Gaussian,
    Laplacian,
    lambda rule: Matern(0.5, rule),
    lambda rule: Matern(3.7, rule),
    lambda rule: Sobolev(4.0, rule),
]


def length(kernel):
    return kernel.sigma if hasattr(kernel, "sigma") else kernel.length_scale


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(),
        Laplacian("slope"),
        Matern(),
        Sobolev(),
        Linear() + Gaussian(),
        2.0 * (Gaussian(1.0) * Matern()),
        Gaussian() ** 2,
        Gaussian().normalized(),
    ],
    ids=repr,
)
def test_an_unresolved_kernel_refuses_to_be_called(kernel):
    X = cloud(5, 2)
    assert not kernel.is_resolved
    for call in (kernel, kernel.diag, kernel.log, lambda X: kernel(X, X + 1)):
        with pytest.raises(UnresolvedKernelError, match=r"depends on the data: call kernel = kernel\.resolve\(X\)"):
            call(X)
    resolved = kernel.resolve(X)
    assert resolved.is_resolved
    assert resolved(X).shape == (5, 5)


def test_resolve_changes_no_kernel_but_makes_one():
    kernel = Gaussian() + 2.0 * Matern(0.5, "slope") * ChiSquared()
    before = repr(kernel)
    X = abs(cloud(30, 2))
    resolved = kernel.resolve(X)
    assert repr(kernel) == before
    assert not kernel.is_resolved
    assert resolved.left.sigma == Gaussian().resolve(X).sigma
    assert resolved.get_params()["right__left__kernel__length_scale"] == Matern(0.5, "slope").resolve(X).length_scale
    resolved.set_params(right__right__gamma=9.0)
    assert kernel.get_params()["right__right__gamma"] == 1.0


def test_resolve_leaves_numbers_alone():
    assert Gaussian(3.0).resolve(cloud(10, 2)).sigma == 3.0
    assert Gaussian(3.0).resolve(np.ones((4, 2))).sigma == 3.0


@pytest.mark.parametrize("d", [1, 3, 12])
@pytest.mark.parametrize("n", [2, 3, 10, 301, 1000])
def test_median_is_the_median_distance(n, d):
    X = cloud(n, d) + 5.0
    assert_allclose(Gaussian().resolve(X).sigma, np.median(pdist(X)), rtol=1e-13)
    if n <= 301:
        assert_allclose(Matern(2.5).resolve(X).length_scale, np.median(pdist(X)), rtol=1e-13)
        assert_allclose(Laplacian().resolve(X).sigma, np.median(pdist(X, "cityblock")), rtol=1e-13)


def test_median_of_many_points_is_that_of_a_fixed_sample():
    X = cloud(5000, 2)
    sigma = Gaussian().resolve(X).sigma
    assert sigma == Gaussian().resolve(X).sigma
    assert_allclose(sigma, np.median(pdist(X[:1500])), rtol=0.05)


def test_float32_points_have_the_bandwidth_of_their_values():
    X = cloud(50, 3).astype(np.float32)
    assert Gaussian().resolve(X).sigma == Gaussian().resolve(X.astype(np.float64)).sigma


@pytest.mark.parametrize("make", RULED)
@pytest.mark.parametrize("rule", ["median", "slope"])
@pytest.mark.parametrize("d", [2, 6])
def test_bandwidth_scales_with_the_points_and_ignores_where_they_are(make, rule, d):
    X = cloud(120, d, seed=4)
    sigma = length(make(rule).resolve(X))
    for c in (1e-300, 1e-3, 7.0, 1e300):
        assert_allclose(length(make(rule).resolve(c * X)) / c, sigma, rtol=1e-12)
    assert_allclose(length(make(rule).resolve(X + 1e4)), sigma, rtol=1e-9)


def manifold(name, n=600):
    rng = np.random.default_rng(1)
    if name == "circle":
        angle = rng.uniform(0, 2 * np.pi, n)
        points = np.c_[np.cos(angle), np.sin(angle)]
    else:
        points = rng.normal(size=(n, 3))
        points /= np.linalg.norm(points, axis=1)[:, None]
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    return np.pad(points, ((0, 0), (0, 7 - points.shape[1]))) @ rotation  # the same manifold in seven dimensions


@pytest.mark.parametrize("name", ["circle", "sphere"])
@pytest.mark.parametrize("make", [Gaussian, lambda rule: Matern(1.5, rule), lambda rule: Sobolev(5.0, rule)])
def test_slope_lies_between_sampling_distance_and_radius(name, make):
    X = manifold(name)
    distances = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)
    nearest = np.median(distances[:, 1])
    assert nearest < length(make("slope").resolve(X)) < 1.5


def two_clusters(d, width, n=150):
    rng = np.random.default_rng(2)
    return np.vstack([width * rng.normal(size=(n, d)), 1000.0 + width * rng.normal(size=(n, d))])


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("width", [1.0, 1e-6])
def test_slope_sees_inside_clusters_and_median_between_them(d, width):
    X = two_clusters(d, width)
    inside = np.median(pdist(X[:150]))
    between = 1000.0 * np.sqrt(d)
    assert 0.05 * inside < Gaussian("slope").resolve(X).sigma < 2 * inside
    assert_allclose(Gaussian("median").resolve(X).sigma, between, rtol=0.02)


@pytest.mark.parametrize("d", [2, 10])
def test_median_skips_pairs_that_coincide_when_most_do(d):
    X = np.vstack([np.repeat(cloud(1, d), 150, axis=0), cloud(40, d, seed=5)])
    distances = pdist(X)
    assert np.mean(distances == 0) > 0.5
    assert_allclose(Gaussian().resolve(X).sigma, np.median(distances[distances > 0]), rtol=1e-12)
    assert 0 < Gaussian("slope").resolve(X).sigma < 10


@pytest.mark.parametrize("rule", ["median", "slope"])
@pytest.mark.parametrize("make", RULED)
@pytest.mark.parametrize("X", [np.ones((5, 2)), np.full((5, 2), 0.1), np.ones((1, 2)), np.empty((0, 2))], ids=len)
def test_equal_points_have_no_bandwidth(make, rule, X):
    with pytest.raises(
        ValueError,
        match=r"^(All points are equal, so (sigma|length_scale) cannot be chosen .*|.* but there is (one|none)): pass a number\.$",
    ):
        make(rule).resolve(X)


def test_two_points_are_enough():
    assert_allclose(Gaussian().resolve([[0.0], [2.0]]).sigma, 2.0)
    assert 0.2 < Gaussian("slope").resolve([[0.0], [2.0]]).sigma < 10


@pytest.mark.parametrize("make", RULED)
@pytest.mark.parametrize("bad", [np.ones(3), [[1.0, np.nan]], [["a", "b"]]])
def test_resolve_checks_the_points(make, bad):
    with pytest.raises(ValueError, match=r"X must|X has nan"):
        make("median").resolve(bad)


def test_an_unknown_rule_is_named():
    sentence = "sigma='mean' must be a positive number or one of 'median', 'slope', 'columns'."
    for use in (lambda k: k(np.ones((2, 1))), lambda k: k.resolve(np.ones((2, 1)))):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            use(Gaussian("mean"))
