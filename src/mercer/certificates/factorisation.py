"""Bounds on eigenvalues of dense symmetric matrices that hold in floating point.

A Cholesky factorisation that runs to completion computes R with RᵀR = S + ΔS and |ΔS| ≤ γ |Rᵀ||R| entry by entry,
γ = (n+1)u/(1-(n+1)u) (Higham 2002, Theorem 10.3), so λmin(S) ≥ -γ ‖|Rᵀ||R|‖∞. The bound is componentwise: about 5e-12
at n = 2000, a hundred times below the one by traces.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.backends.arrays import Array, add_to_diagonal, is_tensor, namespace
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import TINY, UNIT, gamma
from mercer.linalg.eigen import largest_of
from mercer.linalg.factors import solve_by_factor, upper_factor
from mercer.linalg.lanczos import BlockLanczos

_TRIES = 60
_CHUNK = 512
_DENSE_UP_TO = 500
_BASIS = 60
_RESTARTS, _SWEEPS = 10, 20
_INSIDE = 0.99  # the inverse of the least distance is found from below, to about a thousandth


def bound_largest_eigenvalue(M: Array, guess: float, *, slack: float = 0.0, rounds: int = 1) -> float:
    """A number that λmax of the symmetric matrix M provably does not exceed.

    ``guess`` is where to try first, and may be wrong: each failed factorisation raises it, by ``slack`` relative to the
    guess at least. A factor that is found in this way then tells by Lanczos on its inverse where λmax lies, and the
    proof is repeated just above it, ``rounds`` times, each a hundred times nearer.
    """
    n = M.shape[0]
    size = max(abs(guess), _largest_of(M.diagonal()), TINY)
    least = margin = max(4 * n * UNIT, 1e-14) * size
    for attempt in range(_TRIES):
        value = guess + margin
        proof = prove_below(M, value)
        if proof is not None:
            bound, R = proof
            return value + bound if attempt == 0 else min(value + bound, _sharpened(M, value, R, least, rounds))
        margin = max(4 * margin, slack * size)
    raise ArithmeticError("No factorisation succeeded: the matrix is not symmetric or not finite.")


def _largest_of(values: Array) -> float:
    return float(abs(values).max()) if values.shape[0] else 0.0


def _sharpened(M: Array, value: float, R: Array, least: float, rounds: int) -> float:
    """The bound just above λmax, found by inverse iteration from a factor of value·I - M; infinite if that fails."""
    n = M.shape[0]
    if n <= 2:
        return np.inf
    values = _leading(lambda V: solve_by_factor(R, V), n, 1, np.random.default_rng(0), R, tol=1e-3)
    if values is None:
        return np.inf
    guess = value - _INSIDE / float(values[0])
    for margin in (least, 16 * least, 256 * least):
        proof = prove_below(M, guess + margin) if guess + margin < value else None
        if proof is not None:
            found = guess + margin + proof[0]
            return found if rounds == 1 else min(found, _sharpened(M, guess + margin, proof[1], least, rounds - 1))
    return np.inf


def prove_below(M: Array, value: float) -> tuple[float, Array] | None:
    """If value·I - M factors: a bound on how far below zero its least eigenvalue can lie, and the factor; else None."""
    S = -M
    add_to_diagonal(S, value)
    formed = UNIT * _largest_of(S.diagonal())  # of the subtraction on the diagonal
    off_host = is_tensor(S) and S.device.type != "cpu"
    kept = namespace(S).asarray(S, copy=True) if off_host else S
    R = upper_factor(S)
    if R is None:
        return None
    bound = _componentwise_bound(R) + formed
    if off_host:  # a device's library promises no order of operations: what it made of S is looked at
        bound += 1.01 * float(namespace(R).linalg.vector_norm(R.T @ R - kept))
    return (bound, R) if np.isfinite(bound) else None  # some LAPACKs factor NaN without complaint


def _leading(
    multiply: Callable[[Array], Array],
    n: int,
    count: int,
    rng: np.random.Generator,
    reference: Array,
    *,
    tol: float,
) -> Array | None:
    """The largest eigenvalues of a map, from below: by ARPACK, None where that fails, or by our own Lanczos on tensors.

    Tensors have the reference's library; ours does not restart, and takes a block of as many columns as are wanted.
    """
    if is_tensor(reference):
        xp = namespace(reference)
        basis = xp.empty((n, 0), dtype=xp.float64, device=reference.device)
        space = BlockLanczos(multiply, basis, rng, block=count)
        space.extend(_BASIS)
        return space.ritz_values()[:count]
    map_ = LinearOperator((n, n), matvec=lambda v: multiply(np.reshape(v, (-1, 1))).ravel(), dtype=np.float64)
    start, basis = rng.standard_normal(n), min(n, _BASIS)
    try:
        return eigsh(
            map_, k=count, which="LA", v0=start, ncv=basis, maxiter=_RESTARTS, tol=tol, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        return None


def _componentwise_bound(R: Array) -> float:
    """γ ‖|Rᵀ||R|‖∞ for an upper triangular R, whose lower triangle is not looked at."""
    xp, n = namespace(R), R.shape[0]
    row_sums = xp.empty(n, dtype=xp.float64, device=R.device)
    products = xp.zeros(n, dtype=xp.float64, device=R.device)
    for rows in row_chunks(n, _CHUNK):
        row_sums[rows] = abs(xp.triu(R[rows], k=rows.start)).sum(axis=1)
    for rows in row_chunks(n, _CHUNK):
        products += row_sums[rows] @ abs(xp.triu(R[rows], k=rows.start))
    return 1.01 * gamma(n + 1, UNIT) * (float(products.max()) if n else 0.0)


def estimate_largest_eigenvalue(M: Array, start: Array) -> float:
    """About λmax(M), from below and with no promise: dense for small matrices, else Lanczos from a start near it.

    Lanczos on tensors takes random starts, and the start near λmax counts with what it gives at once.
    """
    if M.shape[0] <= _DENSE_UP_TO:
        return largest_of(M)
    at_start = float(start @ (M @ start)) / float(start @ start)
    if is_tensor(M):
        found = _leading(lambda V: M @ V, M.shape[0], 1, np.random.default_rng(0), M, tol=1e-10)
        assert found is not None
        return max(float(found[0]), at_start)
    try:
        values = eigsh(M, k=1, which="LA", v0=start, ncv=_BASIS, maxiter=20, tol=1e-10, return_eigenvectors=False)
    except ArpackNoConvergence:
        return at_start
    return float(values[0])


def least_eigenvalues(S: Array, count: int, shift: float, rng: np.random.Generator) -> Array:
    """The least eigenvalues of a symmetric matrix S, by Lanczos on the inverse of S + shift·I; dense for small ones.

    ``shift`` should make S + shift·I positive definite; it is raised where it does not. The values are estimates.
    """
    xp, n = namespace(S), S.shape[0]
    if n <= 256:
        return xp.linalg.eigvalsh(S)[:count]
    shift = max(shift, 1e-9 * _largest_of(S.diagonal()))
    while True:
        shifted = xp.asarray(S, copy=True)
        add_to_diagonal(shifted, shift)
        R = upper_factor(shifted)
        if R is not None:
            break
        shift *= 4
    values = _leading(lambda V: solve_by_factor(R, V), n, count, rng, S, tol=1e-8)
    if values is None:  # many eigenvalues close to zero, as where points are nearly isolated
        Q = rng.standard_normal((n, 4 * count))
        for _ in range(_SWEEPS):
            Q, _ = np.linalg.qr(solve_by_factor(R, Q))
        values = np.linalg.eigvalsh(Q.T @ solve_by_factor(R, Q))[-count:]
    return xp.sort(1 / values - shift)
