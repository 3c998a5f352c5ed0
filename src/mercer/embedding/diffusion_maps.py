"""Diffusion maps with the Nyström extension."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.backends.arrays import Array, like
from mercer.backends.rounding import unit_of
from mercer.backends.threads import one_thread_for
from mercer.embedding.degeneracy import pad_components, refuse_degenerate, widened
from mercer.embedding.extension import log_degrees_and_sums
from mercer.estimator import KernelEstimator, keeps_earlier_fit
from mercer.kernels import SelfTuning
from mercer.linalg import leading_eigenpairs
from mercer.operators import DiffusionOperator, GramOperator
from mercer.support import Copies, many_copies
from mercer.validation import at_least, checked_kernel, declared, non_negative


class DiffusionMaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the slow directions of a diffusion between them (Coifman, Lafon 2006).

    The coordinates are λᵗψ, where λ, ψ are the leading non-trivial eigenpairs of the Markov matrix Diag(m)⁻¹K.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel with positive row sums, or the name of one with its default parameters, such as ``"rbf"`` or
        ``"laplacian"``. None means a graph of neighbours, ``SelfTuning()``; the papers' setting is
        ``Gaussian("median")``.
    n_components : int, default=2
        Coordinates to compute.
    time : float, default=1
        The diffusion time t ≥ 0.
    alpha : float, default=0
        Density correction: 0 for none, 1 to recover the geometry whatever the density.
    random_state : None, int or generator, default=None
        Start of the eigensolver for large samples; the result does not depend on it but for rounding.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        The coordinates of the training points.
    eigenvalues_ : array of shape (n_components,)
        λ in falling order; zero where there is no further dimension.
    stationary_ : array of shape (n,)
        The stationary distribution of the diffusion.
    kernel_ : Kernel
        The kernel with its parameters fixed.

    Notes
    -----
    Cost: a dense eigenproblem up to n = 1500, beyond it some tens of products with the kernel matrix, which is not
    stored unless that pays. New points cost n kernel evaluations each.

    Examples
    --------
    >>> from mercer import DiffusionMaps
    >>> from mercer.datasets import three_clusters
    >>> X, labels = three_clusters()
    >>> DiffusionMaps().fit_transform(X).shape
    (310, 2)
    """

    embedding_: Array
    eigenvalues_: Array
    stationary_: Array
    _default_kernel = staticmethod(SelfTuning)
    _checks = declared(n_components=at_least(1), time=non_negative, alpha=non_negative)

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int = 2,
        time: float = 1.0,
        alpha: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.time = time
        self.alpha = alpha
        self.random_state = random_state

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None) -> DiffusionMaps:
        """Compute the eigenpairs of the diffusion on X."""
        given = self._begin_fit(X)
        X, count = given.points, int(self.n_components)
        with one_thread_for(X.shape[0], X):
            copies = many_copies(X) if checked_kernel(given.given_kernel).is_local else None
            self.kernel_ = given.kernel
            operator = self._operator(X, copies)
            values, vectors = leading_eigenpairs(operator, min(count, operator.shape[0] - 1), rng=given.rng)
        kept = values > X.shape[0] * 2 * unit_of(operator.dtype) * max(float(values[0]), 0.0)
        values, vectors = values[kept], vectors[:, kept]
        self._eigenfunctions = vectors / operator.stationary[:, None]
        self._scale = operator.weights * operator.scale
        self.stationary_ = operator.stationary**2
        self.eigenvalues_ = widened(values[None, :], count)[0]
        embedded = values ** float(self.time) * self._eigenfunctions
        if copies is not None:
            self.stationary_ = (self.stationary_ / operator.weights)[copies.place]
            embedded = embedded[copies.place]
        self.embedding_ = pad_components(embedded, count, values.shape[0])
        self._n_features_out = count
        return self

    def _operator(self, X: Any, copies: Copies | None) -> DiffusionOperator:
        """The diffusion on X; of copies, on one of each with as much weight as there are."""
        weights = None if copies is None else like(copies.counts.astype(np.float64), X)
        self._training = X if copies is None else X[copies.first]
        operator = DiffusionOperator(
            GramOperator(self.kernel_, self._training, weights=weights), alpha=float(self.alpha)
        )
        refuse_degenerate(operator, self.kernel_, self._training)
        return operator

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: ψ(x) = λ⁻¹ Σⱼ p(x, xⱼ) ψ(xⱼ)."""
        X = self._new_points(X)
        functions = self._eigenfunctions
        _, averages, _ = log_degrees_and_sums(self.kernel_, X, self._training, functions, self._scale)
        values = self.eigenvalues_[: functions.shape[1]]
        coordinates = values ** (float(self.time) - 1) * averages
        return widened(coordinates, self._n_features_out)
