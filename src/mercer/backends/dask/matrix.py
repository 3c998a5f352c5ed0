"""A kernel matrix whose products run on a Dask cluster.

The points lie on the workers in groups of rows, sent once. A product sends the columns, group by group, and pairs of
groups are multiplied wherever Dask finds a free thread: of a symmetric matrix the pairs of the upper triangle, each for
its rows and for its columns. Sums of a group of rows are made on the workers; what comes back is the product.

Cost of a product with r columns: those of one machine in flops, on all threads of the cluster; n r numbers sent and
n r received. Between the workers go the points, once, to those in whose blocks they are, and (g + 1) n r numbers for g
groups of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.matrix import cpu_matrix
from mercer.backends.dask import tasks
from mercer.backends.dask.cluster import Cluster, Groups
from mercer.backends.entries import Side
from mercer.backends.forms import Form, Stored
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EntryError

LEAST_ENTRIES = 2**27  # of a matrix: Dask costs this process as much as to multiply by fewer
_CAST = 1  # rounding of the sum in double to the precision of the entries


def belongs_on_cluster(form: Form, rows: Any, cols: Any) -> bool:
    """Whether a cluster multiplies with this matrix sooner than this machine: many entries, made from dense points."""
    others = rows if cols is None else cols
    dense = all(isinstance(side, np.ndarray) and side.ndim == 2 for side in (rows, others))
    return dense and rows.shape[0] * others.shape[0] >= LEAST_ENTRIES and not _is_given(form)


def _is_given(form: Form) -> bool:
    return isinstance(form, Stored) or any(_is_given(part) for part in form.parts)


@final
class ClusterMatrix(KernelMatrix):
    """The matrix of a form on points that are here and, from the first product on, on the workers.

    Single entries, blocks and the diagonal are made here: they are made faster than they would be fetched.

    Parameters
    ----------
    cluster : Cluster
        Where products run.
    form : Form
        What an entry is.
    rows, cols : arrays of shape (n, d) and (m, d)
        Points; ``cols=None`` means the symmetric matrix of ``rows`` with itself.
    dtype : dtype, optional
        Of the entries.
    """

    def __init__(self, cluster: Cluster, form: Form, rows: Array, cols: Array | None = None, *, dtype: Any = None):
        self._cluster, self._form = cluster, form
        self._points = rows, cols
        self._here = cpu_matrix(form, rows, cols, dtype=dtype)
        self.shape, self.dtype, self.symmetric = self._here.shape, self._here.dtype, self._here.symmetric
        self.n_features = self._here.n_features

    @cached_property
    def _sides(self) -> tuple[Groups, Groups]:
        rows, cols = self._points
        first = self._cluster.rows(rows)
        return first, first if cols is None else self._cluster.rows(cols)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """The blocks that are made: of a symmetric matrix those of the upper triangle, with themselves first."""
        first, second = (len(side.slices) for side in self._sides)
        if not self.symmetric:
            return [(p, q) for p in range(first) for q in range(second)]
        return [(p, (p + step) % first) for step in range(first) for p in range(first) if p + step < first]

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        return self._product(tasks.products, np.asarray(v, self.dtype), transpose).astype(self.dtype, copy=False)

    def row_sums(self, *, transpose: bool = False) -> Array:
        ones = np.ones((self.shape[0 if transpose else 1], 1), self.dtype)
        return self.multiply(ones, transpose=transpose)[:, 0]

    def absolute_product(self, v: Any) -> Array:
        return self._product(tasks.absolute_products, np.asarray(v, np.float64), False)

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        self._cluster.begin_product()
        rows, cols = self._sides
        columns = self._cluster.columns(np.asarray(v, np.float64), cols.slices)
        pairs = [(p, q) for p in range(len(rows.slices)) for q in range(len(cols.slices))]
        form, name = self._cluster.form(self._form), self.dtype.name
        calls = [(form, *self._block(p, q), columns[q], name) for p, q in pairs]
        parts = self._made(tasks.scaled_products, pairs, calls)
        width = len(cols.slices)
        runs = [parts[i * width : (i + 1) * width] for i in range(len(rows.slices))]
        found = self._cluster.gather(self._cluster.apply(tasks.summed_scaled, runs), parts)
        return np.concatenate([s for s, _ in found]), np.concatenate([P for _, P in found])

    def _block(self, p: int, q: int) -> tuple[Any, Any]:
        """The points of a block, on the worker that makes it; None for the columns where it is symmetric."""
        (rows, cols), worker = self._sides, self._cluster.place(p, q)
        first = self._cluster.near(rows, p, worker)
        return first, None if self.symmetric and p == q else self._cluster.near(cols, q, worker)

    def _made(self, task: tasks.Task, pairs: list[tuple[int, int]], calls: list[tuple[Any, ...]]) -> list[Any]:
        """The futures of a task for every pair, on the worker that has its points."""
        places = [self._cluster.place(p, q) for p, q in pairs]
        return self._cluster.apply_at(places, task, *zip(*calls, strict=True))

    def _product(self, task: tasks.Task, v: Array, transpose: bool) -> Array:
        """Σ over the blocks of what they do to columns, in double precision."""
        self._cluster.begin_product()
        transpose = transpose and not self.symmetric
        rows, cols = self._sides
        given, made = (rows, cols) if transpose else (cols, rows)
        columns = self._cluster.columns(v, given.slices)
        form, name, pairs = self._cluster.form(self._form), self.dtype.name, self._pairs
        calls: list[tuple[Any, ...]] = []
        terms: list[list[tuple[int, int]]] = [[] for _ in made.slices]
        for i, (p, q) in enumerate(pairs):
            both = self.symmetric and p != q
            across, down = columns[p] if transpose or both else None, None if transpose else columns[q]
            calls.append((form, *self._block(p, q), across, down, name))
            if not transpose:
                terms[p].append((i, 0))
            if transpose or both:
                terms[q].append((i, 1))
        parts = self._made(task, pairs, calls)
        sums = self._cluster.apply(tasks.summed, [[(parts[i], half) for i, half in one] for one in terms])
        return np.concatenate(self._cluster.gather(sums, parts))

    def dense(self) -> Array:
        return self._here.dense()

    def block(self, rows: Any, cols: Any) -> Array:
        return self._here.block(rows, cols)

    def log_block(self, rows: Any, cols: Any) -> Array:
        return self._here.log_block(rows, cols)

    def diagonal(self, side: Side = "rows") -> Array:
        return self._here.diagonal(side)

    @property
    def nonnegative(self) -> bool:
        return self._here.nonnegative

    @property
    def entry_error(self) -> EntryError:
        """That of the worst block: groups of points have their own centre and choose their own arithmetic."""
        return self._accuracy.entries

    @property
    def summation_depth(self) -> int:
        """That of the deepest block, the sum over blocks and the last one to the precision of the entries."""
        return self._accuracy.depth + max(len(side.slices) for side in self._sides) + _CAST

    @cached_property
    def _accuracy(self) -> tasks.Accuracy:
        form, name = self._cluster.form(self._form), self.dtype.name
        calls = [(form, *self._block(p, q), name) for p, q in self._pairs]
        found = self._cluster.gather(self._made(tasks.accuracy, self._pairs, calls))
        return tasks.worst([*found, tasks.Accuracy(self._here.entry_error, self._here.summation_depth)])

    def worth_storing(self, allowed: int) -> bool:
        """What is multiplied on the workers is not stored here."""
        return False

    def stored(self) -> KernelMatrix:
        return self


def shared_by_cluster(
    matrices: Sequence[KernelMatrix], function: Callable[..., Any], *arguments: Any
) -> Callable[[Sequence[Any]], list[Any]] | None:
    """What answers ``function(matrices, *arguments, part)`` for some parts, shared by the workers of a cluster.

    Each has all points and makes blocks of the matrices as this process would, so that answers are the same to the last
    bit. None where the matrices are not those of one set of points on a cluster.
    """
    of_cluster = [matrix for matrix in matrices if isinstance(matrix, ClusterMatrix) and matrix.symmetric]
    if len(of_cluster) < len(matrices) or any(one._points[0] is not of_cluster[0]._points[0] for one in of_cluster):
        return None
    cluster, points = of_cluster[0]._cluster, of_cluster[0]._points[0]
    forms = [(matrix._form, matrix.dtype.name) for matrix in of_cluster]
    makers = cluster.on_all(tasks.of_matrices, points, forms, function, arguments)

    def answers(parts: Sequence[Any]) -> list[Any]:
        asked = [makers[i % len(makers)] for i in range(len(parts))]
        futures = cluster.apply(tasks.asked, asked, list(parts))
        return cluster.gather(futures, futures)

    return answers
