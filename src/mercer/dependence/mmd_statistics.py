"""MMD² of two samples under all relabellings of their rows, in one pass over the tiles of the kernel matrix.

With a and b the weights of the two samples under a labelling, each of sum one, and v = a - b, the biased statistic is
vᵀKv (RKHS (118)). The weights of all rows together, g, give a = g + βv and b = g - αv, α and β being the shares of the
samples in the total weight, so that the unbiased one (Gretton et al. 2012, Lemma 6)

    aᵀK₀a/(1 - ‖a‖²) + bᵀK₀b/(1 - ‖b‖²) - 2aᵀK₀b,   K₀ = K without its diagonal,

needs vᵀK₀v, gᵀK₀v and gᵀK₀g alone. The first is the work: diag(VᵀKV) for the columns v of all labellings, a product of
matrices for each tile of the upper half of K, 2·(N²/2)·(1 + B) flops a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import UNIT, gamma
from mercer.backends.threads import run_chunks_of, unwatched
from mercer.dependence.relabelling import Relabellings
from mercer.journal import Entry, entry

_LEAST_TILE, _TILE = 256, 1024  # rows and columns of a tile, where memory allows
_ROWS_A_THREAD = 4  # of tiles, that are made before a journal may be written
_TILE_BYTES, _TILE_SHARE = 2**24, 1 / 64  # of a tile of contrasts; a thread has five of that size in hand


@final
class Contrasts:
    """The vectors v = a - b of all labellings, made some rows at a time.

    With u the weights of the rows and z = 1 where a row counts as X, v = c (z - α) u for one number c a labelling.

    Parameters
    ----------
    labels : Relabellings
        Which rows count as X.
    weights : array of shape (N,)
        Positive weights of the rows, which travel with them.

    Attributes
    ----------
    share : array of shape (1 + B,)
        α, the weight of X in that of all rows.
    scale : array of shape (1 + B,)
        c.
    x_squares, y_squares : arrays of shape (1 + B,)
        ‖a‖² and ‖b‖².
    largest : array of shape (N,)
        A bound on abs(v), a, b and the weights of all rows over their sum, in every labelling.
    """

    def __init__(self, labels: Relabellings, weights: Array) -> None:
        self.labels, self.weights = labels, weights
        self._equal = bool((weights == 1.0).all())
        total, squares = weights.sum(), weights**2
        mass, x_squares = np.zeros(labels.count), np.zeros(labels.count)
        for rows in _row_tiles(labels.n_rows, labels.count):
            chosen = labels.block(rows).astype(np.float64)
            mass += chosen @ weights[rows]
            x_squares += chosen @ squares[rows]
        rest = total - mass
        self.share, self.scale = mass / total, 1 / mass + 1 / rest
        self.x_squares, self.y_squares = x_squares / mass**2, (squares.sum() - x_squares) / rest**2
        self.largest = weights * max((1 / mass).max(), (1 / rest).max())

    def block(self, rows: slice) -> Array:
        """Some rows of every v / c, of shape (1 + B, number of rows)."""
        values: Array = self.labels.block(rows) - self.share[:, None]
        if not self._equal:
            values *= self.weights[rows]
        return values


class Statistics(NamedTuple):
    """MMD² of some kernels under all labellings, and how far equal ones may lie apart as computed."""

    values: Array
    roundings: Array


def mmd_statistics(matrices: Sequence[KernelMatrix], contrasts: Contrasts, *, unbiased: bool) -> Statistics:
    """MMD² under every labelling, the data's first, for some kernel matrices of the pooled sample.

    Returns values of shape (K, 1 + B), and their roundings of shape (K,). Nothing of size N × N is stored.
    """
    uniform = contrasts.weights / contrasts.weights.sum()
    values, roundings = quadratic_forms(matrices, contrasts.block, contrasts.labels.count), []
    values *= contrasts.scale**2
    for k, matrix in enumerate(matrices):
        with unwatched():
            sums = _sums(matrix, uniform)
            roundings.append(_rounding(matrix, sums, contrasts, unbiased=unbiased))
        if unbiased:
            values[k] = _unbiased(values[k], sums, contrasts)
    return Statistics(values, np.array(roundings))


def quadratic_forms(matrices: Sequence[KernelMatrix], block: Callable[[slice], Array], count: int) -> Array:
    """vᵀKv for ``count`` vectors v and some symmetric kernel matrices of the same points: an array (K, count).

    Parameters
    ----------
    matrices : sequence of KernelMatrix
        Of the N points.
    block : callable
        Some rows of the vectors as an array of shape (count, number of rows), asked for again and again.
    count : int
        Vectors.

    Notes
    -----
    Each tile of the upper half of K is made once, multiplied by a tile of the vectors, and forgotten. Memory: five
    tiles a thread. The result is the same whatever the number of threads.
    """
    chunks = _row_tiles(matrices[0].shape[0], count)
    with entry("tiles") as kept:
        done, total, width = kept.result or kept.state or (0, np.zeros((len(matrices), count)), chunks[0].stop)
        chunks = row_chunks(matrices[0].shape[0], width)  # sums are rounded as those of the tiles they began with
        of_rows = None
        while done < len(chunks):
            of_rows = of_rows or _shared(matrices, block, chunks)
            rows = range(done, min(len(chunks), done + _rows_at_once(kept, len(chunks))))
            for part in of_rows(rows):
                total += part
            done = rows.stop
            kept.offer(partial(tuple, (done, total, width)))
        kept.finish((done, total, width))
    return total


def _shared(
    matrices: Sequence[KernelMatrix], block: Callable[[slice], Array], chunks: list[slice]
) -> Callable[[Sequence[int]], list[Array]]:
    """What makes the shares of rows of tiles: the workers of a cluster that has the matrices, or our threads."""
    if get_config().cluster is not None:
        from mercer.backends.dask.matrix import shared_by_cluster

        by_workers = shared_by_cluster(matrices, _of_tile_row, block, chunks)
        if by_workers is not None:
            return by_workers
    reference = matrices[0].diagonal()

    def of_row(k: int) -> Array:
        with unwatched():
            return _of_tile_row(matrices, block, chunks, k)

    return partial(run_chunks_of, reference, of_row)


def _rows_at_once(kept: Entry, all_of_them: int) -> int:
    """Rows of tiles between two chances to write a journal: all where there is none."""
    config = get_config()
    threads = config.threads if config.cluster is None else config.cluster.divided_for
    return _ROWS_A_THREAD * threads if kept.is_written else all_of_them


def _of_tile_row(
    matrices: Sequence[KernelMatrix], block: Callable[[slice], Array], chunks: list[slice], k: int
) -> Array:
    """The shares of the tiles (k, k), (k, k + 1), … of all matrices; those beside the diagonal count twice."""
    shares = [np.zeros(()) for _ in matrices]
    own = None
    for right in chunks[k:]:
        first = as_double(matrices[0].block(chunks[k], right))
        vectors = like(block(right), first)
        own = vectors if own is None else own
        xp, factor = namespace(first), 1.0 if right is chunks[k] else 2.0
        for place, matrix in enumerate(matrices):
            tile = first if place == 0 else as_double(matrix.block(chunks[k], right))
            product = vectors @ tile.T
            shares[place] = shares[place] + factor * to_numpy(xp.einsum("ci,ci->c", own, product))
    return np.stack(shares)


def _row_tiles(n_rows: int, count: int) -> list[slice]:
    """Slices of rows, in whole bytes of labels, that fit the memory for ``count`` vectors.

    There are some sixteen or more: tiles on the diagonal are made whole, though half of each would do.
    """
    fitting = min(panel_rows(count, most=_TILE_BYTES, share=_TILE_SHARE), max(_LEAST_TILE, n_rows // 16), _TILE)
    return row_chunks(n_rows, max(8, fitting // 8 * 8))


class _Sums(NamedTuple):
    """gᵀK, the diagonal of K, and g."""

    products: Array
    diagonal: Array
    uniform: Array


def _sums(matrix: KernelMatrix, uniform: Array) -> _Sums:
    diagonal = matrix.diagonal()
    products = matrix.multiply(like(uniform[:, None], diagonal, dtype=matrix.dtype))[:, 0]
    return _Sums(to_numpy(as_double(products)), to_numpy(as_double(diagonal)), uniform)


def _unbiased(forms: Array, sums: _Sums, contrasts: Contrasts) -> Array:
    """The unbiased statistics from vᵀKv."""
    linear, squares = np.zeros_like(forms), np.zeros_like(forms)
    off = sums.products - sums.uniform * sums.diagonal
    for rows in _row_tiles(off.shape[0], forms.shape[0]):
        values = contrasts.block(rows)
        linear += values @ off[rows]
        squares += values**2 @ sums.diagonal[rows]
    linear *= contrasts.scale
    q, t = forms - contrasts.scale**2 * squares, float(sums.uniform @ off)
    alpha, beta = contrasts.share, 1 - contrasts.share
    within_x, within_y = t + 2 * beta * linear + beta**2 * q, t - 2 * alpha * linear + alpha**2 * q
    return q + _excess(contrasts.x_squares) * within_x + _excess(contrasts.y_squares) * within_y


def _excess(squares: Array) -> Array:
    """1/(1 - s) - 1."""
    return squares / (1 - squares)


def _rounding(matrix: KernelMatrix, sums: _Sums, contrasts: Contrasts, *, unbiased: bool) -> float:
    """A bound on how far two statistics that are equal in exact arithmetic may lie apart as computed.

    All forms are at most M = wᵀabs(K)w, w bounding every vector; each is a sum of N² terms with 2N roundings or so, the
    vectors themselves have N, and entries differ with the place of a point in a tile. The unbiased statistic multiplies
    what a form is off by 1/(1 - ‖a‖²), in which the difference is rounded, too.
    """
    w, error = contrasts.largest, matrix.entry_error
    if matrix.nonnegative:
        sizes = sums.products * (w[0] / sums.uniform[0])
    else:
        sizes = to_numpy(matrix.absolute_product(like(w, matrix.diagonal())))
    size = float(w @ sizes)
    of_entries = error.relative * size + error.scaled * float(w @ np.sqrt(abs(sums.diagonal))) ** 2
    once = of_entries + error.absolute * float(w.sum()) ** 2 + gamma(4 * w.shape[0] + 32, UNIT) * size
    excess = float((_excess(contrasts.x_squares) + _excess(contrasts.y_squares)).max()) if unbiased else 0.0
    return 2 * (2 + 4 * excess) * (1 + excess) * once
