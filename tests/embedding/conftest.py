"""What several files ask of a fitted embedding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest


@pytest.fixture(scope="session")
def is_unique() -> Callable[..., bool]:
    """A function of a fitted model: whether the optimal B is the only one, so that two solves must agree on it."""

    def check(model) -> bool:
        """The slack vanishes on the solution's space alone, and there S ↦ diag(Ξ S Ξᵀ) has no kernel."""
        least, r = model.certificate_.least_eigenvalues, model.rank_
        if least.size > r and least[r] <= 1e-3 * np.abs(least).max():
            return False
        lengths = np.linalg.norm(model.coordinates_, axis=1, keepdims=True)
        unit = model.coordinates_[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]
        i, j = np.triu_indices(r)
        sizes = np.linalg.svd(unit[:, i] * unit[:, j], compute_uv=False)
        return bool(unit.shape[0] >= i.size and sizes[-1] > 1e-3 * sizes[0])

    return check
