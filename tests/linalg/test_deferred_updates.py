"""A matrix that terms of rank one are added to, some of which wait."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.linalg.deferred_updates import DeferredUpdates


@pytest.mark.parametrize("waiting", [1, 3, 32])
def test_whatever_waits_is_counted(waiting):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((7, 5))
    deferred, plain = DeferredUpdates(matrix.copy(), waiting), matrix.copy()
    for _ in range(8):
        left, right = rng.standard_normal(7), rng.standard_normal(5)
        deferred.add(left, right)
        plain += np.outer(left, right)
        shares = rng.standard_normal(7)
        np.testing.assert_allclose(deferred.row(2), plain[2], rtol=1e-12)
        np.testing.assert_allclose(deferred.column(3), plain[:, 3], rtol=1e-12)
        np.testing.assert_allclose(deferred.combined(shares), shares @ plain, rtol=1e-10)
    np.testing.assert_allclose(deferred.matrix, plain, rtol=1e-12)


def test_rows_and_columns_that_are_left_out_are_gone():
    rng = np.random.default_rng(1)
    deferred, plain = DeferredUpdates(np.eye(6), 4), np.eye(6)
    u = rng.standard_normal(6)
    deferred.add(u, u)
    deferred.keep(np.array([0, 2, 5]))
    plain = (plain + np.outer(u, u))[np.ix_([0, 2, 5], [0, 2, 5])]
    deferred.add(plain[0], plain[1])
    np.testing.assert_allclose(deferred.matrix, plain + np.outer(plain[0], plain[1]), rtol=1e-12)
