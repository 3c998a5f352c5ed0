"""From a solver's iterate to the numbers that a density is computed with, and their certificate."""

from __future__ import annotations

from typing import NamedTuple

from mercer.backends.arrays import Array, namespace
from mercer.certificates import Certificate, certify_spectrahedron
from mercer.linalg.eigen import deterministic_signs
from mercer.problems import SumOfSquares
from mercer.solvers.spectrahedron.accelerated import small_enough

_RANK = 1e-9  # mass of a square relative to the largest below which it is rounding


class Presentation(NamedTuple):
    """A density of mass one by its scaled factor of shape (m, r), and the certificate of exactly these numbers.

    ``masses`` are those of its squares, ``rounding`` what rounding makes of their sum.
    """

    factor: Array
    masses: Array
    rounding: float
    certificate: Certificate


def presented(problem: SumOfSquares, F: Array) -> Presentation:
    """The density of C = F Fᵀ, its squares in falling order and with deterministic signs."""
    scaled = problem.coefficients(F)
    masses, rounding = problem.integrals.square_masses(scaled)
    xp = namespace(masses)
    order = xp.argsort(-masses, stable=True)
    scaled = scaled[:, order] / xp.sqrt(xp.sum(masses))
    factor = scaled * deterministic_signs(scaled)
    certificate = certify_spectrahedron(problem, problem.coordinates(factor))
    return Presentation(factor, masses[order] / xp.sum(masses), rounding, certificate)


def trimmed(problem: SumOfSquares, F: Array, tol: float) -> Presentation:
    """Orthogonal squares without those that are rounding, where the certificate bears that."""
    vectors, sizes, _ = namespace(F).linalg.svd(F, full_matrices=False)
    kept = sizes**2 > _RANK * sizes[0] ** 2
    fewer = presented(problem, vectors[:, kept] * sizes[kept])
    if kept.all() or is_enough(problem, fewer.certificate, tol):
        return fewer
    whole = presented(problem, vectors * sizes)
    return min(fewer, whole, key=lambda one: one.certificate.upper - one.certificate.lower)


def is_enough(problem: SumOfSquares, certificate: Certificate, tol: float) -> bool:
    """Whether the certified gap is what tol asks for."""
    return small_enough(certificate.upper - certificate.lower, certificate.upper, tol * problem.scale, tol)
