"""One clear sentence for every bad parameter and every bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mercer.kernels import (
    ChiSquared,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
    Sobolev,
)

X = np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 1.0]])
NONNEGATIVE = abs(X)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Gaussian(-1.0), r"sigma=-1\.0 must be greater than 0\."),
        (Gaussian(0), r"sigma=0 must be greater than 0\."),
        (Gaussian(np.nan), r"sigma=nan must be a finite number\."),
        (Gaussian(np.inf), r"sigma=inf must be a finite number\."),
        (Gaussian(None), r"sigma=None must be a finite number\."),
        (Gaussian(True), r"sigma=True must be a finite number\."),
        (Gaussian([[1.0], [2.0]]), r"sigma has 2 numbers|sigma\[0\]=\[1\.0\] must be a finite number\."),
        (Gaussian("wide"), r"sigma='wide' must be a positive number or one of 'median', 'slope', 'columns'\."),
        (Laplacian(-2), r"sigma=-2 must be greater than 0\."),
        (Laplacian("2.0"), r"sigma='2\.0' must be a positive number or one of"),
        (Matern(0, 1.0), r"nu=0 must be greater than 0\."),
        (Matern(-0.5, 1.0), r"nu=-0\.5 must be greater than 0\."),
        (Matern(np.nan, 1.0), r"nu=nan must be a finite number\."),
        (Matern(-np.inf, 1.0), r"nu=-inf must be a finite number\."),
        (Matern("1.5", 1.0), r"nu='1\.5' must be a finite number\."),
        (Matern(1.5, 0.0), r"length_scale=0\.0 must be greater than 0\."),
        (Sobolev(1.0, 1.0), r"smoothness=1 must exceed half the number of features, 1: functions .* no kernel\."),
        (Sobolev(0.3, 1.0), r"smoothness=0\.3 must exceed half the number of features, 1"),
        (Sobolev(-3, 1.0), r"smoothness=-3 must be greater than 0\."),
        (Sobolev(4, "short"), r"length_scale='short' must be a positive number or one of"),
        (Polynomial(0), r"degree=0 must be greater than 0\."),
        (Polynomial(-2), r"degree=-2 must be greater than 0\."),
        (Polynomial("3"), r"degree='3' must be a finite number\."),
        (Polynomial(2, gamma=-1), r"gamma=-1 must be greater than 0\."),
        (Polynomial(2, coef0=np.nan), r"coef0=nan must be a finite number\."),
        (Polynomial(2, coef0="1"), r"coef0='1' must be a finite number\."),
        (Sigmoid(0.0), r"gamma=0\.0 must be greater than 0\."),
        (Sigmoid(1.0, None), r"coef0=None must be a finite number\."),
        (ChiSquared(0), r"gamma=0 must be greater than 0\."),
        (ChiSquared(np.inf), r"gamma=inf must be a finite number\."),
        (-1 * Linear(), r"factor=-1 must be greater than 0\."),
        (0 * Linear(), r"factor=0 must be greater than 0\."),
        ("x" * Linear(), r"factor='x' must be a finite number\."),
        (Linear() ** 0, r"exponent=0 must be greater than 0\."),
        (Linear() ** -1, r"exponent=-1 must be greater than 0\."),
        (Gaussian(1.0) ** np.nan, r"exponent=nan must be a finite number\."),
        (Linear() ** 0.5, r"exponent=0\.5 must be a whole number: Linear\(\) can be negative\."),
        ((Gaussian(1.0) + Cosine()) ** 1.5, r"exponent=1\.5 must be a whole number: Sum\(.*\) can be negative\."),
        (Sigmoid(1.0, -5.0).normalized(), r"A kernel with a negative k\(x, x\) cannot be normalised\."),
        (Gaussian(1.0) + Gaussian(-1.0), r"sigma=-1\.0 must be greater than 0\."),
    ],
    ids=str,
)
def test_bad_parameters(kernel, sentence):
    for use in (kernel, kernel.log, lambda X: kernel(X, X + 1), lambda X: kernel.resolve(X)(X)):
        with pytest.raises(ValueError, match=sentence):
            use(NONNEGATIVE)


def test_a_fractional_degree_needs_data_that_allow_it():
    assert np.all(np.isfinite(Polynomial(1.5, coef0=0.0)(NONNEGATIVE)))
    for n in (3, 900):  # on one thread and on several
        with pytest.raises(ValueError, match=r"degree=1\.5 must be a whole number: .* is negative on this data\."):
            Polynomial(1.5, coef0=0.0)(np.resize(X, (n, 2)))


def test_numpy_numbers_are_numbers():
    assert np.array_equal(Gaussian(np.float32(2.0))(X), Gaussian(2)(X))
    assert np.array_equal((Linear() ** np.int64(2))(X), Linear()(X) ** 2)
    assert np.array_equal((np.float64(2) * Linear())(X), 2 * Linear()(X))


NAN, INF = X.copy(), X.copy()
NAN[1, 0], INF[2, 1] = np.nan, -np.inf

BAD_POINTS = [
    (NAN, ValueError, r"has nan in row 1, column 0: remove or impute it first\."),
    (INF, ValueError, r"has -inf in row 2, column 1: remove or impute it first\."),
    (INF.astype(np.float32), ValueError, r"has -inf in row 2, column 1"),
    ([["a", "b"]], ValueError, r"must hold numbers, not <U1: could not convert"),
    (np.array([[1.0, None]]), ValueError, r"has nan in row 0, column 1"),
    (np.array([[1.0, "x"]], object), ValueError, r"must hold numbers, not object"),
    (X + 1j, ValueError, r"Complex data not supported: . must be real\."),
    (np.ones((2, 2, 2)), ValueError, r"must be 2-dimensional, not 3-dimensional\. Rows are points\."),
    (
        np.ones(2),
        ValueError,
        r"must be 2-dimensional, not 1-dimensional\. Reshape a single feature with \.reshape\(-1, 1\)\.",
    ),
    (3.0, ValueError, r"must be 2-dimensional, not 0-dimensional\."),
    ([[1.0, 2.0], [3.0]], ValueError, r"must be a table of numbers whose rows are equally long\."),
    (np.empty((3, 0)), ValueError, r"has no columns: a point needs at least one feature\."),
    (
        scipy.sparse.eye_array(2, format="csr"),
        TypeError,
        r"is a sparse matrix: pass a dense array, or .* Precomputed\(\)\.",
    ),
]


@pytest.mark.parametrize(("bad", "error", "sentence"), BAD_POINTS, ids=[case[2][:25] for case in BAD_POINTS])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.0), Matern(0.5, 1.0), Linear(), Cosine(), ChiSquared(), Linear() + 2 * Gaussian(1.0)],
    ids=repr,
)
def test_bad_points(kernel, bad, error, sentence):
    good = np.ones((2, 2))
    for use in (kernel, kernel.diag, kernel.log, lambda bad: kernel(bad, good)):
        with pytest.raises(error, match=f"X {sentence}" if sentence[0] != "C" else sentence):
            use(bad)
    with pytest.raises(error, match=f"Y {sentence}" if sentence[0] != "C" else sentence):
        kernel(good, bad)


def test_features_must_agree(kernel):
    with pytest.raises(ValueError, match=r"X has 2 features and Y has 3: they must agree\."):
        kernel(np.ones((2, 2)), np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"X has 2 features and Y has 3: they must agree\."):
        kernel.log(np.ones((2, 2)), np.ones((4, 3)))


def test_no_points_give_an_empty_block(kernel, dtype):
    none, some = np.empty((0, 3), dtype), np.ones((4, 3), dtype)
    for block, shape in (
        (kernel(none), (0, 0)),
        (kernel(none, some), (0, 4)),
        (kernel(some, none), (4, 0)),
        (kernel.diag(none), (0,)),
        (kernel.log(none), (0, 0)),
        (kernel.log(none, some), (0, 4)),
    ):
        assert block.shape == shape
        assert block.dtype == dtype


@pytest.mark.parametrize(
    "kernel",
    [ChiSquared(), ChiSquared() + Linear(), 2 * ChiSquared() ** 2, Gaussian(1.0) * ChiSquared().normalized()],
    ids=repr,
)
def test_chi_squared_refuses_negative_data_wherever_it_stands(kernel):
    good = np.ones((2, 2))
    for use in (kernel, kernel.diag, kernel.log, lambda X: kernel(X, good)):
        with pytest.raises(
            ValueError, match=r"X is negative in row 1, column 1: the chi-squared kernel takes data ≥ 0"
        ):
            use(X)
    with pytest.raises(ValueError, match=r"Y is negative in row 1, column 1"):
        kernel(good, X)


def test_zero_is_not_negative():
    assert ChiSquared()(np.array([[-0.0, 0.0]]))[0, 0] == 1


def test_missing_rows_are_not_blamed_on_the_user_of_precomputed():
    with pytest.raises(ValueError, match="has no columns"):
        Precomputed()(np.empty((0, 0)))
