"""The pseudo-inverse of a sparse positive semi-definite matrix whose null vectors are the constants, by its columns."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.cpu.selected_inverse import inverse_diagonal
from mercer.backends.rounding import EPS, EntryError
from mercer.kernels.linked_points import LinkedPoints, Links
from mercer.kernels.trained import digest_of

_SOLVED = 64  # columns that are solved for at a time
_SINGULAR = 8 * EPS  # the least part of the largest pivot that is not rounding


@final
class InverseColumns:
    """The kernel w(x)ᵀ M⁺ w(y): M⁺ the pseudo-inverse, w(x) weights on training points, which sum to one.

    With one row and column of M left out, the rest is positive definite and has a sparse factor; its inverse, with
    zeros at that row and column, is G, and M⁺ = HGH. A column of M⁺ is one solve. An identity is the numbers of the
    training points on which a point has weights, and these weights.

    Parameters
    ----------
    points : LinkedPoints
        The training points.
    matrix : sparse array of shape (m, m)
        M, symmetric, with M1 = 0.
    weigh : callable
        Of points and their links, the weights of the links.
    what : str
        What M is called in a sentence.
    """

    linked: LinkedPoints
    matrix: Any
    _weigh: Any
    _what: str

    def __init__(self, points: LinkedPoints, matrix: Any, weigh: Any, what: str) -> None:
        self.linked, self.matrix, self._weigh, self._what = points, csr_array(matrix), weigh, what
        _ = self._centre  # which refuses a matrix without an inverse

    def __getstate__(self) -> dict[str, Any]:
        """All but the factor, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_factor", "_centre", "_diagonal")}

    @property
    def positions(self) -> Array:
        """The distinct training points."""
        return self.linked.positions

    @cached_property
    def digest(self) -> str:
        """What tells these training points and their matrix from others."""
        return digest_of(self._what, self.positions, self.matrix.indices, self.matrix.data)

    @property
    def width(self) -> int:
        return 2 * max(self.linked.k, 1)

    def read(self, points: Array) -> Array:
        links = self.linked.links(points)
        fresh = np.flatnonzero(links.known < 0)
        weights = np.zeros(links.lengths.shape)
        weights[:, 0] = 1.0
        if fresh.size:
            weights[fresh] = self._weigh(points[fresh], Links(*(part[fresh] for part in links)))
        return np.column_stack([links.numbers, weights])

    def block(self, rows: Array, cols: Array, out: Array) -> None:
        if rows.shape[0] > cols.shape[0]:
            rows, cols, out = cols, rows, out.T
        numbers, weights = _links(cols)
        for part in row_chunks(rows.shape[0], _SOLVED):
            solved = self._columns(rows[part])
            for some in row_chunks(numbers.shape[0], rows_within(2**20, _SOLVED)):
                out[part, some] = _weighed(solved, numbers[some], weights[some])

    def own(self, identity: Array) -> Array:
        numbers, weights = _links(identity)
        out, training = np.empty(identity.shape[0]), ~weights[:, 1:].any(axis=1)
        if training.any():
            out[training] = self._diagonal[numbers[training, 0]]
        fresh = np.flatnonzero(~training)
        out[fresh] = self._solved_diagonal(identity[fresh])
        return out

    def _solved_diagonal(self, identity: Array) -> Array:
        """w(x)ᵀ M⁺ w(x), by a solve each."""
        out, (numbers, weights) = np.empty(identity.shape[0]), _links(identity)
        for part in row_chunks(identity.shape[0], _SOLVED):
            solved = self._columns(identity[part])
            rows = np.arange(solved.shape[0])
            out[part] = sum(weights[part, p] * solved[rows, numbers[part, p]] for p in range(numbers.shape[1]))
        return out

    @cached_property
    def _diagonal(self) -> Array:
        """Of M⁺ = HGH, from the diagonal of G."""
        m = self.positions.shape[0]
        grounded = self._diagonal_of_factor() if m > 1 else None
        if grounded is None:
            return self._solved_diagonal(np.column_stack([np.arange(m), np.ones(m)]))
        return np.append(grounded, 0.0) - 2 * self._centre + self._centre.mean()

    def _diagonal_of_factor(self) -> Array | None:
        factor = self._factor
        symmetric = np.array_equal(factor.perm_r, factor.perm_c)  # as it is but for pivots off the diagonal
        return inverse_diagonal(factor.L, factor.U.diagonal())[factor.perm_c] if symmetric else None

    def roundings(self, *identities: Array) -> EntryError:
        """The kernel is what the solves give: of a matrix that is nearly singular no more is told beforehand."""
        return EntryError(2.0)

    def _columns(self, identity: Array) -> Array:
        """M⁺ w(x) of every identity, one a row."""
        (numbers, weights), m = _links(identity), self.positions.shape[0]
        right = np.zeros((m, identity.shape[0]))
        np.add.at(right, (numbers, np.arange(identity.shape[0])[:, None]), weights)
        solved = self._grounded(right) - self._centre[:, None]
        return np.ascontiguousarray((solved - solved.mean(axis=0)).T)

    def _grounded(self, right: Array) -> Array:
        """G b for columns b."""
        solved = np.zeros_like(right)
        if right.shape[0] > 1:
            solved[:-1] = self._factor.solve(np.ascontiguousarray(right[:-1]))
        return solved

    @cached_property
    def _centre(self) -> Array:
        m = self.positions.shape[0]
        return self._grounded(np.full((m, 1), 1.0 / m))[:, 0]

    @cached_property
    def _factor(self) -> Any:
        rest = csc_array(self.matrix[:-1, :-1])
        try:
            factor = splu(rest, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except MemoryError:
            raise MemoryError(
                f"The factor of {self._what} of {rest.shape[0] + 1} points does not fit the memory: lower n_neighbors, "
                "or give fewer points."
            ) from None
        except RuntimeError:  # a pivot that is zero
            factor = None
        pivots = np.zeros(1) if factor is None else np.abs(factor.U.diagonal())
        if pivots.min() <= _SINGULAR * pivots.max():
            raise ValueError(
                f"{self._what} has more null vectors than the constants, to working precision, so there is no one "
                "kernel of it: raise n_neighbors or the regularisation."
            )
        return factor


def _links(identity: Array) -> tuple[Array, Array]:
    numbers, weights = np.split(identity, 2, axis=1)
    return numbers.astype(np.int64), weights


def _weighed(solved: Array, numbers: Array, weights: Array) -> Array:
    """Σ over links of weights times entries, in the order of the links; most points have one link."""
    total = weights[:, 0] * solved[:, numbers[:, 0]]
    more = np.flatnonzero(weights[:, 1:].any(axis=1))
    for p in range(1, numbers.shape[1]) if more.size else ():
        total[:, more] += weights[more, p] * solved[:, numbers[more, p]]
    return total
