"""The Gaussian sections of a density by likelihood, from what the user said: parts of a mixture, or several widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.density.section_choice import FACTORS, best_sections, candidates, drawn_rows, mixture_parts, reaching
from mercer.density.setting import choose_kernel, choose_support
from mercer.kernels import Gaussian
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.validation import whole_number

UNIT_KERNEL = Gaussian(sigma=2.0)  # of a section in the coordinates in which its covariance is the identity


def asks_for_sections(support: Any, kernel: Any, scales: Any, objective: str) -> bool:
    """Whether the parameters mean Gaussians with covariances of their own, or of several widths."""
    if objective != "likelihood":
        return False
    return scales is not None or _names_mixture(support) or (support is None and kernel is None)


def _names_mixture(support: Any) -> bool:
    if isinstance(support, tuple):
        return len(support) == 2 and isinstance(support[0], str) and support[0] == "mixture"
    return isinstance(support, str) and support in ("auto", "mixture")


def require_sections_fit(support: Any, kernel: Any, scales: Any, objective: str, plain: bool) -> None:
    """Refuse what goes together with no sections of their own; plain says that the measure is Lebesgue's on R^d."""
    named = _names_mixture(support)
    if objective != "likelihood" and (named or scales is not None):
        option = f"support={support!r}" if named else "scales"
        raise ValueError(f"{option} goes with objective='likelihood': sections of many widths have no one kernel.")
    if scales is not None:
        checked_scales(scales)
    if not asks_for_sections(support, kernel, scales, objective):
        return
    if named and kernel is not None:
        raise ValueError(f"support={support!r} finds covariances of its own: leave out the kernel.")
    if isinstance(support, tuple):
        whole_number(support[1], "the number of parts of a mixture", 1)
    if not plain:
        raise ValueError(
            "Sections with covariances of their own are for reference='lebesgue' without a box: pass a kernel and a "
            "support, such as kernel=Gaussian() and support=50."
        )


def checked_scales(scales: Any) -> Array:
    """Different positive numbers in rising order."""
    given = scales if isinstance(scales, Sequence | np.ndarray) and not isinstance(scales, str) else [scales]
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(1)
    if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"scales={scales!r} must be positive numbers, such as (1, 2, 8).")
    if np.unique(values).size != values.size:
        raise ValueError(f"scales={scales!r} has equal numbers, which make equal sections: leave one out.")
    return np.sort(values)


def find_sections(
    support: Any, kernel: Any, scales: Any, X: Array, shares: Array, rng: np.random.Generator
) -> GaussianSections:
    """The sections that ``support`` and ``scales`` of :class:`mercer.SumOfSquaresDensity` mean, in the library of X."""
    if not (_names_mixture(support) or (support is None and kernel is None)):
        return _of_several_widths(support, kernel, checked_scales(scales), X, shares, rng)
    factors = np.array(FACTORS) if scales is None else checked_scales(scales)
    every, weights = to_numpy(X), to_numpy(shares)
    rows = drawn_rows(every, weights, rng)
    if isinstance(support, tuple):
        tried = [mixture_parts(int(support[1]), factors)]
    else:
        tried = list(candidates(rows.shape[0], rows.shape[1], factors, mixtures_only=support == "mixture"))
    sections = best_sections(rows, tried, rng)
    beyond = (weights > 0) & ((every < rows.min(axis=0)) | (every > rows.max(axis=0))).any(axis=1)
    if beyond.any():
        sections = reaching(sections, np.concatenate([rows, every[beyond]]))
    return GaussianSections(*(like(part, X) for part in (sections.means, sections.roots, sections.factors)))


def _of_several_widths(
    support: Any, kernel: Any, factors: Array, X: Array, shares: Array, rng: np.random.Generator
) -> GaussianSections:
    """Those of a Gaussian kernel on a support: φ² has the covariance σ²/4 I, and the factors of it."""
    points = choose_support(support, X, shares, rng)
    resolved = choose_kernel(kernel, X, shares, points)
    if not isinstance(resolved, Gaussian):
        raise ValueError(f"scales is for the Gaussian kernel, not {resolved!r}: leave it out, or the kernel.")
    root = 2.0 / float(resolved.sigma) * np.eye(X.shape[1])
    return GaussianSections(points, like(root[None], X), like(factors, X))
