"""The embedding by a kernel that is learned inside the Hilbert space of another one, with its certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from mercer.backends.arrays import Array, as_double, copied, like, namespace, to_numpy
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate, EmbeddingCertificate
from mercer.embedding.degeneracy import pad_components, widened
from mercer.embedding.kernelized_problem import Carriers, pose, prescribed_at, proved, without_any_copies
from mercer.embedding.kernelized_solve import METHODS, KernelizedSolver, SolvedKernel
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit
from mercer.kernels import Kernel, Matern
from mercer.operators import GramOperator
from mercer.problems.kernelized import KernelizedProgramme
from mercer.progress import Phases, warn_user
from mercer.solvers import Iteration, Status
from mercer.support import Support, choose_support
from mercer.validation import at_least, declared, fraction, function_of, non_negative, one_of, optional, true_or_false

_ROUNDING = (
    "The tolerance is out of reach: λ is so small, or the kernel matrix so ill-conditioned, that rounding keeps bounds "
    "apart. Raise regularization, pass fewer landmarks, a nugget such as 1e-8, or a larger tol."
)


_LOST_DIGITS = 1e-5  # of the largest length, that rounding may move an extended training point by


def default_matern() -> Kernel:
    """The kernel of a Sobolev space whose functions are twice differentiable in one, two and three dimensions."""
    return Matern(nu=2.5)


def _strength(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name}={value!r} must be a positive number or 'auto'.")
    elif not non_negative(value, name) > 0:
        raise ValueError(f"{name}={value!r} must be positive.")


class KernelizedSDPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Embed points by the optimal kernel b(x, y) = ⟨φ(x), 𝔹φ(y)⟩ of a Hilbert space, and prove that it is optimal.

    𝔹 ≽ 0 maximises f_n(𝔹) - λ Tr 𝔹 over operators with b(xᵢ, xᵢ) = d(xᵢ), where f_n is the alignment of b with the
    kernel k of the space without its mean (PSD22 section 1.2.2). The coordinates are functions of the space: new points
    are embedded by a linear formula that is exact on the sample, and smooth as the functions of the space are.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A strictly positive definite kernel; None means ``Matern(nu=2.5)``, the Sobolev space of order 2.5 + dim/2.
    regularization : float or "auto", default="auto"
        λ > 0, the price of Tr 𝔹: the larger, the smoother. "auto" is a tenth of the squared largest eigenvalue of
        the centred kernel on the sample.
    diagonal : callable, array of shape (n,) or None, default=None
        d > 0, a function of points or its values at the rows of X; None means k(x, x).
    n_components : int or None, default=None
        Coordinates kept; None keeps all.
    nugget : float, default=0
        Added to the diagonal of the kernel matrix, where that is too ill-conditioned without.
    tol : float, default=1e-6
        The certified relative gap to reach.
    rank_tol : float, default=1e-5
        Eigenvalues of the learned matrix below this fraction of its trace are not counted as dimensions.
    max_iter : int, default=60
        Steps of the interior-point method at most.
    solver : {"auto", "interior-point", "conic"}, default="auto"
        The interior-point method, or cvxpy's for up to 60 points.
    certify : bool, default=True
        Prove the gap.
    landmarks : int, array of int, (indices, weights), estimator or None, default=None
        Solve on these rows only, a number of them by ``Landmarks(number)``, and extend to the others: matrices of order
        m are held, so m up to some thousand.
    random_state : None, int or generator, default=None
        The choice of landmarks.
    callback : callable or None, default=None
        Called with every :class:`mercer.solvers.Iteration`; return True to stop.
    verbose : bool, default=False
        Log the progress to the logger ``mercer``.

    Attributes
    ----------
    embedding_ : array of shape (n, r)
        The coordinates of the training points; without landmarks their squared lengths are d.
    coordinates_, coefficients_ : arrays of shape (m, rank)
        Ξ on the m different points that the programme was solved on, and K⁻¹Ξ: b(x, y) = k(x)ᵀ C k(y) with
        C = A Aᵀ, A the second.
    rank_, eigenvalues_ : int and array of shape (rank,)
        The dimensions, and their shares of the weighted sum of squared lengths, in falling order.
    landmarks_, sample_weight_ : arrays of shape (m,) or None
        The rows it was solved on, None for all, and their weights, None for ones; copies of a row are one.
    regularization_, alignment_, trace_ : float
        λ, f_n(𝔹) and Tr 𝔹: the objective is ``alignment_`` less λ times ``trace_``, the paper's divided by n².
    diagonal_, multipliers_ : arrays of shape (m,)
        d at the points, and the dual variables.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    certificate_, status_, history_, n_iter_ : EmbeddingCertificate or None, Status, tuple of Iteration, int
        The proof, why the solver stopped, its steps.
    phase_seconds_ : dict of str to float
        The seconds that each phase of the fit took.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelizedSDPEmbedding
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = KernelizedSDPEmbedding().fit(X)
    >>> model.embedding_.shape
    (40, 2)
    >>> model.certificate_.holds(1e-6)
    True
    >>> bool(np.allclose(model.transform(X), model.embedding_))
    True
    """

    embedding_: Array
    coordinates_: Array
    coefficients_: Array
    rank_: int
    eigenvalues_: Array
    landmarks_: Array | None
    sample_weight_: Array | None
    regularization_: float
    alignment_: float
    trace_: float
    diagonal_: Array
    multipliers_: Array
    certificate_: EmbeddingCertificate | None
    status_: Status
    history_: tuple[Iteration, ...]
    n_iter_: int
    phase_seconds_: dict[str, float]
    _points: Any
    _n_features_out: int
    _default_kernel = staticmethod(default_matern)
    _always_double = True
    _checks = declared(
        regularization=_strength,
        n_components=optional(at_least(1)),
        nugget=non_negative,
        tol=fraction,
        rank_tol=fraction,
        max_iter=at_least(1),
        solver=one_of(*METHODS),
        certify=true_or_false,
        callback=function_of("an Iteration"),
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        regularization: Any = "auto",
        diagonal: Any = None,
        n_components: int | None = None,
        nugget: float = 0.0,
        tol: float = 1e-6,
        rank_tol: float = 1e-5,
        max_iter: int = 60,
        solver: str = "auto",
        certify: bool = True,
        landmarks: Any = None,
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.regularization = regularization
        self.diagonal = diagonal
        self.n_components = n_components
        self.nugget = nugget
        self.tol = tol
        self.rank_tol = rank_tol
        self.max_iter = max_iter
        self.solver = solver
        self.certify = certify
        self.landmarks = landmarks
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelizedSDPEmbedding:
        """Solve the programme of X and certify the solution.

        Parameters
        ----------
        X : array of shape (n, d)
            The points; for a precomputed kernel the n × n matrix.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            Non-negative weights, in any unit. A row of weight two counts as the same row twice.
        """
        phases = Phases("reading the points", shown=self.verbose)
        given = self._begin_fit(X, sample_weight=sample_weight)
        X, self.kernel_ = given.points, given.kernel
        support = choose_support(self.landmarks, given.weights, X, self.kernel_, given.rng, strategy="rpcholesky")
        carriers = without_any_copies(support, X, self.kernel_)
        points = carriers.support.points(X, self.kernel_)
        with one_thread_for(int(points.shape[0]), np.empty(0)):
            phases.begin("forming the kernel matrix", shown=False)
            prescribed = prescribed_at(self.diagonal, X, points, carriers.support)
            programme = pose(self.kernel_, X, carriers.support, prescribed, self.regularization, float(self.nugget))
            proof = proved(programme, self.kernel_)
            solver = KernelizedSolver.of(self, programme, proof if self.certify else None, phases)
            solved = solver.solve()
        phases.begin("storing", shown=False)
        self._store(X, points, carriers, programme, solved)
        phases.begin("", shown=False)
        self.phase_seconds_ = phases.seconds
        self._report()
        return self

    def _store(
        self, X: Any, points: Any, carriers: Carriers, programme: KernelizedProgramme, solved: SolvedKernel
    ) -> None:
        reference = X if hasattr(X, "device") else np.empty(0)
        self._points = points.copy() if hasattr(points, "toarray") else copied(points)  # the user's own may change
        self.landmarks_, self.sample_weight_ = carriers.support
        self.coordinates_ = like(solved.coordinates, reference)
        self.coefficients_ = like(programme.coefficients(solved.coordinates), reference)
        self.rank_, self.eigenvalues_ = solved.coordinates.shape[1], like(solved.eigenvalues, reference)
        self.regularization_ = programme.regularization
        self.alignment_, self.trace_ = programme.alignment(solved.coordinates), programme.trace(solved.coordinates)
        self.diagonal_ = like(programme.prescribed, reference)
        self.multipliers_ = like(solved.multipliers, reference)
        self.certificate_, self.status_, self.history_ = solved.certificate, solved.status, solved.history
        self.n_iter_ = solved.history[-1].number
        self._n_features_out = self.rank_ if self.n_components is None else int(self.n_components)
        self._warn_of_lost_digits(programme)
        embedded = training_rows(self, X, carriers.place)
        self.embedding_ = pad_components(embedded, self._n_features_out, self.rank_)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points: k(x)ᵀK⁻¹Ξ, linear in Ξ and equal to it on the sample."""
        rows = self._extend(X)
        return widened(rows[:, : self._n_features_out], self._n_features_out)

    def learned_kernel(self, X: Any, Y: Any = None) -> Array:
        """Return the learned kernel b(x, y) = k(x)ᵀ C k(y) in all its dimensions, positive semi-definite.

        Usable wherever a callable kernel is, as in ``SVC(kernel=model.learned_kernel)``.
        """
        left = self._extend(X)
        return left @ (left if Y is None or Y is X else self._extend(Y)).T

    def _extend(self, X: Any) -> Array:
        X = self._new_points(X)
        return extended_rows(self, _against_points(self, X))

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.embedding.verify_kernelized import verify_kernelized  # which knows this class

        return verify_kernelized(self, X, recheck)

    def _warn_of_lost_digits(self, programme: KernelizedProgramme) -> None:
        """Warn where the extension cannot reproduce the coordinates, its coefficients being so large."""
        off = programme.product_rounding(to_numpy(self.coefficients_)) / float(np.sqrt(programme.prescribed.max()))
        if off > _LOST_DIGITS:
            warn_user(
                f"The kernel matrix is so ill-conditioned that transform reproduces the training points to {off:.0e} "
                "only: pass a nugget such as 1e-8, fewer landmarks, or a kernel that is less smooth."
            )

    def _report(self) -> None:
        """Warn of an end that is neither convergence nor the user's own doing."""
        if self.status_ in (Status.CONVERGED, Status.STOPPED):
            return
        proof = self.certificate_
        state = "" if proof is None else f" {proof}."
        message = _ROUNDING if self.status_ is Status.STALLED else self.status_.message
        warn_user(f"{message}{state}", ConvergenceWarning)


def extended_rows(model: KernelizedSDPEmbedding, X: Any) -> Array:
    """k(x)ᵀK⁻¹Ξ for the rows of X, in all dimensions; a product that is never stored."""
    return as_double(GramOperator(model.kernel_, X, model._points) @ model.coefficients_)


def training_rows(model: KernelizedSDPEmbedding, X: Any, place: Array | None) -> Array:
    """The coordinates of the rows of X: those found where a row carries the programme, extended where it does not."""
    if place is not None:
        return model.coordinates_[like(place, model.coordinates_) if hasattr(X, "device") else place]
    columns = _against_points(model, X)
    rows = namespace(columns).asarray(extended_rows(model, columns), copy=True)
    assert model.landmarks_ is not None
    rows[like(to_numpy(model.landmarks_), rows) if hasattr(X, "device") else model.landmarks_] = model.coordinates_
    return rows


def _against_points(model: KernelizedSDPEmbedding, X: Any) -> Any:
    """X itself, or the columns of a precomputed matrix that belong to the points of the programme."""
    return Support(model.landmarks_, model.sample_weight_).columns(X, model.kernel_)
