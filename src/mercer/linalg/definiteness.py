"""How far below zero the spectrum of a symmetric map can reach: a proof, never an exception.

**By factorisation.** If the floating-point Cholesky factorisation of a symmetric matrix C runs to its end, then
λmin(C) ≥ -γ_{n+1}/(1 - γ_{n+1}) · tr C, with γ_k = k u/(1 - k u) (Demmel 1989; Rump 2006). With C = M + cI that proves
M ≽ -(c + that)I, without chance, at n³/3 flops. The first c is at the level of rounding: a matrix that passes is
positive semi-definite for all that its entries can say.

**By positive vectors.** For any positive x the spectral radius of M is at most max_i (|M|x)_i/x_i (Collatz, Wielandt).
For affinities that are not negative, normalised to a Markov chain, x = √(w m) gives one: the lazy walk M + I is
positive semi-definite whatever the affinities.

**By dominance**, for a sparse matrix without negative entries. For any positive x and f

    Σᵢ fᵢ² Σ_{j≠i} M_ij x_j/x_i + Σ_{i≠j} M_ij fᵢfⱼ = Σ_{i<j} M_ij x_i x_j (fᵢ/xᵢ + fⱼ/xⱼ)² ≥ 0,

so that M + Diag((Mx)ᵢ/xᵢ - 2M_ii) ≽ 0, and the spectrum lies above the least 2M_ii - (Mx)ᵢ/xᵢ. Normalised affinities
have (Mx)ᵢ = xᵢ for x = √(w m): their spectrum lies above min 2wᵢk(xᵢ, xᵢ)/mᵢ - 1, without chance, at the cost of one
product. (The diagonal itself would not do for Ã = M - xxᵀ/‖x‖²: x is an eigenvector of M and of multiples of the
identity, which taking it out leaves in order, and of no other diagonal.)

**By Lanczos**, where a dense copy is too large. With ϱ the bound above, ϱI - M is positive semi-definite, and its
largest eigenvalue is bounded from random starts, up to a stated probability (:mod:`mercer.linalg.lanczos`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, add_to_diagonal, as_double, dtype_name, like, namespace
from mercer.backends.chunks import ENTRY_ROWS, row_chunks
from mercer.backends.rounding import TINY, UNIT, gamma, unit_of
from mercer.linalg.eigen import least_of
from mercer.linalg.factors import upper_factor
from mercer.linalg.lanczos import BlockLanczos, underestimate
from mercer.operators import LinearMap
from mercer.operators.base import is_sparse

_ENTRY_NOISE = {"float64": 1e-10, "float32": 1e-5}  # of the spectral radius, in entries that anyone may have computed
_DENSE_UP_TO = 16384
_EXACT_UP_TO = 1500
_SPARSE_FROM = 2000  # rows of a sparse matrix from which on dominance decides
_DEPTH, _BLOCK, _FAILURE = 48, 4, 1e-10
_BEYOND = 1.02  # times an estimate of the least eigenvalue: where the first proof is tried
_GROWTH = 4.0


@final
@dataclass(frozen=True)
class Definiteness:
    """A proved statement on a symmetric map M: M ≽ -(shift + slack) I.

    Attributes
    ----------
    shift : float
        Zero if M is positive semi-definite to rounding; else what makes M + shift·I so.
    slack : float
        What is left at the level of rounding.
    failure_probability : float
        Of the statement; zero for a proof without chance.
    """

    shift: float
    slack: float = 0.0
    failure_probability: float = 0.0


def prove_definiteness(
    map_: LinearMap, positive: Array, *, rng: np.random.Generator, nonnegative: bool = False
) -> Definiteness:
    """Prove how far below zero the spectrum of a symmetric map can reach.

    Parameters
    ----------
    map_ : LinearMap
        M, symmetric, n × n.
    positive : array of shape (n,)
        A positive vector x for the bound of the spectral radius.
    rng : numpy.random.Generator
        Starts of Lanczos.
    nonnegative : bool, default=False
        Whether no entry is negative, so that one product gives |M|x; else all entries are looked at.

    Returns
    -------
    Definiteness
        With shift zero where M is positive semi-definite up to a relative 1e-10 (1e-5 in single precision).

    Notes
    -----
    Cost: a dense copy and n³/3 flops where M is positive semi-definite; some more factorisations where it is not.
    Beyond n = 16 384, or where the copy exceeds half of the memory allowed, 192 products; of a sparse matrix without
    negative entries, beyond n = 2000 or that memory, one product.
    """
    n, fits = map_.shape[0], 8 * map_.shape[0] ** 2 <= get_config().memory_bytes // 2
    if nonnegative and is_sparse(map_) and not (fits and n <= _SPARSE_FROM):
        return _by_dominance(map_, positive)
    radius = spectral_radius(map_, positive, nonnegative=nonnegative)
    if n <= _DENSE_UP_TO and fits:
        return _by_factorisation(map_, radius, rng)
    return _by_lanczos(map_, radius, rng)


def spectral_radius(map_: LinearMap, positive: Array, *, nonnegative: bool = False) -> float:
    """An upper bound of |λ| over the spectrum: max (|M|x)ᵢ/xᵢ for a positive x, raised by the rounding of the sums."""
    return float(_quotients(map_, positive, nonnegative).max())


def _quotients(map_: LinearMap, positive: Array, nonnegative: bool) -> Array:
    """Upper bounds of (|M|x)ᵢ/xᵢ."""
    xp = namespace(map_.reference)
    x = xp.clip(as_double(like(positive, map_.reference)), TINY, None)
    if nonnegative:
        sums = as_double(map_ @ x)
    else:
        sums = xp.empty_like(x)
        for rows in row_chunks(x.shape[0], ENTRY_ROWS):
            sums[rows] = as_double(xp.abs(map_.block(rows, slice(None)))) @ x
    return sums / x * (1 + 8 * x.shape[0] * unit_of(map_.dtype))


def _by_dominance(map_: LinearMap, positive: Array) -> Definiteness:
    quotients = _quotients(map_, positive, nonnegative=True)
    loops = as_double(map_.diagonal()) * (1 - 8 * unit_of(map_.dtype))
    bound = float((quotients - 2 * loops).max())
    rounding = _ENTRY_NOISE[dtype_name(map_.dtype)] * float(quotients.max())
    return Definiteness(bound) if bound > rounding else Definiteness(0.0, max(bound, 0.0))


def _by_factorisation(map_: LinearMap, radius: float, rng: np.random.Generator) -> Definiteness:
    rounding = _ENTRY_NOISE[dtype_name(map_.dtype)] * radius
    proved = _proved(map_, rounding, radius)
    if proved is not None:
        return Definiteness(0.0, proved)
    tried = _BEYOND * max(0.0, -_estimate(map_, radius, rng)) + rounding
    while tried < radius:
        proved = _proved(map_, tried, radius)
        if proved is not None:
            return Definiteness(proved)
        tried *= _GROWTH
    return Definiteness(radius)


def _proved(map_: LinearMap, shift: float, radius: float) -> float | None:
    """A number c ≥ shift with M + cI ≽ 0 proved by a factorisation of M + shift·I; None if it breaks down."""
    matrix = as_double(map_.to_dense())
    trace = float(abs(matrix.diagonal() + shift).sum())
    add_to_diagonal(matrix, shift)
    if upper_factor(matrix) is None:
        return None
    entries = 8 * unit_of(map_.dtype) * radius  # of forming o_i k_ij o_j: four roundings each
    return shift + 1.01 * gamma(matrix.shape[0] + 2, UNIT) * trace + entries


def _estimate(map_: LinearMap, radius: float, rng: np.random.Generator) -> float:
    """The least eigenvalue: exact to rounding for small n, from within the spectrum otherwise."""
    if map_.shape[0] <= _EXACT_UP_TO:
        return least_of(as_double(map_.to_dense()))
    return radius - _largest_gap(map_, radius, rng)[0]


def _by_lanczos(map_: LinearMap, radius: float, rng: np.random.Generator) -> Definiteness:
    largest, depth = _largest_gap(map_, radius, rng)
    too_small = underestimate(depth, map_.shape[0], _FAILURE, _BLOCK)
    bound = min(radius, largest / (1 - too_small) - radius) if too_small < 1 else radius
    rounding = _ENTRY_NOISE[dtype_name(map_.dtype)] * radius
    if bound <= rounding:
        return Definiteness(0.0, max(bound, rounding), _FAILURE)
    return Definiteness(bound + rounding, 0.0, _FAILURE if bound < radius else 0.0)


def _largest_gap(map_: LinearMap, radius: float, rng: np.random.Generator) -> tuple[float, int]:
    """The largest Ritz value of ϱI - M, which is positive semi-definite, and the depth of its Krylov space."""
    n = map_.shape[0]

    def multiply(V: Array) -> Array:
        return radius * V - as_double(map_ @ V)

    basis = like(np.zeros((n, 0)), map_.reference)
    space = BlockLanczos(multiply, basis, rng, block=min(_BLOCK, n))
    space.extend(_DEPTH)
    return float(space.ritz_values()[0]), _DEPTH if space.closed else space.depth
