"""The kernel of structural similarity of images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.rounding import EntryError
from mercer.backends.threads import run_chunks
from mercer.kernels.centre import check_n_center
from mercer.kernels.checks import as_points, positive_number, whole_number
from mercer.kernels.distance_kernel import DistanceKernel
from mercer.kernels.properties import Properties

if TYPE_CHECKING:
    from mercer.backends.cpu.similarity import Windows

_SIZES = {"gaussian": 11, "uniform": 7}
_DISTANCES = ("metric", "index")
_PAIRS = 2**12  # of images that a thread compares at a time


@final
class SSIM(DistanceKernel):
    """-½d(x, y)², centred, d a distance of images by their structural similarity: the survey's (53).

    In every window, S₁ = (2μₓμᵧ + c₁)/(μₓ² + μᵧ² + c₁) compares means and S₂ = (2σₓᵧ + c₂)/(σₓ² + σᵧ² + c₂) compares
    what is left (Wang et al. 2004). d² is the mean over windows of 2 - S₁ - S₂, the metric of Brunet et al. (2012), or
    1 - SSIM, the mean of S₁S₂. Both are distances of a Hilbert space, so the kernel is positive semi-definite; the user
    guide has the proof.

    Parameters
    ----------
    shape : tuple of int
        Of the images whose pixels are the features: (height, width), or (height, width, channels).
    distance : {"metric", "index"}, default="metric"
        d² = mean(2 - S₁ - S₂), or d² = 1 - SSIM.
    data_range : float or None, default=None
        The largest pixel less the smallest that images can have, 255 for bytes; None takes that of the training images.
    window : {"gaussian", "uniform"}, default="gaussian"
        Weights of a window's pixels.
    size : int or None, default=None
        Pixels along a window, an odd number; None means 11 for a Gaussian window and 7 for a uniform one.
    sigma : float, default=1.5
        The width of a Gaussian window.
    n_center : int or None, default=200
        The most training images that the kernel is centred on, as in :class:`mercer.FromDistance`.

    Notes
    -----
    c₁ = (.01 L)² and c₂ = (.03 L)², L the data range, as published. A pair of 28 × 28 images takes some 4 µs, in
    proportion to pixels times ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SSIM
    >>> X = np.random.default_rng(0).uniform(size=(3, 12 * 16))
    >>> kernel = SSIM((12, 16), data_range=1.0).resolve(X)
    >>> kernel.similarity(X).shape
    (3, 3)
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        distance: str = "metric",
        data_range: float | None = None,
        window: str = "gaussian",
        size: int | None = None,
        sigma: float = 1.5,
        n_center: int | None = 200,
    ) -> None:
        self.shape = shape
        self.distance = distance
        self.data_range = data_range
        self.window = window
        self.size = size
        self.sigma = sigma
        self.n_center = n_center

    @property
    def properties(self) -> Properties:
        """Positive semi-definite and bounded."""
        return Properties(bounded=True, stationary=False, positive=False, positive_definite=True)

    def resolve(self, X: Any, sample_weight: Any = None) -> Self:
        """Return the kernel of the training images X, its data range a number."""
        if self.is_resolved or self.data_range is not None:
            return super().resolve(X, sample_weight)
        points = to_numpy(as_points(X))
        span = float(points.max() - points.min()) if points.size else 0.0
        if not span > 0:
            raise ValueError(
                "All pixels of the training images are equal, so they have no data range: pass data_range."
            )
        return type(self)(**{**self._own_params(), "data_range": span}).resolve(X, sample_weight)

    def similarity(self, X: Any, Y: Any = None) -> Any:
        """The structural similarity SSIM of images, mean(S₁S₂), of shape (n, m); Y None means X."""
        sides = self._checked(X, Y)
        x, y = self._require_features(sides)
        y = x if y is None else y
        chunks = row_chunks(x.shape[0], rows_within(_PAIRS, y.shape[0]))
        found = run_chunks(lambda part: self._similarities(x[part], y)[0], chunks)
        return like(np.concatenate([np.zeros((0, y.shape[0])), *found]), sides[0])

    @property
    def _extents(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        shape: Any = self.shape
        if not isinstance(shape, tuple | list) or len(shape) not in (2, 3):
            raise ValueError(f"shape={self.shape!r} must be (height, width) or (height, width, channels).")
        height, width, *channels = (whole_number(extent, "an extent of shape", 1) for extent in shape)
        return height, width, channels[0] if channels else 1

    @property
    def _window_size(self) -> int:
        return _SIZES[self.window] if self.size is None else self.size

    def _check_parameters(self) -> None:
        check_n_center(self.n_center)
        for name, value, known in (("distance", self.distance, _DISTANCES), ("window", self.window, tuple(_SIZES))):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, known))}.")
        positive_number(self.data_range, "data_range")
        positive_number(self.sigma, "sigma")
        if whole_number(self._window_size, "size", 1) % 2 == 0:
            raise ValueError(f"size={self.size} must be odd, so that a window has a middle.")
        if min(self._extents[:2]) < self._window_size:
            raise ValueError(
                f"No window of {self._window_size} × {self._window_size} pixels lies in an image of "
                f"{self._extents[0]} × {self._extents[1]}: pass a smaller size."
            )

    @property
    def _windows(self) -> Windows:
        from mercer.backends.cpu.similarity import Windows  # which loads numba

        away = np.arange(self._window_size) - self._window_size // 2
        weights = np.exp(-0.5 * (away / self.sigma) ** 2) if self.window == "gaussian" else np.ones(away.size)
        span = float(self.data_range or 0.0)
        return Windows(weights / weights.sum(), (0.01 * span) ** 2, (0.03 * span) ** 2)

    def _square_roundings(self, sides: list[Array]) -> EntryError:
        """Of pixels up to P, moments of a window of p × p err by 2p + 2 roundings of P², and those less by 6p + 4.

        A ratio that is one at most errs by what its two parts do, over a denominator of at least c₁ or c₂.
        """
        largest = max((float(np.abs(side[:, :-1]).max()) for side in sides if side.shape[0]), default=0.0)
        windows = self._windows
        moments = 4.0 * (6 * windows.weights.size + 4) * largest**2
        return EntryError(1.0, 0.0, 8.0 + 2 * moments * (1 / windows.c1 + 1 / windows.c2))

    def _cost(self, n_features: int) -> float:
        return 12.0 * n_features

    def _similarities(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        from mercer.backends.cpu.similarity import mean_similarities

        height, width, channels = self._extents
        if rows.shape[1] != height * width * channels:
            raise ValueError(
                f"X has {rows.shape[1]} features, but shape={self.shape!r} is that of {math.prod(self.shape)} pixels."
            )
        first, second = (side.reshape(-1, height, width, channels).transpose(0, 3, 1, 2) for side in (rows, cols))
        return mean_similarities(first, second, self._windows)

    def _squares(self, rows: Array, cols: Array) -> Array:
        products, sums = self._similarities(rows, cols)
        squares: Array = np.maximum(2.0 - sums if self.distance == "metric" else 1.0 - products, 0.0)
        return squares
