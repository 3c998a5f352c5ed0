"""Densities with respect to normal laws with a full covariance and to sums over nodes, against grids and exact arithmetic."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

import mercer
from mercer import Box, DiscreteMeasure, Gaussian, GaussianMeasure, Laplacian, MeanEmbedding, SumOfSquaresDensity
from mercer.backends.balls import ball
from mercer.density.linear_functionals import EmbeddingValues, Moments
from mercer.kernels.integrals import NodeIntegrals, kernel_integrals

MEAN, COVARIANCE = np.array([0.3, -0.2]), np.array([[0.5, 0.3], [0.3, 0.4]])
LAW = GaussianMeasure(MEAN, covariance=COVARIANCE)
KERNEL = Gaussian(0.8)


def grid(step=0.08):
    axis = np.arange(-6.0, 6.0, step)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2), step**2


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal([1.0, 0.5], 0.4, (60, 2)), rng.normal([-0.5, -0.8], 0.5, (60, 2))])


@pytest.fixture(scope="module")
def model(X):
    return SumOfSquaresDensity(KERNEL, support=X[::6], reference=(MEAN, COVARIANCE)).fit(X)


def test_integrals_under_a_covariance_are_those_of_a_grid(X):
    points, Y, rng = X[:7], X[90:94], np.random.default_rng(1)
    integrals = kernel_integrals(KERNEL, points, LAW)
    nodes, cell = grid()
    K, weights = KERNEL(nodes, points), np.exp(LAW.log_density(nodes) - integrals.log_scale) * cell
    F, c = rng.normal(size=(7, 2)), rng.normal(size=7)
    B = F @ F.T
    assert np.allclose(integrals.mass(), (K.T * weights) @ K, rtol=1e-10, atol=1e-12)
    assert np.allclose(integrals.mass(Y), (KERNEL(nodes, Y).T * weights) @ K, rtol=1e-10, atol=1e-12)
    masses = weights * np.sum((K @ F) ** 2, axis=1)
    assert np.allclose(integrals.embed(B), masses @ K, rtol=1e-10, atol=1e-11)
    assert np.allclose(integrals.embed(B, Y), masses @ KERNEL(nodes, Y), rtol=1e-10, atol=1e-11)
    assert np.allclose(integrals.weighted_mass(c), (K.T * (weights * (K @ c))) @ K, rtol=1e-10, atol=1e-11)
    assert np.allclose(integrals.square_masses(F).masses, weights @ (K @ F) ** 2, rtol=1e-10)
    few, share = grid(0.16)
    shares = np.exp(LAW.log_density(few) - integrals.log_scale) * share * np.sum((KERNEL(few, points) @ F) ** 2, axis=1)
    assert integrals.squared_norm(B) == pytest.approx(
        shares @ (KERNEL.matrix(few).multiply(shares[:, None])[:, 0]), rel=1e-8
    )


def test_a_covariance_that_is_a_multiple_of_the_identity_is_a_deviation(X):
    one, other = (
        kernel_integrals(KERNEL, X[:6], law)
        for law in (GaussianMeasure(MEAN, 0.7), GaussianMeasure(MEAN, None, 0.49 * np.eye(2)))
    )
    B, wide = np.random.default_rng(2).normal(size=(6, 6)), np.random.default_rng(3).normal(size=(9, 5))
    B = B @ B.T
    assert np.allclose(one.mass(), other.mass(), rtol=1e-14)
    assert np.allclose(one.embed(B), other.embed(B), rtol=1e-13)
    assert one.log_scale == pytest.approx(other.log_scale, rel=1e-14)
    assert one.squared_norm(B) == pytest.approx(other.squared_norm(B), rel=1e-12)
    laws = GaussianMeasure(np.zeros(5), 0.7), GaussianMeasure(np.zeros(5), None, 0.49 * np.eye(5))
    norms = [
        kernel_integrals(Gaussian(2.0), wide[:6], law).squared_norm(B) for law in laws
    ]  # no grid in five dimensions
    assert norms[0] == pytest.approx(norms[1], rel=1e-10)


@pytest.mark.parametrize("condition", [1.0, 1e7])
def test_enclosures_under_a_covariance_hold_in_exact_arithmetic(condition):
    """All integrals of two and three sections, by completing the square with forty digits."""
    rng, m, sigma = np.random.default_rng(4), 4, 0.37
    A = rng.normal(size=(3, 3)) * np.array([1.0, 0.3, condition**-0.5])
    covariance = A @ A.T
    covariance = (covariance + covariance.T) / 2
    points, mean = rng.normal(size=(m, 3)) + 50.0, np.full(3, 50.25)
    integrals = kernel_integrals(Gaussian(sigma), points, GaussianMeasure(mean, covariance=covariance))
    enclosed = integrals.enclosures()
    F, c = rng.normal(size=(m, 2)), rng.normal(size=m)
    with mpmath.workdps(50):
        a, cov = 1 / mpmath.mpf(sigma) ** 2, mpmath.matrix(covariance.tolist())
        apart = [mpmath.matrix([mpmath.mpf(x) - mpmath.mpf(y) for x, y in zip(p, mean, strict=True)]) for p in points]

        def integral(*chosen):
            n = len(chosen)
            H = n * a * mpmath.eye(3) + (cov**-1) / 2
            total = mpmath.matrix([0, 0, 0])
            squares = mpmath.mpf(0)
            for k in chosen:
                total, squares = total + apart[k], squares + (apart[k].T * apart[k])[0]
            rest = a * squares - a**2 * (total.T * mpmath.lu_solve(H, total))[0]
            return mpmath.exp(-rest) / mpmath.sqrt(mpmath.det(mpmath.eye(3) + 2 * n * a * cov))

        scale = mpmath.sqrt(mpmath.det(mpmath.eye(3) + 4 * a * cov))
        tensor = np.array([[[integral(p, q, r) * scale for r in range(m)] for q in range(m)] for p in range(m)])
        mass = np.array([[integral(p, q) * scale for q in range(m)] for p in range(m)])
        B = np.array(
            [[mpmath.fsum(mpmath.mpf(x) * mpmath.mpf(y) for x, y in zip(f, g, strict=True)) for g in F] for f in F]
        )
        exact = {
            "mass": (enclosed.mass(), mass),
            "embed": (enclosed.embed(ball(F)), np.einsum("pq,pqr->r", B, tensor)),
            "weighted": (enclosed.weighted_mass(ball(c)), np.einsum("r,pqr->pq", [mpmath.mpf(x) for x in c], tensor)),
        }
        for name, (found, true) in exact.items():
            for hi, lo, radius, value in zip(
                *(np.ravel(part) for part in (found.hi, found.lo, found.radius, true)), strict=True
            ):
                assert abs(mpmath.mpf(float(hi)) + mpmath.mpf(float(lo)) - value) <= float(radius), name
                assert float(radius) < 1e-18


def test_a_density_turns_with_its_points_and_its_reference(X, model):
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    turned = SumOfSquaresDensity(
        KERNEL, support=X[::6] @ turn.T, reference=(turn @ MEAN, turn @ COVARIANCE @ turn.T)
    ).fit(X @ turn.T)
    assert turned.certificate_.upper == pytest.approx(model.certificate_.upper, rel=1e-6)
    assert np.allclose(turned.density(X @ turn.T), model.density(X), rtol=1e-3, atol=1e-4)
    assert turned.mmd_ == pytest.approx(model.mmd_, rel=1e-4)


def test_questions_are_answered_as_a_grid_answers_them(model):
    nodes, cell = grid()
    p = model.density(nodes) * cell
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    mean = p @ nodes
    assert np.allclose(model.mean(), mean, atol=1e-8)
    assert np.allclose(model.covariance(), (nodes - mean).T @ (p[:, None] * (nodes - mean)), atol=1e-8)
    assert np.allclose(model._law().density(nodes[::97]), model.density(nodes[::97]), rtol=1e-7, atol=1e-12)
    axis = np.unique(nodes[:, 0])
    for k in (0, 1):
        lines = p.reshape(axis.size, axis.size).sum(axis=1 - k) / np.sqrt(cell)
        marginal = model.marginal([k])
        assert np.allclose(marginal.density(axis[:, None]), lines, rtol=1e-7, atol=1e-10)
        below = quad(lambda t, law=marginal: law.density([[t]])[0], -6.0, 0.0)[0]
        assert marginal.cdf([0.0])[0] == pytest.approx(below, abs=1e-7)
        assert np.allclose(marginal.cdf(marginal.quantile([0.1, 0.9])), [0.1, 0.9], atol=1e-9)
    given = model.conditional([1], [0.25])
    at = np.stack([axis, np.full(axis.size, 0.25)], 1)
    section = model.density(at)
    assert np.allclose(given.density(axis[:, None]), section / (section.sum() * np.sqrt(cell)), rtol=1e-6, atol=1e-9)


def test_marginals_and_conditionals_of_marginals_are_consistent_in_three_dimensions():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(3, 3))
    X = rng.normal(size=(80, 3)) @ A.T / 2
    model = SumOfSquaresDensity(Gaussian(1.2), support=X[:12], reference=(np.zeros(3), A @ A.T / 2)).fit(X)
    joint, at = model.marginal([2, 0]), np.array([[0.2, -0.1]])
    assert np.allclose(joint.marginal([1]).mean(), model.mean()[[0]], atol=1e-9)
    assert np.allclose(joint.covariance(), model.covariance()[np.ix_([2, 0], [2, 0])], atol=1e-9)
    given = model.conditional([0, 2], [-0.1, 0.2])  # p(x₁ | x₀, x₂) p(x₂, x₀) = p(x)
    whole = model.density([[-0.1, 0.3, 0.2]])
    assert np.allclose(given.density([[0.3]]) * joint.density(at), whole, rtol=1e-8)


def test_draws_have_the_moments_of_the_density(model):
    n = 4000
    drawn = model.sample(n, random_state=0)
    spread = np.sqrt(np.diag(model.covariance()) / n)
    assert np.all(np.abs(drawn.mean(axis=0) - model.mean()) <= 4.5 * spread)
    values = np.cos(drawn @ np.array([1.0, -2.0]))
    nodes, cell = grid()
    expected = model.density(nodes) * cell @ np.cos(nodes @ np.array([1.0, -2.0]))
    assert abs(values.mean() - expected) <= 4.5 * values.std() / np.sqrt(n)
    assert model.sampling_error_ < 1e-10


def test_a_covariance_is_verified_and_a_changed_one_refused(X, model):
    assert mercer.verify(model, X).holds(1e-6)
    copy = pickle.loads(pickle.dumps(model))
    copy.measure_ = GaussianMeasure(MEAN, covariance=COVARIANCE + 1e-6)
    with pytest.raises(ValueError, match="(?s)measure_ is .* damaged"):
        mercer.verify(copy, X)
    copy.measure_ = GaussianMeasure(MEAN, 0.7)
    with pytest.raises(ValueError, match="damaged"):
        mercer.verify(copy, X)


def test_the_certificate_is_below_every_other_density(X, model):
    """SOS (12): the objective of other densities of the class, by quadrature of the grid alone."""
    nodes, cell = grid()
    weights, K, Z = np.exp(LAW.log_density(nodes)) * cell, KERNEL(nodes, model.support_), model.support_
    v, whitening = KERNEL(Z, X).mean(axis=1), np.linalg.pinv(KERNEL(Z), rcond=1e-11)

    def value(F):
        masses = weights * np.sum((K @ F) ** 2, axis=1)
        rest, share = masses @ K / masses.sum() - v, 1 / masses.sum()
        return rest @ whitening @ rest + model.regularization_ * share * np.sum(F * (KERNEL(Z) @ F))

    assert value(model.factor_) == pytest.approx(model.certificate_.upper, rel=1e-4)
    rng = np.random.default_rng(6)
    for size in (1e-4, 1e-2, 1.0):
        other = model.factor_ + size * np.abs(model.factor_).max() * rng.normal(size=model.factor_.shape)
        assert value(other) >= model.certificate_.lower * (1 - 1e-6)


def test_a_kernel_without_closed_form_takes_quadrature_under_a_covariance(X):
    integrals = kernel_integrals(Laplacian(1.0), X[:4], LAW)
    assert isinstance(integrals, NodeIntegrals)
    nodes, cell = grid(0.04)
    K, weights = Laplacian(1.0)(nodes, X[:4]), np.exp(LAW.log_density(nodes) - integrals.log_scale) * cell
    assert np.allclose(integrals.mass(), (K.T * weights) @ K, rtol=2e-3)
    with pytest.raises(ValueError, match="quadrature takes 3 features at most"):
        kernel_integrals(Laplacian(1.0), np.zeros((2, 4)), GaussianMeasure(np.zeros(4), covariance=np.eye(4)))


def test_embeddings_of_densities_under_a_covariance(model):
    w, nodes = MeanEmbedding.of_density(model), np.random.default_rng(7).normal(size=(5, 2))
    points, cell = grid()
    assert np.allclose(w(nodes), KERNEL(nodes, points) @ (model.density(points) * cell), atol=1e-8)
    rng = np.random.default_rng(8)
    high = SumOfSquaresDensity(
        Gaussian(2.0), support=8, reference=(np.zeros(4), np.diag([1.0, 2.0, 3.0, 4.0])), random_state=0
    ).fit(rng.normal(size=(30, 4)))
    with pytest.raises(ValueError, match="no embedding in closed form"):
        MeanEmbedding.of_density(high)
    drawn = high.sample(3000, random_state=0)
    gap = MeanEmbedding(Gaussian(2.0), drawn) - MeanEmbedding(Gaussian(2.0), rng.normal(size=(1, 4)))
    assert np.isfinite(gap.norm())
    assert np.allclose(drawn.mean(axis=0), high.mean(), atol=4.5 * np.sqrt(np.diag(high.covariance()).max() / 3000))


def test_nodes_of_a_quadrature_stand_for_the_measure_that_they_integrate(X):
    """A Legendre rule for a box, given as nodes, leads to the density on the box."""
    x, w = np.polynomial.legendre.leggauss(40)
    nodes = np.stack(np.meshgrid(4 * x, 4 * x, indexing="ij"), -1).reshape(-1, 2)
    rule = DiscreteMeasure(nodes, 16 * np.outer(w, w).reshape(-1))
    on_box = SumOfSquaresDensity(KERNEL, support=X[::10], reference=Box(-4.0, 4.0)).fit(X)
    on_nodes = SumOfSquaresDensity(KERNEL, support=X[::10], reference=rule).fit(X)
    assert on_nodes.certificate_.upper == pytest.approx(on_box.certificate_.upper, rel=1e-9)
    assert np.allclose(on_nodes.density(X), on_box.density(X), rtol=1e-4, atol=1e-6)
    assert on_nodes.mmd_ == pytest.approx(on_box.mmd_, rel=5e-3)
    assert np.allclose(on_nodes.mean(), on_box.mean(), atol=1e-4)
    assert mercer.verify(on_nodes, X).holds(1e-6)


def test_probabilities_of_nodes(X):
    """Any kernel in any dimension: the law of a density on nodes is a table of their probabilities."""
    rng = np.random.default_rng(9)
    nodes = rng.integers(-3, 4, (200, 4)).astype(float)
    weights = rng.uniform(0.0, 1.0, 200)
    weights[:3] = 0.0
    points = rng.normal(size=(50, 4))
    model = SumOfSquaresDensity(
        Laplacian(2.0), support=10, reference=DiscreteMeasure(nodes, weights), random_state=0, tol=1e-5
    ).fit(points)
    masses = model.density(nodes) * weights
    assert masses.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.allclose(model.mean(), masses @ nodes, atol=1e-9)
    marginal = model.marginal([0])
    assert np.allclose(marginal.density([[1.0]]), masses[nodes[:, 0] == 1].sum(), atol=1e-9)
    assert np.allclose(marginal.cdf([-4.0, 0.5, 3.0]), [0.0, masses[nodes[:, 0] <= 0.5].sum(), 1.0], atol=1e-9)
    assert marginal.quantile([marginal.cdf([0.0])[0]])[0] == 0.0
    given = model.conditional([0, 1], nodes[5, :2])
    assert given.density(nodes[5:6, 2:])[0] > 0
    with pytest.raises(ValueError, match="No node of the reference has the values"):
        model.conditional([0], [0.5])
    drawn, n = model.sample(2000, random_state=0), 2000
    assert np.all(np.abs(drawn.mean(axis=0) - model.mean()) <= 4.5 * np.sqrt(np.diag(model.covariance()) / n))
    values = MeanEmbedding.of_density(model)(points[:3])
    assert np.allclose(values, Laplacian(2.0)(points[:3], nodes) @ masses, atol=1e-9)


def test_references_that_are_none_are_refused(X):
    for reference, sentence in [
        ((MEAN, [[1.0, 2.0], [2.0, 1.0]]), "must be positive definite"),
        ((MEAN, np.eye(3)), "must be 2 × 2"),
        (DiscreteMeasure(X[:0]), "at least one"),
        (DiscreteMeasure(X[:3] + 1e3), "vanishes at all nodes of the reference"),
        (Box(0.0, 0.1), "points lie outside the box"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            SumOfSquaresDensity(KERNEL, support=5, reference=reference, random_state=0).fit(X)


@pytest.mark.parametrize(
    "law", [LAW, DiscreteMeasure(np.random.default_rng(0).normal(size=(60, 2)))], ids=["covariance", "nodes"]
)
def test_tensors_give_the_same_integrals(law, X):
    torch = pytest.importorskip("torch")
    tensor = torch.as_tensor(X[:5])
    law_there = mercer.kernels.integrals.given_measure.checked_measure(law, tensor, "reference")
    law_here = mercer.kernels.integrals.given_measure.checked_measure(law, X, "reference")
    here, there = kernel_integrals(KERNEL, X[:5], law_here), kernel_integrals(KERNEL, tensor, law_there)
    B = np.eye(5)
    assert isinstance(there.mass(), torch.Tensor)
    assert np.allclose(there.mass().numpy(), here.mass(), rtol=1e-12)
    assert np.allclose(there.embed(torch.as_tensor(B)).numpy(), here.embed(B), rtol=1e-12)
    model = SumOfSquaresDensity(KERNEL, support=torch.as_tensor(X[::12]), reference=law, tol=1e-5).fit(
        torch.as_tensor(X)
    )
    assert isinstance(model.sample(3, random_state=0), torch.Tensor)
    assert mercer.verify(model, torch.as_tensor(X)).holds(1e-3)


def test_moments_and_values_of_embeddings_are_linear_in_the_coefficients(X):
    """The functionals that other programmes are made of know of the covariance, in numbers and in proofs."""
    points, nodes, cell = X[:5], *grid()
    integrals = kernel_integrals(KERNEL, points, LAW)
    K, weights = KERNEL(nodes, points), np.exp(LAW.log_density(nodes) - integrals.log_scale) * cell
    powers = np.concatenate([nodes, nodes[:, [0]] ** 2, nodes[:, [0]] * nodes[:, [1]], nodes[:, [1]] ** 2], axis=1)
    expected = [(K.T * (weights * column)) @ K for column in powers.T]
    assert np.allclose(Moments(2).matrices(integrals), expected, rtol=1e-9, atol=1e-10)
    functional, F = EmbeddingValues(X[60:62]), np.random.default_rng(10).normal(size=(5, 2))
    values = weights * np.sum((K @ F) ** 2, axis=1) @ KERNEL(nodes, X[60:62])
    enclosed = functional.enclosures(integrals, functional.matrices(integrals)).values(ball(F))
    assert np.allclose(enclosed.hi, values, rtol=1e-9, atol=1e-11)
    assert np.all(enclosed.radius < 1e-18)
