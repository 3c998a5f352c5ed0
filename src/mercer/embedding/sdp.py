"""The embedding that solves a semi-definite programme, with its certificate and its extension to new points."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array
from mercer.backends.config import require_memory
from mercer.backends.threads import one_thread_for, single_threaded_blas
from mercer.certificates import Certificate, EmbeddingCertificate
from mercer.certificates.elliptope import METHODS as CERTIFICATE_METHODS
from mercer.embedding.checkpoint import Checkpoint
from mercer.embedding.default_kernel import default_kernel
from mercer.embedding.degeneracy import check_dense, check_room, pad_components, refuse_degenerate, widened
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.extension import Extension, embedded_rows
from mercer.embedding.levels import Extent, Level, PosedLevel, solve_levels
from mercer.embedding.prescribed import Prescribed
from mercer.embedding.rank_path_result import STAYS, Diagnosis
from mercer.embedding.solve import SOLVERS, Settings
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit, row_by_row
from mercer.linalg.tall import unit_rows
from mercer.progress import Phases, warn_user
from mercer.solvers import Iteration, Status
from mercer.support import Support, choose_support, without_copies
from mercer.validation import (
    at_least,
    checked_kernel,
    declared,
    fraction,
    function_of,
    one_of,
    optional,
    true_or_false,
)

_VECTORS = 15  # of the size of an iterate, that a fit keeps at a time


class SDPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the optimal kernel of a semi-definite programme, and prove that it is optimal.

    The learned kernel matrix B maximises ⟨Ā, B⟩ over positive semi-definite matrices with the diagonal of Ā, the
    diffusion matrix of the data without its stationary part. Its rank is small, and the coordinates are its
    eigenvectors. Because the length of every coordinate vector is prescribed, outliers cannot take a dimension for
    themselves as they do in spectral embeddings (Fanuel, Aspeel, Delvenne, Suykens 2022).

    The user guide says what each solver does, what a fit costs, and what landmarks and weights mean.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel with positive row sums, or the name of one, as ``"rbf"``. None means a graph of neighbours,
        ``SelfTuning(scale_neighbor=10, pair_scale="smaller")``; the papers' setting is ``Gaussian("median")``.
    n_components : int or None, default=None
        Coordinates wanted: further levels are solved until there are as many. None keeps all of the levels there are.
    n_levels : int or None, default=None
        Programmes to solve, each on the complement of the coordinates before. None means one, as in the papers; for a
        graph of neighbours, of which one tells little, three, without those that a step of the walk between the points
        forgets by half.
    initial_rank : int, default=10
        Columns of the factor the solver works with; an upper bound on the rank of the solution.
    tol : float, default=1e-6
        The certified relative gap at which to stop.
    residual_tol : float, default=1e-6
        The row residual at which to stop: the relative error with which :meth:`transform` reproduces the embedding.
    rank_tol : float, default=1e-5
        Eigenvalues of B below this fraction of its trace are not counted as dimensions.
    max_iter : int, default=5000
        Steps of the solver at most, in every level.
    solver : {"auto", "power", "accelerated", "trust-region", "interior-point", "conic"}, default="auto"
        The stages that the guide describes, or one method alone; ``"interior-point"`` takes 80n² bytes, ``"conic"``
        up to 200 points and cvxpy.
    certify : bool or str, default=True
        Prove the gap, by the cheapest way that succeeds or by the one named: ``"factorisation"``,
        ``"pivoted-cholesky"``, ``"residual-lanczos"``, ``"deflated-lanczos"``, ``"chebyshev-filter"``. With False the
        residual decides alone.
    landmarks : int, array of int, (indices, weights), estimator or None, default=None
        Solve on these rows only, or on so many, and extend to the others. An estimator, such as
        :class:`mercer.Landmarks`, has ``indices_`` and ``weights_``.
    warm_start : bool, default=False
        Start the next ``fit`` from the last solution if it has as many points.
    max_products : int or None, default=None
        Columns the operator may be applied to while solving a level; its certificate is computed in any case.
    checkpoint : path or None, default=None
        A file that keeps the best iterates while the solver runs; if it exists, ``fit`` goes on from there.
    radius : {"capped", "paper"}, default="capped"
        The length of an extended vector: √d(x) as in the paper, or at most the largest length in the training set.
    diagonal : None, number, array of shape (n,) or callable, default=None
        d ≥ 0, the squared lengths of the coordinates: those of Ā, the user's, or a function of points such as X, which
        is asked at new points too. There an array is averaged by affinity.
    diagonal_constraint : {"equal", "at most"}, default="equal"
        diag B = d, or diag B ≤ d as PSD22 has it: the same unless some ā(x, x) < 0, which takes an indefinite kernel.
    unit_length : bool, default=False
        Divide the rows of ``embedding_`` and of :meth:`transform` by their lengths (PSD22 5.2).
    random_state : None, int or generator, default=None
        The starting point.
    callback : callable or None, default=None
        Called with every :class:`mercer.solvers.Iteration`; return True to stop.
    verbose : bool, default=False
        Log the progress to the logger ``mercer`` at level INFO; on standard error where logging is not set up.

    Attributes
    ----------
    embedding_ : array of shape (n, r), r = n_components or the sum of the ranks of all levels
        The coordinates of the training points, level after level, each multiplied by its weight; those of the first
        have the squared length ``diagonal_``.
    levels_ : tuple of Level
        Every level with its coordinates, rank, spectrum, weight, status and certificate.
    rank_, eigenvalues_ : int and array of shape (rank,)
        The dimensions of the first level, and the eigenvalues of its B / Tr B, in falling order.
    coordinates_ : array of shape (m, rank)
        The first level on the points it was solved on: all n of them, or the landmarks.
    landmarks_, sample_weight_ : arrays of shape (m,) or None
        The rows it was solved on, None for all, and their weights, None for ones. Where most rows of a neighbour graph
        are copies it is solved on one of each.
    diagonal_, stationary_ : arrays of shape (m,)
        The prescribed diagonal d of B, and the stationary distribution, highest in the middle of the data.
    purity_ : float
        Tr B²/(Tr B)² of the first level, between 1/rank and 1 (PSD17 Remark 5).
    kernel_ : Kernel
        The kernel with its parameters fixed.
    certificate_, history_, multipliers_ : EmbeddingCertificate or None, tuple of Iteration, array or None
        Those of the first level.
    status_, n_iter_ : Status, int
        Why the solver stopped, of the first level that did not converge if there is one, and the steps of all levels.
    n_products_, n_stand_in_products_ : int
        Columns the operator was applied to, or whose entries were formed, and columns of a low-rank stand-in.
    phase_seconds_ : dict of str to float
        The seconds that each phase of the fit took.

    Examples
    --------
    >>> from mercer import Gaussian, SDPEmbedding
    >>> from mercer.datasets import three_clusters
    >>> X, labels = three_clusters()
    >>> model = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X)
    >>> model.embedding_.shape
    (310, 2)
    >>> model.certificate_.holds(1e-6)
    True
    >>> more = SDPEmbedding(Gaussian(sigma=1.2), n_levels=2, random_state=0).fit(X)
    >>> [level.rank for level in more.levels_]
    [2, 2]
    """

    embedding_: Array
    rank_: int
    eigenvalues_: Array
    coordinates_: Array
    levels_: tuple[Level, ...]
    landmarks_: Array | None
    sample_weight_: Array | None
    diagonal_: Array
    stationary_: Array
    certificate_: EmbeddingCertificate | None
    status_: Status
    history_: tuple[Iteration, ...]
    multipliers_: Array | None
    n_iter_: int
    n_products_: int
    n_stand_in_products_: int
    phase_seconds_: dict[str, float]
    _extension: Extension
    _n_features_out: int
    _fits_blocks = True
    _default_kernel = staticmethod(default_kernel)
    _checks = declared(
        n_components=optional(at_least(1)),
        n_levels=optional(at_least(1)),
        initial_rank=at_least(1),
        max_iter=at_least(1),
        max_products=optional(at_least(1)),
        tol=fraction,
        residual_tol=fraction,
        rank_tol=fraction,
        solver=one_of(*SOLVERS),
        radius=one_of("capped", "paper"),
        diagonal_constraint=one_of("equal", "at most"),
        unit_length=true_or_false,
        certify=one_of(True, False, *CERTIFICATE_METHODS),
        callback=function_of("an Iteration"),
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int | None = None,
        n_levels: int | None = None,
        initial_rank: int = 10,
        tol: float = 1e-6,
        residual_tol: float = 1e-6,
        rank_tol: float = 1e-5,
        max_iter: int = 5000,
        solver: str = "auto",
        certify: bool | str = True,
        landmarks: Any = None,
        warm_start: bool = False,
        max_products: int | None = None,
        checkpoint: Any = None,
        radius: str = "capped",
        diagonal: Any = None,
        diagonal_constraint: str = "equal",
        unit_length: bool = False,
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_levels = n_levels
        self.initial_rank = initial_rank
        self.tol = tol
        self.residual_tol = residual_tol
        self.rank_tol = rank_tol
        self.max_iter = max_iter
        self.solver = solver
        self.certify = certify
        self.landmarks = landmarks
        self.warm_start = warm_start
        self.max_products = max_products
        self.checkpoint = checkpoint
        self.radius = radius
        self.diagonal = diagonal
        self.diagonal_constraint = diagonal_constraint
        self.unit_length = unit_length
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SDPEmbedding:
        """Solve the semi-definite programme of X and certify the solution.

        Parameters
        ----------
        X : array of shape (n, d), or rows of :func:`mercer.open_rows`
            The points; for a precomputed kernel the n × n matrix, dense or sparse. Rows of a file need ``landmarks``.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            Non-negative weights, in any unit. A row of weight two counts as the same row twice; one of weight zero, or
            too light for the arithmetic beside the heaviest, takes no part and is embedded as a new point.
        """
        phases = Phases("reading the points", shown=self.verbose)
        given = self._begin_fit(X, sample_weight=sample_weight)
        X = given.points
        with one_thread_for(X.shape[0], X):  # a small fit wakes none of its threads
            support = choose_support(self.landmarks, given.weights, X, given.given_kernel, given.rng)
            if self.landmarks is None and checked_kernel(given.given_kernel).is_local:
                support = without_copies(support, X)
            self.kernel_ = given.kernel_on(support)
            points = support.points(X, self.kernel_)
            require_memory(
                8 * _VECTORS * self.initial_rank * points.shape[0],
                f"An embedding of {points.shape[0]} points in initial_rank={self.initial_rank} dimensions",
                "lower initial_rank, pass landmarks",
            )
            phases.begin("summing rows", shown=False)
            prescribed = Prescribed.read(self.diagonal, self.diagonal_constraint, X, support)
            posed = DiffusionProblem.of(self.kernel_, points, support.scaled, given.rng, phases, prescribed)
            refuse_degenerate(posed.operator, self.kernel_, points)
            if prescribed is None:
                check_room(posed.operator, self.kernel_)
            if self.solver == "interior-point":
                check_dense(int(posed.working.active.sum()), self.max_products)
            path = self.checkpoint
            kept = None if path is None else Checkpoint(path, self.kernel_, points, support.scaled, prescribed)
            extent = Extent(self.n_components, self.n_levels, self.kernel_.is_local)
            before = [level.coordinates for level in getattr(self, "levels_", ())] if self.warm_start else []
            with single_threaded_blas():  # products run on our own threads; small eigenproblems are quickest on one
                solved = solve_levels(posed, support, Settings.of(self), extent, kept, before)
            phases.begin("storing", shown=False)
            self._store(X, points, support, solved)
        phases.begin("", shown=False)
        self.phase_seconds_ = phases.seconds
        self._report(posed.operator.undeflated().diagonal())  # w k(x, x)/m: in any unit
        return self

    def _store(self, X: Any, points: Any, support: Support, solved: list[PosedLevel]) -> None:
        self.levels_ = tuple(each.level for each in solved)
        first = self.levels_[0]
        self.certificate_, self.multipliers_, self.history_ = first.certificate, first.multipliers, first.history
        self.coordinates_, self.rank_, self.eigenvalues_ = first.coordinates, first.rank, first.eigenvalues
        self.diagonal_, self.stationary_ = first.diagonal, solved[0].posed.operator.stationary ** 2
        self.status_ = next((each.status for each in self.levels_ if each.status is not Status.CONVERGED), first.status)
        self.n_iter_ = sum(each.history[-1].number for each in self.levels_)
        self.n_products_ = sum(each.n_products for each in self.levels_)
        self.n_stand_in_products_ = sum(each.n_stand_in_products for each in self.levels_)
        self.landmarks_, self.sample_weight_ = support
        levels, prescribed = [each.for_extension() for each in solved], solved[0].posed.prescribed
        self._extension = Extension.of(self.kernel_, points, support, levels, prescribed)
        available = sum(each.rank for each in self.levels_)
        self._n_features_out = available if self.n_components is None else self.n_components
        coordinates = [each.coordinates for each in self.levels_]
        embedded = embedded_rows(coordinates, self._extension, X, capped=self.radius == "capped")
        self.embedding_ = self._of_unit_length(pad_components(embedded, self._n_features_out, available))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    @row_by_row
    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points by the normalised extension (PSD22 (1.5)).

        The direction is that of Σⱼ ā(x, xⱼ) Ξⱼ, the length √d(x), see ``radius``. All dimensions are extended, then
        ``n_components`` of them are kept. At a training point this gives its row of ``embedding_``.
        """
        coordinates, wanted = self._extend(X), self._n_features_out
        return self._of_unit_length(widened(coordinates[:, :wanted], wanted))

    def learned_kernel(self, X: Any, Y: Any = None) -> Array:
        """Return the learned kernel b(x, y) = Ξ(x) · Ξ(y), positive semi-definite by construction (PSD17 Corollary 2).

        Usable wherever a callable kernel is, as in ``SVC(kernel=model.learned_kernel)``. Of all dimensions, with the
        lengths of the programme, whatever ``n_components`` and ``unit_length`` are. b(x, x) = d(x) on the data; away
        from them it is no larger than the largest there unless ``radius="paper"``, and zero where Σⱼ ā(x, xⱼ) Ξⱼ is.
        """
        left = self._extend(X)
        return left @ (left if Y is None or Y is X else self._extend(Y)).T

    @row_by_row
    def novelty(self, X: Any) -> Array:
        """Return -log Σⱼ wⱼ k(x, xⱼ): the higher, the farther from the data; finite at any distance."""
        X = self._new_points(X)
        return self._extension.novelty(X)

    def _extend(self, X: Any) -> Array:
        X = self._new_points(X)
        return self._extension.coordinates(X, capped=self.radius == "capped")

    @property
    def purity_(self) -> float:
        """Tr ϱ² of ϱ = B/Tr B of the first level: one where B has rank one, 1/rank where its eigenvalues agree."""
        check_is_fitted(self, "levels_")
        return self.levels_[0].purity

    def _of_unit_length(self, rows: Array) -> Array:
        """The rows divided by their lengths where that is asked for; those at the origin stay there."""
        return unit_rows(rows) if self.unit_length else rows

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.embedding.verify_embedding import verify_embedding  # which knows this class

        return verify_embedding(self, X, **recheck._asdict())

    def _report(self, staying: Array) -> None:
        """Warn of an end that is neither convergence nor the user's own doing, with its reason where one is known."""
        fine = (Status.CONVERGED, Status.STOPPED)
        number, level = next(
            ((k, each) for k, each in enumerate(self.levels_, 1) if each.status not in fine), (0, None)
        )
        if level is None:
            return
        proof, status = level.certificate, level.status
        state = "" if proof is None else f" {proof}."
        isolated = Diagnosis.NEARLY_ISOLATED
        reason = ""
        most_stay = 2 * int((staying > STAYS).sum()) > staying.shape[0]
        if status in (Status.FLAT, Status.CRAWLING, Status.STALLED) and most_stay:
            reason = f" {isolated.value.capitalize()}: {isolated.message}"
        elif status is Status.STALLED and proof is not None and proof.gap_beyond_rounding <= self.tol:
            reason = " Rounding alone keeps the bounds apart: set dtype='float64' by config_context, or loosen tol."
        which = f"Level {number}: " if number > 1 else ""
        warn_user(f"{which}{status.message}{reason}{state}", ConvergenceWarning)
