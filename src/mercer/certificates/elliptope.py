"""The optimality certificate of the embedding, recomputed from the iterate and the operator alone.

For any H with unit rows, z = diag(J H Hᵀ) gives the lower bound Σ zᵢ. For any y > 0,

    M = Diag(y)^-½ J Diag(y)^-½,   J ≼ λmax(M) Diag(y),   p* ≤ max(λmax(M), 0) Σ yᵢ.

At an optimum y = z gives λmax(M) = 1 and no gap; Diag(z)^½ H then spans eigenvectors of M of eigenvalue one. Where some
zᵢ is not safely positive, y = max(z, diag J) serves. λmax(M) is *bounded*, not estimated, in one of two ways: by a
Cholesky factorisation of (1 + ε) I - M (:mod:`mercer.certificates.factorisation`), which is a proof, or without the
matrix by Lanczos on the complement of that space (:mod:`mercer.certificates.krylov`), which holds but for a stated
probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.certificates.certificate import Certificate
from mercer.certificates.factorisation import bound_largest_eigenvalue, least_eigenvalues
from mercer.certificates.krylov import Deflated, bound_by_lanczos
from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]
_LEAST = 6
_DENSE_UP_TO = 8000
_UNIT = float(np.finfo(np.float64).eps) / 2


def certify_elliptope(
    problem: Elliptope, H: Array, *, rng: np.random.Generator, spectrum: bool = True, failure_probability: float = 1e-9
) -> Certificate:
    """Prove bounds on the optimum of the problem from any matrix H with rows of about unit length.

    Parameters
    ----------
    problem : Elliptope
        The problem; nothing is taken from a solver.
    H : array of shape (n, r)
        Any point. Rows are brought to unit length first.
    rng : numpy.random.Generator
        Starting vectors.
    spectrum : bool, default=True
        Also compute the least eigenvalues of the dual slack, where the matrix fits into memory.
    failure_probability : float, default=1e-9
        The probability with which a bound without the matrix may fail.

    Returns
    -------
    Certificate
        Bounds for the matrix whose entries the kernel gives in floating point.

    Notes
    -----
    Up to n = 8000, where memory allows: n² entries and n³/3 flops a factorisation, usually one; 3 n² doubles. Beyond: r
    plus some tens of columns, and as many vectors of length n.
    """
    fallback = np.eye(1, H.shape[1]).repeat(problem.size, axis=0)
    H = problem.project(np.asarray(H, np.float64), fallback)
    n = int(problem.active.sum())
    if n <= _DENSE_UP_TO and 24 * n * n <= get_config().memory_bytes:
        return _by_factorisation(problem, H, rng, spectrum)
    return _by_lanczos(problem, H, rng, failure_probability)


def _by_factorisation(problem: Elliptope, H: Array, rng: np.random.Generator, spectrum: bool) -> Certificate:
    active = np.flatnonzero(problem.active)
    matrix = np.asarray(problem.operator.block(active, active), np.float64)
    s = problem.scale[active].astype(np.float64)
    v = _removed(problem)[active]
    SH = s[:, None] * H[active]
    AB = matrix @ SH
    z = np.einsum("ij,ij->i", SH, AB)
    y = _positive_multipliers(z, s**2 * np.diagonal(matrix))
    root = s / np.sqrt(y)
    M = root[:, None] * matrix * root
    guess = Deflated(M.dot, np.sqrt(y)[:, None] * H[active]).estimate(rng)
    top = bound_largest_eigenvalue(M, guess, entry_error=_entry_rounding(M, root * v))
    del M
    slack = z / s**2
    complementarity = _relative_norm(slack[:, None] * SH - AB, AB)
    size = float(s @ np.abs(matrix) @ s) + 2 * float(s @ v) ** 2
    lower = float(z.sum()) - _product_rounding(size, active.size, _UNIT)
    least = np.empty(0)
    if spectrum:
        matrix *= -1
        matrix[np.diag_indices_from(matrix)] += slack
        shift = 2 * max(top - 1, 0.0) * float(np.max(np.abs(slack)))
        least = least_eigenvalues(matrix, min(_LEAST, active.size), shift, rng)
    return Certificate(
        lower=lower,
        upper=max(_upper(top, y), lower),
        failure_probability=0.0,
        method="factorisation proof",
        n_products=int(active.size),
        least_eigenvalues=least,
        complementarity=complementarity,
    )


def _by_lanczos(problem: Elliptope, H: Array, rng: np.random.Generator, failure_probability: float) -> Certificate:
    before = problem.n_columns
    s = problem.scale.astype(np.float64)
    G = np.asarray(problem.apply(H), np.float64)
    z = problem.multipliers(H, G)
    active = problem.active
    y = np.ones_like(z)
    y[active] = _positive_multipliers(z[active], (s**2 * problem.operator.diagonal())[active])
    root = active / np.sqrt(y)

    def multiply(v: Array) -> Array:
        block = v.reshape(problem.size, -1)
        return np.asarray(root[:, None] * problem.apply(root[:, None] * block), np.float64).reshape(v.shape)

    top = bound_by_lanczos(
        Deflated(multiply, (active * np.sqrt(y))[:, None] * H),
        lift=problem.shift * float(np.max(root**2)),
        failure_probability=failure_probability,
        rng=rng,
    )
    unit = float(np.finfo(problem.operator.dtype).eps) / 2
    v = s * _removed(problem)
    top += _product_rounding(max(top, 0.0) + 2 * float(np.sum((root * v) ** 2)), problem.size, unit)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=active)
    residual = inverse[:, None] * (z[:, None] * H - G)
    lower = float(z[active].sum()) - _product_rounding(
        float(np.abs(z[active]).sum()) + 2 * float(v.sum()) ** 2, problem.size, unit
    )
    return Certificate(
        lower=lower,
        upper=max(_upper(top, y[active]), lower),
        failure_probability=failure_probability,
        method="deflated Lanczos bound",
        n_products=problem.n_columns - before,
        complementarity=_relative_norm(residual, inverse[:, None] * G),
    )


def _positive_multipliers(z: Array, floor: Array) -> Array:
    """The multipliers z where they are safely positive, else max(z, diag J), which serves as well."""
    if np.all(z > 1e-3 * floor) and np.all(z > 0):
        return z
    tiny = np.finfo(np.float64).eps * max(float(np.max(np.abs(z), initial=0.0)), float(floor.max(initial=0.0)))
    return np.maximum(np.maximum(z, floor), max(tiny, np.finfo(np.float64).tiny))


def _removed(problem: Elliptope) -> Array:
    """The vector v of Ã = A - vvᵀ, whose subtraction rounds; zero if there is none."""
    return np.zeros(problem.size) if problem.removed is None else np.asarray(problem.removed, np.float64)


def _upper(top: float, y: Array) -> float:
    return max(top, 0.0) * float(y.sum()) * (1 + 2 * y.size * _UNIT)


def _relative_norm(part: Array, whole: Array) -> float:
    size = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / size if size > 0 else 0.0


def _product_rounding(size: float, n: int, unit: float) -> float:
    """How far rounding can move a quadratic form of this absolute size: a unit for every entry and every sum."""
    return (n + 8) * unit * size


def _entry_rounding(M: Array, v: Array) -> float:
    """A bound on ‖ΔM‖ for the roundings that formed M from the kernel's values: eight an entry, and the subtraction."""
    bound = float(np.abs(M).sum(axis=1).max(initial=0.0))
    return 8 * _UNIT * (bound + 2 * float(v.max(initial=0.0) * v.sum()))
