"""The estimator: a density that is a sum of squares, fitted in the MMD geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import certify_spectrahedron
from mercer.density.reference import choose_reference
from mercer.density.support import choose_support
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.validation import positive_number
from mercer.linalg.random import as_generator
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.solvers.spectrahedron import accelerated_spectrahedron
from mercer.validation import checked_points, checked_weights, resolved_kernel, whole_number

Array = np.ndarray[Any, np.dtype[Any]]
_BLOCK = 8192


class SumOfSquaresDensity(DensityMixin, BaseEstimator):
    """A probability density p(x) = k_xᵀ B k_x, B ≽ 0, as close to a sample in MMD as it can be (SOS).

    Attributes
    ----------
    support_ : array of shape (m, d)
        The points z that k_x = (k(x, z_p))_p refers to.
    coefficients_ : array of shape (m, m)
        B.
    factor_ : array of shape (m, r)
        F with B = F Fᵀ: the density is ‖Fᵀk_x‖².
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        support: Any = 100,
        regularization: float = 1e-3,
        reference: Any = "lebesgue",
        box: Any = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 10_000,
        random_state: Any = None,
        callback: Any = None,
    ) -> None:
        self.kernel = kernel
        self.support = support
        self.regularization = regularization
        self.reference = reference
        self.box = box
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SumOfSquaresDensity:
        """Fit the density to the rows of X, which may have weights."""
        X = checked_points(self, X, fitting=True, least=1)
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n, "sample_weight")
        weights = weights / np.sum(weights)
        rng = as_generator(self.random_state)
        self.kernel_ = resolved_kernel(self.kernel, X, weights)
        self.support_ = choose_support(self.support, X, weights, rng)
        self.measure_ = choose_reference(self.reference, self.box, X)
        integrals = kernel_integrals(self.kernel_, self.support_, self.measure_)
        gram = np.asarray(self.kernel_(self.support_), np.float64)
        target = np.asarray(GramOperator(self.kernel_, self.support_, X) @ weights, np.float64)
        problem = SumOfSquares(
            integrals, gram, target, regularization=positive_number(self.regularization, "regularization", zero=True)
        )
        result = accelerated_spectrahedron(
            problem,
            tol=positive_number(self.tol, "tol") * problem.constant,
            max_iter=whole_number(self.max_iter, "max_iter", 1),
            callback=self.callback,
        )
        self._store(problem, result)
        return self

    def _store(self, problem: SumOfSquares, result: Any) -> None:
        self.certificate_ = certify_spectrahedron(problem, result.factor)
        self.history_, self.status_ = result.history, result.status
        self.log_scale_ = problem.integrals.log_scale
        self.integration_error_ = problem.integrals.error
        self._factor = problem.coefficients(result.factor)
        self.factor_ = self._factor * np.exp(-0.5 * self.log_scale_)
        self.coefficients_ = self.factor_ @ self.factor_.T
        self.rank_ = int(self.factor_.shape[1])

    def density(self, X: Any) -> Array:
        """The density at the rows of X, with respect to Lebesgue's measure."""
        return np.asarray(np.exp(self._log_density(X)))

    def score_samples(self, X: Any) -> Array:
        """The logarithm of the density at the rows of X."""
        return np.maximum(self._log_density(X), np.log(np.finfo(np.float64).tiny))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def _log_density(self, X: Any) -> Array:
        check_is_fitted(self)
        X = checked_points(self, X, fitting=False)
        squares = np.empty(X.shape[0])
        for lo in range(0, X.shape[0], _BLOCK):
            squares[lo : lo + _BLOCK] = np.sum(
                (self.kernel_(X[lo : lo + _BLOCK], self.support_) @ self._factor) ** 2, 1
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(squares) - self.log_scale_ + self.measure_.log_density(X))
