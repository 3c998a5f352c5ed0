"""Kernels that have a fused product, and points for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import Cosine, Gaussian, Laplacian, Matern, Polynomial

# With features: distances by differences and by inner products, those on matrix units from sixteen features on.
FORMS = [
    (Gaussian(1.3), 3),
    (Gaussian((2.0, 3.0, 4.0)), 3),
    (Gaussian(3.0), 10),
    (Gaussian(40.0), 784),
    (Laplacian(5.0), 4),
    (Matern(0.5, 2.0), 3),
    (Matern(2.5, 9.0), 20),
    (Polynomial(3, 0.1, 1.0), 20),
    (Cosine(), 5),
]


def points(n: int, d: int, seed: int = 0) -> Any:
    """Doubles that single precision holds as well."""
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32).astype(np.float64)
