"""Low-rank factors of a positive semi-definite map: by eigenvectors, Cholesky or QR."""

from __future__ import annotations

from typing import Any, final

from mercer.backends.arrays import Array, as_double, cholesky, namespace, solve_triangular
from mercer.backends.chunks import ENTRY_ROWS, row_chunks
from mercer.backends.rounding import unit_of
from mercer.kernels.checks import as_generator, whole_number
from mercer.linalg.eigen import leading_eigenpairs, positive_eigenpairs
from mercer.linalg.greedy_cholesky import greedy_cholesky
from mercer.linalg.tall import inner_products, square_row_lengths, tall_product
from mercer.operators import LinearMap, LowRankOperator
from mercer.operators.base import Index

_METHODS = ("cholesky", "eigen", "qr")


def factorize(gram: LinearMap, rank: Any, method: str = "cholesky", *, random_state: Any = None) -> LowRankOperator:
    """Approximate a positive semi-definite map K by F Fᵀ of some rank, so that K - F Fᵀ is positive semi-definite.

    All three methods complete K from its image of a subspace, F Fᵀ = KS (SᵀKS)⁻¹ SᵀK: the residual is that of a Schur
    complement, and no norm of it, operator, Frobenius or nuclear, is more than its trace, the sum of
    ``residual_diagonal``. :func:`mercer.certificates.bound_low_rank_error` proves such a bound, with its rounding.

    Parameters
    ----------
    gram : LinearMap
        Symmetric positive semi-definite, n × n.
    rank : int
        Columns wanted; fewer come back if the matrix is exhausted to rounding.
    method : {"cholesky", "eigen", "qr"}, default="cholesky"
        What S is. Columns of the identity, each where the residual diagonal is largest (Cholesky with complete
        pivoting); the leading eigenvectors (RKHS (128)), than which no factor of that rank leaves less; or an
        orthonormal basis of the columns of K that QR with column pivoting takes, nearly as good.
    random_state : None, int or generator, default=None
        Start of the eigensolver for large n.

    Returns
    -------
    LowRankOperator
        F Fᵀ, with the diagonal of the residual; the pivots are in ``landmarks``, S of "eigen" and "qr" is in ``basis``.

    Notes
    -----
    Cost: n·rank kernel evaluations and n·rank² flops for "cholesky"; some tens of products with blocks of K, n² kernel
    evaluations each, for "eigen" (a dense decomposition up to n = 1500); at least two such products for every 64
    columns for "qr", which knows columns to half of the digits only. Memory: n·rank, for "qr" 1024·n a thread.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GramOperator, factorize
    >>> gram = GramOperator(Gaussian(sigma=0.5), np.linspace(0, 1, 100)[:, None])
    >>> left = [float(factorize(gram, 4, how).residual_diagonal.sum()) for how in ("eigen", "qr", "cholesky")]
    >>> left[0] < left[1] < left[2]
    True
    """
    if method not in _METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, _METHODS))}.")
    if not gram.symmetric:
        raise ValueError("factorize takes a symmetric map.")
    count = min(whole_number(rank, "rank", 1), gram.shape[0])
    if method == "cholesky":
        return greedy_cholesky(gram, count)
    if method == "eigen":
        values, basis = leading_eigenpairs(gram, count, rng=as_generator(random_state))
        basis = as_double(basis[:, values > gram.shape[0] * 2 * unit_of(gram.dtype) * max(float(values[0]), 0.0)])
        return _completed(gram, basis)
    pivots = greedy_cholesky(_Squared(gram), count).landmarks
    columns = as_double(gram.block(slice(None), pivots))
    return _completed(gram, namespace(columns).linalg.qr(columns)[0], pivots)


def _completed(gram: LinearMap, basis: Array, pivots: Array | None = None) -> LowRankOperator:
    """KS (SᵀKS)⁻¹ SᵀK for orthonormal S, without the directions in which SᵀKS is rounding."""
    image = as_double(gram @ basis)
    inner = inner_products(basis, image)
    values, vectors = positive_eigenpairs((inner + inner.T) / 2, 2 * unit_of(gram.dtype))
    if values.shape[0] < basis.shape[1]:
        basis, image = tall_product(basis, vectors), tall_product(image, vectors)
        inner = inner_products(basis, image)
    lower = cholesky((inner + inner.T) / 2)
    factor = solve_triangular(lower, image.T).T
    xp = namespace(factor)
    left = xp.clip(as_double(gram.diagonal()) - square_row_lengths(factor), 0.0, None)
    return LowRankOperator(factor, landmarks=pivots, basis=basis, residual_diagonal=left)


@final
class _Squared(LinearMap):
    """K² for a symmetric map K: the inner products of its columns, whose Cholesky pivots are those of QR."""

    def __init__(self, inner: LinearMap) -> None:
        super().__init__(inner.shape, inner.dtype, symmetric=True, reference=inner.reference)
        self._inner = inner
        self._diagonal = self._square_norms()

    def _square_norms(self) -> Array:
        parts = [square_row_lengths(as_double(self._rows(part))) for part in row_chunks(self.shape[0], ENTRY_ROWS)]
        return namespace(self.reference).concat(parts)

    def _rows(self, rows: Index) -> Array:
        return self._inner.block(rows, slice(None))

    def _multiply(self, v: Array) -> Array:
        return self._inner @ (self._inner @ v)

    def diagonal(self) -> Array:
        """Squared lengths of the columns."""
        return self._diagonal

    def block(self, rows: Index, cols: Index) -> Array:
        """Inner products of some columns with others."""
        return as_double(self._rows(rows)) @ as_double(self._rows(cols)).T
