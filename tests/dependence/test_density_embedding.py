"""Mean embeddings of densities: closed forms against quadrature, samples and each other."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import Gaussian, Laplacian, Matern, MeanEmbedding, SumOfSquaresDensity
from mercer.kernels.integrals import kernel_integrals

rng = np.random.default_rng(51)
LINE = np.concatenate([rng.normal(-1, 0.4, 40), rng.normal(1.2, 0.6, 40)])[:, None]
PLANE = rng.normal(size=(60, 2)) * [1.0, 0.5]
Y = np.linspace(-3, 3, 9)[:, None]


def fitted(X, kernel, **options):
    return SumOfSquaresDensity(kernel, support=12, regularization=1e-3, random_state=0, **options).fit(X)


def masses_on_a_grid(model, low=-9.0, high=9.0, count=1801):
    """The density on a fine grid: the trapezoidal rule, exact to rounding for smooth densities that vanish."""
    x = np.linspace(low, high, count)
    return x[:, None], model.density(x[:, None]) * (x[1] - x[0])


@pytest.mark.parametrize("reference", ["lebesgue", "gaussian"])
def test_a_gaussian_density_is_a_mixture(reference):
    model = fitted(LINE, Gaussian(0.9), reference=reference)
    w = MeanEmbedding.of_density(model)
    x, masses = masses_on_a_grid(model)
    grid = MeanEmbedding(Gaussian(0.9), x, masses)
    np.testing.assert_allclose(w(Y), grid(Y), rtol=1e-7, atol=1e-10)
    assert w.norm_squared == pytest.approx(grid.norm_squared, rel=1e-7)
    assert w @ grid == pytest.approx(grid.norm_squared, rel=1e-7)
    assert w.distance(grid) < 1e-4  # the root of rounding
    assert w.parts[0].weights.sum() == pytest.approx(1, abs=1e-8)


def test_its_distance_from_the_sample_is_that_of_the_fit():
    model = fitted(PLANE, Gaussian(0.8))
    w, v = MeanEmbedding.of_density(model), MeanEmbedding(model.kernel_, PLANE)
    assert w.distance(v) == pytest.approx(model.mmd_, rel=1e-6)
    assert w.distance(v) >= model.projected_mmd_
    integrals = kernel_integrals(model.kernel_, model.support_, model.measure_)
    B = np.exp(integrals.log_scale) * model.coefficients_
    np.testing.assert_allclose(w(PLANE), integrals.embed(B, PLANE), rtol=1e-6, atol=1e-9)


def test_two_densities_and_what_tells_them_apart():
    one, other = fitted(LINE[:40], Gaussian(0.9)), fitted(LINE[40:], Gaussian(0.9), reference="gaussian")
    w, v = MeanEmbedding.of_density(one), MeanEmbedding.of_density(other)
    (x, p), (_, q) = masses_on_a_grid(one), masses_on_a_grid(other)
    on_grid = MeanEmbedding(Gaussian(0.9), x, p - q)
    assert w.distance(v) == pytest.approx(on_grid.norm(), rel=1e-6)
    np.testing.assert_allclose(w.witness(v, Y), on_grid(Y) / on_grid.norm(), rtol=1e-5, atol=1e-8)
    assert w @ v == pytest.approx(v @ w, rel=1e-9)
    assert len((w - v).parts) == 2  # their variances differ
    assert (w - v + v).distance(w) < 1e-6
    both = 0.5 * w + 0.5 * MeanEmbedding(Gaussian(0.9), LINE)
    np.testing.assert_allclose(both(Y), 0.5 * w(Y) + 0.5 * MeanEmbedding(Gaussian(0.9), LINE)(Y), rtol=1e-10)


def test_draws_come_near_their_density():
    model = fitted(PLANE, Gaussian(0.8))
    w = MeanEmbedding.of_density(model)
    draws = model.sample(4000, random_state=0)
    assert w.distance(MeanEmbedding(model.kernel_, draws)) < 4 / np.sqrt(4000)
    assert w.distance(MeanEmbedding(model.kernel_, draws + 0.5)) > 0.1


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Matern(1.5, 1.0), Matern(np.inf, 0.7)], ids=repr)
def test_other_kernels_by_nodes(kernel):
    model = fitted(LINE, kernel, box=(-4.0, 4.0))
    w = MeanEmbedding.of_density(model)
    x, masses = masses_on_a_grid(model, -4.0, 4.0, 8001)
    masses[[0, -1]] /= 2
    grid = MeanEmbedding(w.kernel, x, masses)
    np.testing.assert_allclose(w(Y), grid(Y), rtol=1e-4)
    assert w.distance(grid) < 3e-3  # of 1 500 atoms against 8 000 under a kernel with a kink


@pytest.mark.parametrize("options", [{"box": (-4.0, 4.0)}, {}], ids=str)
def test_a_kernel_with_kinks_in_the_plane_says_how_rough_it_is(options):
    """The fit is in closed form there, the embedding is not: its mass is one, its values are as near as it says."""
    model = fitted(PLANE, Laplacian(1.0), **options)
    with pytest.warns(
        UserWarning, match=r"^The embedding of this density of Laplacian\(sigma=1.0\) is a quadrature acc"
    ):
        w = MeanEmbedding.of_density(model)
    assert w.parts[0].weights.sum() == pytest.approx(1, abs=1e-12)
    integrals = kernel_integrals(model.kernel_, model.support_, model.measure_)
    exact = integrals.embed(np.exp(integrals.log_scale) * model.coefficients_, PLANE)
    np.testing.assert_allclose(w(PLANE), exact, atol=2e-2)


def test_bad_input_is_refused_in_one_sentence():
    with pytest.raises(TypeError, match=r"^of_density takes a fitted SumOfSquaresDensity, not 3\.$"):
        MeanEmbedding.of_density(3)
    with pytest.raises(NotFittedError):
        MeanEmbedding.of_density(SumOfSquaresDensity())
    model = SumOfSquaresDensity(Gaussian(1.0), support=4, box=(-9, 9), random_state=0).fit(rng.normal(size=(20, 4)))
    with pytest.raises(ValueError, match=r"has no embedding in closed form under this measure, and quadrature takes 3"):
        MeanEmbedding.of_density(model)


def test_it_says_what_it_is():
    w = MeanEmbedding.of_density(fitted(LINE, Gaussian(0.9)))
    assert repr(w) == "<MeanEmbedding of 78 normal laws with 1 features under Gaussian(sigma=0.9)>"
