"""Kernel principal components: the leading directions of the features of a kernel."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.backends.arrays import Array, as_double, cast, namespace
from mercer.backends.rounding import unit_of
from mercer.backends.threads import one_thread_for
from mercer.embedding.degeneracy import pad_components, widened
from mercer.estimator import KernelEstimator, keeps_earlier_fit
from mercer.linalg import leading_eigenpairs
from mercer.operators import CenteredOperator, GramOperator
from mercer.support import Support, choose_support
from mercer.validation import at_least, declared, non_negative, one_of


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the principal components of their features (Schölkopf, Smola, Müller 1998).

    With δ, v the leading eigenpairs of the centred kernel matrix, the coordinates of the training points are √δ v and
    those of a point x are Σᵢ vᵢ k̆(xᵢ, x) / √δ (RKHS (101), (102)).
    """

    embedding_: Array
    eigenvalues_: Array
    eigenvectors_: Array
    landmarks_: Array | None
    sample_weight_: Array | None
    _checks = declared(n_components=at_least(1), tol=non_negative, indefinite=one_of("clip", "lift", "refuse"))

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int = 2,
        landmarks: Any = None,
        indefinite: str = "clip",
        tol: float = 1e-10,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.indefinite = indefinite
        self.tol = tol
        self.random_state = random_state

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Compute the leading eigenpairs of the centred kernel matrix of X."""
        given = self._begin_fit(X, sample_weight=sample_weight)
        X, count = given.points, int(self.n_components)
        self.kernel_ = given.kernel
        support = choose_support(self.landmarks, given.weights, X)
        points = support.points(X, self.kernel_)
        with one_thread_for(points.shape[0], points):
            operator = CenteredOperator(GramOperator(self.kernel_, points), weights=support.scaled)
            values, vectors = leading_eigenpairs(operator, min(count, operator.shape[0] - 1), rng=given.rng)
        kept = values > operator.shape[0] * 2 * unit_of(operator.dtype) * max(float(values[0]), 0.0)
        values, vectors = as_double(values[kept]), as_double(vectors[:, kept])
        self.landmarks_, self.sample_weight_ = support
        self._store(X, points, support, operator, values, vectors)
        self._n_features_out = count
        return self

    def _store(
        self, X: Any, points: Any, support: Support, operator: CenteredOperator, values: Array, vectors: Array
    ) -> None:
        xp, count = namespace(vectors), int(self.n_components)
        root = 1.0 if operator.weights is None else xp.sqrt(as_double(operator.weights))[:, None]
        coefficients = root * vectors / xp.sqrt(values)
        self._points, self._support = points, support
        self._coefficients = coefficients
        self._offset = as_double(operator.column_means) @ coefficients
        self.eigenvectors_ = vectors
        self.eigenvalues_ = widened(values[None, :], count)[0]
        if support.indices is None:
            embedded = cast(xp.sqrt(values) * vectors / root, operator.dtype)
        else:
            embedded = self._extended(X)
        self.embedding_ = pad_components(embedded, count, values.shape[0])

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: Σᵢ vᵢ k̆(xᵢ, x) / √δ."""
        X = self._new_points(X)
        return widened(self._extended(X), self._n_features_out)

    def _extended(self, X: Any) -> Array:
        columns = self._support.columns(X, self.kernel_)
        product = GramOperator(self.kernel_, columns, self._points) @ self._coefficients
        return product - cast(self._offset, product.dtype)
