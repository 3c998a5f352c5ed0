"""Kernel matrices on tensors of torch, wherever they lie."""

from __future__ import annotations

from typing import Any

from mercer.backends.forms import Form
from mercer.backends.matrix import KernelMatrix


def torch_matrix(form: Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on tensors."""
    raise TypeError("Kernels of tensors are not available.")
