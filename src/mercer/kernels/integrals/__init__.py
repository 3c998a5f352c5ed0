"""Integrals of products of kernel sections: which of the closed forms and quadratures serves a kernel and a measure."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.base import Kernel
from mercer.kernels.integrals.base import KernelIntegrals
from mercer.kernels.integrals.closed_form import GaussianBoxIntegrals, LaplacianIntegrals, LaplacianNormalIntegrals
from mercer.kernels.integrals.gaussian import GaussianIntegrals, GaussianMixture
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Measure
from mercer.kernels.integrals.quadrature import MOST_FEATURES, NodeIntegrals
from mercer.kernels.stationary import Gaussian, Laplacian, Matern

__all__ = [
    "GaussianIntegrals",
    "GaussianMixture",
    "KernelIntegrals",
    "NodeIntegrals",
    "kernel_integrals",
    "require_one_length",
]

_QUADRATURE_ERROR = 1e-11  # of the integrals: with less, nodes serve where a closed form exists


def kernel_integrals(kernel: Kernel, points: Array, measure: Measure) -> KernelIntegrals:
    """The integrals of a resolved kernel on some points: in closed form where there is one, by quadrature otherwise.

    ==========  ==============  ==================================  ==================================================
    kernel      R^d, Lebesgue   R^d, Gaussian                       box
    ==========  ==============  ==================================  ==================================================
    Gaussian    pairs           pairs                               quadrature where it reaches rounding, loop elsewhere
    Laplacian   loop            loop; quadrature with a covariance  loop
    others      quadrature      quadrature                          quadrature
    ==========  ==============  ==================================  ==================================================

    A measure that is a sum over nodes is summed over, for any kernel and in any dimension. *Pairs* are closed forms in
    matrix products, *loop* closed forms that cost m³ d operations each; *quadrature* is for three dimensions at most
    and states its error. On a box in few dimensions quadrature is preferred to the closed form of the Gaussian where it
    reaches rounding as well: a product costs Q m² operations instead of m³ error functions.

    Raises
    ------
    ValueError
        Where there is neither.
    """
    d = points.shape[1]
    if isinstance(measure, DiscreteMeasure):
        return NodeIntegrals(kernel, points, measure)
    require_one_length(kernel, d)
    kernel = _plainly(kernel, d)
    if isinstance(kernel, Gaussian):
        if not isinstance(measure, Box):
            return GaussianIntegrals(kernel, points, measure)
        nodes = NodeIntegrals(kernel, points, measure) if d <= MOST_FEATURES else None
        if nodes is not None and nodes.error <= _QUADRATURE_ERROR:
            return nodes
        return GaussianBoxIntegrals(kernel, points, measure)
    if isinstance(kernel, Laplacian) and getattr(measure, "covariance", None) is None:
        if isinstance(measure, GaussianMeasure):
            return LaplacianNormalIntegrals(kernel, points, measure)
        return LaplacianIntegrals(kernel, points, measure)
    if d <= MOST_FEATURES:
        return NodeIntegrals(kernel, points, measure)
    raise ValueError(
        f"The integrals of {kernel!r} have no closed form under this measure, and quadrature takes {MOST_FEATURES} "
        f"features at most, not {d}: use Gaussian()."
    )


def require_one_length(kernel: Kernel, d: int) -> None:
    """Refuse kernels that do not compare all columns, or compare each in a length of its own."""
    if kernel.reads is not None or len(kernel.read_as_numbers(d)) < d:
        raise ValueError(f"{kernel!r} has no integral over all columns: use one kernel of all of them, as Gaussian().")
    if any(isinstance(value, tuple | list | np.ndarray) for value in kernel.get_params().values()):
        raise ValueError(
            f"The integrals of {kernel!r} have no closed form for a length of each column: divide the columns of X by "
            "these lengths, and give one number."
        )


def _plainly(kernel: Kernel, d: int) -> Kernel:
    """The same function by the name that has closed forms: Matérn kernels of order ∞, and of order 1/2 on the line."""
    if isinstance(kernel, Matern) and kernel.nu == np.inf:
        return Gaussian(sigma=float(np.sqrt(2.0) * kernel.length_scale))
    if isinstance(kernel, Matern) and kernel.nu == 0.5 and d == 1:
        return Laplacian(sigma=kernel.length_scale)
    return kernel
