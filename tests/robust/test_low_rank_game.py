"""Games whose densities are made of some points of the support: integrals, limits, oracles, size."""

import itertools

import numpy as np
import pytest
from robust_oracle import SIGMA, TAU, conic_value, conic_value_on_a_grid, small_game, small_pairs

from mercer import Gaussian, RobustKernelRidge, verify
from mercer.kernels.integrals.squared_loss import PairSupport, SquaredLossIntegrals
from mercer.kernels.integrals.squared_loss_forms import SquaredLossForms
from mercer.robust.formulation import Effort


def wave(n=120, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def fitted(X, y, **options):
    settings = {"radius": 0.05, "support": 30, "adversary_support": 8, "random_state": 0, **options}
    return RobustKernelRidge(Gaussian(1.0), **settings).fit(X, y)


# --- integrals ----------------------------------------------------------------------------------------------------


def forms_and_integrals(seed=1):
    rng = np.random.default_rng(seed)
    support = PairSupport(rng.normal(size=(7, 2)), rng.normal(size=7), SIGMA, TAU)
    chosen, T, U = np.array([0, 2, 3, 6]), rng.normal(size=(4, 3)), rng.normal(size=(7, 5))
    whole = np.zeros((7, 3))
    whole[chosen] = T
    forms = SquaredLossForms(support, chosen, T, U)
    return forms, SquaredLossIntegrals(support, T, U, chosen=chosen), SquaredLossIntegrals(support, whole, U), rng


def test_integrals_that_are_not_stored_are_those_that_are():
    forms, *stored, rng = forms_and_integrals()
    beta, C = rng.normal(size=5), rng.normal(size=6)
    for other in stored:
        for name, argument in (("values", beta), ("curvature", C), ("slope", C)):
            np.testing.assert_allclose(
                getattr(forms, name)(argument), getattr(other, name)(argument), rtol=1e-12, atol=1e-13
            )
        for one, another in zip(forms.derivatives(beta), other.derivatives(beta), strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(forms.constant, other.constant, rtol=1e-13)


def test_both_kinds_of_integrals_lead_to_one_certificate():
    game = small_game(2, m=6, n=14, chosen=(0, 1, 4))
    kinds = [game.problem_in(dtype) for dtype in (np.float64, np.longdouble)]
    assert [type(kind._losses) for kind in kinds] == [SquaredLossForms, SquaredLossIntegrals]
    results = [game._solved(kind, Effort(1e-8, 300)).certificate for kind in kinds]
    assert results[0].upper == pytest.approx(results[1].upper, rel=1e-7)
    assert all(certificate.holds(1e-8) for certificate in results)


# --- the game -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_sample", [True, False])
def test_all_points_by_name_are_the_whole_game(keep_sample):
    options = {"radius": 0.4, "keep_sample": keep_sample}
    whole, named = small_game(3, **options), small_game(3, chosen=range(6), **options)
    one, other = (game.solve(Effort(1e-8, 300)).certificate for game in (whole, named))
    assert one.holds(1e-8)
    assert other.holds(1e-8)
    assert other.upper == pytest.approx(one.upper, rel=2e-8)


@pytest.mark.parametrize("seed", range(3))
def test_more_points_of_densities_are_a_stronger_adversary(seed):
    """Nested classes on one ball: the values rise to that of the whole game."""
    sets = [(0, 3), (0, 3, 4), (0, 1, 3, 4), None]
    values = [small_game(seed, chosen=chosen).solve(Effort(1e-7, 300)).certificate for chosen in sets]
    for weak, strong in itertools.pairwise(values):
        assert weak.lower <= strong.upper
    assert values[0].upper < 0.999 * values[-1].lower


@pytest.mark.parametrize("seed", range(2))
def test_the_low_rank_game_is_that_of_a_conic_solver(seed):
    pytest.importorskip("cvxpy")
    game = small_game(seed, chosen=(1, 2, 5))
    certificate = game.solve(Effort(1e-8, 300)).certificate
    assert conic_value(game.problem) == pytest.approx(certificate.upper, rel=1e-6)


@pytest.mark.parametrize(("seed", "radius"), [(0, 0.05), (1, 0.6)])
def test_the_estimators_low_rank_game_is_that_of_a_grid(seed, radius):
    pytest.importorskip("cvxpy")
    X, y = wave(15, seed=seed)
    support = np.column_stack([X, y])[:6]
    model = fitted(X, y, radius=radius, support=support, adversary_support=3, target_sigma=0.8, tol=1e-8)
    assert model.adversary_support_.shape == (3,)
    assert model.adversary_coef_.shape == (3, 3)
    value = conic_value_on_a_grid(X, y, np.full(15, 1 / 15), support, model)
    assert value == pytest.approx(model.certificate_.upper, rel=2e-6)


def test_points_of_densities_are_drawn_by_the_seed_and_are_rows_of_the_support():
    X, y = wave()
    one, again, other = (fitted(X, y, random_state=seed).adversary_support_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one.size == 8
    assert np.all(np.diff(one) > 0)
    assert np.array_equal(fitted(X, y, adversary_support=30).adversary_support_, np.arange(30))


def test_a_support_that_is_exhausted_has_fewer_points_of_densities():
    """Forty pairs within a hundredth of a bandwidth: a few sections explain all of them."""
    rng = np.random.default_rng(0)
    X, y = 0.01 * rng.normal(size=(60, 1)), 0.01 * rng.normal(size=60)
    model = fitted(X, y, support=40, adversary_support=35, target_sigma=1.0)
    assert model.adversary_support_.size < 35
    assert verify(model, X, y).holds(1e-5)
    model.adversary_support_ = model.adversary_support_[:1]
    with pytest.raises(ValueError, match=r"^The model's adversary_support_ has 1 rows where .* it is damaged\.$"):
        verify(model, X, y)


def test_the_worst_density_is_one_and_its_distance_is_within_the_ball():
    X, y = wave()
    model = fitted(X, y, target_sigma=1.0)
    x, t = np.linspace(-8, 8, 161), np.linspace(-6, 6, 121)
    grid = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = model.adversary_density(grid[:, :1], grid[:, 1]) * (x[1] - x[0]) * (t[1] - t[0])
    assert masses.sum() == pytest.approx(1 - model.sample_share_, abs=1e-7)
    moved = masses @ (model.predict(grid[:, :1]) - grid[:, 1]) ** 2
    assert model.sample_share_ * model.sample_risk_ + moved == pytest.approx(model.robust_risk_, rel=1e-5)
    assert model.distance_ == pytest.approx(0.05, rel=1e-4)
    assert model.distance_ <= model.mmd_


def test_many_points_in_ten_dimensions_are_certified():
    X, y = wave(1500, 10)
    model = RobustKernelRidge(radius=0.03, support=120, adversary_support=12, tol=1e-5, random_state=0).fit(X, y)
    assert model.certificate_.holds(1e-5)
    again = verify(model, X, y)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-9)


def test_tensors_are_fitted_as_arrays_are():
    torch = pytest.importorskip("torch")
    X, y = wave(60, 2)
    plain = fitted(X, y)
    ours = fitted(torch.from_numpy(X), torch.from_numpy(y))
    np.testing.assert_array_equal(ours.adversary_support_.numpy(), plain.adversary_support_)
    assert ours.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-5)
    assert verify(ours, torch.from_numpy(X), torch.from_numpy(y)).holds(1e-5)


def test_pairs_are_thinned_from_the_mass_matrix():
    """Of two clusters, one of a single point, the lone point is taken with the second draw at the latest."""
    pairs = small_pairs(0)
    inputs = np.array([[0.0], [1e-3], [2e-3], [9.0]])
    pairs = pairs._replace(support=PairSupport(inputs, np.zeros(4), 1.0, 1.0))
    for seed in range(5):
        assert 3 in pairs.thinned(2, np.random.default_rng(seed)).chosen


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"adversary_support": 0}, r"^adversary_support=0 must be a whole number of at least 1\.$"),
        ({"adversary_support": 2.5}, r"^adversary_support=2.5 must be a whole number of at least 1\.$"),
        ({"relaxation": "rkhs"}, r"^adversary_support has no effect with relaxation='rkhs'"),
    ],
)
def test_bad_points_of_densities_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(*wave(), **options)
