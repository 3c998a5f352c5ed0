"""The estimator: a density that is a sum of squares, fitted in the MMD geometry."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn.base import DensityMixin

from mercer.backends import config_context
from mercer.backends.arrays import Array, like, namespace, norm
from mercer.backends.rounding import TINY
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.density.advice import warn_of_density
from mercer.density.bandwidth import density_kernel
from mercer.density.distance_to_sample import squared_mmd
from mercer.density.evaluation import log_squares
from mercer.density.fitting_problem import make_programme
from mercer.density.footprint import require_memory
from mercer.density.presentation import Presentation, is_enough, trimmed
from mercer.density.queries import DensityQueries
from mercer.density.reference import choose_reference
from mercer.density.support import choose_support
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit
from mercer.kernels import Kernel, Laplacian
from mercer.kernels.integrals.measures import Measure
from mercer.problems import SumOfSquares
from mercer.solvers import (
    SpectrahedronResult,
    SpectrahedronStep,
    Status,
    accelerated_spectrahedron,
    low_rank_spectrahedron,
)
from mercer.solvers.spectrahedron.conic import conic_result
from mercer.validation import (
    at_least,
    checked_kernel,
    declared,
    fraction,
    function_of,
    is_precomputed,
    non_negative,
    normalised,
    one_of,
    optional,
    positive_number,
    resolved_kernel,
    true_or_false,
)

_SOLVERS = ("auto", "low-rank", "accelerated", "conic")
_MOST_STEPS = {"low-rank": 200, "accelerated": 10_000}
_MARGIN = 0.5  # of tol: the certificate, which counts rounding too, is to keep what was asked for
_LARGEST = 1e120
_log = logging.getLogger("mercer")
_FLOOR = float(np.log(TINY))


class SumOfSquaresDensity(DensityQueries, DensityMixin, KernelEstimator):
    """A probability density that is a sum of squares of kernel functions, as close to a sample as it can be.

    With support points z₁ … z_m and k_x = (k(x, z_p))_p the density with respect to a reference measure ρ is

        p(x) = k_xᵀ B k_x = ‖Fᵀk_x‖²,   B = F Fᵀ ≽ 0,   ∫ p dρ = Tr(B W) = 1,

    positive everywhere and of mass one by construction. Among all of them the one is found that minimises

        ‖P_m(v - w_p)‖² + λ Tr(B K̃),

    v = Σ a_i φ(x_i) and w_p = ∫ p φ dρ the mean embeddings of sample and density, P_m the projection on the span of the
    φ(z_p) (SOS 12-14): a convex programme, solved with a bound on what any other density of this form could gain. Its
    first term is the square of an MMD between the projections, a lower bound of MMD²; both are reported.

    Parameters
    ----------
    kernel : Kernel, default=None
        A positive semi-definite kernel; None means the Gaussian with a bandwidth for densities, chosen by likelihood
        (``mercer.density.bandwidth``). ``Gaussian("median")`` is far too wide for a density.
    support : int, str, tuple, array of shape (m, d) or estimator, default=None
        The points z: a number of rows drawn from X without repetition (all if there are fewer; None means 100),
        ``"kmeans"`` or ``("kmeans", number)`` for centres of k-means, the points themselves, or an estimator with
        ``indices_`` such as :class:`mercer.QuadratureSparsifier`, fitted here if it was not before.
    regularization : float, default=None
        λ ≥ 0, in units of 1/volume as in SOS (12). None means (πσ²/2)^{d/2}/n for the Gaussian kernel on R^d, and in
        general the volume of the widest squared section k(·, z)² over the number of distinct points (weights a: times
        Σ a²): the sampling error of an MMD², and the same fit in any unit of length.
    reference : {"lebesgue", "gaussian"} or (mean, std), default="lebesgue"
        ρ: Lebesgue's measure, or a normal law with the same standard deviation in all coordinates, whose tails the
        density then has; ``"gaussian"`` takes mean and variance from the data. :meth:`density` is with respect to
        Lebesgue's measure in any case.
    box : (lower, upper), default=None
        Restrict Lebesgue's measure to a box: two numbers or two corners. The density is zero outside.
    solver : {"auto", "low-rank", "accelerated", "conic"}, default="auto"
        ``"low-rank"``, which ``"auto"`` means: Newton's method on faces of the spectrahedron. ``"accelerated"``:
        projected gradients with momentum and restart, as in the paper; hundreds of times as many steps.
        ``"conic"``: the optional package cvxpy, for some 40 points at most; ``max_iter`` and ``warm_start`` are not for
        it, and its history is one line.
    tol : float, default=1e-8
        The proved gap to stop at, relative to ‖P_m v‖², the objective of no density, plus the least penalty of any, or
        to the optimum itself where that is larger.
    max_iter : int, default=None
        Steps at most; None means 200 rounds of ``"low-rank"``, 10 000 steps of ``"accelerated"``.
    truncation : float, default=1e-10
        Eigenvalues of W and K̃ below this part of the largest are cut off. The constraint is exact without the jitter of
        SOS Remark 1: what is cut off are functions that rounding would make of W, not mass. The two spans that are left
        belong to the programme and are kept with the model, so that :func:`mercer.verify` certifies the same one.
    warm_start : bool, default=False
        Start from the density of an earlier fit where the support is the same.
    random_state : None, int or generator, default=None
        Of the sampled support, or of k-means.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true return value stops, and ``status_`` says so.
    verbose : bool, default=False
        Log the progress to the logger ``mercer``.

    Attributes
    ----------
    support_ : array of shape (m, d)
        The points z, without repetitions.
    coefficients_ : array of shape (m, m)
        B.
    factor_ : array of shape (m, r)
        F with B = F Fᵀ; the squares (Fᵀk_x)_c² integrate to ``eigenvalues_``. Densities are computed from F: it loses
        half as many digits as B.
    rank_ : int
        r, as small as the tolerance allows.
    eigenvalues_ : array of shape (r,)
        The mass of each square, in falling order; their sum is one.
    mmd_ : float
        MMD between sample and density, of the kernel of the fit.
    mmd_error_ : float
        An estimate of its error; 0 where it is exact (see ``mercer.density.distance_to_sample``).
    projected_mmd_ : float
        ‖P_m(v - w_p)‖, what the fit made small; never above ``mmd_``.
    sample_norm_ : float
        ‖P_m v‖.
    certificate_ : Certificate
        The objective and a proved lower bound; see the notes.
    history_ : tuple of SpectrahedronStep
        Objective, gap and rank as the solver went on.
    status_ : Status
        Why it ended.
    n_iter_ : int
        Steps it took.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    measure_ : Lebesgue, Box or GaussianMeasure
        ρ.
    regularization_ : float
        λ.
    integration_error_ : float
        An estimate of the error of ∫ p dρ = 1: that of a quadrature where there is no closed form, and rounding.
    log_scale_ : float
        The logarithm of the volume by which integrals are scaled, (πσ²/2)^{d/2} for the Gaussian on R^d.
    sample_weight_ : array of shape (n,) or None
        The weights of the rows, as given to fit.

    Notes
    -----
    Cost: n m kernel evaluations, then ten to twenty rounds of about 30 products of m × m matrices. Memory: O(m²), where
    the paper stores m³ numbers.

    *Tensors.* Fitted to a tensor, the array attributes and all answers are tensors on the same device. The certificate,
    a proof in some 100 bits over the support, is NumPy's, and so are tables and draws; everything else, sums over the
    sample and the steps of the solver, is computed by torch, in double precision whatever that of X.

    *What is proved.* [``certificate_.lower``, ``certificate_.upper``] holds the least value of the objective over all
    densities whose coefficients lie in the span kept with the model, P_m being the projection on the sections kept with
    it, for the points and weights as given. With a Gaussian kernel on R^d, and either reference, the integrals and the
    sample's embedding are the exact ones: every rounding is counted. With other kernels and on a box the integrals are
    those of the quadrature, or of the closed form as double precision gives it: ``integration_error_`` estimates how
    far these are from the exact ones, and is no part of the proof. ``factor_`` is the certified density to rounding.

    In many dimensions the points are isolated under any kernel that resolves them, and the mean embedding of a density
    with bumps of width σ/2 is smaller than that of points by the factor (2/3)^{d/2}: from some twenty dimensions on
    ``projected_mmd_`` is close to ``sample_norm_``. The density then stands for next to nothing of the sample in this
    geometry, and a warning says so.

    Examples
    --------
    >>> import mercer
    >>> X, _ = mercer.datasets.three_clusters()
    >>> model = mercer.SumOfSquaresDensity(random_state=0).fit(X)
    >>> model.certificate_.holds(1e-4), bool(model.projected_mmd_ <= model.mmd_)
    (True, True)
    >>> model.density(X[:2]).shape
    (2,)
    """

    support_: Array
    coefficients_: Array
    factor_: Array
    rank_: int
    eigenvalues_: Array
    mmd_: float
    mmd_error_: float
    projected_mmd_: float
    sample_norm_: float
    certificate_: Certificate
    history_: tuple[SpectrahedronStep, ...]
    status_: Status
    n_iter_: int
    measure_: Measure
    regularization_: float
    integration_error_: float
    log_scale_: float
    sample_weight_: Array | None
    _always_double = True
    _checks = declared(
        solver=one_of(*_SOLVERS),
        tol=positive_number,
        max_iter=optional(at_least(1)),
        warm_start=true_or_false,
        verbose=true_or_false,
        callback=function_of("one line of history_", ValueError),
        regularization=optional(non_negative),
        truncation=fraction,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        support: Any = None,
        regularization: float | None = None,
        reference: Any = "lebesgue",
        box: Any = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        truncation: float = 1e-10,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.support = support
        self.regularization = regularization
        self.reference = reference
        self.box = box
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.truncation = truncation
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SumOfSquaresDensity:
        """Fit the density to the rows of X, which may have weights."""
        given = self._begin_fit(X, sample_weight=sample_weight, least=1)
        X, weights, shares = given.points, given.weights, given.shares
        if float(abs(X).max()) > _LARGEST:
            raise ValueError(
                f"X has entries above {_LARGEST:g}, whose squares overflow: bring the features to a scale near one."
            )
        measure = choose_reference(self.reference, self.box, X, shares)
        support = choose_support(self.support, X, shares, given.rng)
        require_memory(support.shape[0], X.shape[0], X.shape[1], not isinstance(self.kernel, Laplacian))
        with config_context(dtype="float64"), one_thread_for(support.shape[0], X):
            kernel = self._resolved_kernel(X, shares, support)
            problem = make_programme(kernel, support, measure, X, weights, **self._options())
            result = self._solve(problem)
            shown = trimmed(problem, result.factor, self.tol)
            self.kernel_, self.support_, self.measure_ = kernel, support, measure
            self.sample_weight_, self._n_rows = weights, int(X.shape[0])
            self._store(problem, result, shown)
            for name, value in self._measured(problem, X).items():
                setattr(self, name, value)
        warn_of_density(self, problem)
        return self

    def density(self, X: Any) -> Array:
        """The density at the rows of X, with respect to Lebesgue's measure; zero outside the box."""
        logs, _ = self._logarithm(X)
        return namespace(logs).exp(logs)

    def score_samples(self, X: Any) -> Array:
        """The logarithm of the density at the rows of X.

        It is finite at any distance from the support. Where the squares cancel to rounding, as at a zero of the
        density, it is floored at log(ε² ‖F‖² max_p k(x, z_p)²), ε = 2.2e-16; where the density is zero, as outside the
        box, at the logarithm of the least normal number, -708.4.
        """
        values, floor = self._logarithm(X)
        xp = namespace(values)
        return xp.where(floor == -np.inf, xp.clip(values, _FLOOR, None), xp.maximum(values, floor))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples` over the rows of X."""
        return float(self.score_samples(X).mean())

    def _logarithm(self, X: Any) -> tuple[Array, Array]:
        """log p and what rounding leaves of it."""
        X = self._new_points(X)
        squares, rounding = log_squares(self.kernel_, X, self.support_, self._factor)
        shift = self.measure_.log_density(X) - self.log_scale_
        return squares + shift, rounding + shift

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.density.recertification import verify_density  # which knows this class

        recheck.refuse_extension("a density")
        return verify_density(self, X)

    def _check_parameters(self) -> None:
        """Refuse what is no parameter, and what has no effect."""
        if is_precomputed(self.kernel):
            raise ValueError("A density is a function of points: give a kernel such as Gaussian(), not Precomputed().")
        super()._check_parameters()
        if self.solver == "conic" and (self.max_iter is not None or self.warm_start):
            option = "warm_start" if self.warm_start else "max_iter"
            raise ValueError(f"{option} has no effect with solver='conic', an interior-point method: leave it out.")

    def _options(self) -> dict[str, Any]:
        """What the programme takes of the parameters."""
        return {"regularization": self.regularization, "truncation": float(self.truncation)}

    def _resolved_kernel(self, X: Array, weights: Array, support: Array) -> Kernel:
        if self.kernel is None:
            return density_kernel(X, weights, support)
        if X.shape[0] == 1 and not checked_kernel(self.kernel).is_resolved:
            raise ValueError(f"{self.kernel!r} depends on the distances of points, but n_samples = 1: pass a number.")
        return resolved_kernel(self.kernel, X, weights)

    def _earlier(self, problem: SumOfSquares) -> Array | None:
        """The factor of an earlier fit with the same support, if a warm start is asked for."""
        if not self.warm_start or not hasattr(self, "factor_"):
            return None
        support = like(self.support_, problem.integrals.points)
        if support.shape != problem.integrals.points.shape or not bool((support == problem.integrals.points).all()):
            return None
        scale = float(np.exp(0.5 * problem.integrals.log_scale))
        return problem.coordinates(like(self.factor_, support) * scale)

    def _solve(self, problem: SumOfSquares) -> SpectrahedronResult:
        tol = float(self.tol)
        if self.solver == "conic":
            return conic_result(problem, tol=_MARGIN * tol, callback=self._callback())
        method = "accelerated" if self.solver == "accelerated" else "low-rank"
        steps = _MOST_STEPS[method] if self.max_iter is None else int(self.max_iter)
        solve = accelerated_spectrahedron if method == "accelerated" else low_rank_spectrahedron
        return solve(
            problem,
            tol=_MARGIN * tol * problem.scale,
            relative=_MARGIN * tol,
            max_iter=steps,
            start=self._earlier(problem),
            callback=self._callback(),
        )

    def _store(self, problem: SumOfSquares, result: SpectrahedronResult, shown: Presentation) -> None:
        self.certificate_, self._spans = shown.certificate, problem.spans
        proved = is_enough(problem, self.certificate_, self.tol)
        self.status_ = Status.STALLED if result.status is Status.CONVERGED and not proved else result.status
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.regularization_ = problem.regularization
        self.log_scale_ = problem.integrals.log_scale
        self._factor, self.eigenvalues_ = shown.factor, shown.masses
        self.integration_error_ = problem.integrals.error + shown.rounding
        self.factor_ = self._factor * float(np.exp(-0.5 * self.log_scale_))
        self.coefficients_ = self.factor_ @ self.factor_.T
        self.rank_ = int(self.factor_.shape[1])

    def _measured(self, problem: SumOfSquares, X: Array) -> dict[str, float]:
        """The distances that the model states, by name."""
        projected = norm(problem.residual(problem.coordinates(self._factor)))
        weights = normalised(self.sample_weight_, X.shape[0], reference=X)
        squared, error = squared_mmd(problem.integrals, self.kernel_, self._factor, X, weights)
        squared = max(squared, projected**2)  # which rounding alone could undercut
        return {
            "projected_mmd_": projected,
            "sample_norm_": float(np.sqrt(problem.constant)),
            "mmd_": float(np.sqrt(squared)),
            "mmd_error_": float(np.sqrt(squared + error) - np.sqrt(squared)),
        }

    def _callback(self) -> Any:
        """The user's callback, after a line in the log where that is wanted."""
        if not self.verbose:
            return self.callback

        def report(step: SpectrahedronStep) -> Any:
            _log.info("%4d: objective %.9g, gap %.1e, rank %d", step.number, step.objective, step.gap, step.rank)
            return None if self.callback is None else self.callback(step)

        return report
