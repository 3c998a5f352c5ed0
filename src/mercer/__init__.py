"""Mercer learns positive semi-definite kernels from data and proves that what it learned is optimal."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used: scikit-learn and numba cost a second each, and
# `import mercer` or `mercer --help` should not pay for them.
_HOMES = {
    "backends": ("Config", "config_context", "get_config"),
    "kernels": (
        "ChiSquared",
        "Cosine",
        "Gaussian",
        "Kernel",
        "Laplacian",
        "Linear",
        "Matern",
        "Polynomial",
        "Precomputed",
        "Sigmoid",
        "Sobolev",
    ),
    "operators": (
        "CenteredOperator",
        "DiffusionOperator",
        "GramOperator",
        "LowRankOperator",
        "NormalizedOperator",
    ),
    "linalg": ("nystrom", "rp_cholesky"),
    "embedding": ("DiffusionMaps", "RankPath", "SDPEmbedding", "rank_path"),
    "verification": ("verify",),
    "dependence": ("MeanEmbedding", "mmd"),
    "quadrature": ("QuadraturePath", "QuadratureSparsifier", "squared_kernel_discrepancy"),
    "density": ("SumOfSquaresDensity",),
    "robust": ("RobustKernelRidge",),
}
_MODULES = ("datasets", "experiments", "plots")
_WHERE = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*sorted(_WHERE), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f"mercer.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name in _HOMES or name in _MODULES:
        return importlib.import_module(f"mercer.{name}")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_HOMES, *_MODULES})
