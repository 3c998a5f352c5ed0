"""The embedding that solves a semi-definite programme, with its certificate and its extension to new points."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import Certificate, certify_elliptope
from mercer.embedding.extension import log_degrees_and_sums
from mercer.embedding.validation import (
    check_room,
    checked_points,
    fraction,
    pad_components,
    refuse_degenerate,
    resolved_kernel,
    whole_number,
)
from mercer.kernels import Precomputed
from mercer.linalg import least_eigenvalue
from mercer.linalg.eigen import deterministic_signs
from mercer.linalg.random import as_generator
from mercer.operators import DiffusionOperator, GramOperator
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Iteration, Method, ProjectedPower, SolverResult, Status, maximise

Array = np.ndarray[Any, np.dtype[Any]]
_log = logging.getLogger("mercer")

_METHODS: dict[str, type[Method]] = {
    "auto": AcceleratedPower,
    "accelerated": AcceleratedPower,
    "power": ProjectedPower,
}


class SDPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed points by the optimal kernel of a semi-definite programme, and prove that it is optimal.

    The learned kernel matrix B maximises ⟨Ā, B⟩ over positive semi-definite matrices with the diagonal of Ā, the
    diffusion matrix of the data without its stationary part. Its rank is small, and the coordinates are its
    eigenvectors. Because the length of every coordinate vector is prescribed, outliers cannot take a dimension for
    themselves as they do in spectral embeddings (Fanuel, Aspeel, Delvenne, Suykens 2022).

    Parameters
    ----------
    kernel : Kernel, default=None
        A kernel with positive row sums; None means ``Gaussian(sigma="median")``.
    n_components : int or None, default=None
        Coordinates to keep; None means as many as the solution has dimensions.
    initial_rank : int, default=10
        Columns of the factor the solver works with; an upper bound on the rank of the solution.
    tol : float, default=1e-6
        The certified relative gap at which to stop.
    residual_tol : float, default=1e-6
        The row residual at which to stop: the relative error with which :meth:`transform` reproduces the embedding.
    rank_tol : float, default=1e-5
        Eigenvalues of B below this fraction of its trace are not counted as dimensions. The solution is brought to the
        rank counted, and solved to the same tolerances there.
    max_iter : int, default=5000
        Steps of the solver at most.
    solver : {"auto", "accelerated", "power"}, default="auto"
        Accelerated power steps with restart, or the papers' plain projected power method.
    certify : bool, default=True
        Prove the gap. Without it the row residual alone decides when to stop, and ``certificate_`` is None.
    radius : {"capped", "paper"}, default="capped"
        The length of an extended coordinate vector: √d(x) as in the paper, which grows like exp(distance²/2σ²) away
        from the data, or that capped at the largest length in the training set.
    random_state : None, int or generator, default=None
        The starting point.
    callback : callable or None, default=None
        Called with every :class:`mercer.solvers.Iteration`; return True to stop.
    verbose : bool, default=False
        Log the progress to the logger ``mercer`` at level INFO; on standard error where logging is not set up.

    Attributes
    ----------
    embedding_ : array of shape (n, r), r = n_components or the rank
        The coordinates of the training points; the squared length of row i is ``diagonal_[i]`` when no dimension is
        cut.
    rank_ : int
        The number of dimensions of the solution.
    eigenvalues_ : array of shape (rank,)
        Eigenvalues of B / Tr B, in falling order.
    diagonal_ : array of shape (n,)
        The prescribed diagonal d of B.
    stationary_ : array of shape (n,)
        The stationary distribution of the diffusion, highest in the middle of the data.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    certificate_ : Certificate or None
        Bounds on the optimum, recomputed from the solution alone.
    status_ : Status
        Why the solver stopped.
    history_ : tuple of Iteration
        Objective and residual of every step.
    n_iter_ : int
        Steps taken.
    n_products_ : int
        Columns the operator was applied to; a factorisation proof reads entries instead, see
        ``certificate_.n_products``.

    Notes
    -----
    Cost: a product with the kernel matrix and ``initial_rank`` columns a step, some tens to some hundreds of steps. The
    matrix is stored only where that fits the memory limit and pays. The certificate factors an n × n matrix up to n =
    8000 and needs products alone beyond. New points cost n kernel evaluations each.

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
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int | None = None,
        initial_rank: int = 10,
        tol: float = 1e-6,
        residual_tol: float = 1e-6,
        rank_tol: float = 1e-5,
        max_iter: int = 5000,
        solver: str = "auto",
        certify: bool = True,
        radius: str = "capped",
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.initial_rank = initial_rank
        self.tol = tol
        self.residual_tol = residual_tol
        self.rank_tol = rank_tol
        self.max_iter = max_iter
        self.solver = solver
        self.certify = certify
        self.radius = radius
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> SDPEmbedding:
        """Solve the semi-definite programme of X and certify the solution."""
        self._check_parameters()
        if self.verbose:
            _make_log_visible()
        X = checked_points(self, X, fitting=True)
        rng = as_generator(self.random_state)
        self.kernel_ = resolved_kernel(self.kernel, X)
        operator = DiffusionOperator(GramOperator(self.kernel_, X))
        refuse_degenerate(operator, self.kernel_, X)
        check_room(operator, self.kernel_)
        problem = Elliptope(
            operator, operator.diagonal(), shift=_shift(operator, self.kernel_, rng), removed=operator.stationary
        )
        result = self._solve(problem, rng)
        certificate = certify_elliptope(problem, result.H, rng=rng) if self.certify else None
        self._store(X, operator, problem, result, certificate)
        self._report()
        return self

    def _solve(self, problem: Elliptope, rng: np.random.Generator) -> SolverResult:
        """Solve at the initial rank, then at the rank that was found."""
        first = problem.random_point(min(self.initial_rank, problem.size), rng)
        result = self._run(problem, first, rng, self.max_iter)
        if result.status is not Status.CONVERGED:
            return result
        reduced = _reduced(problem, result.H, self.rank_tol)
        if reduced.shape[1] == result.H.shape[1]:
            return result
        again = self._run(problem, reduced, rng, max(1, self.max_iter - result.n_iter), after=result.history[-1])
        if again.status is not Status.CONVERGED:
            return result
        return again.after(result)

    def _run(
        self, problem: Elliptope, H: Array, rng: np.random.Generator, max_iter: int, after: Iteration | None = None
    ) -> SolverResult:
        def gap(H: Array, G: Array) -> float:
            return certify_elliptope(problem, H, rng=rng, spectrum=False).relative_gap

        def notify(iteration: Iteration) -> bool:
            shown = iteration if after is None else iteration.following(after)
            if self.verbose:
                _log_iteration(shown)
            return self.callback is not None and bool(self.callback(shown))

        return maximise(
            problem,
            _METHODS[self.solver](),
            H,
            certify=gap if self.certify else None,
            tol=self.tol,
            residual_tol=self.residual_tol,
            max_iter=max_iter,
            callbacks=(notify,),
        )

    def _store(
        self,
        X: Any,
        operator: DiffusionOperator,
        problem: Elliptope,
        result: SolverResult,
        certificate: Certificate | None,
    ) -> None:
        coordinates, eigenvalues = _principal(problem, result.H)
        self.rank_ = int(np.sum(eigenvalues > self.rank_tol))
        self.eigenvalues_ = eigenvalues[: self.rank_]
        self.diagonal_ = problem.diagonal
        self.stationary_ = operator.stationary**2
        self.certificate_ = certificate
        self.status_, self.history_, self.n_iter_ = result.status, result.history, result.n_iter
        self.n_products_ = problem.n_columns
        self._training = X
        self._log_volume = float(np.log(operator.volume))
        mean = operator.stationary @ coordinates
        self._beta = coordinates / np.sqrt(operator.degrees)[:, None] - mean / np.sqrt(operator.volume)
        self._n_features_out = self.rank_ if self.n_components is None else self.n_components
        self.embedding_ = pad_components(coordinates[:, : self.rank_], self._n_features_out, self.rank_)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit to X and return its coordinates."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Extend the coordinates to new points by the normalised extension (PSD22 (1.5)).

        The direction is that of Σⱼ ā(x, xⱼ) Ξⱼ, the length √d(x), see ``radius``. All dimensions are extended, then
        ``n_components`` of them are kept. At a training point this gives its row of ``embedding_``.
        """
        coordinates = self._extend(X)
        wanted = self._n_features_out
        kept = coordinates[:, : min(wanted, self.rank_)]
        return np.pad(kept, ((0, 0), (0, wanted - kept.shape[1])))

    def learned_kernel(self, X: Any, Y: Any = None) -> Array:
        """Return the learned kernel b(x, y) = Ξ(x) · Ξ(y), positive semi-definite by construction.

        Usable wherever a callable kernel is, as in ``SVC(kernel=model.learned_kernel)``.
        """
        left = self._extend(X)
        return left @ (left if Y is None or Y is X else self._extend(Y)).T

    def novelty(self, X: Any) -> Array:
        """Return -log Σⱼ k(x, xⱼ): the higher, the farther from the data; finite at any distance."""
        check_is_fitted(self)
        X = checked_points(self, X, fitting=False)
        return -log_degrees_and_sums(self.kernel_, X, self._training, self._beta[:, :0], np.ones(len(self._beta)))[0]

    def _extend(self, X: Any) -> Array:
        check_is_fitted(self)
        X = checked_points(self, X, fitting=False)
        log_degrees, averages, log_diagonal = log_degrees_and_sums(
            self.kernel_, X, self._training, self._beta, np.ones(len(self._beta))
        )
        lengths = np.linalg.norm(averages, axis=1, keepdims=True)
        directions = np.divide(averages, lengths, out=np.zeros_like(averages), where=lengths > 0)
        return np.exp(self._log_radius(log_degrees, log_diagonal))[:, None] * directions

    def _log_radius(self, log_degrees: Array, log_diagonal: Array) -> Array:
        """½ log d(x), d(x) = k(x, x)/m - m/vol = (k(x, x)/m) (1 - m²/(vol k(x, x)))."""
        ratio = np.minimum(np.exp(2 * log_degrees - self._log_volume - log_diagonal), 1.0)
        with np.errstate(divide="ignore"):
            value = 0.5 * (log_diagonal - log_degrees + np.log1p(-ratio))
        if self.radius == "capped":
            return np.minimum(value, 0.5 * np.log(self.diagonal_.max()))
        if np.any(value > 0.5 * np.log(np.finfo(np.float64).max)):
            row = int(np.argmax(value))
            raise ValueError(f"Row {row} of X is so far from the data that its radius overflows: use radius='capped'.")
        return value

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            whole_number(self.n_components, "n_components", 1)
        whole_number(self.initial_rank, "initial_rank", 1)
        whole_number(self.max_iter, "max_iter", 1)
        for name in ("tol", "residual_tol", "rank_tol"):
            fraction(getattr(self, name), name)
        for name, allowed in (("solver", tuple(_METHODS)), ("radius", ("capped", "paper"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, allowed))}.")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback={self.callback!r} must be a function of an Iteration, or None.")

    def _report(self) -> None:
        if self.status_ in (Status.CONVERGED, Status.STOPPED):
            return
        state = "" if self.certificate_ is None else f" {self.certificate_}."
        warnings.warn(f"{self.status_.message}{state}", ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed)
        tags.input_tags.sparse = isinstance(self.kernel, Precomputed)
        return tags


