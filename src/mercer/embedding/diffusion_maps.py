"""Diffusion maps with the Nyström extension."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.backends.arrays import Array, cast, namespace, taken
from mercer.backends.rounding import unit_of
from mercer.backends.threads import one_thread_for
from mercer.embedding.degeneracy import pad_components, refuse_degenerate, widened
from mercer.embedding.extension import log_degrees_and_sums
from mercer.estimator import KernelEstimator, keeps_earlier_fit, row_by_row
from mercer.kernels import Precomputed, SelfTuning
from mercer.linalg import leading_eigenpairs
from mercer.linalg.eigen import deterministic_signs
from mercer.operators import DiffusionOperator, GramOperator
from mercer.progress import Phases
from mercer.support import Support, choose_support, without_copies
from mercer.validation import at_least, checked_kernel, declared, non_negative, one_of, true_or_false

_NORMALIZATIONS = ("markov", "symmetric")


class DiffusionMaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the slow directions of a diffusion between them (Coifman, Lafon 2006).

    The coordinates are λᵗψ, where λ, ψ are the leading non-trivial eigenpairs of the Markov matrix Diag(m)⁻¹K, or λᵗu
    with the eigenvectors u = √(m/vol) ψ of the symmetric matrix Diag(m)^-½ K Diag(m)^-½ (PSD22 (1.2)).

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
    normalization : {"markov", "symmetric"}, default="markov"
        ``"markov"``: ψ, of length one in the stationary distribution (PSD17 (19)). Distances are diffusion distances,
        and points in sparse places lie far out. ``"symmetric"``: u, of length one over the rows, small where the data
        are sparse.
    landmarks : int, array of int, (indices, weights), estimator or None, default=None
        Diffuse among these rows only, or among so many, each with the weight of the rows it stands for, and extend to
        the others; see :class:`mercer.Landmarks`.
    random_state : None, int or generator, default=None
        Source of the landmarks, and start of the eigensolver for large samples, on which the result does not depend
        but for rounding.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        The coordinates of the training points.
    eigenvalues_ : array of shape (n_components,)
        λ in falling order; zero where there is no further dimension.
    stationary_ : array of shape (n,) or (m,)
        The stationary distribution of the diffusion, on the rows between which it goes.
    landmarks_, sample_weight_ : arrays of shape (m,) or None
        The rows between which it goes, None for all, and their weights, None for ones. Where most rows of a neighbour
        graph are copies, it goes between one of each.
    kernel_ : Kernel
        The kernel with its parameters fixed.

    Notes
    -----
    Cost: a dense eigenproblem up to n = 1500, beyond it some tens of products with the kernel matrix, which is not
    stored unless that pays. New points cost n kernel evaluations each. Through m landmarks all of it is that of m
    points, and n·m kernel evaluations for the others.

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
    landmarks_: Array | None
    sample_weight_: Array | None
    _eigenfunctions: Array
    _scale: Array
    _corrections: Array
    _log_volume: float | None
    _training: Any
    _n_features_out: int
    _default_kernel = staticmethod(SelfTuning)
    _fits_blocks = True
    _checks = declared(
        n_components=at_least(1),
        time=non_negative,
        alpha=non_negative,
        normalization=one_of(*_NORMALIZATIONS),
        verbose=true_or_false,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int = 2,
        time: float = 1.0,
        alpha: float = 0.0,
        normalization: str = "markov",
        landmarks: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.time = time
        self.alpha = alpha
        self.normalization = normalization
        self.landmarks = landmarks
        self.random_state = random_state
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DiffusionMaps:
        """Compute the eigenpairs of the diffusion on X.

        Parameters
        ----------
        X : array of shape (n, d)
            The points; for a precomputed kernel the n × n matrix, dense or sparse.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            Non-negative weights. A row of weight two counts as the same row twice; one of weight zero takes no part and
            is embedded as a new point. Their unit is of no account, but for ``normalization="symmetric"``: u has length
            one over all rows, repeated ones too.
        """
        given = self._begin_fit(X, sample_weight=sample_weight)
        X, count = given.points, int(self.n_components)
        phases = Phases("reading the points", shown=bool(self.verbose))
        with one_thread_for(X.shape[0], X):
            support = choose_support(self.landmarks, given.weights, X, given.given_kernel, given.rng)
            if self.landmarks is None and checked_kernel(given.given_kernel).is_local:
                support = without_copies(support, X)
            self.landmarks_, self.sample_weight_ = support
            self.kernel_ = given.kernel_on(support)
            operator = self._operator(X, support)
            phases.begin("finding the leading eigenpairs")
            values, vectors = leading_eigenpairs(operator, min(count, operator.shape[0] - 1), rng=given.rng)
        kept = values > X.shape[0] * 2 * unit_of(operator.dtype) * max(float(values[0]), 0.0)
        values, vectors = values[kept], vectors[:, kept]
        vectors = vectors * cast(deterministic_signs(vectors / operator.weights[:, None] ** 0.5), vectors.dtype)
        self._eigenfunctions = vectors / operator.stationary[:, None]
        self._scale = operator.weights * operator.scale
        self._corrections = operator.scale
        self.stationary_ = operator.stationary**2
        self.eigenvalues_ = widened(values[None, :], count)[0]
        self._n_features_out = count
        self._log_volume = None
        embedded = values ** float(self.time) * self._eigenfunctions
        if self.normalization == "symmetric":
            self._log_volume = _log_volume(operator, support.unit)
            embedded = support.lengths(values ** float(self.time) * vectors / operator.weights[:, None] ** 0.5)
        if support.indices is not None:
            everywhere = self._extended(X)
            everywhere[support.indices] = cast(embedded, everywhere.dtype)
            embedded = everywhere
        self.embedding_ = pad_components(embedded, count, values.shape[0])
        return self

    def _operator(self, X: Any, support: Support) -> DiffusionOperator:
        """The diffusion between the points of the support."""
        self._training = support.points(X, self.kernel_)
        gram = GramOperator(self.kernel_, self._training, weights=support.scaled)
        operator = DiffusionOperator(gram, alpha=float(self.alpha))
        refuse_degenerate(operator, self.kernel_, self._training)
        return operator

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: ψ(x) = λ⁻¹ Σⱼ p(x, xⱼ) ψ(xⱼ), and u(x) = √(m(x)/vol) ψ(x)."""
        return widened(self._extended(self._new_points(X)), self._n_features_out)

    @row_by_row
    def _extended(self, X: Any) -> Array:
        functions = self._eigenfunctions
        if isinstance(self.kernel_, Precomputed) and self.landmarks_ is not None:
            X = taken(X, self.landmarks_, axis=1)
        values = self.eigenvalues_[: functions.shape[1]] ** (float(self.time) - 1)
        if self._log_volume is None:
            return values * log_degrees_and_sums(self.kernel_, X, self._training, functions, self._scale)[1]
        xp = namespace(functions)
        averaged = xp.concat([functions, 1 / self._corrections[:, None]], axis=1)
        log_sums, averages = log_degrees_and_sums(self.kernel_, X, self._training, averaged, self._scale)
        log_densities = log_sums + xp.log(averages[:, -1])  # of Σ wⱼ k(x, xⱼ), where the sums have the weights w q^-α
        log_degrees = log_sums - float(self.alpha) * log_densities
        return xp.exp((log_degrees - self._log_volume) / 2)[:, None] * values * averages[:, :-1]


def _log_volume(operator: DiffusionOperator, unit: float) -> float:
    """log vol of weights that were divided by the square of a unit, from the heaviest point: stationary² = w m/vol."""
    xp = namespace(operator.degrees)
    at = int(xp.argmax(operator.stationary))
    own, share = float(operator.weights[at] * operator.degrees[at]), float(operator.stationary[at])
    return float(np.log(own) - 2 * np.log(share)) + 2 * float(np.log(unit))
