"""Features of points from a few landmarks, for tests and detectors that look at a sample many times.

f(x) = Λ^(-1/2) Uᵀ k(I, x) with K_II = U Λ Uᵀ, so that ⟨f(x), f(y)⟩ = k(x, I) K_II⁺ k(I, y) is the Nyström completion
of the kernel from the landmarks I (RKHS (130)), a kernel itself. Directions of K_II below 1e-7 of the largest are left
out: no test sees them, and dividing by them would blow up the rounding by which equal points come to differ.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, final

import numpy as np
from sklearn.base import clone

from mercer.backends.arrays import Array, as_double, like, taken, to_numpy
from mercer.backends.threads import single_threaded_blas
from mercer.kernels import Kernel
from mercer.linalg import rp_cholesky
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.validation import fitted_chooser, whole_number

_LEAST_DIRECTION = 1e-7  # of the largest eigenvalue of the landmarks' own matrix
_LOOKED_AT = 16  # rows a landmark among which the landmarks are drawn
_LEAST_LOOKED_AT = 2048
_FEWEST, _MOST = 64, 256  # landmarks where no number is given
_TOLERANCE = 1e-6  # of the trace: what is left then is of no account to a test


@final
class LandmarkFeatures:
    """The features of points from given landmarks.

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel, positive semi-definite.
    components : array of shape (m, d)
        The landmarks.

    Attributes
    ----------
    whiten : array of shape (m, r)
        U Λ^(-1/2).
    amplification : float
        √m ‖UΛ^(-1/2)‖: an error of e in every kernel value is one of at most this times e in a feature vector.
    """

    kernel: Kernel
    components: Any
    whiten: Array
    amplification: float

    def __init__(self, kernel: Kernel, components: Any) -> None:
        self.kernel, self.components = kernel, components
        block = as_double(GramOperator(kernel, components).to_dense())
        size = int(block.shape[0])
        with single_threaded_blas():
            values, vectors = positive_eigenpairs(block, _LEAST_DIRECTION / size)
        if not values.shape[0]:
            raise ValueError(f"{kernel!r} vanishes on every landmark: choose another kernel.")
        self.whiten = vectors / values**0.5
        self.amplification = float(np.sqrt(size / float(values[-1])))

    @property
    def rank(self) -> int:
        """How many features a point has."""
        return int(self.whiten.shape[1])

    def transform(self, X: Any) -> Array:
        """The features of the rows of X, n × r: n m kernel evaluations and 2 n m r flops."""
        return as_double(GramOperator(self.kernel, X, self.components) @ self.whiten)


def landmark_features(
    kernel: Kernel, points: Any, landmarks: Any, rng: np.random.Generator, name: str = "compress"
) -> LandmarkFeatures:
    """Features from landmarks chosen among the rows of ``points``, all of which have the same chance.

    The rows are shuffled before anything is chosen, so that the law of the choice does not depend on their order,
    whatever the way of choosing: of a pooled sample nothing tells which row came from where.

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel.
    points : array of shape (n, d)
        The sample.
    landmarks : str, int or estimator
        How many, ``"landmarks"`` for a number that grows with √n, or an unfitted :class:`mercer.Landmarks` or
        :class:`mercer.QuadratureSparsifier`. A number of them are pivots of a Cholesky factorisation of some of the
        rows, drawn at random by what is not explained yet, fewer where they explain all.
    rng : Generator
        The source of chance.
    name : str
        What the parameter is called.
    """
    _require_definite(kernel)
    n = int(points.shape[0])
    order = _shuffled(n, rng)
    if landmarks == "landmarks" or (isinstance(landmarks, Integral) and not isinstance(landmarks, bool)):
        count = default_landmarks(n) if landmarks == "landmarks" else whole_number(landmarks, name, 2)
        some = taken(points, like(order[: max(_LEAST_LOOKED_AT, _LOOKED_AT * count)], points))
        rows = rp_cholesky(GramOperator(kernel, some), min(count, some.shape[0]), rng, tolerance=_TOLERANCE).landmarks
    else:
        some = taken(points, like(order, points))
        rows = like(to_numpy(_fitted(landmarks, name, some, kernel, rng).indices_), points)
    if not rows.shape[0]:
        raise ValueError(f"{kernel!r} vanishes on every point: choose another kernel.")
    return LandmarkFeatures(kernel, taken(some, rows))


def default_landmarks(n: int) -> int:
    """How many landmarks stand for n rows where no number is given: 2√n, but at least 64 and at most 256."""
    return int(np.clip(2 * np.sqrt(n), _FEWEST, _MOST))


def is_chooser(landmarks: Any) -> bool:
    """Whether this is an estimator that chooses rows."""
    return hasattr(landmarks, "fit") and hasattr(landmarks, "get_params")


def _shuffled(n: int, rng: np.random.Generator) -> Array:
    """The rows in random order, which forgets where they came from."""
    return rng.permutation(n)


def _require_definite(kernel: Kernel) -> None:
    if kernel.properties.positive_definite is False:
        raise ValueError(
            f"{kernel!r} is not positive semi-definite, so that it has no features: choose another kernel."
        )


def _fitted(landmarks: Any, name: str, points: Any, kernel: Kernel, rng: np.random.Generator) -> Any:
    """A copy of the user's estimator fitted to the shuffled rows, with the kernel and chance of the test."""
    if not is_chooser(landmarks):
        raise ValueError(
            f'{name}={landmarks!r} must be "landmarks", a number of landmarks, or an estimator that chooses them, such '
            "as Landmarks(200)."
        )
    if hasattr(landmarks, "indices_"):
        raise ValueError(
            f"{name}={type(landmarks).__name__}(…) is fitted already, and rows that were chosen before tell the "
            "samples apart: pass an unfitted one."
        )
    chooser = clone(landmarks)
    given = chooser.get_params(deep=False)
    own = {"kernel": kernel} if given.get("kernel", kernel) is None else {}
    chance = {"random_state": int(rng.integers(2**31))} if given.get("random_state", 0) is None else {}
    return fitted_chooser(chooser.set_params(**own, **chance), name, points, None)
