"""The cases of the conformance suite: give an operator and its matrix, get every test of ``test_operator_conformance``.

A case is two factories. ``make`` builds the operator afresh, so that nothing of it is stored yet, from arrays that it
brings to the library under test with ``to``; ``dense`` writes the same matrix down from formulas of the papers with
NumPy and scikit-learn alone. To test a new operator, add a case. Every case runs on NumPy arrays and on tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
from mercer.backends.arrays import dtype_name, is_tensor, to_numpy
from mercer.operators import ProjectedOperator, RankOneUpdate, SplitOperator

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

    build: Callable[[Callable[[Any], Any]], Any]
    dense: Callable[[], Matrix]
    symmetric: bool = True
    dtype: str = "float64"
    library: str = "numpy"

    def make(self) -> Any:
        return self.build(LIBRARIES[self.library])

    def same(self, array: Any) -> bool:
        """Whether an array is of the library and the precision of the case."""
        return is_tensor(array) == (self.library == "torch") and dtype_name(array.dtype) == self.dtype


def to_tensor(array: Any) -> Any:
    torch = pytest.importorskip("torch")
    if not hasattr(array, "tocsr"):
        return torch.as_tensor(array)
    matrix = array.tocsr()
    with warnings.catch_warnings():  # torch warns once a process that its sparse rows are young
        warnings.simplefilter("ignore")
        parts = (torch.as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, matrix.shape)


LIBRARIES = {"numpy": lambda array: array, "torch": to_tensor}


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


def weighted_centred(k: Matrix, w: Any, k_new: Matrix | None = None) -> Matrix:
    """W^½ K̆ W^½ with the weighted mean removed, K̆_t W^½ of new points: in features, φ - Σ pⱼφⱼ on both sides."""
    n, p, root = len(k), w / w.sum(), np.sqrt(w)
    h = np.eye(n) - np.outer(np.ones(n), p)
    if k_new is None:
        return root[:, None] * (h @ k @ h.T) * root
    return (k_new - np.outer(np.ones(len(k_new)), p @ k)) @ h.T * root


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


def _square(to: Any, points: Any = X, weights: Any = None) -> GramOperator:
    return GramOperator(_gauss, to(points), weights=None if weights is None else to(weights))


def _poly_diagonal(points: Any) -> Matrix:
    return np.diag(polynomial(points))


TRANSPOSED = (  # one of each kind that is not its own transpose
    "gram of two sets",
    "float32 gram with float64 weights",
    "precomputed sparse matrix, float32, weighted",
    "centred, new points",
    "centred, weighted, new points",
    "normalised, order 0, two sets",
    "normalised, order 2.5, two sets",
    "low rank of two factors",
)


ON_TENSORS = (  # one of each kind and precision; the others differ in parameters that no library sees
    "gram",
    "square gram of two sets",
    "weighted gram",
    "float32 gram",
    "float32 gram with float64 weights",
    "precomputed dense",
    "precomputed sparse",
    "precomputed sparse matrix, float32, weighted",
    "precomputed block",
    "composite kernel of two sets",
    "one point",
    "centred",
    "centred, weighted",
    "float32 centred, new points, float64 reference",
    "float32 normalised",
    "normalised, order 0",
    "normalised, order 2.5, two sets, transposed",
    "rank-one update",
    "float32 rank-one update of a low rank",
    "low rank of two factors",
    "randomly pivoted Cholesky",
    "Nyström",
    "diffusion, alpha 0.0, deflated",
    "weighted diffusion, alpha 0.5, whole",
    "float32 diffusion",
    "projected weighted diffusion",
    "split float32 diffusion",
    "gram of two sets, transposed",
)


def _build_cases() -> dict[str, Case]:
    cases = {
        "gram": Case(lambda to: _square(to), lambda: gaussian(X)),
        "gram of two sets": Case(
            lambda to: GramOperator(_gauss, to(X), to(Y)), lambda: gaussian(X, Y), symmetric=False
        ),
        "square gram of two sets": Case(
            lambda to: GramOperator(_gauss, to(X[:M]), to(Y)), lambda: gaussian(X[:M], Y), symmetric=False
        ),
        "weighted gram": Case(lambda to: _square(to, weights=W), lambda: gaussian(X) * W, symmetric=False),
        "weighted gram of two sets": Case(
            lambda to: GramOperator(_gauss, to(X), to(Y), weights=W_COLUMNS),
            lambda: gaussian(X, Y) * W_COLUMNS,
            symmetric=False,
        ),
        "float32 gram": Case(lambda to: _square(to, X32), lambda: gaussian(X32), dtype="float32"),
        "float32 gram of two sets": Case(
            lambda to: GramOperator(_gauss, to(X32), to(Y32)),
            lambda: gaussian(X32, Y32),
            symmetric=False,
            dtype="float32",
        ),
        "float32 gram with float64 weights": Case(
            lambda to: _square(to, X32, weights=W32), lambda: gaussian(X32) * W32, symmetric=False, dtype="float32"
        ),
        "precomputed dense": Case(lambda to: GramOperator(Precomputed(), to(gaussian(X))), lambda: gaussian(X)),
        "precomputed sparse": Case(
            lambda to: GramOperator(Precomputed(), to(scipy.sparse.csr_array(thresholded()))), thresholded
        ),
        "precomputed sparse matrix, float32, weighted": Case(
            lambda to: GramOperator(
                Precomputed(), to(scipy.sparse.coo_matrix(thresholded().astype(np.float32))), weights=W
            ),
            lambda: thresholded() * W,
            symmetric=False,
            dtype="float32",
        ),
        "precomputed block": Case(
            lambda to: GramOperator(Precomputed(), to(gaussian(Y, X)), to(gaussian(X))),
            lambda: gaussian(Y, X),
            symmetric=False,
        ),
        "composite kernel": Case(lambda to: GramOperator(_mixed, to(X)), lambda: composite(X)),
        "composite kernel of two sets": Case(
            lambda to: GramOperator(_mixed, to(X), to(Y)), lambda: composite(X, Y), symmetric=False
        ),
        "one point": Case(lambda to: _square(to, X[:1]), lambda: np.ones((1, 1))),
        "centred": Case(lambda to: CenteredOperator(_square(to)), lambda: centred(gaussian(X))),
        "centred, new points": Case(
            lambda to: CenteredOperator(GramOperator(_gauss, to(Y), to(X)), reference=CenteredOperator(_square(to))),
            lambda: centred(gaussian(X), gaussian(Y, X)),
            symmetric=False,
        ),
        "centred, weighted": Case(
            lambda to: CenteredOperator(_square(to), weights=W), lambda: weighted_centred(gaussian(X), W)
        ),
        "centred, weighted, new points": Case(
            lambda to: CenteredOperator(
                GramOperator(_gauss, to(Y), to(X)), reference=CenteredOperator(_square(to), weights=to(W))
            ),
            lambda: weighted_centred(gaussian(X), W, gaussian(Y, X)),
            symmetric=False,
        ),
        "float32 centred": Case(
            lambda to: CenteredOperator(_square(to, X32)), lambda: centred(gaussian(X32)), dtype="float32"
        ),
        "float32 centred, new points, float64 reference": Case(
            lambda to: CenteredOperator(
                GramOperator(_gauss, to(Y32), to(X32[:N])), reference=CenteredOperator(_square(to))
            ),
            lambda: centred(gaussian(X), gaussian(Y32, X)),
            symmetric=False,
            dtype="float32",
        ),
        "centred, normalised": Case(
            lambda to: CenteredOperator(NormalizedOperator(GramOperator(_poly, to(X)), 1.0)),
            lambda: centred(normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), 1.0)),
        ),
        "float32 normalised": Case(
            lambda to: NormalizedOperator(GramOperator(_poly, to(X32[:N])), 2.5),
            lambda: normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), 2.5),
            dtype="float32",
        ),
        "rank-one update": Case(
            lambda to: RankOneUpdate(_square(to), to(F[:, 0]), -0.5),
            lambda: gaussian(X) - 0.5 * np.outer(F[:, 0], F[:, 0]),
        ),
        "float32 rank-one update of a low rank": Case(
            lambda to: RankOneUpdate(LowRankOperator(to(F.astype(np.float32))), F[:, 1], 2.0),
            lambda: F @ F.T + 2 * np.outer(F[:, 1], F[:, 1]),
            dtype="float32",
        ),
        "low rank": Case(lambda to: LowRankOperator(to(F)), lambda: F @ F.T),
        "low rank of two factors": Case(lambda to: LowRankOperator(to(F), to(G)), lambda: F @ G.T, symmetric=False),
        "square low rank of two factors": Case(
            lambda to: LowRankOperator(to(F[:M]), to(G)), lambda: F[:M] @ G.T, symmetric=False
        ),
        "float32 low rank": Case(
            lambda to: LowRankOperator(to(F.astype(np.float32))), lambda: F @ F.T, dtype="float32"
        ),
        "randomly pivoted Cholesky": Case(
            lambda to: rp_cholesky(GramOperator(_rough, to(X)), 70, random_state=3),
            lambda: completed(_rough_matrix(), rp_cholesky(GramOperator(_rough, X), 70, random_state=3).landmarks),
        ),
        "Nyström": Case(
            lambda to: nystrom(GramOperator(_rough, to(X)), LANDMARKS), lambda: completed(_rough_matrix(), LANDMARKS)
        ),
    }
    for weights, name in ((None, "diffusion"), (W, "weighted diffusion")):
        for alpha in (0.0, 0.5, 1.0):
            for deflate in (True, False):
                cases[f"{name}, alpha {alpha}, {'deflated' if deflate else 'whole'}"] = Case(
                    lambda to, w=weights, a=alpha, d=deflate: DiffusionOperator(
                        _square(to, weights=w), alpha=a, deflate=d
                    ),
                    lambda w=weights, a=alpha, d=deflate: diffusion(gaussian(X), w, a, d),
                )
    cases["float32 diffusion"] = Case(
        lambda to: DiffusionOperator(_square(to, X32, weights=W32), alpha=np.float64(0.5)),
        lambda: diffusion(gaussian(X32), W32, 0.5),
        dtype="float32",
    )
    basis = np.linalg.qr(F)[0]
    outside = np.eye(N) - basis @ basis.T
    cases["projected weighted diffusion"] = Case(
        lambda to: ProjectedOperator(DiffusionOperator(_square(to, weights=W)), to(basis)),
        lambda: outside @ diffusion(gaussian(X), W) @ outside,
    )
    halves = np.array([3, 340, 11])
    spread = np.vstack([np.eye(N), np.eye(N)[halves]])
    spread[np.isin(np.append(np.arange(N), halves), halves)] /= 2
    cases["split weighted diffusion"] = Case(
        lambda to: SplitOperator(DiffusionOperator(_square(to, weights=W)), to(halves)),
        lambda: spread @ diffusion(gaussian(X), W) @ spread.T,
    )
    cases["split float32 diffusion"] = Case(
        lambda to: SplitOperator(DiffusionOperator(_square(to, X32[:N])), to(halves)),
        lambda: spread @ diffusion(gaussian(X32[:N])) @ spread.T,
        dtype="float32",
    )
    for order in (0, 1, 2.5):
        cases[f"normalised, order {order}"] = Case(
            lambda to, t=order: NormalizedOperator(GramOperator(_poly, to(X)), t),
            lambda t=order: normalised(polynomial(X), _poly_diagonal(X), _poly_diagonal(X), t),
        )
        cases[f"normalised, order {order}, two sets"] = Case(
            lambda to, t=order: NormalizedOperator(GramOperator(_poly, to(X), to(Y)), t),
            lambda t=order: normalised(polynomial(X, Y), _poly_diagonal(X), _poly_diagonal(Y), t),
            symmetric=False,
        )
    for name in TRANSPOSED:
        case = cases[name]
        cases[f"{name}, transposed"] = Case(
            lambda to, c=case: c.build(to).T, lambda c=case: c.dense().T, symmetric=False, dtype=case.dtype
        )
    for name in ON_TENSORS:
        cases[f"{name}, tensors"] = replace(cases[name], library="torch")
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
    return to_numpy(case.make().to_dense()).astype(np.float64)


@pytest.fixture
def operator(case: Case) -> Any:
    return case.make()