def _principal(problem: Elliptope, H: Array) -> tuple[Array, Array]:
    """Coordinates Ξ = UΣ of the factor Diag(s) H = UΣVᵀ, signs made deterministic, and the eigenvalues of B / Tr B."""
    U, sizes, _ = np.linalg.svd(problem.scale[:, None] * H, full_matrices=False)
    return U * sizes * deterministic_signs(U), sizes**2 / np.sum(sizes**2)


def _reduced(problem: Elliptope, H: Array, rank_tol: float) -> Array:
    """The point of lowest rank near H: principal directions above the tolerance, rows of unit length again."""
    coordinates, eigenvalues = _principal(problem, H)
    kept = coordinates[:, eigenvalues > rank_tol]
    return problem.project(kept, np.eye(1, kept.shape[1]).repeat(problem.size, axis=0))


def _shift(operator: DiffusionOperator, kernel: Any, rng: np.random.Generator) -> float:
    """A number c with J + cI ≽ 0: zero for a positive semi-definite kernel, from the least eigenvalue otherwise."""
    if kernel.properties.positive_definite:
        return 0.0
    least = least_eigenvalue(operator, rng=rng)
    return 1.1 * max(0.0, -least) * float(operator.diagonal().max())


def _make_log_visible() -> None:
    """Send the log to standard error where nobody has set up logging."""
    if not _log.hasHandlers():
        _log.addHandler(logging.StreamHandler())
        _log.setLevel(logging.INFO)


def _log_iteration(iteration: Iteration) -> None:
    gap = "" if iteration.relative_gap is None else f", certified gap {iteration.relative_gap:.1e}"
    _log.info(
        "step %d: objective %.9g, row residual %.1e%s",
        iteration.number,
        iteration.objective,
        iteration.row_residual,
        gap,
    )
