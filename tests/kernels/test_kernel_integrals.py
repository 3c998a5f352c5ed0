"""Integrals of kernel sections against scipy's quadrature, the paper's formulas and each other."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad, quad_vec
from scipy.special import erf

from mercer import Gaussian, Laplacian, Matern, Polynomial, Sobolev
from mercer.kernels.integrals import GaussianIntegrals, NodeIntegrals, kernel_integrals
from mercer.kernels.integrals.closed_form import GaussianBoxIntegrals, LaplacianIntegrals
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue

LINE = {
    "lebesgue": (Lebesgue(), -12.0, 12.0),
    "gaussian": (GaussianMeasure(np.array([0.3]), 0.8), -8.0, 8.0),
    "box": (Box(np.array([-1.0]), np.array([1.3])), -1.0, 1.3),
}
KERNELS = [Gaussian(0.7), Laplacian(0.7), Matern(0.5, 0.6), Matern(1.5, 0.8), Matern(2.5, 0.8), Matern(np.inf, 0.5)]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def tensor_by_quad(kernel, points, measure, lower, upper):
    """∫ k k k dρ for all triples of points on the line, by adaptive quadrature between the points."""
    breaks = np.unique(np.clip(np.concatenate([points[:, 0], np.linspace(lower, upper, 13)]), lower, upper))

    def integrand(x):
        at = np.array([[x]])
        k = kernel(at, points)[0]
        return np.multiply.outer(np.outer(k, k), k) * np.exp(measure.log_density(at)[0])

    return sum(quad_vec(integrand, lo, hi, epsabs=1e-13, epsrel=1e-12)[0] for lo, hi in itertools.pairwise(breaks))


@pytest.mark.parametrize("name", LINE)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_third_order_on_the_line_is_that_of_adaptive_quadrature(kernel, name, rng):
    measure, lower, upper = LINE[name]
    points = np.array([[-0.8], [0.1], [0.9]])
    integrals = kernel_integrals(kernel, points, measure)
    tensor = tensor_by_quad(kernel, points, measure, lower, upper) * np.exp(-integrals.log_scale)
    A = rng.standard_normal((3, 3))
    B, c = A + A.T, rng.standard_normal(3)
    assert np.allclose(integrals.embed(B), np.tensordot(tensor, B, 2), rtol=1e-9, atol=1e-10)
    assert np.allclose(integrals.weighted_mass(c), np.tensordot(tensor, c, 1), rtol=1e-9, atol=1e-10)
    assert integrals.error < 1e-11


def grid(lower, upper, count):
    axes = [np.linspace(lo, hi, count) for lo, hi in zip(lower, upper, strict=True)]
    nodes = np.stack([x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    weights = np.ones(1)
    for axis in axes:
        w = np.full(count, axis[1] - axis[0])
        w[[0, -1]] /= 2
        weights = np.outer(weights, w).reshape(-1)
    return nodes, weights


@pytest.mark.parametrize(
    ("kernel", "measure", "accuracy"),
    [
        (Gaussian(0.7), Lebesgue(), 1e-12),
        (Gaussian(0.7), GaussianMeasure(np.array([0.2, -0.5]), 0.9), 1e-12),
        (Gaussian(0.7), Box(np.array([-1.0, -1.2]), np.array([1.1, 1.0])), 5e-5),
        (Laplacian(0.9), Lebesgue(), 1e-2),
        (Laplacian(0.9), Box(np.array([-1.0, -1.2]), np.array([1.1, 1.0])), 1e-4),
        (Laplacian(0.9), GaussianMeasure(np.array([0.2, -0.5]), 0.9), 1e-2),
        (Matern(2.5, 0.8), Lebesgue(), 3e-5),
        (Matern(1.5, 0.8), Box(np.array([-1.0, -1.2]), np.array([1.1, 1.0])), 1e-4),
    ],
    ids=repr,
)
def test_two_dimensions_and_other_points_against_a_fine_grid(kernel, measure, accuracy, rng):
    points, others = rng.uniform(-0.9, 0.9, (6, 2)), rng.uniform(-0.9, 0.9, (4, 2))
    corners = (measure.lower, measure.upper) if isinstance(measure, Box) else (np.full(2, -7.0), np.full(2, 7.0))
    nodes, weights = grid(*corners, 201)
    integrals = kernel_integrals(kernel, points, measure)
    weights = weights * np.exp(measure.log_density(nodes) - integrals.log_scale)
    K, L = kernel(nodes, points), kernel(nodes, others)
    A = rng.standard_normal((6, 6))
    B, c, e = A @ A.T, rng.standard_normal(6), rng.standard_normal(4)
    density = weights * np.sum((K @ B) * K, axis=1)
    pairs = [
        (integrals.mass(), (K.T * weights) @ K),
        (integrals.mass(others), (L.T * weights) @ K),
        (integrals.embed(B), K.T @ density),
        (integrals.embed(B, others), L.T @ density),
        (integrals.weighted_mass(c), (K.T * (weights * (K @ c))) @ K),
        (integrals.weighted_mass(e, others), (K.T * (weights * (L @ e))) @ K),
    ]
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        assert np.max(np.abs(ours - theirs)) <= accuracy * np.max(np.abs(theirs))


def everything():
    one = np.ones(2)
    for kernel in (Gaussian(0.7), Laplacian(0.8), Matern(2.5, 0.9)):
        for measure in (Lebesgue(), GaussianMeasure(0.2 * one, 0.9), Box(-one, 1.2 * one)):
            yield kernel_integrals, kernel, measure
    yield GaussianBoxIntegrals, Gaussian(0.7), Box(-one, one)


@pytest.mark.parametrize(
    ("make", "kernel", "measure"), list(everything()), ids=lambda value: getattr(value, "__name__", repr(value))
)
def test_the_two_maps_are_adjoint_and_the_tensor_symmetric(make, kernel, measure, rng):
    points, others = rng.uniform(-0.9, 0.9, (7, 2)), rng.uniform(-0.9, 0.9, (5, 2))
    integrals = make(kernel, points, measure)
    A, c, e = rng.standard_normal((7, 7)), rng.standard_normal(7), rng.standard_normal(5)
    B = A + A.T
    assert c @ integrals.embed(B) == pytest.approx(np.sum(integrals.weighted_mass(c) * B), rel=1e-10)
    assert e @ integrals.embed(B, others) == pytest.approx(np.sum(integrals.weighted_mass(e, others) * B), rel=1e-10)
    u, v = rng.standard_normal((2, 7))
    assert np.allclose(integrals.embed(np.outer(u, v) + np.outer(v, u)) / 2, integrals.weighted_mass(u) @ v, atol=1e-10)
    assert np.allclose(integrals.mass(points), integrals.mass(), rtol=1e-10, atol=1e-12)


def test_gaussian_values_are_those_the_paper_prints(rng):
    points, sigma = rng.standard_normal((5, 3)), 1.3
    integrals = kernel_integrals(Gaussian(sigma), points, Lebesgue())
    scale = np.exp(integrals.log_scale)
    squares = np.sum((points[:, None] - points) ** 2, axis=2)
    W = (np.pi * sigma**2 / 2) ** 1.5 * np.exp(-squares / (2 * sigma**2))
    n = np.sum(points**2, axis=1)
    total = points[:, None, None] + points[None, :, None] + points[None, None, :]
    exponent = n[:, None, None] + n[None, :, None] + n[None, None, :] - np.sum(total**2, axis=3) / 3
    tensor = (np.pi * sigma**2 / 3) ** 1.5 * np.exp(-exponent / sigma**2)
    A = rng.standard_normal((5, 5))
    assert np.allclose(scale * integrals.mass(), W, rtol=1e-12)
    assert np.allclose(scale * integrals.embed(A + A.T), np.tensordot(tensor, A + A.T, 2), rtol=1e-11)
    assert np.allclose(scale * integrals.weighted_mass(A[0]), np.tensordot(tensor, A[0], 1), rtol=1e-11, atol=1e-13)


def test_no_array_of_order_three_is_formed(rng):
    m = 160
    integrals = kernel_integrals(Gaussian(0.5), rng.standard_normal((m, 2)), Lebesgue())
    B = np.eye(m)
    tracemalloc.start()
    integrals.weighted_mass(integrals.embed(B))
    laplacian = LaplacianIntegrals(Laplacian(0.5), rng.standard_normal((m, 2)), Lebesgue())
    laplacian.weighted_mass(laplacian.embed(B))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < m**3 * 8


def test_a_wide_normal_law_and_a_large_box_tend_to_the_whole_space(rng):
    points, A = rng.uniform(-1, 1, (6, 2)), rng.standard_normal((6, 6))
    B = A @ A.T
    whole = kernel_integrals(Gaussian(0.8), points, Lebesgue())
    scale = np.exp(whole.log_scale)
    wide = kernel_integrals(Gaussian(0.8), points, GaussianMeasure(np.zeros(2), 1e5))
    height = 2 * np.pi * 1e10
    assert np.allclose(np.exp(wide.log_scale) * height * wide.embed(B), scale * whole.embed(B), rtol=1e-8)
    large = kernel_integrals(Gaussian(0.8), points, Box(np.full(2, -6.0), np.full(2, 6.0)))
    assert isinstance(large, NodeIntegrals)
    assert np.allclose(np.exp(large.log_scale) * large.embed(B), scale * whole.embed(B), rtol=1e-11)
    assert np.allclose(np.exp(large.log_scale) * large.mass(), scale * whole.mass(), rtol=1e-11, atol=1e-12)


def test_error_functions_and_quadrature_agree_on_a_box(rng):
    points, others = rng.uniform(-1, 1, (6, 3)), rng.uniform(-1, 1, (4, 3))
    box = Box(np.full(3, -1.1), np.array([1.0, 1.2, 1.4]))
    nodes, loop = (make(Gaussian(0.9), points, box) for make in (NodeIntegrals, GaussianBoxIntegrals))
    ratio = np.exp(loop.log_scale - nodes.log_scale)
    A, e = rng.standard_normal((6, 6)), rng.standard_normal(4)
    B = A @ A.T
    assert np.allclose(nodes.mass(others), ratio * loop.mass(others), rtol=1e-11)
    assert np.allclose(nodes.embed(B, others), ratio * loop.embed(B, others), rtol=1e-10)
    assert np.allclose(nodes.weighted_mass(e, others), ratio * loop.weighted_mass(e, others), rtol=1e-10, atol=1e-11)


def test_a_box_in_five_dimensions_is_a_product_of_sides(rng):
    points = rng.uniform(-1, 1, (3, 5))
    box = Box(np.full(5, -1.2), np.full(5, 1.1))
    integrals = kernel_integrals(Gaussian(0.8), points, box)
    assert isinstance(integrals, GaussianBoxIntegrals)
    for p, q, r in [(0, 0, 0), (0, 1, 2), (2, 1, 1)]:
        sides = [
            quad(lambda x, j=j, w=(p, q, r): np.exp(-np.sum((x - points[list(w), j]) ** 2) / 0.64), -1.2, 1.1)[0]
            for j in range(5)
        ]
        B = np.zeros((3, 3))
        B[p, q] = B[q, p] = 1.0 if p == q else 0.5
        assert np.exp(integrals.log_scale) * integrals.embed(B)[r] == pytest.approx(np.prod(sides), rel=1e-9)


@pytest.mark.parametrize("kernel", [Matern(0.5, 0.4), Matern(1.5, 0.4), Sobolev(2.0, 0.3)], ids=repr)
def test_the_stated_error_of_quadrature_covers_the_true_one(kernel):
    points = np.array([[0.1, 0.2], [0.9, -0.3]])
    integrals = kernel_integrals(kernel, points, Lebesgue())

    def ring(r):
        return 2 * np.pi * r * kernel(np.zeros((1, 2)), np.array([[r, 0.0]]))[0, 0] ** 2

    exact = quad(ring, 0, 20, epsabs=1e-14, limit=500)[0]
    ours = np.exp(integrals.log_scale) * np.diag(integrals.mass())
    assert 1e-12 < integrals.error < 1e-2
    assert np.all(np.abs(ours - exact) <= 3 * integrals.error * exact)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("measure", [Lebesgue(), GaussianMeasure(np.array([0.3, 0.1]), 0.8)], ids=repr)
def test_the_norm_of_a_mean_embedding_is_a_double_integral(d, measure, rng):
    if isinstance(measure, GaussianMeasure):
        measure = GaussianMeasure(measure.mean[:d], measure.std)
    points, A = rng.uniform(-1, 1, (5, d)), rng.standard_normal((5, 5))
    kernel = Gaussian(0.9)
    integrals = kernel_integrals(kernel, points, measure)
    B = A @ A.T
    nodes, weights = grid(np.full(d, -4.0), np.full(d, 4.0), 801 if d == 1 else 61)
    K = kernel(nodes, points)
    masses = weights * np.sum((K @ B) * K, axis=1) * np.exp(measure.log_density(nodes) - integrals.log_scale)
    assert integrals.squared_norm(B) == pytest.approx(masses @ kernel(nodes) @ masses, rel=1e-9)
    assert pair_sum(integrals, B) == pytest.approx(masses @ kernel(nodes) @ masses, rel=1e-9)


def pair_sum(integrals, B):
    """The sum over pairs of components, which the grid stands in for up to three dimensions."""
    weights, means, variance = integrals.mixture(B)
    return integrals._double_sum(means, weights, variance)


def test_one_bump_in_five_dimensions_has_the_norm_of_a_normal_law():
    points = np.zeros((2, 5))
    points[1] = 3.0
    integrals = kernel_integrals(Gaussian(1.4), points, Lebesgue())
    assert isinstance(integrals, GaussianIntegrals)
    B = np.diag([1.0, 0.0])
    weights, means, variance = integrals.mixture(B)
    assert variance == pytest.approx(1.4**2 / 4)
    assert np.allclose(means[np.abs(weights) > 1e-9], 0.0)
    assert weights.sum() == pytest.approx(1.0)
    assert integrals.squared_norm(B) == pytest.approx(2.0**-2.5)


def test_what_cancels_beyond_recognition_is_no_answer(rng):
    points = 0.01 * rng.standard_normal((20, 4))
    integrals = kernel_integrals(Gaussian(1.0), points, Lebesgue())
    wild = rng.standard_normal((20, 20))
    wild = wild - wild.mean(axis=0)
    assert integrals.squared_norm(wild @ wild.T) is None


def test_where_there_is_neither_closed_form_nor_quadrature_one_sentence_says_so(rng):
    points = rng.uniform(-1, 1, (4, 4))
    with pytest.raises(ValueError, match=r"quadrature takes 3 features at most, not 4: use Gaussian\(\)"):
        kernel_integrals(Matern(1.5, 1.0), points, Lebesgue())
    with pytest.raises(ValueError, match="not known to vanish at infinity"):
        kernel_integrals(Polynomial(2), points[:, :1], Lebesgue())
    with pytest.raises(ValueError, match="needs every point inside"):
        kernel_integrals(Laplacian(1.0), points, Box(np.full(4, -0.1), np.full(4, 0.1)))
    on_box = kernel_integrals(Polynomial(2), points[:, :1], Box(np.array([-1.0]), np.array([1.0])))
    assert on_box.error < 1e-12


@pytest.mark.parametrize(("sigma", "std"), [(1.0, 1.0), (0.1, 3.0), (5.0, 0.2)])
def test_laplacian_and_normal_law_have_a_closed_form_that_coordinates_share(sigma, std, rng):
    kernel, measure = Laplacian(sigma), GaussianMeasure(np.full(4, 0.4), std)
    points, other = rng.uniform(-2, 2, (3, 4)), rng.uniform(-2, 2, (1, 4))
    points[2, :2] = points[0, :2]  # kinks that coincide
    integrals = kernel_integrals(kernel, points, measure)
    scale = np.exp(integrals.log_scale)

    def in_turn(*rows):
        """The product of adaptive quadratures between the kinks, one for each coordinate."""
        return np.prod([line(*(row[j] for row in rows)) for j in range(4)])

    def line(*places):
        def integrand(x):
            normal = np.exp(-0.5 * ((x - 0.4) / std) ** 2) / (std * np.sqrt(2 * np.pi))
            return normal * np.exp(-sum(abs(x - place) for place in places) / sigma)

        breaks = np.unique(np.concatenate([places, np.linspace(0.4 - 9 * std, 0.4 + 9 * std, 12)]))
        return sum(quad(integrand, a, b, epsabs=1e-16, epsrel=1e-12)[0] for a, b in itertools.pairwise(breaks))

    W = [[in_turn(p, q) for q in points] for p in points]
    u = [[in_turn(p, q, other[0]) for q in points] for p in points]
    assert integrals.error == 0
    assert np.allclose(scale * integrals.mass(), W, rtol=1e-9, atol=1e-12 * np.max(W))
    assert np.allclose(scale * integrals.weighted_mass(np.ones(1), other), u, rtol=1e-9, atol=1e-12 * np.max(u))


@pytest.mark.parametrize("unit", [1e-6, 1e7])
@pytest.mark.parametrize("measure", [Lebesgue(), GaussianMeasure(np.array([0.3, 0.1]), 2.0)], ids=repr)
@pytest.mark.parametrize("d", [1, 2])
def test_quadrature_is_the_same_in_any_unit_of_length(d, measure, unit, rng):
    points = rng.uniform(-1, 1, (5, d))
    here = there = measure
    if isinstance(measure, GaussianMeasure):
        here, there = (GaussianMeasure(u * measure.mean[:d], u * measure.std) for u in (1.0, unit))
    near = kernel_integrals(Matern(2.5, 0.7), points, here)
    far = kernel_integrals(Matern(2.5, 0.7 * unit), unit * points, there)
    assert isinstance(far, NodeIntegrals)
    assert np.allclose(far.mass(), near.mass(), atol=1e-6)
    assert far.error < 1e-5


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_box_far_larger_than_the_kernel_is_no_obstacle(d, rng):
    points = rng.uniform(-1, 1, (5, d))
    on_box = kernel_integrals(Gaussian(0.4), points, Box(np.full(d, -1e4), np.full(d, 1e4)))
    anywhere = kernel_integrals(Gaussian(0.4), points, Lebesgue())
    scale = np.exp(on_box.log_scale - anywhere.log_scale)
    assert on_box.error < 1e-11
    assert np.allclose(scale * on_box.mass(), anywhere.mass(), atol=1e-10)
    B = np.eye(5)
    assert np.allclose(scale * on_box.embed(B), anywhere.embed(B), atol=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_points_strewn_over_a_box_far_larger_than_the_kernel_have_a_closed_form(d, rng):
    points = rng.uniform(-400, 400, (30, d))
    box = Box(np.full(d, -400.0), np.full(d, 400.0))
    integrals = kernel_integrals(Gaussian(0.3), points, box)
    assert integrals.error < 1e-11
    inside = 0.5 * (erf(2**0.5 / 0.3 * (400 - points)) + erf(2**0.5 / 0.3 * (400 + points)))
    exact = (np.pi * 0.09 / 2) ** (d / 2) * np.prod(inside, axis=1)
    assert np.allclose(np.diag(integrals.mass()) * np.exp(integrals.log_scale), exact, rtol=1e-9)
