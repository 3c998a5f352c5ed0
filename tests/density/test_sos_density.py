"""Densities that are sums of squares: the paper's facts, mass one, certificates, supports, measures, weights."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import fixed_quad, trapezoid
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KernelDensity

from mercer import Gaussian, Laplacian, Matern, QuadratureSparsifier, SumOfSquaresDensity, verify
from mercer.datasets import load_real, two_moons
from mercer.datasets.real import data_folder
from mercer.kernels.integrals.measures import Box, GaussianMeasure
from mercer.solvers import Status

needs_data = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with the real data sets")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal((50, 2)), 0.6 * rng.standard_normal((30, 2)) + [2.5, 1.0]])


def mass(model, lower, upper, step):
    """∫ of the density over a box by scipy's trapezoidal rule, exact to rounding for functions that vanish at its edge."""
    axes = [np.arange(lo, hi, step) for lo, hi in zip(lower, upper, strict=True)]
    nodes = np.stack([x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = model.density(nodes).reshape([x.size for x in axes])
    for _ in axes:
        values = trapezoid(values, dx=step, axis=-1)
    return float(values)


# --- the paper ------------------------------------------------------------------------------------------------------


@needs_data
def test_the_papers_two_moons_reach_a_lower_loss_than_its_code_with_a_certificate():
    points = load_real("sos_moons")["X"]
    model = SumOfSquaresDensity(Gaussian(1.0), support=points[:50], regularization=1e-3).fit(points)
    certificate = model.certificate_
    assert certificate.upper <= 1.802222e-3
    assert certificate.upper - certificate.lower < 1e-8
    assert certificate.relative_gap < 1e-5
    assert model.rank_ == 2
    assert model.status_ is Status.CONVERGED
    assert model.projected_mmd_ < model.mmd_
    penalty = 1e-3 * np.sum(model.coefficients_ * Gaussian(1.0)(points[:50]))
    assert model.projected_mmd_**2 + penalty == pytest.approx(certificate.upper, rel=1e-6)


@pytest.mark.filterwarnings("ignore:The MMD between density and sample")  # few points, on purpose
@needs_data
@pytest.mark.parametrize("variance", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("regularization", [0.0, 1e-3])
def test_no_mass_is_lost_on_the_papers_points(variance, regularization):
    points = load_real("sos_moons")["X"]
    sigma = variance**0.5
    model = SumOfSquaresDensity(Gaussian(sigma), support=points[:50], regularization=regularization).fit(points)
    lower, upper = points.min(axis=0) - 5 * sigma, points.max(axis=0) + 5 * sigma
    assert mass(model, lower, upper, sigma / 10) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("variance", [0.05, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("regularization", [1e-6, 1e-3])
def test_mass_is_one_on_the_line_by_quadrature(variance, regularization):
    points = np.random.default_rng(1).standard_normal((60, 1))
    model = SumOfSquaresDensity(Gaussian(variance**0.5), support=30, regularization=regularization, random_state=0)
    model.fit(points)
    breaks = np.linspace(-4 - 5 * variance**0.5, 4 + 5 * variance**0.5, 30)
    total = sum(fixed_quad(lambda x: model.density(x[:, None]), lo, hi, n=24)[0] for lo, hi in pairwise(breaks))
    assert total == pytest.approx(1.0, abs=1e-8)
    assert model.integration_error_ < 1e-8


@pytest.mark.parametrize("regularization", [0.0, 1e-6])
@pytest.mark.parametrize("variance", [0.05, 0.1, 0.5, 10.0])
@pytest.mark.parametrize("support", ["clusters", "strewn"])
def test_an_ill_conditioned_mass_matrix_costs_no_mass(support, variance, regularization):
    rng = np.random.default_rng(1)
    points = rng.standard_normal((70, 1))
    given = rng.standard_normal((4, 1)).repeat(8, axis=0) + 0.02 * rng.standard_normal((32, 1))
    given = given if support == "clusters" else rng.uniform(-3, 3, (32, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # without a penalty rounding is seen
        model = SumOfSquaresDensity(Gaussian(variance**0.5), support=given, regularization=regularization).fit(points)
    ends = given.min() - 5 * variance**0.5, given.max() + 5 * variance**0.5
    total = sum(
        fixed_quad(lambda x: model.density(x[:, None]), lo, hi, n=12)[0] for lo, hi in pairwise(np.linspace(*ends, 200))
    )
    assert total == pytest.approx(1.0, abs=1e-9)
    assert abs(total - 1.0) <= model.integration_error_ + 1e-12


# --- what is stored ---------------------------------------------------------------------------------------------------


def test_coefficients_factor_and_density_are_the_same_function(X):
    model = SumOfSquaresDensity(Gaussian(1.0), support=30, random_state=0).fit(X)
    k = Gaussian(1.0)(X, model.support_)
    assert np.allclose(model.coefficients_, model.factor_ @ model.factor_.T)
    assert np.allclose(model.density(X), np.einsum("ip,pq,iq->i", k, model.coefficients_, k), rtol=1e-8)
    assert np.allclose(model.score_samples(X), np.log(model.density(X)), rtol=1e-10)
    assert model.score(X) == pytest.approx(np.mean(model.score_samples(X)))
    assert model.factor_.shape == (30, model.rank_)
    assert model.eigenvalues_.sum() == pytest.approx(1.0)
    W = np.pi / 2 * np.exp(-np.sum((model.support_[:, None] - model.support_) ** 2, axis=2) / 2)
    assert np.allclose(np.diag(model.factor_.T @ W @ model.factor_), model.eigenvalues_, atol=1e-8)
    assert model.history_[-1].gap <= 1e-8 * model.sample_norm_**2
    assert model.n_iter_ == model.history_[-1].number


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(0.3), Laplacian(0.8)], ids=repr)
def test_mmd_is_that_of_a_fine_grid(kernel):
    """What SOS (16) prints, beside the projection that (12) makes small."""
    points = np.random.default_rng(2).standard_normal((40, 1))
    model = SumOfSquaresDensity(kernel, support=20, random_state=0, tol=1e-6, regularization=1e-3).fit(points)
    nodes = np.linspace(-9, 9, 3001)[:, None]
    masses = model.density(nodes) * (nodes[1] - nodes[0])
    a = np.full(40, 1 / 40)
    squared = masses @ kernel(nodes) @ masses - 2 * a @ kernel(points, nodes) @ masses + a @ kernel(points) @ a
    tolerance = 1e-6 if model.mmd_error_ == 0 else 2 * model.mmd_error_ + 1e-3
    assert model.mmd_ == pytest.approx(np.sqrt(squared), rel=tolerance, abs=tolerance)
    assert model.projected_mmd_ <= model.mmd_ * (1 + 1e-9)


@pytest.mark.parametrize("variance", [0.05, 0.5, 5.0])
def test_mmd_keeps_its_digits_where_coefficients_cancel(variance):
    points = np.random.default_rng(0).standard_normal((70, 1))
    kernel, support = Gaussian(variance**0.5), np.concatenate([points[:20], points[:20] + 0.01])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SumOfSquaresDensity(kernel, support=support, regularization=0.0, tol=1e-6).fit(points)
    reach = 5 * variance**0.5
    nodes = np.linspace(points.min() - reach, points.max() + reach, 2000)[:, None]
    masses, a = model.density(nodes) * (nodes[1] - nodes[0]), np.full(70, 1 / 70)
    squared = masses @ kernel(nodes) @ masses - 2 * a @ kernel(points, nodes) @ masses + a @ kernel(points) @ a
    assert model.mmd_**2 == pytest.approx(squared, abs=1e-10)


def test_mmd_beyond_the_sizes_of_exact_sums_is_close_to_them(monkeypatch):
    from mercer.kernels.integrals import gaussian as pair_integrals

    points = np.random.default_rng(3).standard_normal((300, 4))
    fit = SumOfSquaresDensity(Gaussian(2.0), support=40, random_state=0, tol=1e-6).fit
    exact = fit(points).mmd_
    assert fit(points).mmd_error_ == 0
    monkeypatch.setattr(pair_integrals, "_PAIRWISE_UP_TO", 10)
    projected = fit(points)
    assert projected.mmd_error_ > 0
    assert projected.mmd_ == pytest.approx(exact, rel=0.02)
    assert projected.mmd_ <= exact * (1 + 1e-9)


def test_mmd_of_many_rows_takes_no_product_with_their_kernel_matrix(monkeypatch):
    from mercer.density import distance_to_sample as discrepancy

    points = np.random.default_rng(3).standard_normal((3000, 2))
    fit = SumOfSquaresDensity(Gaussian(1.0), support=30, random_state=0, tol=1e-6).fit
    exact = fit(points).mmd_
    monkeypatch.setattr(discrepancy, "_MOST_ROWS", 2000)
    monkeypatch.setattr(discrepancy, "_norm", None)
    projected = fit(points)
    assert projected.mmd_error_ > 0
    assert projected.mmd_ == pytest.approx(exact, rel=0.1, abs=3 * projected.mmd_error_)


# --- solvers ------------------------------------------------------------------------------------------------------------


def test_all_solvers_find_the_same_density(X):
    models = [
        SumOfSquaresDensity(Gaussian(1.0), support=18, regularization=1e-2, random_state=0, solver=solver, tol=tol).fit(
            X
        )
        for solver, tol in (("auto", 1e-9), ("low-rank", 1e-9), ("accelerated", 1e-6))
    ]
    pytest.importorskip("cvxpy")
    conic = SumOfSquaresDensity(Gaussian(1.0), support=18, regularization=1e-2, random_state=0, solver="conic").fit(X)
    models.append(conic)
    for model in models[1:]:
        assert model.certificate_.upper == pytest.approx(models[0].certificate_.upper, rel=1e-4)
        assert np.allclose(model.density(X), models[0].density(X), rtol=0.02, atol=1e-3)


def test_warm_start_takes_up_where_the_last_fit_ended(X):
    support = X[:40]
    model = SumOfSquaresDensity(Gaussian(0.8), support=support, regularization=1e-3, warm_start=True).fit(X)
    cold = SumOfSquaresDensity(Gaussian(0.8), support=support, regularization=9e-4).fit(X)
    warm = model.set_params(regularization=9e-4).fit(X)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=1e-5)


def test_a_budget_too_small_warns_and_states_the_gap(X):
    with pytest.warns(ConvergenceWarning, match="iteration budget ran out"):
        model = SumOfSquaresDensity(Gaussian(0.7), support=40, max_iter=2, random_state=0).fit(X)
    assert model.status_ is Status.MAX_ITER
    assert model.certificate_.upper - model.certificate_.lower > 1e-6
    assert mass(model, [-6, -6], [8, 8], 0.1) == pytest.approx(1.0, abs=1e-9)


def test_callback_sees_the_history_and_can_stop(X):
    seen = []
    model = SumOfSquaresDensity(
        Gaussian(0.7), support=40, random_state=0, callback=lambda line: seen.append(line) or len(seen) == 2
    ).fit(X)  # without a warning: it is the user's own wish
    assert tuple(seen) == model.history_
    assert model.status_ is Status.STOPPED


def test_verbose_logs(X, caplog):
    with caplog.at_level("INFO", logger="mercer"):
        SumOfSquaresDensity(Gaussian(1.0), support=15, random_state=0, verbose=True).fit(X)
    assert any("gap" in record.message for record in caplog.records)


def test_a_fit_that_fails_leaves_the_earlier_one(X):
    model = SumOfSquaresDensity(Gaussian(1.0), support=15, random_state=0).fit(X)
    before = model.score_samples(X)
    for wrong in ({"regularization": -1.0}, {"solver": "newton"}, {"tol": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            clone(model).set_params(support=20, **wrong).fit(X)
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model.set_params(support=20, **wrong).fit(X)
        assert np.array_equal(model.score_samples(X), before)
        model.set_params(regularization=None, solver="auto", tol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("seed", range(4))
def test_converged_means_that_the_certificate_keeps_the_tolerance(seed, tol):
    rng = np.random.default_rng(seed)
    points, support = rng.standard_normal((60, 2)), 0.3 * rng.standard_normal((15, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the support is narrow
        model = SumOfSquaresDensity(Gaussian(0.3), support=support, regularization=0.0, tol=tol).fit(points)
    certificate, size = model.certificate_, model.sample_norm_**2
    if model.status_ is Status.CONVERGED:
        assert certificate.upper - certificate.lower <= tol * max(certificate.lower, size) * (1 + 1e-6)
    else:
        assert model.status_ is Status.STALLED
        assert tol == 1e-8


@pytest.mark.parametrize("solver", ["auto", "accelerated"])
@pytest.mark.parametrize("away", [5.0, 1e3])
def test_a_support_that_sees_nothing_of_the_sample_is_said_to_explain_nothing(X, away, solver):
    model = SumOfSquaresDensity(Gaussian(1.0), support=X[:8] + away, regularization=0.0, solver=solver, tol=1e-6)
    with pytest.warns(UserWarning, match="accounts for nothing of the sample's mean embedding") as caught:
        model.fit(X)
    assert len(caught) == 1
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.relative_gap <= 1e-6


# --- supports -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("support", [25, "kmeans", ("kmeans", 20), QuadratureSparsifier(Gaussian(1.0), n_nodes=20)])
def test_supports_of_every_kind_give_a_density(X, support):
    model = SumOfSquaresDensity(Gaussian(1.0), support=support, random_state=0).fit(X)
    expected = {25: 25, "kmeans": 80}.get(support if isinstance(support, int | str) else "", 20)
    assert model.support_.shape == (expected, 2)
    assert model.score(X) > -4
    assert mass(model, [-8, -8], [10, 10], 0.15) == pytest.approx(1.0, abs=1e-8)


def test_an_estimator_that_is_fitted_already_is_not_fitted_again(X):
    nodes = QuadratureSparsifier(Gaussian(1.0), n_nodes=12).fit(X)
    model = SumOfSquaresDensity(Gaussian(1.0), support=nodes).fit(X)
    assert np.array_equal(model.support_, X[nodes.indices_])


def test_quadrature_nodes_serve_a_density_as_well_as_more_sampled_points(X):
    nodes = SumOfSquaresDensity(Gaussian(1.0), support=QuadratureSparsifier(Gaussian(1.0), n_nodes=15)).fit(X)
    sampled = SumOfSquaresDensity(Gaussian(1.0), support=15, random_state=0).fit(X)
    assert nodes.mmd_ < sampled.mmd_


# --- measures -------------------------------------------------------------------------------------------------------------


def test_a_normal_reference_gives_a_density_with_respect_to_lebesgue(X):
    for reference in ("gaussian", (np.array([1.0, 0.0]), 2.0), GaussianMeasure(np.zeros(2), 1.5)):
        model = SumOfSquaresDensity(Gaussian(1.0), support=30, reference=reference, random_state=0).fit(X)
        assert mass(model, [-9, -9], [11, 11], 0.1) == pytest.approx(1.0, abs=1e-9)
    k = Gaussian(1.0)(X, model.support_)
    law = multivariate_normal(np.zeros(2), 2.25)
    assert np.allclose(model.density(X), np.sum((k @ model.factor_) ** 2, axis=1) * law.pdf(X), rtol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5), Matern(1.5, 0.5)], ids=repr)
def test_a_box_holds_all_the_mass(kernel):
    points = np.random.default_rng(4).uniform(0, 1, (60, 1))
    model = SumOfSquaresDensity(kernel, support=20, box=(0.0, 1.0), random_state=0, tol=1e-6).fit(points)
    breaks = np.unique(np.concatenate([[0.0, 1.0], model.support_[:, 0]]))
    total = sum(fixed_quad(lambda x: model.density(x[:, None]), lo, hi, n=16)[0] for lo, hi in pairwise(breaks))
    assert total == pytest.approx(1.0, abs=1e-8)
    assert np.all(model.density([[-0.01], [1.01]]) == 0)
    assert np.all(model.score_samples([[-0.01], [1.01]]) == pytest.approx(-708.396, abs=1e-2))
    assert np.all(model.density(points) > 0.2)


def test_a_box_in_two_dimensions_and_a_box_in_four(X):
    model = SumOfSquaresDensity(Gaussian(1.0), support=20, box=([-4, -4], [5, 4]), random_state=0).fit(X)
    assert mass(model, [-4, -4], [5.001, 4.001], 0.01) == pytest.approx(1.0, abs=1e-4)
    points = np.random.default_rng(5).uniform(-1, 1, (50, 4))
    model = SumOfSquaresDensity(Gaussian(1.0), support=10, box=(-1.0, 1.0), random_state=0, tol=1e-6).fit(points)
    draws = np.random.default_rng(6).uniform(-1, 1, (200_000, 4))
    values = 16 * model.density(draws)
    assert values.mean() == pytest.approx(1.0, abs=5 * values.std() / np.sqrt(values.size))


def test_a_rough_kernel_in_the_plane_states_its_error_and_warns(X):
    with pytest.warns(UserWarning, match="accurate to"):
        model = SumOfSquaresDensity(Matern(0.5, 1.0), support=10, random_state=0, tol=1e-5).fit(X)
    assert 1e-6 < model.integration_error_ < 0.05
    assert mass(model, [-9, -9], [11, 10], 0.04) == pytest.approx(1.0, abs=2 * model.integration_error_)


# --- weights --------------------------------------------------------------------------------------------------------------


def test_a_weight_of_two_is_a_row_twice_and_a_weight_of_zero_is_no_row(X):
    support, w = X[:25], np.ones(80)
    w[:10], w[60:] = 2, 0
    weighted = SumOfSquaresDensity(Gaussian(1.0), support=support).fit(X, sample_weight=w)
    repeated = SumOfSquaresDensity(Gaussian(1.0), support=support).fit(np.concatenate([X[:10], X[:60]]))
    assert weighted.regularization_ == pytest.approx(repeated.regularization_)
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-6)
    assert np.allclose(weighted.density(X), repeated.density(X), rtol=1e-3, atol=1e-6)
    sampled = SumOfSquaresDensity(Gaussian(1.0), random_state=0).fit(X, sample_weight=w)
    assert sampled.support_.shape[0] == 60


# --- the default bandwidth and regularisation ---------------------------------------------------------------------------


def test_the_defaults_estimate_a_normal_law_as_well_as_a_kernel_estimate():
    rng = np.random.default_rng(0)
    train, test = rng.standard_normal((300, 1)), rng.standard_normal((2000, 1))
    model = SumOfSquaresDensity(random_state=0).fit(train)
    silverman = KernelDensity(bandwidth=(4 / 3 / 300) ** 0.2).fit(train).score(test) / 2000
    assert norm.logpdf(test).mean() - 0.03 < model.score(test)
    assert silverman - 0.01 < model.score(test)


def test_the_defaults_resolve_two_moons_where_silvermans_rule_does_not():
    points = two_moons(600)[0]
    order = np.random.default_rng(0).permutation(len(points))
    train, test = points[order[:300]], points[order[300:]]
    spread = train.std(axis=0).mean()
    silverman = KernelDensity(bandwidth=spread * 300 ** (-1 / 6)).fit(train).score(test) / len(test)
    model = SumOfSquaresDensity(random_state=0).fit(train)
    assert model.score(test) > silverman + 0.5


def ring(n, rng):
    angles = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angles), np.sin(angles)]) + 0.1 * rng.standard_normal((n, 2))


def test_the_default_bandwidth_suits_centres_of_k_means_which_are_means_of_what_they_predict():
    rng = np.random.default_rng(0)
    train, test = ring(200, rng), ring(2000, rng)
    centres = SumOfSquaresDensity(support=("kmeans", 50), random_state=0, tol=1e-5).fit(train)
    wider, narrower = (
        SumOfSquaresDensity(Gaussian(factor * centres.kernel_.sigma), support=centres.support_, tol=1e-5).fit(train)
        for factor in (1.5, 0.6)
    )
    sampled = SumOfSquaresDensity(support=50, random_state=0, tol=1e-5).fit(train)
    assert centres.score(test) > max(wider.score(test), narrower.score(test), sampled.score(test))


@pytest.mark.parametrize("support", ["centres", "grid"])
def test_the_default_bandwidth_suits_points_that_are_no_rows(support):
    rng = np.random.default_rng(0)
    train, test = rng.standard_normal((200, 1)), rng.standard_normal((2000, 1))
    centres = KMeans(50, n_init=1, random_state=0).fit(train).cluster_centers_
    points = centres if support == "centres" else np.linspace(train.min(), train.max(), 60)[:, None]
    model = SumOfSquaresDensity(support=points, tol=1e-5).fit(train)
    assert model.score(test) > norm.logpdf(test).mean() - 0.08


def test_the_fit_follows_the_units_of_the_data(X):
    model = SumOfSquaresDensity(random_state=0).fit(X)
    scaled = SumOfSquaresDensity(random_state=0).fit(1000 * X)
    assert scaled.kernel_.sigma == pytest.approx(1000 * model.kernel_.sigma)
    assert np.allclose(scaled.density(1000 * X) * 1e6, model.density(X), rtol=1e-3, atol=1e-6)


def test_single_precision_of_the_configuration_does_not_reach_the_fit(X):
    from mercer import config_context

    kernel, support = Gaussian(2.0), np.round(X[:40], 3)
    double = SumOfSquaresDensity(kernel, support=support).fit(np.round(X, 3))
    with config_context(dtype="float32"):
        single = SumOfSquaresDensity(kernel, support=support).fit(np.round(X, 3))
    assert single.certificate_.upper == pytest.approx(double.certificate_.upper, rel=1e-3)
    assert single.density(X) == pytest.approx(double.density(X), rel=1e-2, abs=1e-4)


# --- far away, and verification -------------------------------------------------------------------------------------------


def test_logarithms_far_away_are_finite_and_follow_the_kernel(X):
    model = SumOfSquaresDensity(Gaussian(1.0), support=30, random_state=0).fit(X)
    far = np.array([[100.0, 0.0], [200.0, 0.0]])
    assert np.all(model.density(far) == 0)
    values = model.score_samples(far)
    nearest = np.sum((far[:, None] - model.support_) ** 2, axis=2).min(axis=1)
    assert np.allclose(values, -2 * nearest, rtol=0.02)


def test_verify_certifies_the_model_again_and_finds_damage(X):
    weights = np.linspace(0.5, 1.5, 80)
    model = SumOfSquaresDensity(Gaussian(1.0), support=20, random_state=0).fit(X, sample_weight=weights)
    again = verify(pickle.loads(pickle.dumps(model)), X)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-8)
    assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-4)
    with pytest.raises(ValueError, match="fitted to 80 points, X has 79"):
        verify(model, X[1:])
    with pytest.raises(ValueError, match="a density has none"):
        verify(model, X, extended=True)
    assert (again.lower, again.upper) == (model.certificate_.lower, model.certificate_.upper)
    with pytest.raises(ValueError, match=r"^The model's support_ has points that X does not have"):
        verify(model, X[::-1].copy() + 0.5)
    with pytest.raises(ValueError, match=r"^The model's .* it is damaged, or X is not the data of the fit\.$"):
        verify(model, X[::-1].copy())  # the same points, other weights
    model._factor = model._factor * 1.01
    with pytest.raises(ValueError, match="integrates to 1.02"):
        verify(model, X)


OTHER = {
    "coefficients_": lambda v: 7 * v,
    "factor_": lambda v: 3 * v,
    "_factor": lambda v: 3 * v,
    "log_scale_": lambda v: v + 5,
    "eigenvalues_": lambda v: v[::-1] / 2,
    "mmd_": lambda v: 1.01 * v,
    "mmd_error_": lambda v: v + 0.1,
    "projected_mmd_": lambda v: 0.99 * v,
    "sample_norm_": lambda v: 1.01 * v,
    "support_": lambda v: v + 1e-3,
    "rank_": lambda v: v + 1,
    "regularization_": lambda v: 1.01 * v,
    "integration_error_": lambda v: v + 1.0,
    "measure_": lambda v: Box(np.full(2, -9.0), np.full(2, 9.0)),
    "kernel_": lambda v: Gaussian(1.01),
    "sample_weight_": lambda v: v[::-1],
    "certificate_": lambda v: replace(v, lower=1.5 * v.upper, upper=2 * v.upper),
    "_spans": lambda v: type(v)(v.basis[:, 3:], v.whitening),
}


@pytest.mark.parametrize("name", OTHER)
def test_whatever_is_changed_is_refused_in_one_sentence(name, X):
    weights = np.linspace(0.5, 1.5, 80)
    model = SumOfSquaresDensity(Gaussian(1.0), support=10, random_state=0).fit(X, sample_weight=weights)
    setattr(model, name, OTHER[name](getattr(model, name)))
    with pytest.raises(ValueError, match=r"^The model's .*it is damaged[^.]*\.$"):
        verify(model, X)
    setattr(model, name, None)
    with pytest.raises((ValueError, TypeError), match=r"^[A-Z][^\n]*\.$"):
        verify(model, X)


def test_columns_of_the_factor_that_are_exchanged_are_found_out(X):
    model = SumOfSquaresDensity(Gaussian(0.7), support=10, random_state=0).fit(X)
    assert model.rank_ > 1
    model._factor = np.roll(model._factor, 1, axis=0)
    with pytest.raises(ValueError, match=r"^The model's .*it is damaged"):
        verify(model, X)


@pytest.mark.parametrize("truncation", [1e-6, 1e-10, 1e-12, 1e-14, 1e-15])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
def test_fit_and_verify_certify_the_same_programme(truncation, sigma, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = SumOfSquaresDensity(Gaussian(sigma), support=40, truncation=truncation, random_state=0).fit(X)
    again = verify(pickle.loads(pickle.dumps(model)), X)
    assert again.lower <= model.certificate_.upper
    assert model.certificate_.lower <= again.upper


def test_few_support_points_that_leave_mass_unseen_are_warned_of_by_name():
    X, _ = two_moons(300, noise=0.1, random_state=0)
    with pytest.warns(UserWarning, match="mass where there are no data. Pass more points as support"):
        few = SumOfSquaresDensity(Gaussian(0.5), support=10, random_state=0).fit(X)
    assert few.mmd_ > 3 * few.projected_mmd_
    SumOfSquaresDensity(Gaussian(0.5), support=60, random_state=0).fit(X)  # a warning would be an error here
