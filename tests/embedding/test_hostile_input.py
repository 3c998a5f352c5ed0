"""Every input gives a correct finite result or one clear sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import mercer
from mercer import Cosine, DiffusionMaps, Gaussian, Laplacian, Linear, Matern, SDPEmbedding, Sigmoid
from mercer.embedding.degeneracy import RankWarning
from mercer.operators.diffusion import DegenerateKernelError

_BOTH = pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((60, 3))


def _check(model, X, error=1e-5):
    """What every fitted model owes: finite coordinates that transform reproduces, and a proof where there is one."""
    assert np.isfinite(model.embedding_).all()
    assert (
        np.abs(model.transform(np.array(X, copy=True)) - model.embedding_).max()
        <= error * np.abs(model.embedding_).max()
    )
    if isinstance(model, SDPEmbedding):
        assert model.certificate_.holds(1e-6)
        np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-9)


# --- data ---------------------------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "contains NaN"), (np.inf, "contains infinity"), (-np.inf, "contains infinity")]
)
def test_not_finite(Estimator, X, value, message):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=message):
        Estimator().fit(bad)
    with pytest.raises(ValueError, match=message):
        Estimator(random_state=0).fit(X).transform(bad)


@_BOTH
def test_one_point(Estimator, X):
    with pytest.raises(ValueError, match="1 sample.* minimum of 2 is required"):
        Estimator().fit(X[:1])


@_BOTH
def test_two_points(Estimator, X):
    model = Estimator(Gaussian(), n_components=1, random_state=0).fit(X[:2])
    _check(model, X[:2])
    assert model.embedding_.shape == (2, 1)
    assert model.embedding_[0] == pytest.approx(-model.embedding_[1])


@_BOTH
@pytest.mark.parametrize("value", [0.0, 0.1, 1e-300, 1e300])
def test_all_points_equal(Estimator, X, value):
    with pytest.raises(
        ValueError, match="All points are equal, so sigma cannot be chosen from the data: pass a number"
    ):
        Estimator(Gaussian()).fit(np.full((5, 2), value))
    with pytest.raises(DegenerateKernelError, match="All points are equal: there is nothing to embed"):
        Estimator(Gaussian(sigma=1.0)).fit(np.full((5, 2), value))


@_BOTH
@pytest.mark.parametrize(
    "kernel", [Gaussian(), Gaussian(sigma=1.0), Laplacian(sigma=1.0), Matern(nu=0.5, length_scale=1.0)]
)
def test_many_duplicates(Estimator, X, kernel):
    places = np.repeat(X[:4], [40, 1, 20, 5], axis=0)
    model = Estimator(kernel, n_components=1, random_state=0).fit(places)
    _check_finite_and_grouped(model, places)


def _check_finite_and_grouped(model, places):
    assert np.isfinite(model.embedding_).all()
    for place in np.unique(places, axis=0):
        same = np.all(places == place, axis=1)
        assert np.ptp(model.embedding_[same], axis=0).max() < 1e-5 * np.abs(model.embedding_).max()


@_BOTH
def test_two_places(Estimator, X):
    model = Estimator(Gaussian(), n_components=1, random_state=0).fit(np.repeat(X[:2], 30, axis=0))
    _check(model, np.repeat(X[:2], 30, axis=0))
    assert np.sign(model.embedding_[0, 0]) != np.sign(model.embedding_[-1, 0])  # the two places lie apart


@_BOTH
def test_one_column_that_is_constant(Estimator, X):
    constant = np.column_stack([X, np.full(len(X), 1e9)])
    model, reference = (Estimator(Gaussian(sigma=2.0), random_state=0).fit(data) for data in (constant, X))
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-6)


@_BOTH
@pytest.mark.parametrize("factor", [1e300, 1e200, 1e-200, 1e-300])
def test_units(Estimator, X, factor):
    """The bandwidth is taken from the data: units do not matter, even absurd ones."""
    reference = Estimator(Gaussian(), random_state=0).fit(X)
    with np.errstate(all="raise", under="ignore"):
        model = Estimator(Gaussian(), random_state=0).fit(factor * X)
        out = model.transform(factor * (X + 0.1))
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-7)
    np.testing.assert_allclose(out, reference.transform(X + 0.1), atol=1e-6)


@_BOTH
def test_offset(Estimator, X):
    model = Estimator(Gaussian(), random_state=0).fit(X + 1e6)
    np.testing.assert_allclose(model.embedding_, Estimator(Gaussian(), random_state=0).fit(X).embedding_, atol=1e-5)


@_BOTH
@pytest.mark.parametrize("distance", [1e6, 1e12, 1e150])
def test_one_point_far_away(Estimator, X, distance):
    """It is isolated: it keeps to itself, and the others are embedded as they should."""
    data = np.vstack([X, [[distance, 0.0, 0.0]]])
    model = Estimator(Gaussian(sigma=1.0), random_state=0).fit(data)
    _check(model, data)
    default = Estimator(Gaussian(), random_state=0).fit(data)
    _check(default, data)
    assert len(model.embedding_) == len(default.embedding_) == len(data)


@_BOTH
def test_wrong_number_of_columns(Estimator, X):
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3 features"):
        Estimator(random_state=0).fit(X).transform(X[:, :2])


@_BOTH
def test_not_fitted(Estimator, X):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Estimator().transform(X)
    if Estimator is SDPEmbedding:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            Estimator().novelty(X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            Estimator().learned_kernel(X)


@_BOTH
def test_failed_fit_leaves_no_fitted_model(Estimator, X):
    model = Estimator(Gaussian(sigma=1e-9))
    with pytest.raises(ValueError, match="isolated"):
        model.fit(X)
    assert not hasattr(model, "embedding_")


@_BOTH
def test_sparse(Estimator, X):
    with pytest.raises(TypeError, match="Sparse data was passed.* dense data is required"):
        Estimator().fit(sparse.csr_matrix(X))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Estimator(random_state=0).fit(X).transform(sparse.csr_matrix(X))


@_BOTH
def test_strings(Estimator):
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        Estimator().fit([["a", "b"], ["c", "d"]])


@_BOTH
def test_numbers_as_strings(Estimator, X):
    np.testing.assert_allclose(
        Estimator(Gaussian(), random_state=0).fit(X.astype(str).astype(object)).embedding_,
        Estimator(Gaussian(), random_state=0).fit(X).embedding_,
        atol=1e-9,
    )


@_BOTH
def test_complex(Estimator, X):
    with pytest.raises(ValueError, match="Complex data not supported"):
        Estimator().fit(X + 1j)


@_BOTH
def test_wrong_dimensions(Estimator, X):
    with pytest.raises(ValueError, match="Found array with dim 3"):
        Estimator().fit(X[:, :, None])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        Estimator().fit(X[:, 0])
    with pytest.raises(ValueError, match="Expected 2D array, got scalar array instead"):
        Estimator().fit(3.0)


@_BOTH
def test_empty(Estimator, X):
    with pytest.raises(ValueError, match="0 sample"):
        Estimator().fit(X[:0])
    with pytest.raises(ValueError, match="0 feature"):
        Estimator().fit(X[:, :0])
    with pytest.raises(ValueError, match="0 sample"):
        Estimator(random_state=0).fit(X).transform(X[:0])


# --- kernels ------------------------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (0, "sigma=0 must be greater than 0"),
        (-1.0, "sigma=-1.0 must be greater than 0"),
        (np.nan, "sigma=nan must be a finite number"),
        (np.inf, "sigma=inf must be a finite number"),
        (None, "sigma=None must be a finite number"),
        ([1.0], r"sigma has 1 numbers, but the points have 3 columns: give one for each\."),
        ("mean", "sigma='mean' must be a positive number or one of 'median', 'slope'"),
    ],
)
def test_sigma_that_is_no_bandwidth(Estimator, X, sigma, message):
    for kernel in (Gaussian(sigma), Laplacian(sigma), 2.0 * Gaussian(sigma) + Laplacian(sigma=1.0)):
        with pytest.raises(ValueError, match=message):
            Estimator(kernel).fit(X)


@_BOTH
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(sigma=1e9), Gaussian(sigma=1e300), Laplacian(sigma=1e17), Matern(nu=1.5, length_scale=1e12)],
    ids=repr,
)
def test_kernel_that_is_constant_in_floating_point(Estimator, X, kernel):
    with pytest.raises(DegenerateKernelError, match="All points look alike under .* Choose a smaller bandwidth"):
        Estimator(kernel).fit(X)


@_BOTH
def test_kernel_that_is_almost_constant(Estimator, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Estimator(Gaussian(sigma=2e5), random_state=0, n_components=1).fit(X)
    assert any("All points look nearly alike under Gaussian(sigma=200000.0)" in str(w.message) for w in caught)
    assert np.isfinite(model.embedding_).all()
    if isinstance(model, SDPEmbedding):  # no more is claimed than is known
        assert model.certificate_.relative_gap > 1e-6
        assert any(isinstance(w.message, ConvergenceWarning) for w in caught)


@_BOTH
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(sigma=1e-9), Gaussian(sigma=5e-324), Laplacian(sigma=1e-6), Matern(nu=1.5, length_scale=1e-300)],
    ids=repr,
)
def test_kernel_under_which_every_point_is_isolated(Estimator, X, kernel):
    with pytest.raises(DegenerateKernelError, match="Every point is isolated under .* choose a larger bandwidth"):
        Estimator(kernel).fit(X)


@_BOTH
@pytest.mark.parametrize("kernel", [3, lambda a, b: 0.0, {"sigma": 1.0}])
def test_kernel_that_is_none(Estimator, X, kernel):
    with pytest.raises(TypeError, match="must be a kernel of mercer.kernels, such as Gaussian"):
        Estimator(kernel).fit(X)


@_BOTH
@pytest.mark.parametrize("kernel", [Linear(), Cosine()], ids=repr)
def test_row_sums_that_are_not_positive(Estimator, X, kernel):
    with pytest.raises(DegenerateKernelError, match="Row .* of the kernel matrix sums to .* positive row sums"):
        Estimator(kernel).fit(X - X.mean(axis=0))


@_BOTH
def test_indefinite_kernel(Estimator, X):
    model = Estimator(Sigmoid(coef0=1.0), random_state=0).fit(0.3 * X)
    assert np.isfinite(model.embedding_).all()
    if isinstance(model, SDPEmbedding):
        assert model.certificate_.holds(1e-6)


# --- parameters ---------------------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, np.nan])
def test_n_components_that_is_no_count(Estimator, X, value):
    with pytest.raises(ValueError, match="n_components=.* must be a whole number of at least 1"):
        Estimator(n_components=value).fit(X)


@_BOTH
def test_more_components_than_dimensions(Estimator, X):
    one = {"n_levels": 1} if Estimator is SDPEmbedding else {}
    with pytest.warns(RankWarning, match="n_components=100 exceeds the number of dimensions, .* are zero") as caught:
        model = Estimator(Gaussian(), n_components=100, random_state=0, **one).fit(X)
    assert len(caught) == 1
    assert model.embedding_.shape == (60, 100)
    dimensions = model.rank_ if Estimator is SDPEmbedding else 59
    assert np.all(model.embedding_[:, dimensions:] == 0)
    assert np.all(model.embedding_[:, :dimensions].any(axis=0))
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-5)
    assert len(model.get_feature_names_out()) == 100


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("solver", ("newton", None, ["auto"], 3), "must be one of 'auto', 'power', 'accelerated'"),
        ("radius", ("free", None, 1.0), "must be one of 'capped', 'paper'"),
        ("tol", (0, 1, -1e-6, np.nan, "small", True, None), "must lie strictly between 0 and 1"),
        ("residual_tol", (0, 2.0, np.inf), "must lie strictly between 0 and 1"),
        ("rank_tol", (0, 1.0, "x"), "must lie strictly between 0 and 1"),
        ("initial_rank", (0, -3, 2.5, "10", True), "must be a whole number of at least 1"),
        ("max_iter", (0, -3, 2.5, None), "must be a whole number of at least 1"),
    ],
)
def test_parameters_of_the_sdp(X, name, values, message):
    for value in values:
        with pytest.raises(ValueError, match=message) as caught:
            SDPEmbedding(**{name: value}).fit(X)
        assert str(caught.value).startswith(f"{name}={value!r} ")


def test_callback_that_cannot_be_called(X):
    with pytest.raises(TypeError, match="callback=3 must be a function"):
        SDPEmbedding(callback=3).fit(X)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("time", -1, "time=-1 must be at least 0"),
        ("time", np.nan, "time=nan must be a finite number"),
        ("time", "1", "time='1' must be a finite number"),
        ("alpha", -0.5, "alpha=-0.5 must be at least 0"),
        ("alpha", np.inf, "alpha=inf must be a finite number"),
    ],
)
def test_parameters_of_diffusion_maps(X, name, value, message):
    with pytest.raises(ValueError, match=message):
        DiffusionMaps(**{name: value}).fit(X)


@_BOTH
@pytest.mark.parametrize("state", ["x", -1, 1.5])
def test_random_state_that_is_none(Estimator, X, state):
    with pytest.raises(ValueError, match="random_state=.* must be None, a whole number"):
        Estimator(random_state=state).fit(X)


def test_initial_rank_beyond_the_number_of_points(X):
    model = SDPEmbedding(Gaussian(), initial_rank=1000, random_state=0).fit(X[:20])
    _check(model, X[:20])
    assert model.rank_ <= 20
    assert model.certificate_.holds(1e-6)


# --- arithmetic ---------------------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(sigma=2.0), Laplacian(sigma=3.0)], ids=repr)
def test_single_precision(Estimator, X, kernel):
    reference = Estimator(kernel, random_state=0).fit(X)
    with mercer.config_context(dtype="float32"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tolerances lie at the edge of this arithmetic
        model = Estimator(kernel, random_state=0).fit(X)
        out = model.transform(X + 0.1)
    scale = np.abs(reference.embedding_).max()
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-3 * scale)
    np.testing.assert_allclose(out, reference.transform(X + 0.1), atol=1e-3 * scale)


@_BOTH
def test_single_precision_data_in_double_precision_arithmetic(Estimator, X):
    model = Estimator(Gaussian(), random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(model.embedding_, Estimator(Gaussian(), random_state=0).fit(X).embedding_, atol=1e-4)


@_BOTH
def test_small_memory(Estimator, X):
    with mercer.config_context(memory_limit="10 kB"):
        model = Estimator(Gaussian(sigma=2.0), random_state=0).fit(X)
    np.testing.assert_allclose(
        model.embedding_, Estimator(Gaussian(sigma=2.0), random_state=0).fit(X).embedding_, atol=1e-5
    )


@_BOTH
@pytest.mark.parametrize("copies", [1, 3])
def test_repeated_rows_do_not_hide_that_all_points_are_isolated(Estimator, X, copies):
    data = np.vstack([X, np.repeat(X[:1], copies, axis=0)])
    with pytest.raises(ValueError, match="Every point is isolated"):
        Estimator(Gaussian(sigma=1e-4), random_state=0).fit(data)
