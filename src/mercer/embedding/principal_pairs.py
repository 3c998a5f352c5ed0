"""The leading eigenpairs of a centred kernel matrix, and the negative part of its spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, eigh, namespace
from mercer.backends.rounding import unit_of
from mercer.linalg.eigen import deterministic_signs, leading_eigenpairs
from mercer.linalg.lanczos import BlockLanczos
from mercer.linalg.stand_in_start import start_for
from mercer.operators import CenteredOperator
from mercer.operators.base import is_sparse

_DENSE_UP_TO = 500
_WHOLE_SPECTRUM_UP_TO = 1500  # points of a kernel that is not known to be positive semi-definite
_BESIDE = 8  # vectors after the leading ones
_DEPTH, _BLOCK = 16, 8  # of the Krylov space from which the negative part is estimated


@final
@dataclass(frozen=True)
class NegativePart:
    """What of the spectrum lies below zero.

    Attributes
    ----------
    least : float
        The least eigenvalue, from above; zero where there is no negative one.
    size : float
        The sum of the absolute values of the negative eigenvalues.
    exact : bool
        Whether ``size`` comes from all eigenvalues; else it is an estimate from random vectors.
    """

    least: float = 0.0
    size: float = 0.0
    exact: bool = True


@final
@dataclass(frozen=True, eq=False)
class PrincipalPairs:
    """Eigenvalues in falling order with orthonormal eigenvectors, in double precision, and the part below zero.

    ``beside`` are about the eigenvectors that come next, some or none: proofs are the shorter for them.
    """

    values: Array
    vectors: Array
    negative: NegativePart
    beside: Array


def principal_pairs(
    operator: CenteredOperator, count: int, *, definite: bool, tolerance: float, rng: np.random.Generator
) -> PrincipalPairs:
    """The ``count`` leading eigenpairs, with residuals of ``tolerance`` times the largest eigenvalue where n is large.

    Parameters
    ----------
    operator : CenteredOperator
        Of training points.
    count : int
        At least one.
    definite : bool
        Whether the kernel is known to be positive semi-definite: then there is no negative part to look for.
    tolerance : float
        Of the residuals, beyond n = 500.
    rng : numpy.random.Generator
        Starts and pivots.

    Notes
    -----
    Cost: a dense eigenproblem up to n = 500, and up to n = 1500 of a kernel that may be indefinite. Beyond, some five
    to ten products with ``count`` + 10 columns, from the eigenvectors of a low-rank stand-in; a sparse matrix goes to
    ARPACK.
    """
    n = operator.shape[0]
    if not definite and n <= _WHOLE_SPECTRUM_UP_TO:
        return _from_whole_spectrum(operator, count)
    start = None if n <= _DENSE_UP_TO or is_sparse(operator) else start_for(operator, count, rng)
    values, vectors = leading_eigenpairs(operator, count, rng=rng, tolerance=tolerance, start=start, more=_BESIDE)
    values, vectors, beside = as_double(values[:count]), as_double(vectors[:, :count]), as_double(vectors[:, count:])
    negative = NegativePart() if definite else _estimated(operator, values, vectors, rng)
    return PrincipalPairs(values, vectors, negative, beside)


def _from_whole_spectrum(operator: CenteredOperator, count: int) -> PrincipalPairs:
    matrix = as_double(operator.to_dense())
    xp = namespace(matrix)
    values, vectors = eigh((matrix + matrix.T) / 2)
    below = values[values < -_noise(operator, float(abs(values).max()))]
    least = float(below[0]) if below.shape[0] else 0.0
    vectors = xp.flip(vectors, axis=1)[:, : count + _BESIDE]
    leading = vectors[:, :count] * deterministic_signs(vectors[:, :count])
    negative = NegativePart(least, -float(xp.sum(below)))
    return PrincipalPairs(xp.flip(values, axis=0)[:count], leading, negative, vectors[:, count:])


def _estimated(operator: CenteredOperator, values: Array, vectors: Array, rng: np.random.Generator) -> NegativePart:
    """The negative part on the complement of the leading eigenvectors, by Gauss quadrature from random vectors."""
    space = BlockLanczos(lambda V: as_double(operator @ V), vectors, rng, block=_BLOCK)
    space.extend(_DEPTH)
    least, noise = float(space.ritz_values()[-1]), _noise(operator, float(abs(values).max()))
    if least >= -noise:
        return NegativePart(exact=False)
    xp = namespace(vectors)
    size = space.trace_of(lambda ritz: xp.where(ritz < -noise, -ritz, 0.0))
    return NegativePart(least, max(size, -least), exact=False)


def _noise(operator: CenteredOperator, size: float) -> float:
    """What rounding leaves of an eigenvalue that is zero."""
    return operator.shape[0] * 2 * unit_of(operator.dtype) * size
