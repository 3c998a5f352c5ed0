"""BLAS on one thread: the references here are small, and threads would only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def _quiet_blas() -> Iterator[None]:
    with threadpool_limits(1, user_api="blas"):
        yield
