"""The squares of a density: from a solver's point to the numbers that are stored and certified, and their logarithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, namespace, norm
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EPS
from mercer.backends.threads import run_chunks_of
from mercer.certificates import Certificate, certify_likelihood, certify_spectrahedron
from mercer.kernels import Kernel
from mercer.linalg.eigen import deterministic_signs
from mercer.problems import SquaresLikelihood, SumOfSquares
from mercer.solvers.spectrahedron.accelerated import value_and_gap

_RANK = 1e-9  # mass of a square relative to the largest below which it is rounding


SquaresProblem = SumOfSquares | SquaresLikelihood


class Squares(NamedTuple):
    """A density of mass one by its scaled factor of shape (m, r), with the masses of its squares in falling order.

    ``rounding`` is what rounding makes of their sum.
    """

    factor: Array
    masses: Array
    rounding: float


def squares_of(problem: SquaresProblem, F: Array, tol: float) -> Squares:
    """The density of C = F Fᵀ by orthogonal squares with deterministic signs, without those that are rounding."""
    scaled = problem.coefficients(_trimmed(problem, F, tol))
    masses, rounding = problem.integrals.square_masses(scaled)
    xp = namespace(masses)
    order = xp.argsort(-masses, stable=True)
    scaled = scaled[:, order] / xp.sqrt(xp.sum(masses))
    return Squares(scaled * deterministic_signs(scaled), masses[order] / xp.sum(masses), rounding)


def certify_squares(problem: SquaresProblem, squares: Squares) -> Certificate:
    """The certificate of exactly the numbers that are stored."""
    return certify_factor(problem, problem.coordinates(squares.factor))


def certify_factor(problem: SquaresProblem, factor: Array) -> Certificate:
    """The certificate of C = F Fᵀ for what the programme minimises."""
    if isinstance(problem, SquaresLikelihood):
        return certify_likelihood(problem, factor)
    return certify_spectrahedron(problem, factor)


def is_enough(problem: SquaresProblem, gap: float, upper: float, tol: float) -> bool:
    """Whether a gap below an upper bound is what tol asks for: relative to the programme's scale, or the optimum.

    Of a likelihood, in nats.
    """
    size = problem.scale if isinstance(problem, SquaresLikelihood) else max(problem.scale, upper - gap)
    return gap <= tol * size


def _trimmed(problem: SquaresProblem, F: Array, tol: float) -> Array:
    """Orthogonal columns, those that are rounding left out where the gap bears that."""
    vectors, sizes, _ = namespace(F).linalg.svd(F, full_matrices=False)
    kept = sizes**2 > _RANK * sizes[0] ** 2
    whole, fewer = vectors * sizes, vectors[:, kept] * sizes[kept]
    if kept.all():
        return whole
    fewer = fewer / norm(fewer)
    value, gap = value_and_gap(problem, fewer)
    return fewer if is_enough(problem, gap, value, tol) or gap <= value_and_gap(problem, whole)[1] else whole


def log_squares(kernel: Kernel, X: Array, support: Array, factor: Array) -> tuple[Array, Array]:
    """log ‖Fᵀk_x‖² at the rows of X, and log (ε² ‖F‖² max_p k(x, z_p)²), below which it is rounding.

    Where the kernel is known to be positive, the largest k(x, z_p) is taken out first, so that the logarithm stays
    finite at any distance; where all of them vanish both are minus infinity. Cost: n m (d + r).
    """
    matrix, xp = kernel.matrix(X, support), namespace(X)
    scale, product = matrix.scaled_product(factor)
    squares = xp.sum(product**2, axis=1)
    if not matrix.nonnegative:
        tops = _largest(matrix, scale)
    else:  # a row of zeros has no scale
        tops = xp.where(squares > 0, scale, xp.full_like(scale, -np.inf))
    with np.errstate(divide="ignore"):
        logs = 2.0 * scale + xp.log(squares)
    return logs, 2.0 * (tops + float(np.log(EPS) + np.log(norm(factor))))


def _largest(matrix: KernelMatrix, like_it: Array) -> Array:
    """log max_p of the absolute entries of every row."""
    xp, out = namespace(like_it), namespace(like_it).empty_like(like_it)

    def fill(rows: slice) -> None:
        out[rows] = xp.max(xp.abs(matrix.block(rows, slice(None))), axis=1)

    run_chunks_of(like_it, fill, row_chunks(matrix.shape[0], panel_rows(matrix.shape[1])))
    with np.errstate(divide="ignore"):
        return xp.log(out)
