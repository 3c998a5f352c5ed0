"""The cases of the conformance suite: give an operator and its matrix, get every test of ``test_operator_conformance``.

A case is two factories. ``make`` builds the operator afresh, so that nothing of it is stored yet; ``dense`` writes the
same matrix down from formulas of the papers with NumPy and scikit-learn alone. To test a new operator, add a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import KernelCenterer
from threadpoolctl import threadpool_limits

from mercer import (
    CenteredOperator,
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    LowRankOperator,
    NormalizedOperator,
    Polynomial,
    Precomputed,
    nystrom,
    rp_cholesky,
)
from mercer.operators import RankOneUpdate

# A little more than one tile a side, which is 320 in float64 and 512 in float32.
N, M, N32, FEATURES = 350, 330, 530, 3
SIGMA = 1.7
_rng = np.random.default_rng(20240229)
X32 = _rng.normal(size=(N32, FEATURES)).astype(np.float32)
Y32 = _rng.normal(size=(M, FEATURES)).astype(np.float32)
X, Y = X32[:N].astype(np.float64), Y32.astype(np.float64)
W32 = _rng.uniform(0.2, 3.0, N32)
W32[7] = 0.0
W = W32[:N]
W_COLUMNS = _rng.uniform(0.2, 3.0, M)
LANDMARKS = _rng.permutation(N)[:25]
F, G = _rng.normal(size=(N, 6)), _rng.normal(size=(M, 6))

Matrix = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Case:
    """An operator, its matrix, and whether the operator should know that it is symmetric."""

    make: Callable[[], Any]
    dense: Callable[[], Matrix]
    symmetric: bool = True
    dtype: str = "float64"


# --- matrices by formula ------------------------------------------------------------------------------------


def gaussian(x: Any, y: Any = None) -> Matrix:
    x, y = np.asarray(x, np.float64), None if y is None else np.asarray(y, np.float64)
    return rbf_kernel(x, y, gamma=1 / SIGMA**2)


def polynomial(x: Any, y: Any = None) -> Matrix:
    return polynomial_kernel(x, y, degree=2, gamma=0.5, coef0=1.0)


def composite(x: Any, y: Any = None) -> Matrix:
    return 0.5 * gaussian(x, y) * polynomial(x, y) + laplacian_kernel(x, y, gamma=0.5) ** 2


def thresholded() -> Matrix:
    k = gaussian(X)
    return np.where(k > 0.6, k, 0.0)


def diffusion(k: Matrix, w: Any = None, alpha: float = 0.0, deflate: bool = True) -> Matrix:
    """Section 2 of the mathematics: W^½ (A - v₀v₀ᵀ) W^½, the kernel first divided by q^α q^α."""
    w = np.ones(len(k)) if w is None else np.asarray(w, np.float64)
    q = k @ w
    k = k / np.outer(q**alpha, q**alpha)
    m = k @ w
    a = np.diag(m**-0.5) @ k @ np.diag(m**-0.5)
    v0 = np.sqrt(m / (w @ m))
    a_bar = a - np.outer(v0, v0) if deflate else a
    return np.diag(np.sqrt(w)) @ a_bar @ np.diag(np.sqrt(w))


def centred(k: Matrix, k_new: Matrix | None = None) -> Matrix:
    return KernelCenterer().fit(k).transform(k if k_new is None else k_new)


def power_mean(a: Any, b: Any, order: float) -> Any:
    return np.sqrt(a * b) if order == 0 else ((a**order + b**order) / 2) ** (1 / order)


def normalised(k: Matrix, rows: Any, cols: Any, order: float) -> Matrix:
    return k / power_mean(rows[:, None], cols[None, :], order)


def completed(k: Matrix, landmarks: Any) -> Matrix:
    return k[:, landmarks] @ np.linalg.pinv(k[np.ix_(landmarks, landmarks)], hermitian=True) @ k[landmarks]


# --- the cases ----------------------------------------------------------------------------------------------

_gauss, _poly = Gaussian(sigma=SIGMA), Polynomial(degree=2, gamma=0.5)
_mixed = 0.5 * _gauss * _poly + Laplacian(sigma=2.0) ** 2
_rough = Laplacian(sigma=3.0)


def _rough_matrix() -> Matrix:
    return laplacian_kernel(X, gamma=1 / 3)


def _square(points: Any = X, **options: Any) -> GramOperator:
    return GramOperator(_gauss, points, **options)


def _poly_diagonal(points: Any) -> Matrix:
    return np.diag(polynomial(points))


TRANSPOSED = (  # one of each kind that is not its own transpose
    "gram of two sets",
    "float32 gram with float64 weights",
    "precomputed sparse matrix, float32, weighted",
    "centred, new points",
    "normalised, order 0, two sets",
    "normalised, order 2.5, two sets",
    "low rank of two factors",
)


def _build_cases() -> dict[str, Case]:
    cases = {
        "gram": Case(_square, lambda: gaussian(X)),
        "gram of two sets": Case(lambda: GramOperator(_gauss, X, Y), lambda: gaussian(X, Y), symmetric=False),
        "square gram of two sets": Case(
            lambda: GramOperator(_gauss, X[:M], Y), lambda: gaussian(X[:M], Y), symmetric=False
        ),
        "weighted gram": Case(lambda: _square(weights=W), lambda: gaussian(X) * W, symmetric=False),
        "weighted gram of two sets": Case(
            lambda: GramOperator(_gauss, X, Y, weights=W_COLUMNS), lambda: gaussian(X, Y) * W_COLUMNS, symmetric=False
        ),
        "float32 gram": Case(lambda: _square(X32), lambda: gaussian(X32), dtype="float32"),
        "float32 gram of two sets": Case(
            lambda: GramOperator(_gauss, X32, Y32), lambda: gaussian(X32, Y32), symmetric=False, dtype="float32"
        ),
        "float32 gram with float64 weights": Case(
            lambda: _square(X32, weights=W32), lambda: gaussian(X32) * W32, symmetric=False, dtype="float32"
        ),
        "precomputed dense": Case(lambda: GramOperator(Precomputed(), gaussian(X)), lambda: gaussian(X)),
        "precomputed sparse": Case(
            lambda: GramOperator(Precomputed(), scipy.sparse.csr_array(thresholded())), thresholded
        ),
        "precomputed sparse matrix, float32, weighted": Case(
            lambda: GramOperator(Precomputed(), scipy.sparse.coo_matrix(thresholded().astype(np.float32)), weights=W),
            lambda: thresholded() * W,
            symmetric=False,
            dtype="float32",
        ),
        "precomputed block": Case(
            lambda: GramOperator(Precomputed(), gaussian(Y, X), gaussian(X)), lambda: gaussian(Y, X), symmetric=False
        ),
        "composite kernel": Case(lambda: GramOperator(_mixed, X), lambda: composite(X)),
        "composite kernel of two sets": Case(
            lambda: GramOperator(_mixed, X, Y), lambda: composite(X, Y), symmetric=False
        ),
        "one point": Case(lambda: _square(X[:1]), lambda: np.ones((1, 1))),
        "centred": Case(lambda: CenteredOperator(_square()), lambda: centred(gaussian(X))),
        "centred, new points": Case(
            lambda: CenteredOperator(GramOperator(_gauss, Y, X), reference=CenteredOperator(_square())),
            lambda: centred(gaussian(X), gaussian(Y, X)),
            symmetric=False,
        ),
        "float32 centred": Case(
            lambda: CenteredOperator(_square(X32)), lambda: centred(gaussian(X32)), dtype="float32"
        ),
        "float32 centred, new points, float64 reference": Case(
            lambda: CenteredOperator(GramOperator(_gauss, Y32, X32[:N]), reference=CenteredOperator(_square())),
            lambda: centred(gaussian(X), gaussian(Y32, X)),
            symmetric=False,
            dtype="float32",
        ),
        "centred, normalised": Case(
            lambda: CenteredOperator(NormalizedOperator(GramOperator(_poly, X), 1.0)),
            lambda: centred(normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), 1.0)),
        ),
        "float32 normalised": Case(
            lambda: NormalizedOperator(GramOperator(_poly, X32[:N]), 2.5),
            lambda: normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), 2.5),
            dtype="float32",
        ),
        "rank-one update": Case(
            lambda: RankOneUpdate(_square(), F[:, 0], -0.5), lambda: gaussian(X) - 0.5 * np.outer(F[:, 0], F[:, 0])
        ),
        "float32 rank-one update of a low rank": Case(
            lambda: RankOneUpdate(LowRankOperator(F.astype(np.float32)), F[:, 1], 2.0),
            lambda: F @ F.T + 2 * np.outer(F[:, 1], F[:, 1]),
            dtype="float32",
        ),
        "low rank": Case(lambda: LowRankOperator(F), lambda: F @ F.T),
        "low rank of two factors": Case(lambda: LowRankOperator(F, G), lambda: F @ G.T, symmetric=False),
        "square low rank of two factors": Case(lambda: LowRankOperator(F[:M], G), lambda: F[:M] @ G.T, symmetric=False),
        "float32 low rank": Case(lambda: LowRankOperator(F.astype(np.float32)), lambda: F @ F.T, dtype="float32"),
        "randomly pivoted Cholesky": Case(
            lambda: rp_cholesky(GramOperator(_rough, X), 70, random_state=3),
            lambda: completed(_rough_matrix(), rp_cholesky(GramOperator(_rough, X), 70, random_state=3).landmarks),
        ),
        "Nyström": Case(
            lambda: nystrom(GramOperator(_rough, X), LANDMARKS), lambda: completed(_rough_matrix(), LANDMARKS)
        ),
    }
    for weights, name in ((None, "diffusion"), (W, "weighted diffusion")):
        for alpha in (0.0, 0.5, 1.0):
            for deflate in (True, False):
                cases[f"{name}, alpha {alpha}, {'deflated' if deflate else 'whole'}"] = Case(
                    lambda w=weights, a=alpha, d=deflate: DiffusionOperator(_square(weights=w), alpha=a, deflate=d),
                    lambda w=weights, a=alpha, d=deflate: diffusion(gaussian(X), w, a, d),
                )
    cases["float32 diffusion"] = Case(
        lambda: DiffusionOperator(_square(X32, weights=W32), alpha=np.float64(0.5)),
        lambda: diffusion(gaussian(X32), W32, 0.5),
        dtype="float32",
    )
    for order in (0, 1, 2.5):
        cases[f"normalised, order {order}"] = Case(
            lambda t=order: NormalizedOperator(GramOperator(_poly, X), t),
            lambda t=order: normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), t),
        )
        cases[f"normalised, order {order}, two sets"] = Case(
            lambda t=order: NormalizedOperator(GramOperator(_poly, X, Y), t),
            lambda t=order: normalised(polynomial(X, Y), _poly_diagonal(X), _poly_diagonal(Y), t),
            symmetric=False,
        )
    for name in TRANSPOSED:
        case = cases[name]
        cases[f"{name}, transposed"] = Case(
            lambda c=case: c.make().T, lambda c=case: c.dense().T, symmetric=False, dtype=case.dtype
        )
    return cases


CASES = _build_cases()


@pytest.fixture(autouse=True, scope="module")
def _quiet_blas() -> Iterator[None]:
    """The references here are small: BLAS threads would only wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(params=CASES, scope="session")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="session")
def matrix(case: Case) -> Matrix:
    """What the operator says its matrix is, in double precision."""
    return case.make().to_dense().astype(np.float64)


@pytest.fixture
def operator(case: Case) -> Any:
    return case.make()
