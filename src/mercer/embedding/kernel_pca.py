"""Kernel principal components: the leading directions of the features of a kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, as_double, cast, double, dtype_name, like, namespace
from mercer.backends.threads import one_thread_for, single_threaded_blas
from mercer.certificates import Certificate
from mercer.certificates.eigenvalues import (
    bound_below,
    certify_leading,
    enclose_leading,
    residual_bounds,
    starts_for,
)
from mercer.embedding.degeneracy import pad_components, widened
from mercer.embedding.preimage import PreImage, learn_preimage
from mercer.embedding.principal_functions import PrincipalFunctions
from mercer.embedding.principal_pairs import PrincipalPairs, principal_pairs
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit, row_by_row
from mercer.kernels.checks import as_points
from mercer.operators import CenteredOperator, GramOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.progress import Phases, warn_user
from mercer.support import choose_support
from mercer.validation import at_least, declared, non_negative, one_of, positive_number, require_points, true_or_false

_LARGE_SHARE = 0.1  # of the spectrum below zero, from which on leaving it out is warned of
_FAILURE = 1e-9


class IndefiniteKernelWarning(UserWarning):
    """A kernel was embedded of which a large part is negative."""


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the principal components of their features (Schölkopf, Smola, Müller 1998).

    With δ, v the leading eigenpairs of the centred kernel matrix, the coordinates of the training points are √δ v and
    those of a point x are Σᵢ vᵢ k̆(xᵢ, x) / √δ (RKHS (101), (102)).

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel or the name of one; None means ``Gaussian("median")``. It may be indefinite, as kernels made of
        distances are.
    n_components : int, default=2
        Coordinates to compute.
    landmarks : int, array of int, (indices, weights) or estimator, default=None
        Solve on these rows only and extend to the others, as :class:`SDPEmbedding` does; the kernel is resolved on all.
    indefinite : {"clip", "lift", "refuse"}, default="clip"
        Of eigenvalues below zero: leave them out; or add the least constant to all eigenvalues that makes them
        positive, so that every squared distance grows by twice that (Lingoes); or raise an error.
    alpha : float, default=1
        The penalty of ``inverse_transform``.
    tol : float, default=1e-11
        Residual of an eigenpair, as a part of the largest eigenvalue, at which a large problem is solved.
    certify : bool, default=False
        Also prove that no larger eigenvalue was missed.
    random_state : None, int or generator, default=None
        Starts for large samples; the result does not depend on it but for rounding.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        The coordinates of the training points.
    eigenvalues_, eigenvectors_ : arrays of shapes (n_components,) and (m, n_components)
        δ in falling order and v, of W^½K̆W^½ where the rows have weights; zero where there is no further dimension.
    residual_bounds_ : array of shape (n_components,)
        The matrix of the exact kernel has an eigenvalue this near to each of them: a proof that counts rounding.
    eigenvalue_bounds_, largest_left_out_ : array of shape (r, 2) and float, or None
        With ``certify=True``, bounds of the first, second, … r-th largest eigenvalue, and what no other exceeds: a
        proof that fails with probability 1e-9.
    certificate_ : Certificate or None
        With ``certify=True``, bounds on the sum of the leading eigenvalues, the most that as many orthonormal vectors
        can capture, before any lift; :func:`mercer.verify` proves them again.
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        δ over the sum of weights, and δ as a part of the sum of all positive eigenvalues.
    negative_share_, lift_ : floats
        Σ of the negative eigenvalues over Σ of all, in absolute value; the constant added to all eigenvalues.
    landmarks_, sample_weight_ : arrays of shape (m,) or None
        The rows that the problem was solved on, and their weights; None for all of them, and for ones.
    kernel_ : Kernel
        The kernel with its parameters fixed.

    Notes
    -----
    Cost: a dense eigenproblem up to n = 500, beyond it some ten products with the kernel matrix, which is not stored
    unless that pays. New points cost n kernel evaluations each.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import two_moons
    >>> X, labels = two_moons()
    >>> model = KernelPCA(n_components=3).fit(X)
    >>> model.transform(X[:5]).shape, bool(model.residual_bounds_.max() < 1e-9)
    ((5, 3), True)
    """

    embedding_: Array
    eigenvalues_: Array
    eigenvectors_: Array
    residual_bounds_: Array
    eigenvalue_bounds_: Array | None
    largest_left_out_: float | None
    certificate_: Certificate | None
    explained_variance_: Array
    explained_variance_ratio_: Array
    negative_share_: float
    lift_: float
    landmarks_: Array | None
    sample_weight_: Array | None
    _preimage: PreImage | None
    _functions: PrincipalFunctions
    _positive_part: float
    _lengths: Array
    _root_of_weight: Any
    _n_features_out: int
    _fits_blocks = True
    _checks = declared(
        n_components=at_least(1),
        indefinite=one_of("clip", "lift", "refuse"),
        alpha=positive_number,
        tol=non_negative,
        certify=true_or_false,
        verbose=true_or_false,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int = 2,
        landmarks: Any = None,
        indefinite: str = "clip",
        alpha: float = 1.0,
        tol: float = 1e-11,
        certify: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.indefinite = indefinite
        self.alpha = alpha
        self.tol = tol
        self.certify = certify
        self.random_state = random_state
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Compute the leading eigenpairs of the centred kernel matrix of X."""
        given = self._begin_fit(X, sample_weight=sample_weight)
        phases = Phases("reading the points", shown=bool(self.verbose))
        self.kernel_ = given.kernel
        support = choose_support(self.landmarks, given.weights, given.points, self.kernel_, given.rng)
        points = support.points(given.points, self.kernel_)
        with one_thread_for(points.shape[0], points), single_threaded_blas():  # our own threads multiply
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named
                operator = CenteredOperator(GramOperator(self.kernel_, points), weights=support.scaled)
            self._require_room_for_sums(operator)
            phases.begin("finding the leading eigenpairs")
            pairs = self._solve(operator, given.rng)
            self._measure_negative_part(operator, pairs)
            if self.certify:
                phases.begin("proving the eigenvalues")
            exact = in_double_precision(operator, points, support.scaled)
            pairs = self._prove(exact, pairs, support.unit**2, given.rng)
        self.landmarks_, self.sample_weight_ = support
        self._functions = PrincipalFunctions.of(points, support, operator, pairs)
        self._store_spectrum(operator, pairs, support.unit**2)
        at = self._functions.at_points if support.indices is None else self._functions(given.points)
        embedded = at * cast(self._lengths, at.dtype)
        self.embedding_ = pad_components(embedded, int(self.n_components), embedded.shape[1])
        self._n_features_out, self._preimage = int(self.n_components), None
        return self

    def _solve(self, operator: CenteredOperator, rng: np.random.Generator) -> PrincipalPairs:
        count = min(int(self.n_components), operator.shape[0] - 1)
        definite = bool(self.kernel_.properties.positive_definite)
        return principal_pairs(operator, count, definite=definite, tolerance=float(self.tol), rng=rng)

    def _measure_negative_part(self, operator: CenteredOperator, pairs: PrincipalPairs) -> None:
        """Refuse an indefinite kernel, or warn of it, as was asked for."""
        size = pairs.negative.size
        self._positive_part = size + float(as_double(operator.diagonal()).sum())
        self.negative_share_ = size / (self._positive_part + size) if size > 0 else 0.0
        if pairs.negative.least == 0 or self.indefinite == "lift":
            return
        said = (
            f"{self.kernel_!r} is not positive semi-definite on these points: "
            f"{self.negative_share_:.2g} of its spectrum is negative"
        )
        if self.indefinite == "refuse":
            raise ValueError(f"{said}. Choose indefinite='clip' or 'lift', or another kernel.")
        if self.negative_share_ > _LARGE_SHARE:
            warn_user(f"{said}, and left out. indefinite='lift' keeps it.", IndefiniteKernelWarning)

    def _prove(
        self, operator: CenteredOperator, pairs: PrincipalPairs, unit: float, rng: np.random.Generator
    ) -> PrincipalPairs:
        """Bound the errors of the eigenvalues, and keep the pairs whose eigenvalue is positive for certain."""
        rounding, starts = operator.rounding(), starts_for(operator, rng, _FAILURE)
        self.residual_bounds_ = residual_bounds(operator, rounding, pairs.values, pairs.vectors)
        kept = pairs.values > self.residual_bounds_
        if not kept.any():
            raise DegenerateKernelError(self._nothing_found(pairs))
        self.residual_bounds_ = self.residual_bounds_[kept]
        pairs = replace(pairs, values=pairs.values[kept], vectors=pairs.vectors[:, kept])
        self.eigenvalue_bounds_ = self.largest_left_out_ = self.certificate_ = None
        if self.certify:
            xp, count = namespace(pairs.vectors), pairs.vectors.shape[1]
            around = xp.concat([pairs.vectors, pairs.beside], axis=1)
            proved = enclose_leading(operator, rounding, around, starts, count=count)
            self.eigenvalue_bounds_ = xp.stack([proved.lower, proved.upper], axis=1)
            self.largest_left_out_ = proved.beyond
            self.certificate_ = certify_leading(operator, rounding, pairs.vectors, proved, unit)
        lifted = self.indefinite == "lift" and pairs.negative.least < 0
        self.lift_ = bound_below(operator, rounding, pairs.vectors, starts) if lifted else 0.0
        return pairs

    def _require_room_for_sums(self, operator: CenteredOperator) -> None:
        """Refuse a matrix of which a sum of all entries, as means and proofs make them, leaves double precision."""
        largest = float(abs(operator.gram.diagonal()).max()), float(abs(operator.column_means).max())
        if not all(math.isfinite(operator.shape[0] ** 2 * each) for each in largest):
            raise DegenerateKernelError(self._too_large())

    def _too_large(self) -> str:
        return f"{self.kernel_!r} is too large on these points: bring them, or its parameters, to a size near one."

    def _nothing_found(self, pairs: PrincipalPairs) -> str:
        """Why no eigenvalue is positive for certain."""
        if not namespace(pairs.values).isfinite(self.residual_bounds_).all():
            return self._too_large()
        if pairs.negative.least < 0:
            return f"No eigenvalue of {self.kernel_!r} is positive on these points: there is nothing to embed."
        return f"All points look alike under {self.kernel_!r}: no eigenvalue can be told from zero."

    def _store_spectrum(self, operator: CenteredOperator, pairs: PrincipalPairs, unit: float) -> None:
        """What was found in weights divided by ``unit``, in those that were given, and lifted."""
        xp, m, count = namespace(pairs.values), operator.shape[0], int(self.n_components)
        everything, lifted = self._positive_part, pairs.values + self.lift_
        if self.lift_:
            everything += (m - 1) * self.lift_ - pairs.negative.size
        weight = float(m if operator.weights is None else as_double(operator.weights).sum())
        if not math.isfinite(unit * max(float(lifted.max()), float(self.residual_bounds_.max()))):
            raise ValueError(
                f"The eigenvalues of {self.kernel_!r}, which go as weights do, leave double precision: divide "
                "sample_weight by a constant."
            )
        self._lengths, self._root_of_weight = xp.sqrt(lifted), weight**0.5
        self.eigenvectors_ = widened(pairs.vectors, count)
        self.eigenvalues_ = unit * widened(lifted[None, :], count)[0]
        self.residual_bounds_ = unit * widened(self.residual_bounds_[None, :], count)[0]
        self.explained_variance_ = widened(lifted[None, :], count)[0] / weight  # neither depends on the unit
        self.explained_variance_ratio_ = widened(lifted[None, :], count)[0] / everything
        self.lift_ = unit * self.lift_
        if self.eigenvalue_bounds_ is not None and self.largest_left_out_ is not None:
            self.eigenvalue_bounds_ = unit * (self.eigenvalue_bounds_ + self.lift_ / unit)
            self.largest_left_out_ = unit * self.largest_left_out_ + self.lift_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: Σᵢ vᵢ k̆(xᵢ, x) / √δ (RKHS (101)).

        Where eigenvalues were lifted by c, √(δ + c)/δ takes the place of 1/√δ: training points stay where they are.
        """
        X = self._new_points(X)
        values = self._functions(X)
        return widened(values * cast(self._lengths, values.dtype), self._n_features_out)

    @row_by_row
    def eigenfunctions(self, X: Any) -> Array:
        """The Nyström eigenfunctions f(x) = (√n/δ) Σᵢ vᵢ k̆(xᵢ, x) at points X, a column each (RKHS (99), (129)).

        Their squares have the mean one over the training points, and the mean of k̆(x, ·)f is (δ/n) f(x), n being the
        sum of weights.
        """
        X = self._new_points(X)
        return widened(self._root_of_weight * self._functions(X), self._n_features_out)

    def inverse_transform(self, X: Any) -> Array:
        """Points whose coordinates are about X, by kernel ridge regression of the training points on theirs.

        It is scikit-learn's: the same kernel between coordinates, with the penalty ``alpha``. Where the kernel is not
        known to be a positive semi-definite one of vectors, a Gaussian of the median distance takes its place.
        """
        check_is_fitted(self)
        require_points(self.kernel_, "inverse_transform gives points, of which a kernel matrix says nothing")
        coordinates = like(as_points(X), self._functions.at_points)
        if coordinates.shape[1] != self._n_features_out:
            raise ValueError(f"X has {coordinates.shape[1]} coordinates, and the model {self._n_features_out}.")
        if self._preimage is None:
            self._preimage = self._learn_preimage()
        return self._preimage(as_double(coordinates)[:, : self._lengths.shape[0]])

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.embedding.verify_kernel_pca import verify_kernel_pca  # which knows this class

        recheck.refuse_extension("KernelPCA")
        return verify_kernel_pca(self, X, recheck)

    def _learn_preimage(self) -> PreImage:
        functions = self._functions
        coordinates = as_double(functions.at_points) * self._lengths
        weights = functions.support.weights
        return learn_preimage(self.kernel_, coordinates, functions.points, weights, float(self.alpha))


def in_double_precision(operator: CenteredOperator, points: Any, weights: Array | None) -> CenteredOperator:
    """The same map with weights and products in double precision, as proofs want them."""
    gram = operator.gram
    assert isinstance(gram, GramOperator)
    if dtype_name(operator.dtype) == "float64":
        return operator
    return CenteredOperator(GramOperator(gram.kernel, points, dtype=double(points)), weights=weights)
