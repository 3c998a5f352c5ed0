"""Maximum variance unfolding: points drawn as far apart as the distances of neighbours allow, with a proof."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.fingerprint import DataSeen
from mercer.backends.threads import blas_for
from mercer.certificates import Certificate
from mercer.embedding.degeneracy import pad_components, widened
from mercer.embedding.local_extension import LocalExtension
from mercer.embedding.unfolding_problem import PosedUnfolding
from mercer.embedding.unfolding_solve import SolvedUnfolding, solve_unfolding
from mercer.estimator import Recheck, by_rows, keeps_earlier_fit
from mercer.journal import identify
from mercer.progress import make_visible, warn_user
from mercer.solvers.solution import Iteration, Status
from mercer.validation import (
    at_least,
    checked_weights,
    declared,
    fraction,
    function_of,
    one_of,
    optional,
    positive_number,
    true_or_false,
)
from mercer.wording import OneLine


class MaximumVarianceUnfolding(OneLine, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Draw points apart as far as the distances of neighbours allow (Weinberger and Saul 2006; RKHS (114)).

    The semi-definite programme max Tr B, B ≽ 0 centred, with ‖yᵢ - yⱼ‖ kept for neighbours: a sheet that is rolled up
    is unrolled. The user guide says more.

    Parameters
    ----------
    n_neighbors : int, default=6
        Two points are neighbours if one is among so many nearest of the other.
    distances : {"kept", "not exceeded"}, default="kept"
        What holds for neighbours; the second lets points come closer, and can always be met.
    distance_tol : float, default=1e-3
        The part of itself by which a distance that is kept may change.
    n_components : int or None, default=2
        Coordinates of ``embedding_``, those of most variance; None for all of ``rank_``.
    metric : {"euclidean", "precomputed"}, default="euclidean"
        Precomputed: X is a matrix of distances, whose stored entries are the pairs if it is sparse.
    connect : bool, default=False
        Join the parts of a graph that falls apart by their shortest edges; else it is refused.
    landmarks : int, array of int, tuple, estimator or None, default=None
        Solve on these rows alone, with weights where a tuple or an estimator has them; an integer takes so many, spread
        evenly, each with the weight of the points nearest to it. The other rows are embedded as new points.
    tol : float, default=1e-4
        The relative gap to prove.
    max_iter : int, default=100
        Steps of the solver at most.
    callback : callable, default=None
        Called with each :class:`mercer.solvers.Iteration`; True ends the run.
    verbose : bool, default=False
        Log the steps.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        The coordinates of the training points.
    coordinates_ : array of shape (n_landmarks, r)
        All coordinates of the points that the programme was solved on, r of them, in which the distances are kept.
    rank_ : int
        How many of them hold all of the variance but the part ``tol``.
    eigenvalues_, explained_variance_ratio_ : arrays of shape (r,)
        The variance of each coordinate, times the total weight, and its share.
    certificate_ : UnfoldingCertificate
        Bounds on the largest variance, times the total weight.
    violation_ : float
        The part by which a squared distance passes its bounds, at most; zero if none does.
    pairs_, multipliers_ : arrays of shape (E, 2) and (E,)
        Neighbours as rows of X, and w for each pair: its tension over its length, positive where it holds points back.
    landmarks_, sample_weight_ : arrays or None
        The rows that the programme was solved on and their weights; None means all, and ones.

    Examples
    --------
    >>> from mercer import MaximumVarianceUnfolding
    >>> from mercer.datasets import swiss_roll
    >>> X, angle = swiss_roll(200)
    >>> model = MaximumVarianceUnfolding(n_neighbors=4, tol=1e-3).fit(X)
    >>> model.embedding_.shape, model.certificate_.holds(1e-3)
    ((200, 2), True)
    """

    embedding_: Array
    coordinates_: Array
    eigenvalues_: Array
    explained_variance_ratio_: Array
    certificate_: Certificate
    rank_: int
    violation_: float
    pairs_: Array
    multipliers_: Array
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    landmarks_: Array | None
    sample_weight_: Array | None
    n_features_in_: int
    _extension: LocalExtension | None
    _n_features_out: int
    _data_seen: DataSeen
    _checks = declared(
        n_neighbors=at_least(1),
        distances=one_of("kept", "not exceeded"),
        n_components=optional(at_least(1)),
        metric=one_of("euclidean", "precomputed"),
        connect=true_or_false,
        tol=fraction,
        max_iter=at_least(1),
        callback=function_of("an Iteration"),
    )

    def __init__(
        self,
        n_neighbors: int = 6,
        *,
        distances: str = "kept",
        distance_tol: float = 1e-3,
        n_components: int | None = 2,
        metric: str = "euclidean",
        connect: bool = False,
        landmarks: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.distances = distances
        self.distance_tol = distance_tol
        self.n_components = n_components
        self.metric = metric
        self.connect = connect
        self.landmarks = landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = self.metric == "precomputed"
        return tags

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MaximumVarianceUnfolding:
        """Solve the programme of X and certify the solution.

        Parameters
        ----------
        X : array of shape (n, d)
            The points; for ``metric="precomputed"`` the n × n matrix of distances, dense or sparse.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            Non-negative weights. A row of weight two counts as the same row twice; one of weight zero takes no part and
            is embedded as a new point.
        """
        self._check_parameters()
        if self.verbose:
            make_visible()
        X = self._checked(X, fitting=True)
        self._data_seen = DataSeen.of(X)
        weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0], "sample_weight")
        identify(type(self).__name__, self.get_params(deep=False), X, weights)
        posed = PosedUnfolding.of(self, X, weights)
        with blas_for(posed.problem.pairs.shape[0]):
            solved = solve_unfolding(posed, self)
        self._store(X, posed, solved)
        self._report(solved.status, posed.uneven_pairs())
        return self

    def _store(self, X: Any, posed: PosedUnfolding, solved: SolvedUnfolding) -> None:
        self.landmarks_, self.sample_weight_ = posed.support
        self.pairs_, self.multipliers_ = posed.named_pairs, posed.in_user_weights(solved.multipliers)
        self.certificate_ = posed.in_units(solved.certificate)
        self.violation_ = self.certificate_.violation
        self.coordinates_ = (posed.unit * solved.points)[posed.place]
        self.history_, self.status_ = solved.history, solved.status
        self.n_iter_ = solved.history[-1].number
        for name, value in posed.described(self.coordinates_, float(self.tol)).items():
            setattr(self, name, value)
        self._extension = posed.extension(self.coordinates_, int(self.n_neighbors))
        self._n_features_out = self.rank_ if self.n_components is None else int(self.n_components)
        available = self.coordinates_.shape[1]
        self.embedding_ = pad_components(self._embedded(X, posed), self._n_features_out, available)

    def _embedded(self, X: Any, posed: PosedUnfolding) -> Array:
        """All coordinates of all rows."""
        if posed.support.indices is None:
            return self.coordinates_
        assert self._extension is not None  # a graph that is given has no landmarks
        embedded = self._extension.of(X)
        embedded[posed.support.indices] = self.coordinates_
        return embedded

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    @by_rows
    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: those of the neighbours, combined as the point is of them.

        At a training point this gives its row of ``embedding_``.
        """
        check_is_fitted(self)
        if self._extension is None:
            raise ValueError("metric='precomputed' knows no points: new ones cannot be embedded. Fit points instead.")
        coordinates = self._extension.of(self._checked(X, fitting=False))
        return widened(coordinates[:, : self._n_features_out], self._n_features_out)

    def _check_parameters(self) -> None:
        for name, check in self._checks.items():
            check(getattr(self, name), name)
        if not positive_number(self.distance_tol, "distance_tol") < 1:
            raise ValueError(f"distance_tol={self.distance_tol!r} must lie between 0 and 1.")
        if self.metric == "precomputed" and self.landmarks is not None:
            raise ValueError("metric='precomputed' knows no points, and rows that are no landmarks have no place.")

    def _checked(self, X: Any, *, fitting: bool) -> Any:
        """Validated as scikit-learn does, in double precision; the matrix of distances may be sparse."""
        given = self.metric == "precomputed"
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is named by scikit-learn
            X = validate_data(
                self,
                to_numpy(X) if is_tensor(X) else X,
                reset=fitting,
                accept_sparse="csr" if given else False,
                dtype=np.float64,
                order="C",
                ensure_min_samples=2 if fitting else 1,
            )
        if given and X.shape[0] != X.shape[1]:
            raise ValueError(f"A matrix of distances must be square, not {X.shape[0]} × {X.shape[1]}.")
        return X

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.embedding.verify_unfolding import verify_unfolding  # which knows this class

        recheck.refuse_extension("an unfolding")
        return verify_unfolding(self, X)

    def _report(self, status: Status, reason: str) -> None:
        """Warn of an end that is neither convergence nor the user's own doing, with its reason where one is known."""
        proved = status is Status.CONVERGED and self.certificate_.holds(self.tol)
        if proved or status is Status.STOPPED:
            return
        message = status.message if status is not Status.CONVERGED else "Rounding keeps the bounds apart: loosen tol."
        warn_user(f"{reason or message} {self.certificate_}.", ConvergenceWarning)
