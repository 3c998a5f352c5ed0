"""The kernelised embedding: its optimum against a conic solver, its extension, weights, landmarks and bad input."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from oracles.elliptope_oracle import bracket
from oracles.kernelized_oracle import conic_optimum
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, KernelizedSDPEmbedding, Landmarks, Matern, SelfTuning, Sobolev, config_context, verify
from mercer.problems.kernelized import SingularKernelError

PROBLEMS = [(nu, dim, seed) for nu in (0.5, 1.5, 2.5) for dim in (1, 2, 3) for seed in range(5)]


def points(n, dim, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, dim))


@pytest.fixture(scope="module")
def X():
    return points(30, 2)


@pytest.fixture(scope="module")
def fitted(X):
    return KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(X)


# --- the optimum --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nu", "dim", "seed"), PROBLEMS)
def test_the_optimum_is_that_of_a_conic_solver(nu, dim, seed):
    rng = np.random.default_rng(100 * seed + dim)
    n = int(rng.integers(5, 18))
    X, weights = rng.uniform(-1, 1, (n, dim)), rng.uniform(0.2, 3, n)
    strength, kernel = 10 ** rng.uniform(-5, -1), Matern(nu, float(rng.uniform(0.3, 1.2)))
    d = rng.uniform(0.3, 2, n) if seed % 2 else np.ones(n)
    model = KernelizedSDPEmbedding(kernel, regularization=strength, diagonal=d if seed % 2 else None, tol=1e-7)
    model.fit(X, sample_weight=weights)
    reference = conic_optimum(kernel(X), weights, d, strength)
    proof, size = model.certificate_, model.alignment_ + strength * model.trace_
    assert proof.lower - 1e-7 * size <= reference <= proof.upper + 1e-7 * size
    assert proof.upper - proof.lower <= 1e-7 * abs(reference)
    assert model.alignment_ - strength * model.trace_ == pytest.approx(proof.objective, rel=1e-6)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), d, rtol=1e-12)


def test_a_shift_that_dwarfs_the_objective():
    X = np.linspace(-1, 1, 40)[:, None]
    kernel, strength, n = Matern(2.5, 1.0), 1e-4, 40
    model = KernelizedSDPEmbedding(kernel, regularization=strength).fit(X)
    K = kernel(X)
    u = K.sum(axis=1) / np.sqrt(K.sum())
    shift = -np.linalg.eigvalsh(K - np.outer(u, u) - strength * n**2 * np.linalg.inv(K))[0]
    assert shift > 1e4
    assert model.certificate_.objective * n**2 < shift / 40
    assert model.certificate_.relative_gap < 1e-7
    reference = conic_optimum(K, np.ones(n), np.ones(n), strength)
    assert model.certificate_.objective == pytest.approx(reference, abs=1e-7)


def test_bounds_enclose_a_bracket_of_another_method():
    for seed in range(6):
        X, kernel, strength = points(12, 2, seed), Matern(0.5, 0.5), 10.0 ** -(seed % 3 + 2)
        K = kernel(X)
        u = K.sum(axis=1) / np.sqrt(K.sum())
        lower, upper, _ = bracket((K - np.outer(u, u)) / 144 - strength * np.linalg.inv(K))
        proof = KernelizedSDPEmbedding(kernel, regularization=strength).fit(X).certificate_
        assert proof.lower <= upper
        assert lower <= proof.upper


def test_the_optimum_may_be_negative():
    model = KernelizedSDPEmbedding(Matern(2.5, 1.0), regularization=0.3).fit(points(15, 2))
    assert model.certificate_.objective < 0
    assert model.certificate_.relative_gap < 1e-8
    assert model.certificate_.upper < 0


def test_an_ill_conditioned_kernel_is_certified():
    X = np.linspace(-1, 1, 100)[:, None]
    model = KernelizedSDPEmbedding(Matern(2.5, 1.0)).fit(X)
    assert np.linalg.cond(Matern(2.5, 1.0)(X)) > 1e10
    assert model.certificate_.holds(1e-6)
    assert np.abs(model.transform(X) - model.embedding_).max() < 1e-9


def test_a_diagonal_of_many_sizes_is_certified(X):
    d = 10.0 ** np.random.default_rng(0).uniform(-3, 3, len(X))
    proof = KernelizedSDPEmbedding(Matern(1.5, 0.7), diagonal=d).fit(X).certificate_
    assert proof.upper < 0
    assert proof.holds(1e-6)


def test_a_sobolev_space_is_that_of_its_kernel():
    X = points(20, 2)
    one = KernelizedSDPEmbedding(Sobolev(2.5, 0.5), regularization=1e-3).fit(X)
    other = KernelizedSDPEmbedding(Matern(1.5, 0.5 * np.sqrt(3)), regularization=1e-3).fit(X)
    assert one.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-8)


def test_large_regularization_gives_the_smoothest_function_of_these_values():
    X = np.linspace(-1, 1, 12)[:, None]
    kernel = Matern(1.5, 1.0)
    model = KernelizedSDPEmbedding(kernel, regularization=1e3).fit(X)
    constant = float(np.ones(12) @ np.linalg.solve(kernel(X), np.ones(12)))
    assert model.trace_ <= constant * (1 + 1e-9)  # of the rank-one solution 11ᵀ, which is feasible


def test_the_programme_has_its_invariances(fitted, X):
    value, kernel, rng = fitted.certificate_.objective, Matern(1.5, 0.8), np.random.default_rng(0)
    turn, order = np.linalg.qr(rng.standard_normal((2, 2)))[0], rng.permutation(len(X))
    moved = KernelizedSDPEmbedding(kernel).fit(X[order] @ turn + 3)
    assert moved.certificate_.objective == pytest.approx(value, rel=1e-8)
    inner = fitted.embedding_[order] @ fitted.embedding_[order].T
    np.testing.assert_allclose(moved.embedding_ @ moved.embedding_.T, inner, atol=1e-6)
    scaled = KernelizedSDPEmbedding(4.0 * kernel).fit(X)  # λ goes with its square
    assert scaled.regularization_ == pytest.approx(16 * fitted.regularization_, rel=1e-12)
    assert scaled.certificate_.objective == pytest.approx(16 * value, rel=1e-8)
    np.testing.assert_allclose(scaled.embedding_, 2 * fitted.embedding_, atol=1e-6)
    longer = KernelizedSDPEmbedding(kernel, diagonal=np.full(30, 9.0)).fit(X)
    assert longer.certificate_.objective == pytest.approx(9 * value, rel=1e-8)


# --- the extension ------------------------------------------------------------------------------------------------


def test_the_extension_is_the_paper_s(fitted, X):
    new = points(7, 2, 5)
    K, k = fitted.kernel_(X), fitted.kernel_(new, X)
    B = fitted.coordinates_ @ fitted.coordinates_.T
    C = np.linalg.solve(K, np.linalg.solve(K, B).T)
    np.testing.assert_allclose(fitted.learned_kernel(new), k @ C @ k.T, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(X), fitted.embedding_, atol=1e-11)
    np.testing.assert_allclose(fitted.learned_kernel(new, X), fitted.transform(new) @ fitted.embedding_.T, atol=1e-10)
    assert np.trace(np.linalg.solve(K, B)) == pytest.approx(fitted.trace_, rel=1e-9)


def test_components_are_cut_after_extending(fitted, X):
    one = KernelizedSDPEmbedding(Matern(1.5, 0.8), n_components=1).fit(X)
    np.testing.assert_allclose(one.transform(X), fitted.transform(X)[:, :1], atol=1e-12)
    assert np.all(np.diff(fitted.eigenvalues_) < 0)
    assert fitted.eigenvalues_.sum() == pytest.approx(1)
    assert list(one.get_feature_names_out()) == ["kernelizedsdpembedding0"]


def test_a_diagonal_of_squares_is_met_between_the_points():
    X = np.linspace(-1, 1, 40)[:, None]

    def squares(Z):
        return 1 + Z[:, 0] ** 2

    model = KernelizedSDPEmbedding(Matern(1.5, 1.0), diagonal=squares).fit(X)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), squares(X), rtol=1e-12)
    between = (X[:-1] + X[1:]) / 2
    assert np.abs(np.diag(model.learned_kernel(between)) - squares(between)).max() < 5e-3
    assert verify(model, X).holds(1e-6)


# --- weights, copies, landmarks -----------------------------------------------------------------------------------


def test_a_row_twice_is_a_row_of_weight_two(X):
    twice = np.concatenate([X, X[:10]])
    kernel = Matern(1.5, 0.8)
    one = KernelizedSDPEmbedding(kernel).fit(twice)
    other = KernelizedSDPEmbedding(kernel).fit(X, sample_weight=np.r_[np.full(10, 2.0), np.ones(20)])
    assert one.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-10)
    np.testing.assert_allclose(one.embedding_[:30], other.embedding_, atol=1e-6)
    np.testing.assert_array_equal(one.embedding_[30:], one.embedding_[:10])
    assert one.coordinates_.shape[0] == 30
    assert verify(one, twice).holds(1e-6)


def test_it_is_the_limit_of_points_that_move_together(X):
    kernel, rng = Matern(0.5, 0.8), np.random.default_rng(0)
    exact = KernelizedSDPEmbedding(kernel, regularization=1e-3).fit(np.concatenate([X, X[:5]]))
    for away in (1e-3, 1e-5):
        near = np.concatenate([X, X[:5] + away * rng.standard_normal((5, 2))])
        moved = KernelizedSDPEmbedding(kernel, regularization=1e-3).fit(near)
        assert moved.certificate_.objective == pytest.approx(exact.certificate_.objective, abs=30 * away)


def test_weights_have_no_unit(X):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    one = KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(X, sample_weight=weights)
    other = KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(X, sample_weight=1e250 * weights)
    assert one.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-9)


def test_a_row_of_no_weight_is_extended(X):
    weights = np.r_[np.zeros(5), np.ones(25)]
    kernel = Matern(1.5, 0.8)
    part = KernelizedSDPEmbedding(kernel, regularization=1e-3).fit(X[5:])
    whole = KernelizedSDPEmbedding(kernel, regularization=1e-3).fit(X, sample_weight=weights)
    np.testing.assert_allclose(whole.embedding_[:5], part.transform(X[:5]), atol=1e-6)
    assert verify(whole, X).holds(1e-6)


def test_landmarks_stand_for_a_large_sample():
    X = points(20_000, 2)
    model = KernelizedSDPEmbedding(Matern(2.5, 1.0), landmarks=60, random_state=0).fit(X)
    assert model.embedding_.shape == (20_000, model.rank_)
    assert model.coordinates_.shape[0] == 60
    assert model.certificate_.holds(1e-6)
    assert np.abs(np.sum(model.embedding_**2, axis=1) - 1).max() < 0.1
    np.testing.assert_array_equal(model.embedding_[model.landmarks_], model.coordinates_)
    assert verify(model, X).holds(1e-6)


def test_a_number_of_landmarks_covers_the_edge():
    points = np.random.default_rng(0).uniform(size=(300, 2))
    model = KernelizedSDPEmbedding(Matern(2.5, 1.0), landmarks=30, random_state=3).fit(points)
    pivots = Landmarks(30, kernel=Matern(2.5, 1.0), random_state=3).fit(points)
    np.testing.assert_array_equal(model.landmarks_, pivots.indices_)


def test_what_does_not_fit_the_memory_is_refused():
    sentence = r"^A kernelised programme on 900 points needs \d+ MB, beyond the memory limit of \d+ MB: pass fewer"
    with config_context(memory_limit="20MB"), pytest.raises(ValueError, match=sentence):
        KernelizedSDPEmbedding().fit(points(900, 2))


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"regularization": 0.0}, "regularization=0.0 must be positive"),
        ({"regularization": "much"}, "must be a positive number or 'auto'"),
        ({"diagonal": np.ones(3)}, r"diagonal has shape \(3,\) where X has 30 rows"),
        ({"diagonal": np.zeros(30)}, "diagonal must be positive and finite at every point"),
        ({"diagonal": lambda Z: Z}, r"diagonal gave an array of shape \(30, 2\) for 30 points"),
        ({"kernel": SelfTuning(n_neighbors=5)}, "is not positive definite|cannot be told from a singular one"),
        ({"kernel": Gaussian(3.0)}, "cannot be told from a singular one in double precision: pass fewer landmarks"),
        ({"nugget": -1.0}, "nugget"),
        ({"diagonal": np.full(30, 1e200)}, "diagonal lies between 1e.200 and 1e.200: bring it to a size near one"),
        ({"kernel": 1e-100 * Matern(1.5, 1.0)}, r"k\(x, x\) lies between 1e-100 and 1e-100: bring it"),
        ({"regularization": 1e-200}, "regularization=1e-200 is out of range"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, sentence, X):
    with pytest.raises(ValueError, match=sentence) as caught:
        KernelizedSDPEmbedding(**parameters).fit(X)
    assert str(caught.value).count(". ") == 0


def test_equal_points_are_refused():
    with pytest.raises(ValueError, match="All points are equal"):
        KernelizedSDPEmbedding().fit(np.ones((5, 2)))


def test_a_nugget_lets_a_smooth_kernel_in(X):
    model = KernelizedSDPEmbedding(Gaussian(3.0), nugget=1e-7).fit(X)
    assert model.certificate_.holds(1e-6)
    assert np.abs(model.transform(X) - model.embedding_).max() < 1e-2
    with pytest.raises(SingularKernelError):
        KernelizedSDPEmbedding(Gaussian(3.0)).fit(X)


def test_an_extension_that_rounding_spoils_is_told_and_still_verified():
    points = np.array([[0.0], [1.0], [1.0 + 1e-5], [2.0]])
    model = KernelizedSDPEmbedding(Gaussian(2.0), regularization=1e-3, diagonal=np.array([1.0, 1.0, 2.0, 1.0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(points)
    assert any("transform reproduces the training points to" in str(warning.message) for warning in caught)
    certificate = verify(model, points)  # not refused for digits that nobody has
    assert certificate.lower <= model.certificate_.upper


def test_an_end_before_the_tolerance_is_told(X):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = KernelizedSDPEmbedding(Matern(1.5, 0.8), max_iter=2).fit(X)
    assert not model.certificate_.holds(1e-3)
    assert model.certificate_.lower <= KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(X).certificate_.upper


def test_a_callback_stops_and_sees_every_step(X):
    lines = []
    model = KernelizedSDPEmbedding(Matern(1.5, 0.8), callback=lambda line: lines.append(line) or len(lines) == 4)
    model.fit(X)
    assert [line.number for line in lines] == [0, 1, 2, 3]
    assert model.status_.name == "STOPPED"


def test_without_a_proof_the_gap_of_the_solver_decides(fitted, X):
    model = KernelizedSDPEmbedding(Matern(1.5, 0.8), certify=False).fit(X)
    assert model.certificate_ is None
    assert model.status_.name == "CONVERGED"
    np.testing.assert_array_equal(model.embedding_, fitted.embedding_)
    assert verify(model, X).holds(1e-6)


def test_ctrl_c_keeps_the_best_iterate(X):
    def interrupt(line):
        if line.number == 6:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = KernelizedSDPEmbedding(Matern(1.5, 0.8), callback=interrupt).fit(X)
    assert model.status_.name == "INTERRUPTED"
    assert verify(model, X).holds(0.1)


def test_a_conic_solver_gives_the_same_coordinates(fitted, X):
    pytest.importorskip("cvxpy")
    model = KernelizedSDPEmbedding(Matern(1.5, 0.8), solver="conic").fit(X)
    np.testing.assert_allclose(model.embedding_, fitted.embedding_, atol=1e-6)
    assert model.certificate_.holds(1e-6)
    with pytest.raises(ValueError, match="solver='conic' takes at most 60 points, not 61"):
        model.fit(points(61, 2))


# --- verification -------------------------------------------------------------------------------------------------


def damaged(model, **changes):
    copy = pickle.loads(pickle.dumps(model))
    for name, change in changes.items():
        setattr(copy, name, change(getattr(copy, name)))
    return copy


def test_verify_certifies_again(fitted, X):
    proof = verify(fitted, X)
    assert proof.lower == fitted.certificate_.lower
    assert proof.upper == fitted.certificate_.upper
    assert verify(pickle.loads(pickle.dumps(fitted)), X).holds(1e-6)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("coordinates_", lambda v: 1.001 * v),
        ("coordinates_", lambda v: v[:-1]),
        ("coefficients_", lambda v: 1.001 * v),
        ("embedding_", lambda v: v + 1e-3),
        ("eigenvalues_", lambda v: v[::-1]),
        ("diagonal_", lambda v: 2 * v),
        ("regularization_", lambda v: 1.1 * v),
        ("alignment_", lambda v: 1.1 * v),
        ("trace_", lambda v: 0.9 * v),
        ("rank_", lambda v: v + 1),
        ("multipliers_", lambda v: v[:3]),
        ("multipliers_", lambda v: v * np.nan),
        ("sample_weight_", lambda v: np.arange(1.0, 31.0)),
        ("landmarks_", lambda v: np.array([0, 0])),
        ("kernel_", lambda v: Matern(1.5, 0.7)),
        ("_points", lambda v: v + 1e-9),
        ("_n_features_out", lambda v: v + 1),
    ],
)
def test_a_tampered_model_is_refused(name, change, fitted, X):
    with pytest.raises(ValueError, match=r"damaged|cannot belong|damage"):
        verify(damaged(fitted, **{name: change}), X)


def test_wrong_dual_variables_prove_less_but_never_a_falsehood(fitted, X):
    best = fitted.certificate_.objective
    for factor in (0.0, 0.5, 1.5, -1.0):
        proof = verify(damaged(fitted, multipliers_=lambda v, factor=factor: factor * v), X)
        assert proof.lower <= best <= proof.upper
        assert not proof.holds(1e-3)


def test_a_forged_certificate_is_refused(fitted, X):
    from dataclasses import replace

    lie = lambda proof: replace(proof, lower=2 * proof.lower, upper=2 * proof.upper)  # noqa: E731
    with pytest.raises(ValueError, match="certificate_ says that the optimum lies between"):
        verify(damaged(fitted, certificate_=lie), X)


def test_the_extension_is_certified_on_another_sample(fitted):
    new = points(25, 2, 9)
    proof = verify(fitted, new, extended=True)
    best = KernelizedSDPEmbedding(fitted.kernel_, regularization=fitted.regularization_).fit(new)
    assert proof.lower <= best.certificate_.upper
    assert proof.upper >= best.certificate_.lower
    assert proof.lower > 0.5 * best.certificate_.lower


# --- arithmetic ---------------------------------------------------------------------------------------------------


def test_single_precision_points_are_solved_in_double(X):
    model = KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(X.astype(np.float32))
    assert model.embedding_.dtype == np.float64
    assert model.certificate_.holds(1e-6)


def test_tensors_are_embedded_as_arrays_are(fitted, X):
    torch = pytest.importorskip("torch")
    model = KernelizedSDPEmbedding(Matern(1.5, 0.8)).fit(torch.tensor(X))
    assert isinstance(model.embedding_, torch.Tensor)
    np.testing.assert_allclose(model.embedding_.numpy(), fitted.embedding_, atol=1e-6)
    assert isinstance(model.transform(torch.tensor(X[:3])), torch.Tensor)
    assert verify(model, torch.tensor(X)).holds(1e-6)
    chosen = KernelizedSDPEmbedding(Matern(1.5, 0.8), landmarks=torch.arange(20)).fit(torch.tensor(X))
    assert chosen.embedding_.shape == (30, chosen.rank_)


def test_a_precomputed_matrix_is_the_kernel(fitted, X):
    from mercer import Precomputed

    model = KernelizedSDPEmbedding(Precomputed()).fit(fitted.kernel_(X))
    np.testing.assert_allclose(model.embedding_, fitted.embedding_, atol=1e-6)
    np.testing.assert_allclose(model.transform(fitted.kernel_(X[:4], X)), fitted.embedding_[:4], atol=1e-6)
    some = np.arange(0, 30, 2)
    few = KernelizedSDPEmbedding(Precomputed(), landmarks=some).fit(fitted.kernel_(X))
    same = KernelizedSDPEmbedding(fitted.kernel_, landmarks=some).fit(X)
    np.testing.assert_allclose(few.embedding_, same.embedding_, atol=1e-6)
    np.testing.assert_allclose(few.transform(fitted.kernel_(X[:4], X)), same.transform(X[:4]), atol=1e-6)
    assert verify(few, fitted.kernel_(X)).holds(1e-6)
    with pytest.raises(ValueError, match="has no values on another sample: pass points"):
        verify(few, fitted.kernel_(X), extended=True)
