"""The kernels every structural test goes through, and points they accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mercer.kernels import (
    Categories,
    ChiSquared,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    Sobolev,
)
from mercer.kernels.base import spelled

ATOMS = {
    "gaussian": Gaussian(1.7),
    "laplacian": Laplacian(2.1),
    "matern-0.3": Matern(0.3, 1.4),
    "matern-1/2": Matern(0.5, 1.4),
    "matern-3/2": Matern(1.5, 1.4),
    "matern-5/2": Matern(2.5, 1.4),
    "matern-3.7": Matern(3.7, 1.4),
    "matern-150": Matern(150.0, 1.4),
    "matern-inf": Matern(np.inf, 1.4),
    "sobolev": Sobolev(4.2, 0.9),
    "linear": Linear(),
    "polynomial-2": Polynomial(2, 0.5, 1.0),
    "polynomial-3": Polynomial(3, None, 0.3),
    "sigmoid": Sigmoid(0.01, 0.1),
    "cosine": Cosine(),
    "chi-squared": ChiSquared(0.4),
    "categories": Categories(1.3),
}

COMPOSITES = {
    "sum": Gaussian(1.7) + Linear(),
    "product": Laplacian(2.1) * Polynomial(2),
    "multiple": 0.3 * Matern(0.5, 1.4),
    "square": Linear() ** 2,
    "cube": Cosine() ** 3,
    "fractional-power": Gaussian(1.7) ** 0.7,
    "normalized": Polynomial(3, None, 1.0).normalized(),
    "normalized-sum": (Gaussian(0.8) + 3 * Linear()).normalized(),
    "chi-squared-sum": ChiSquared(0.4) + Cosine(),
    "first-column": Gaussian(1.7).on(0),
    "columns-backwards": (Linear().on([-1]) + 1.5 * Matern(0.3, 0.8).on([0])).normalized(),
    "columns-product": Gaussian(0.8).on(0) * Categories(2.0).on([-1]) + Laplacian(2.0),
    "deep": 2.5 * ((Gaussian(1.7) + Matern(1.5, 1.0) * Cosine()) ** 2).normalized() + Laplacian(2.0),
}

ZOO = ATOMS | COMPOSITES


@pytest.fixture(params=ZOO.values(), ids=ZOO.keys())
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Every kernel and every operation of the algebra, with fixed parameters."""
    return request.param


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


class OnTensors:
    """A kernel that computes on tensors, asked and answering in NumPy arrays, so that one test serves both libraries."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._torch = kernel, pytest.importorskip("torch")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)

    def _answer(self, call: Callable[..., Any], X: Any, Y: Any = None) -> Any:
        x = self._torch.tensor(X)
        values = call(x) if Y is None or Y is X else call(x, self._torch.tensor(Y))
        assert isinstance(values, self._torch.Tensor)
        return values.numpy()

    def __call__(self, X: Any, Y: Any = None) -> Any:
        return self._answer(self._kernel, X, Y)

    def log(self, X: Any, Y: Any = None) -> Any:
        return self._answer(self._kernel.log, X, Y)

    def diag(self, X: Any) -> Any:
        return self._answer(self._kernel.diag, X)


@pytest.fixture(params=["numpy", "torch"])
def on(request: pytest.FixtureRequest) -> Callable[[Kernel], Any]:
    """The kernel itself, or the kernel on tensors."""
    return OnTensors if request.param == "torch" else lambda kernel: kernel


@pytest.fixture
def points() -> Callable[..., np.ndarray]:
    """Random points, non-negative where a chi-squared kernel is inside."""

    def draw(kernel: Kernel, n: int, d: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
        X = np.random.default_rng(seed).normal(size=(n, d))
        return (np.abs(X) if "ChiSquared" in spelled(kernel) else X).astype(dtype)

    return draw
