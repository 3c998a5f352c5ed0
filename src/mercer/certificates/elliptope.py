"""The optimality certificate of the embedding, recomputed from the iterate and the operator alone.

For any H with unit rows, z = diag(J H Hᵀ) gives the lower bound Σ zᵢ. For any y > 0,

    M = Diag(y)^-½ J Diag(y)^-½,   J ≼ λmax(M) Diag(y),   p* ≤ max(λmax(M), 0) Σ yᵢ.

At an optimum y = z gives λmax(M) = 1 and no gap (PSD22 (B.1)); Diag(z)^½ H then spans eigenvectors of M of eigenvalue
one. Where some zᵢ is not safely positive, y = max(z, diag J) serves. λmax(M) is *bounded*, not estimated, in one of
five ways:

- a Cholesky factorisation of (1 + ε) I - M (:mod:`mercer.certificates.factorisation`): a proof; n² entries,
  n³/3 flops, usually one time, and 3 n² doubles;
- a partial Cholesky factor of A and the trace of what it leaves out (:mod:`mercer.certificates.low_rank_bound`): a
  proof, no products but those with H where the rank is high enough;
- the same with Lanczos on what is left out, which holds up to a stated probability;
- Lanczos on the complement of the known eigenvectors (:mod:`mercer.certificates.krylov`), likewise;
- Chebyshev polynomials on that complement (:mod:`mercer.certificates.chebyshev`), likewise: no basis is kept, and
  nothing need be known of the lower end of the spectrum.

All but the first take r columns for H, none or some tens more, and as many vectors of length n; a factor of rank k adds
n k entries, n k² flops and n k doubles.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, like
from mercer.certificates.certificate import EmbeddingCertificate
from mercer.certificates.dense import certify_by_factorisation
from mercer.certificates.matrix_free import MatrixFreeProof
from mercer.linalg.lanczos import RandomStarts
from mercer.linalg.tall import first_axis
from mercer.operators import LowRankOperator
from mercer.problems import Elliptope

METHODS = ("auto", "factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos", "chebyshev-filter")
_DENSE_FIRST_UP_TO = 2000
_DENSE_UP_TO = 8000
_WIDE, _WIDE_COLUMNS = 8, 128  # columns of a block, and of the Krylov space they usually end in
_DENSE_SHARE, _WIDE_SHARE = 0.75, 0.25  # of the memory limit


def certify_elliptope(
    problem: Elliptope,
    H: Array,
    *,
    rng: np.random.Generator,
    spectrum: bool = True,
    failure_probability: float = 1e-9,
    stand_in: LowRankOperator | None = None,
    tol: float | None = None,
    method: str = "auto",
    block: int | None = None,
    multipliers: Array | None = None,
) -> EmbeddingCertificate:
    """Prove bounds on the optimum of the problem from any matrix H with rows of about unit length.

    Parameters
    ----------
    problem : Elliptope
        The problem; nothing is taken from a solver.
    H : array of shape (n, r)
        Any point. Rows are brought to unit length first.
    rng : numpy.random.Generator
        Starting vectors and pivots.
    spectrum : bool, default=True
        Also find the least eigenvalues of the dual slack, at the cost of a few columns.
    failure_probability : float, default=1e-9
        The probability with which the upper bound may be wrong, at most; 0 is reported for a proof without chance.
    stand_in : LowRankOperator, optional
        A partial Cholesky factor of A = Ã + vvᵀ, v = ``problem.removed``, as :func:`mercer.rp_cholesky` returns it. It
        is compared with the operator at its pivots. Without it the certificate builds its own where that is cheap.
    tol : float, optional
        The relative gap that matters: stop as soon as it is proved. Left out, the bound is about as sharp as can be.
    method : str, default="auto"
        How to bound: "factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos", "chebyshev-filter",
        or "auto", which takes the trace bound where a stand-in is given and suffices; a factorisation up to n = 2000
        (8000 without ``tol``); beyond, in this order until the tolerance is proved, the trace bound of a stand-in of
        its own, Lanczos on what that leaves out, deflated Lanczos (the Chebyshev filter for a sparse matrix), and a
        factorisation up to n = 8000.
    block : int, optional
        Columns of a Lanczos block; if left out, one where the Gram matrix is stored or memory short, eight otherwise.
    multipliers : array of shape (n,), optional
        A vector y for which J ≼ Diag(y) is hoped for. A factorisation tries it first, the other ways do not use it.

    Returns
    -------
    EmbeddingCertificate
        Bounds for the exact kernel at the points given and for its entries in floating point.
    """
    H = _checked(problem, H, method)
    factorise = partial(certify_by_factorisation, problem, H, rng, spectrum=spectrum, tol=tol, multipliers=multipliers)
    n = int(problem.active.sum())
    fits = n <= _DENSE_UP_TO and 32 * n * n <= get_config().share(_DENSE_SHARE)
    small = fits and (n <= _DENSE_FIRST_UP_TO or tol is None)
    direct = method == "auto" and small and (stand_in is None or problem.indefinite)
    if direct or method == "factorisation" or n == 0:
        return factorise()
    starts = RandomStarts(rng, failure_probability, _block(problem) if block is None else block)
    proof = MatrixFreeProof(problem, H, starts, tol=tol)
    proof.attempt(method, stand_in, quick=small)
    certificate = _with_chance(proof.certificate(spectrum), problem)
    return _better(certificate, factorise()) if method == "auto" and fits and not proof.done else certificate


def _checked(problem: Elliptope, H: Array, method: str) -> Array:
    """The point with rows of unit length, in double precision."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}.")
    if problem.linear is not None:
        raise ValueError("A certificate is for a problem without a linear term.")
    H = as_double(like(H, problem.scale))
    return problem.project(H, first_axis(H.shape[1], H))


def _with_chance(certificate: EmbeddingCertificate, problem: Elliptope) -> EmbeddingCertificate:
    """The certificate with the probability that the shift of the problem, on which it builds, is too small."""
    chance = certificate.failure_probability + problem.failure_probability
    return replace(certificate, failure_probability=chance) if problem.failure_probability else certificate


def _better(first: EmbeddingCertificate, second: EmbeddingCertificate) -> EmbeddingCertificate:
    """The narrower of two certificates, with the columns of both."""
    best, other = (first, second) if first.relative_gap <= second.relative_gap else (second, first)
    return replace(best, n_products=best.n_products + other.n_products)


def _block(problem: Elliptope) -> int:
    gram = getattr(problem.operator, "gram", problem.operator)
    wide = 8 * problem.size * _WIDE_COLUMNS <= get_config().share(_WIDE_SHARE)
    return _WIDE if wide and not getattr(gram, "is_stored", False) else 1
