"""Kernels by the names that other libraries give them."""

from __future__ import annotations

from mercer.kernels.base import Kernel
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.histogram import ChiSquared
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.self_tuning import SelfTuning
from mercer.kernels.stationary import Gaussian, Laplacian, Matern

NAMED: dict[str, type[Kernel]] = {
    "rbf": Gaussian,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "sigmoid": Sigmoid,
    "chi2": ChiSquared,
    "precomputed": Precomputed,
    "self-tuning": SelfTuning,
}


def kernel_named(name: str) -> Kernel:
    """A new kernel with its default parameters: a bandwidth is chosen from the data.

    Parameters
    ----------
    name : str
        A name of scikit-learn's (``"rbf"``, ``"laplacian"``, ``"poly"``, …) or the kernel's own in small letters.

    Examples
    --------
    >>> from mercer.kernels.names import kernel_named
    >>> kernel_named("rbf")
    Gaussian(sigma='median')
    """
    if name not in NAMED:
        raise ValueError(
            f"kernel={name!r} is no kernel's name: use one of {', '.join(map(repr, NAMED))}, or an object of "
            "mercer.kernels such as Gaussian(sigma=1.0)."
        )
    return NAMED[name]()
