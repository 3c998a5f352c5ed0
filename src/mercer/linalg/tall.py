"""Products with tall arrays, n rows and some or some hundred columns, on our own threads where they are long.

BLAS gives such products to its threads badly, and not in the same order on every machine. Here rows or columns go in
chunks whose number depends on the shape alone, so that the result is the same to the last bit for any number of
threads. Tensors are multiplied by their own library. Chunks are tall, for arrays stored by columns, as factors are;
:mod:`mercer.linalg.dense_products` is for arrays stored by rows.
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, is_tensor, namespace
from mercer.backends.chunks import TALL_ROWS, depth_of_sum, row_chunks
from mercer.backends.threads import run_chunks

_COLUMNS = 128  # of a tile of a Gram matrix
_TASKS = 32  # tiles of a small Gram matrix are summed in parts, so that there is work for many threads


def tall_product(F: Array, M: Array) -> Array:
    """F M for an n × k array and a k × r one: n k r multiplications, rows in chunks."""
    if is_tensor(F) or F.shape[0] <= TALL_ROWS:
        return F @ M
    out = np.empty((F.shape[0], M.shape[1]), np.result_type(F, M))
    run_chunks(lambda rows: np.matmul(F[rows], M, out=out[rows]), row_chunks(F.shape[0], TALL_ROWS))
    return out


def inner_products(F: Array, X: Array) -> Array:
    """FᵀX for an n × k array and an n × r one: n k r multiplications, rows in chunks, summed in their order."""
    if is_tensor(F) or F.shape[0] <= TALL_ROWS:
        return F.T @ X
    return sum(run_chunks(lambda rows: F[rows].T @ X[rows], row_chunks(F.shape[0], TALL_ROWS)))


def inner_products_depth(F: Array) -> int:
    """Roundings that a term of :func:`inner_products` goes through at most, whatever the order within a chunk."""
    n = int(F.shape[0])
    return n if is_tensor(F) else depth_of_sum(n, TALL_ROWS)


def row_products(A: Array, B: Array) -> Array:
    """Aᵢ · Bᵢ of every row."""
    return namespace(A).sum(A * B, axis=1) if is_tensor(A) else np.einsum("ij,ij->i", A, B)


def row_lengths(A: Array) -> Array:
    """‖Aᵢ‖ of every row."""
    return namespace(A).linalg.vector_norm(A, axis=1) if is_tensor(A) else np.sqrt(np.einsum("ij,ij->i", A, A))


def unit_rows(A: Array) -> Array:
    """Every row divided by its length; a row of zeros stays one."""
    lengths = row_lengths(A)
    return A / namespace(A).where(lengths > 0, lengths, 1.0)[:, None]


def inner_product(A: Array, B: Array) -> float:
    """⟨A, B⟩, the sum of the products of their entries."""
    return float(namespace(A).sum(A * B)) if is_tensor(A) else float(np.vdot(A, B))


def first_axis(rank: int, reference: Array) -> Array:
    """The first unit vector as a row, of a reference's library and device, in double precision."""
    xp = namespace(reference)
    return xp.eye(1, rank, dtype=xp.float64, device=reference.device)


def square_row_lengths(F: Array) -> Array:
    """Σⱼ Fᵢⱼ² of every row."""
    if is_tensor(F):
        return namespace(F).sum(F * F, axis=1)
    parts = run_chunks(lambda rows: np.einsum("ij,ij->i", F[rows], F[rows]), row_chunks(F.shape[0], TALL_ROWS))
    return np.concatenate(parts) if parts else np.zeros(0)


def weighted_gram(F: Array, s: Array) -> Array:
    """(DF)ᵀDF, D = Diag(s), for an n × k array: n k²/2 multiplications, since a tile and its mirror image are one.

    Neither DF nor a copy of F is made, only some thousand rows of 128 columns at a time on each thread.
    """
    n, k = F.shape
    if is_tensor(F):
        scaled = s[:, None] * F
        return scaled.T @ scaled
    columns = row_chunks(k, _COLUMNS)
    pairs = [(left, right) for j, right in enumerate(columns) for left in columns[: j + 1]]
    parts = row_chunks(n, max(TALL_ROWS, -(-n // -(-_TASKS // max(1, len(pairs))))))

    def tile(task: tuple[slice, slice, slice]) -> Array:
        left, right, rows = task
        total = np.zeros((left.stop - left.start, right.stop - right.start))
        for lo in range(rows.start, rows.stop, TALL_ROWS):
            part = slice(lo, min(lo + TALL_ROWS, rows.stop))
            scaled = s[part, None] * F[part, right]
            other = scaled if left == right else s[part, None] * F[part, left]
            total += other.T @ scaled
        return total

    tasks = [(left, right, rows) for left, right in pairs for rows in parts]
    gram = np.zeros((k, k))
    for (left, right, _), value in zip(tasks, run_chunks(tile, tasks), strict=True):
        gram[left, right] += value
    for left, right in pairs:
        gram[right, left] = gram[left, right].T
    return gram
