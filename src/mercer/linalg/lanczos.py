"""Block Lanczos on the complement of a known subspace, with full reorthogonalisation, and what its Ritz values prove.

Lanczos with k steps from a Gaussian start underestimates the largest eigenvalue of a psd matrix of order n by more than
the factor 1 - ε with probability at most

    1.648 √n exp(-√ε (2k - 1))        (Kuczyński, Woźniakowski 1992, Theorem 4.2).

**Blocks.** The block Krylov space of b independent Gaussian starts, span{Mʲ g_i : j < k, i ≤ b}, contains the Krylov
space span{Mʲ g_i : j < k} of each of them. By Rayleigh–Ritz its largest Ritz value is at least that of each, so it is
too small by more than 1 - ε only if all b are. The starts are independent, so the probability of that is at most the
b-th power of the one above. For 1e-9 each of eight starts may fail with probability .075, and the number of products
one after another falls by three; where kernel entries are evaluated on the fly, a product with eight columns costs
hardly more time than one with a single column.

**Rank.** A block that loses rank is cut to the directions that are left: the span, hence the argument, stays the same.
Once no direction is left the space is invariant: it is the Krylov space of every larger k.

**Several looks.** One may look at the Ritz value at several depths of the *same* space and keep the best bound, as long
as the depths are fixed beforehand and the probabilities of all looks are added up: a sum needs no independence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.linalg import qr

from mercer.backends.arrays import Array, is_tensor, like, namespace
from mercer.backends.rounding import TINY

Multiply = Callable[[Array], Array]

_CLOSED = 1e-14


@final
class BlockLanczos:
    """The Krylov space of (I - QQᵀ) M (I - QQᵀ) from Gaussian starts in the complement of Q, grown step by step.

    Parameters
    ----------
    multiply : callable
        V ↦ M V for a symmetric M and blocks of shape (n, b).
    basis : array of shape (n, q)
        Q, with orthonormal columns, in double precision; q may be 0. The space is of its library and on its device.
    rng : numpy.random.Generator
        The starts are Gaussian, hence uniform in direction and independent of M, of Q and of each other. They come from
        NumPy whatever the library, so that all of them start alike.
    block : int, default=1
        The number b of starts. A step costs one product with b columns.
    start : array of shape (n, b), optional
        Columns to start from in place of Gaussian ones, for eigenpairs: :func:`underestimate` says nothing of them.

    Attributes
    ----------
    depth : int
        Steps taken, the k of the bound.
    n_columns : int
        Columns M was applied to.
    closed : bool
        Whether the space is invariant: more steps would add nothing.
    """

    def __init__(
        self, multiply: Multiply, basis: Array, rng: np.random.Generator, *, block: int = 1, start: Array | None = None
    ) -> None:
        n, q = basis.shape
        self.multiply, self.basis = multiply, basis
        self.depth = self.n_columns = 0
        self._store = self._empty((n, 4 * block))
        self._size = 0
        self._projected = self._empty((0, 0))
        self._ritz_of: tuple[Array, Any] | None = None  # the projected map and its eigenpairs
        starts = like(rng.standard_normal((n, max(0, min(block, n - q)))), basis) if start is None else start
        self._next, self._link = _orthonormal(self._complement(self._complement(starts)), 1e-8)
        self._starts = self._link
        self._next_start = 0
        self.closed = self._next.shape[1] == 0

    @property
    def vectors(self) -> Array:
        """V, an orthonormal basis of the space, n × m."""
        return self._store[:, : self._size]

    def extend(self, depth: int) -> None:
        """Grow the space until it is ``depth`` steps deep or closed."""
        while self.depth < depth and not self.closed:
            self._step()

    def _step(self) -> None:
        block, old = self._next, self._size
        new = old + block.shape[1]
        self._append(block)
        product = self.multiply(block)
        self.n_columns += block.shape[1]
        self.depth += 1
        product = self._complement(product)
        V = self.vectors
        coefficients = V.T @ product
        product = product - V @ coefficients
        product = self._complement(product)
        product = product - V @ (V.T @ product)  # twice is enough (Kahan, Parlett)
        projected = self._empty((new, new))
        projected[:old, :old] = self._projected
        projected[:, old:] = coefficients
        projected[old:, :] = coefficients.T
        projected[old:, old:] = (coefficients[old:] + coefficients[old:].T) / 2
        self._projected = projected
        size = max(float(abs(projected).max()), TINY)
        room = max(0, V.shape[0] - self.basis.shape[1] - new)
        fresh, _ = _orthonormal(product, _CLOSED * size)
        fresh = self._complement(fresh[:, :room])
        fresh, _ = namespace(V).linalg.qr(fresh - V @ (V.T @ fresh))
        self._next, self._link, self._next_start = fresh, fresh.T @ product, old
        self.closed = fresh.shape[1] == 0

    def _append(self, block: Array) -> None:
        new = self._size + block.shape[1]
        if new > self._store.shape[1]:
            grown = self._empty((self._store.shape[0], max(new, 3 * self._store.shape[1] // 2)))
            grown[:, : self._size] = self.vectors
            self._store = grown
        self._store[:, self._size : new] = block
        self._size = new

    def _complement(self, V: Array) -> Array:
        return V - self.basis @ (self.basis.T @ V)

    def _empty(self, shape: tuple[int, int]) -> Array:
        xp = namespace(self.basis)
        return xp.empty(shape, dtype=xp.float64, device=self.basis.device)

    def ritz_values(self) -> Array:
        """All Ritz values in falling order; they lie inside the spectrum."""
        xp = namespace(self.basis)
        return xp.flip(xp.linalg.eigvalsh(self._projected), axis=0)

    def residual_norms(self) -> Array:
        """‖(I - QQᵀ)Mx - θx‖ of every Ritz pair, in the order of the values."""
        _, U = self._ritz()
        return namespace(U).linalg.vector_norm(self._link @ U[self._next_start :], axis=0)

    def ritz_pairs(self, count: int) -> tuple[Array, Array, Array]:
        """The leading Ritz values θ, their vectors X (n × count), and (I - QQᵀ) M X, which takes no further product."""
        values, U = self._ritz()
        U = U[:, :count]
        X = self.vectors @ U
        product = self.vectors @ (self._projected @ U) + self._next @ (self._link @ U[self._next_start :])
        return values[:count], X, product

    def trace_of(self, function: Callable[[Array], Array]) -> float:
        """An estimate of the trace of f(M) on the complement of Q: the mean of gᵀf(M)g over the Gaussian starts.

        Each is a Gauss quadrature with the Ritz values for nodes (Golub, Meurant 2010). After a restart it is none.
        """
        values, U = self._ritz()
        first = self._starts.T @ U[: self._starts.shape[0]]
        return float(((first * first) @ function(values)).sum()) / self._starts.shape[1]

    def restart(self, count: int) -> None:
        """Keep the leading Ritz vectors alone, with all that is known of M on them, and go on from there.

        The space is then no Krylov space of the starts, and :func:`underestimate` says nothing of it: for eigenpairs,
        not for proofs.
        """
        values, U = self._ritz()
        U, old = U[:, :count], self.vectors
        kept, link = old @ U, self._link @ U[self._next_start :]
        self._store[:, : kept.shape[1]] = kept
        self._size, self._link, self._next_start = kept.shape[1], link, 0
        xp = namespace(kept)
        self._projected = xp.eye(self._size, dtype=kept.dtype, device=kept.device) * values[:count]

    def _ritz(self) -> tuple[Array, Array]:
        """The eigenpairs of the projected map in falling order, found once for every map."""
        if self._ritz_of is None or self._ritz_of[0] is not self._projected:
            xp = namespace(self.basis)
            values, U = xp.linalg.eigh(self._projected)
            self._ritz_of = self._projected, (xp.flip(values, axis=0), xp.flip(U, axis=1))
        values, U = self._ritz_of[1]
        return values, U


def _orthonormal(W: Array, negligible: float) -> tuple[Array, Array]:
    """An orthonormal basis of the columns of W, directions of a size up to ``negligible`` left out, and W in it."""
    if W.shape[1] == 0:
        return W, W[:0]
    if is_tensor(W):  # torch has no pivoting: what is short is told by the singular values of the triangle
        xp = namespace(W)
        Q, R = xp.linalg.qr(W)
        left, sizes, _ = xp.linalg.svd(R, full_matrices=False)
        Q = Q @ left[:, sizes > negligible]
    else:
        Q, R, _ = qr(W, mode="economic", pivoting=True)
        Q = Q[:, np.abs(np.diagonal(R)) > negligible]
    return Q, Q.T @ W


def underestimate(depth: int, dimension: int, failure_probability: float, block: int = 1) -> float:
    """The ε with which the largest Ritz value θ of a psd map satisfies λmax ≤ θ/(1 - ε), except with this probability.

    Parameters
    ----------
    depth : int
        Steps k.
    dimension : int
        Order n of the map, or of the complement it is restricted to.
    failure_probability : float
        Of all starts together.
    block : int, default=1
        Independent starts b.

    Returns
    -------
    float
        (log(1.648 √n / p^(1/b)) / (2k - 1))², or 1, which proves nothing, where that is larger.
    """
    exponent = np.log(1.648 * np.sqrt(dimension)) - np.log(failure_probability) / block
    return float(min(1.0, (exponent / (2 * depth - 1)) ** 2))


def depth_for(epsilon: float, dimension: int, failure_probability: float, block: int = 1) -> int:
    """The least depth at which :func:`underestimate` is at most ε."""
    exponent = np.log(1.648 * np.sqrt(dimension)) - np.log(failure_probability) / block
    return int(np.ceil((exponent / np.sqrt(epsilon) + 1) / 2))


@final
@dataclass(frozen=True)
class RandomStarts:
    """Where a Krylov space starts, and the chance that its Ritz values mislead.

    Attributes
    ----------
    rng : numpy.random.Generator
        Starting blocks.
    failure_probability : float
        Of everything that is concluded from these starts.
    block : int, default=1
        Columns of a starting block.
    most_columns : int, optional
        Columns of a Krylov space at most, all of which are kept; the first look is taken in any case.
    """

    rng: np.random.Generator
    failure_probability: float
    block: int = 1
    most_columns: int | None = None

    def share(self, parts: int) -> RandomStarts:
        """The same with one of so many equal parts of the probability."""
        return replace(self, failure_probability=self.failure_probability / parts)


@final
class Looks:
    """A Krylov space of a symmetric map on the complement of Q, and when it is looked at.

    The first look is where the Ritz value is known to a factor of two, the others follow at growing distances.

    Parameters
    ----------
    multiply : callable
        V ↦ M V for blocks of columns.
    basis : array of shape (n, q)
        Q, with orthonormal columns, q < n.
    starts : RandomStarts
        The starts, and the probability of all looks together.
    count : int
        The number of looks.
    growth : float
        Of the depth, from one look to the next.
    """

    def __init__(self, multiply: Multiply, basis: Array, starts: RandomStarts, *, count: int, growth: float) -> None:
        self.space = BlockLanczos(multiply, basis, starts.rng, block=starts.block)
        self.dimension = basis.shape[0] - basis.shape[1]
        self._share, self._block = starts.failure_probability / count, starts.block
        self.first = self.depth_for(0.5)
        depths = [int(np.ceil(self.first * growth**j)) for j in range(count)]
        if starts.most_columns is not None:
            depths = [depth for depth in depths if depth * starts.block <= starts.most_columns] or depths[:1]
        self._depths = depths

    def __iter__(self) -> Iterator[float]:
        """Grow the space from look to look, and give its largest Ritz value at each."""
        for depth in self._depths:
            self.space.extend(depth)
            yield float(self.space.ritz_values()[0])

    def underestimate(self) -> float:
        """The ε of the present Ritz value; an invariant space is the Krylov space of any depth."""
        depth = self._depths[-1] if self.space.closed else self.space.depth
        return underestimate(depth, self.dimension, self._share, self._block)

    def depth_for(self, epsilon: float) -> int:
        """The least depth at which the underestimate of one look is at most ε."""
        return depth_for(epsilon, self.dimension, self._share, self._block)
