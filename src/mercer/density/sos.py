"""The estimator: a density that is a sum of squares, fitted in the MMD geometry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import DensityMixin

from mercer.backends import config_context
from mercer.backends.arrays import Array, like, norm
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.density.distance_to_sample import squared_mmd
from mercer.density.fit_warnings import warn_of_fit
from mercer.density.fitting_problem import (
    kernel_likelihood,
    make_programme,
    require_memory,
    sections_likelihood,
    unit_log_scale,
)
from mercer.density.own_sections import UNIT_KERNEL, asks_for_sections, find_sections, require_sections_fit
from mercer.density.setting import (
    DEFAULT_SIZE,
    Setting,
    checked_target,
    choose_kernel,
    choose_reference,
    choose_support,
    sizes,
)
from mercer.density.squares import SquaresProblem, certify_squares, is_enough, squares_of
from mercer.density.values import DensityValues
from mercer.estimator import FitInput, KernelEstimator, Recheck, keeps_earlier_fit
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.kernels.integrals.measures import Lebesgue, Measure
from mercer.problems import SquaresLikelihood
from mercer.problems.sum_of_squares import Spans
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.solvers.conic import Conic
from mercer.solvers.run import Goal, Method, solve
from mercer.solvers.solution import Iteration, Solution, Status
from mercer.solvers.spectrahedron.accelerated import AcceleratedGradients
from mercer.solvers.spectrahedron.low_rank import LowRank
from mercer.validation import (
    at_least,
    declared,
    fraction,
    function_of,
    is_precomputed,
    non_negative,
    normalised,
    one_of,
    optional,
    positive_number,
    true_or_false,
)

_METHODS: dict[str, tuple[Callable[[Goal], Method[Any, Array]], int]] = {  # with steps at most by default
    "auto": (LowRank, 200),
    "low-rank": (LowRank, 200),
    "accelerated": (lambda _: AcceleratedGradients(), 10_000),
    "conic": (Conic, 1),
}
_MARGIN = 0.5  # of tol: the certificate, which counts rounding too, is to keep what was asked for
_LARGEST = 1e120
_MEASURED = ("mmd_", "mmd_error_", "projected_mmd_", "sample_norm_", "log_likelihood_")


class SumOfSquaresDensity(DensityValues, DensityMixin, KernelEstimator):
    """A probability density that is a sum of squares of kernel functions, as close to a sample as it can be.

    With support points z₁ … z_m and k_x = (k(x, z_p))_p, among all densities p(x) = k_xᵀ B k_x = ‖Fᵀk_x‖², B ≽ 0, of
    mass one with respect to a reference measure ρ, the one is found that minimises

        ‖P(v - w_p)‖² + λ Tr(B K̃),

    v and w_p the mean embeddings of sample and density, P the projection on the span of the φ(z_p) (SOS 12-14), or the
    identity (SOS 9; (16) prints the MMD, and its square is minimised): a convex programme, solved with a bound on what
    any other density of this form could gain. The user guide says what is proved, what it costs and when not to use it.

    Parameters
    ----------
    kernel : Kernel, default=None
        A positive semi-definite kernel; None means the Gaussian with a bandwidth for densities, chosen by likelihood.
    support : int, str, tuple, array of shape (m, d) or estimator, default=None
        The points z: a number of rows drawn from X (None means 100), ``"kmeans"`` or ``("kmeans", number)`` for centres
        of k-means, the points themselves, or an estimator with ``indices_``, fitted here if it was not before. With
        ``objective="likelihood"`` also ``("mixture", number)``: Gaussians with covariances of their own, the parts of a
        mixture of normal laws; ``"mixture"``, as many as predict best; or ``"auto"``, which None means where no kernel
        is given: these, or in few columns bumps of one shape, whichever predicts points left out better.
    regularization : float, default=None
        λ ≥ 0, in units of 1/volume. None means the volume of the widest squared section k(·, z)², (πσ²/2)^{d/2} for the
        Gaussian kernel on R^d, over the number of distinct points; where squares have mass one, as those of ``scales``
        and mixtures, ten over it, sixty for many of one shape.
    objective : {"projection", "mmd", "likelihood"}, default="projection"
        What is made small: the distance that the support sees; or the whole MMD², which costs more (m⁴ operations to
        prove, n² for the sample) and is worth it for some 50 support points or fewer; or -(1/n) Σ log p(xᵢ) with the
        same penalty, for a density that predicts.
    reference : {"lebesgue", "gaussian"}, (mean, std), (mean, covariance) or a measure, default="lebesgue"
        ρ: Lebesgue's measure, or a normal law, whose tails the density then has; ``"gaussian"`` takes mean and variance
        from the data. :meth:`density` is with respect to Lebesgue's, but for :class:`mercer.DiscreteMeasure`.
    box : (lower, upper), default=None
        Restrict Lebesgue's measure to a box: two numbers or two corners. The density is zero outside.
    signed : bool, default=False
        Take negative ``sample_weight`` too, of a positive sum: the target v = Σ aᵢ φ(xᵢ)/Σ aᵢ is then any vector (SOS
        Lemma 3), such as a sample less a part of it, and ``mmd_`` its distance to the density in the space.
    solver : {"auto", "low-rank", "accelerated", "conic"}, default="auto"
        ``"low-rank"``, which ``"auto"`` means: Newton's method on faces. ``"accelerated"``: projected gradients, as in
        the paper. ``"conic"``: cvxpy, for some 40 points at most, without ``max_iter`` and ``warm_start``.
    tol : float, default=1e-8
        The proved gap to stop at, relative to ‖Pv‖² plus the least penalty of any density, or to the optimum itself
        where that is larger; of a likelihood, in nats a point.
    max_iter : int, default=None
        Steps at most; None means 200 rounds of ``"low-rank"``, 10 000 steps of ``"accelerated"``.
    truncation : float, default=1e-10
        Eigenvalues of W = ∫ k_x k_xᵀ dρ and K̃ below this part of the largest are cut off.
    warm_start : bool, default=False
        Start from the density of an earlier fit where the support is the same.
    random_state : None, int or generator, default=None
        Of the sampled support, or of k-means.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true return value stops, and ``status_`` says so.
    verbose : bool, default=False
        Log the progress to the logger ``mercer``.
    scales : sequence of float, default=None
        With ``objective="likelihood"``: several sections at a point, whose squares have the covariance times these
        numbers. None means one, of mixtures 1, 2 and 8, for tails.

    Attributes
    ----------
    support_, coefficients_, factor_ : arrays of shape (m, d), (m, m) and (m, r)
        The points z without repetitions; B = F Fᵀ; and F, which densities are computed from.
    rank_, eigenvalues_ : int and array of shape (r,)
        The number of squares, as small as the tolerance allows, and the mass of each in falling order.
    log_likelihood_ : float
        (1/n) Σ log p(xᵢ), with respect to ρ; with ``objective="likelihood"`` in place of the four below.
    mmd_, mmd_error_ : float
        MMD between sample and density, and an estimate of its error; 0 where it is exact.
    projected_mmd_, sample_norm_ : float
        ‖P_m(v - w_p)‖ on the span of the support, never above ``mmd_``; and ‖P_m v‖.
    certificate_ : Certificate
        The objective and a proved lower bound.
    history_, status_, n_iter_ : tuple of Iteration, Status, int
        Objective, gap and rank as the solver went on; why it ended; steps it took.
    kernel_, measure_, regularization_, sample_weight_ : Kernel, Measure, float, array of shape (n,) or None
        The kernel with its parameters fixed, ρ, λ, and the weights as given.
    sections_ : GaussianSections or None
        Roots of normal densities in place of a kernel's sections, with ``means``, ``roots`` of the precisions and
        ``factors``; ``covariances`` and ``points``, which ``support_`` has, are of all of them, factor by factor.
        ``kernel_`` is then that of a section in the coordinates in which its covariance is the identity.
    integration_error_, log_scale_ : float
        An estimate of the error of ∫ p dρ = 1; and the logarithm of the volume by which integrals are scaled.

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
    log_likelihood_: float
    mmd_: float
    mmd_error_: float
    projected_mmd_: float
    sample_norm_: float
    certificate_: Certificate
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    measure_: Measure
    regularization_: float
    integration_error_: float
    log_scale_: float
    sample_weight_: Array | None
    _n_rows: int
    _spans: Spans
    _probes: Array | None
    _always_double = True
    _sometimes = frozenset(_MEASURED)  # one objective has some of them, one the others
    _checks = declared(
        objective=one_of("projection", "mmd", "likelihood"),
        solver=one_of(*_METHODS),
        tol=positive_number,
        max_iter=optional(at_least(1)),
        warm_start=true_or_false,
        signed=true_or_false,
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
        objective: str = "projection",
        reference: Any = "lebesgue",
        box: Any = None,
        signed: bool = False,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        truncation: float = 1e-10,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
        scales: Any = None,
    ) -> None:
        self.kernel = kernel
        self.support = support
        self.regularization = regularization
        self.objective = objective
        self.reference = reference
        self.box = box
        self.signed = signed
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.truncation = truncation
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.scales = scales

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SumOfSquaresDensity:
        """Fit the density to the rows of X, which may have weights."""
        given = self._begin_fit(X, sample_weight=sample_weight, least=1)
        (setting, sections), sample = self._setting(given), Sample(given.points, given.weights)
        with config_context(dtype="float64"), one_thread_for(setting.support.shape[0], given.points):
            problem = self._programme(setting, sections, sample)
            solution = self._solve(problem)
            self.sections_ = sections
            self._store(setting, sample, problem, solution)
        warn_of_fit(self, problem)
        return self

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.density.verify_density import verify_density  # which knows this class

        recheck.refuse_extension("a density")
        return verify_density(self, X)

    def _checked_sample_weight(self, weights: Any, points: Any) -> Array:
        return checked_target(weights, points, signed=bool(self.signed))

    def _check_parameters(self) -> None:
        """Refuse what is no parameter, and what has no effect."""
        if is_precomputed(self.kernel):
            raise ValueError("A density is a function of points: give a kernel such as Gaussian(), not Precomputed().")
        super()._check_parameters()
        if self.solver == "conic" and (self.max_iter is not None or self.warm_start):
            option = "warm_start" if self.warm_start else "max_iter"
            raise ValueError(f"{option} has no effect with solver='conic', an interior-point method: leave it out.")
        if self.objective == "likelihood" and self.signed:
            raise ValueError("A signed target has no likelihood: leave out signed, or take another objective.")

    def _programme(
        self,
        setting: Setting,
        sections: GaussianSections | None,
        sample: Sample,
        spans: Spans | None = None,
        probes: Array | None = None,
    ) -> SquaresProblem:
        """What is minimised; spans and probes are those of a programme before."""
        options: dict[str, Any] = {"regularization": self.regularization, "truncation": float(self.truncation)}
        if sections is not None:
            return sections_likelihood(sections, sample, spans=spans, **options)
        if self.objective == "likelihood":
            return kernel_likelihood(setting, sample, spans=spans, **options)
        return make_programme(setting, sample, objective=self.objective, spans=spans, probes=probes, **options)

    def _setting(self, given: FitInput) -> tuple[Setting, GaussianSections | None]:
        """Kernel, support and measure, and sections of their own, from the parameters and the data."""
        X, shares = given.points, sizes(given.shares)
        if float(abs(X).max()) > _LARGEST:
            raise ValueError(
                f"X has entries above {_LARGEST:g}, whose squares overflow: bring the features to a scale near one."
            )
        measure = choose_reference(self.reference, self.box, X, shares)
        asked = self.support, self.kernel, self.scales, self.objective
        require_sections_fit(*asked, isinstance(measure, Lebesgue))
        if asks_for_sections(*asked):
            with config_context(dtype="float64"), one_thread_for(DEFAULT_SIZE, X):
                sections = find_sections(*asked[:3], X, shares, given.rng)
            require_memory(UNIT_KERNEL, sections.points, X, self.objective)
            return Setting(UNIT_KERNEL, sections.points, measure), sections
        support = choose_support(self.support, X, shares, given.rng)
        require_memory(self.kernel, support, X, self.objective)
        with config_context(dtype="float64"), one_thread_for(support.shape[0], X):
            return Setting(choose_kernel(self.kernel, X, shares, support), support, measure), None

    def _earlier(self, problem: SquaresProblem) -> Array | None:
        """The factor of an earlier fit with the same support, if a warm start is asked for."""
        if not self.warm_start or not hasattr(self, "factor_"):
            return None
        support = like(self.support_, problem.integrals.points)
        if support.shape != problem.integrals.points.shape or not bool((support == problem.integrals.points).all()):
            return None
        return problem.coordinates(like(self._factor, support))

    def _solve(self, problem: SquaresProblem) -> Solution[Array]:
        """The solution with the certificate of the numbers that :meth:`_store` keeps of it."""
        tol, (method, steps) = float(self.tol), _METHODS[self.solver]
        steps = steps if self.max_iter is None else int(self.max_iter)
        relative = 0.0 if isinstance(problem, SquaresLikelihood) else _MARGIN * tol
        goal = Goal(relative, absolute=_MARGIN * tol * problem.scale, max_iter=steps)
        solution = solve(
            problem,
            method(goal),
            self._earlier(problem),
            goal=goal,
            callbacks=() if self.callback is None else (self.callback,),
            shown=bool(self.verbose),
            certify=lambda F: certify_squares(problem, squares_of(problem, F, tol)),
        )
        proof = solution.certificate
        if solution.status is Status.CONVERGED and not is_enough(problem, proof.upper - proof.lower, proof.upper, tol):
            return solution.ended(Status.STALLED)
        return solution

    def _store(self, setting: Setting, sample: Sample, problem: SquaresProblem, solution: Solution[Array]) -> None:
        self.kernel_, self.support_, self.measure_ = setting
        self.sample_weight_, self._n_rows = sample.weights, int(sample.points.shape[0])
        self.certificate_, self._spans, self._probes = solution.certificate, problem.spans, problem.probe_points
        self.status_, self.history_, self.n_iter_ = solution.status, solution.history, solution.n_iter
        self.regularization_, self.log_scale_ = problem.regularization, problem.integrals.log_scale
        self._factor, self.eigenvalues_, rounding = squares_of(problem, solution.point, float(self.tol))
        self.integration_error_ = problem.integrals.error + rounding
        self.factor_ = self._factor * float(np.exp(-0.5 * unit_log_scale(problem)))
        self.coefficients_ = self.factor_ @ self.factor_.T
        self.rank_ = int(self.factor_.shape[1])
        for name in _MEASURED:
            self.__dict__.pop(name, None)
        for name, value in self._measured(problem, sample.points).items():
            setattr(self, name, value)

    def _measured(self, problem: SquaresProblem, X: Array) -> dict[str, float]:
        """What the model states of its fit, by name: distances, or the likelihood."""
        if isinstance(problem, SquaresLikelihood):
            return {"log_likelihood_": -problem.misfit(problem.residual(problem.coordinates(self._factor)))}
        projected = problem.distance_on_support(self._factor)
        weights = normalised(self.sample_weight_, X.shape[0], reference=X)
        squared, error = squared_mmd(problem.integrals, self.kernel_, self._factor, X, weights)
        if error > 0 and problem.comparison.is_whole:  # nothing of it is projected: rounding alone
            squared, error = problem.squared_distance(self._factor), 0.0
        squared = max(squared, projected**2)  # which rounding alone could undercut
        return {
            "projected_mmd_": projected,
            "sample_norm_": norm(problem.on_support.goal),
            "mmd_": float(np.sqrt(squared)),
            "mmd_error_": float(np.sqrt(squared + error) - np.sqrt(squared)),
        }
