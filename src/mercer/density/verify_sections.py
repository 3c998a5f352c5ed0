"""The sections of a fitted density, against its parameters: a sentence for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import like, to_numpy
from mercer.consistency import require_equal
from mercer.density.own_sections import asks_for_sections, checked_scales, require_sections_fit
from mercer.density.section_choice import FACTORS, MOST_WIDE
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.kernels.integrals.measures import Lebesgue


def read_sections(model: Any, X: Any) -> GaussianSections | None:
    """The model's sections in the library of X, made anew from their numbers; None where its kernel has them.

    How they were chosen is chance, as with centres of k-means: what is checked is that they are sections, and those
    that the parameters name.
    """
    asked = model.support, model.kernel, model.scales, model.objective
    require_sections_fit(*asked, isinstance(model.measure_, Lebesgue))
    found = model.sections_
    if (found is not None) != asks_for_sections(*asked) or not isinstance(found, GaussianSections | None):
        raise ValueError("The model's sections_ are not of the kind that its parameters name: it is damaged.")
    if found is None:
        return None
    means, roots, factors = (np.asarray(to_numpy(part)) for part in (found.means, found.roots, found.factors))
    if not _are_sections(means, roots, factors, X.shape[1]):
        raise ValueError("The model's sections_ are no Gaussians of as many features as X: it is damaged.")
    _require_named(model, means, factors)
    sections = GaussianSections(*(like(part, X) for part in (means, roots, factors)))
    require_equal(model, "support_", sections.points, "its sections")
    return sections


def _are_sections(means: Any, roots: Any, factors: Any, d: int) -> bool:
    """Finite numbers of the right shapes, L lower triangular with a positive diagonal, c positive."""
    if means.ndim != 2 or means.shape[1] != d or factors.ndim != 1 or means.shape[0] * factors.size == 0:
        return False
    if roots.ndim != 3 or roots.shape[0] not in (1, means.shape[0]) or roots.shape[1:] != (d, d):
        return False
    finite = all(part.dtype == np.float64 and np.all(np.isfinite(part)) for part in (means, roots, factors))
    if not finite or not np.all(factors > 0):
        return False
    return bool(np.all(np.triu(roots, 1) == 0) and np.all(np.diagonal(roots, axis1=1, axis2=2) > 0))


def _require_named(model: Any, means: Any, factors: Any) -> None:
    """Refuse other factors, or another number of parts, than the parameters name."""
    named = model.scales if model.scales is not None else None if factors.size == 1 else FACTORS
    if named is not None and not np.array_equal(factors, checked_scales(named)):
        raise ValueError("The model's sections_ have other factors than its parameter scales: it is damaged.")
    named_parts = isinstance(model.support, tuple) and model.support[0] == "mixture"
    if named_parts and means.shape[0] > model.support[1] + MOST_WIDE:
        raise ValueError("The model's sections_ are more than its parameter support: it is damaged.")
