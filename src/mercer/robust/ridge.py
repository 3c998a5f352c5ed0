"""The estimator: kernel ridge regression against the worst distribution of an MMD ball (SOS section 4, Example 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, contiguous, copied, is_tensor, like, namespace
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate, RegressionCertificate
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.setting import choose_support
from mercer.estimator import FitInput, KernelEstimator, Recheck, Regressor, keeps_earlier_fit
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.integrals import require_one_length
from mercer.operators import GramOperator
from mercer.robust.advice import warn_of_regression
from mercer.robust.formulation import TRUNCATION, Effort, Formulation, Terms
from mercer.robust.game import Game
from mercer.robust.pairs import Pairs, beside, make_pairs, target_width
from mercer.robust.radius import CROSS_VALIDATED, SAMPLING, check_radius, cross_validated_radius, sampling_radius
from mercer.robust.relaxation import Relaxation
from mercer.solvers.solution import Iteration, Status
from mercer.validation import (
    at_least,
    declared,
    fraction,
    function_of,
    positive_number,
    true_or_false,
)

CONFIDENCE, ADVERSARY_SUPPORT = 0.95, 100
_RELAXATIONS = (None, "rkhs")
_LARGEST_WIDTH = 1e140
_NO_RADIUS = 1e-100
_TARGET = -1  # the column of a pair that holds y


class RobustKernelRidge(Regressor, KernelEstimator):
    """Kernel ridge regression that prepares for the worst distribution of pairs near the sample.

    What it gives is a proved bound on that worst case. As a predictor it was clearly better than kernel ridge with λ by
    cross-validation on none of six tasks, and than ridge of the same λ on one: a learner too stiff to fit two groups.
    Against label noise and outliers it is the wrong tool, since the adversary adds to them: take Huber's loss, or
    ridge.

        min_f max_μ  ∫ (f(x) - y)² dμ(x, y) + λ‖f‖²      over distributions μ with MMD(μ, sample) ≤ ε

    The MMD is that of the kernel exp(-‖x-x'‖²/σ² - (y-y')²/τ²) of pairs, between 0 and √2. The adversary keeps a share
    of the sample and spreads the rest as a kernel sum of squares on ``adversary_support`` pairs of the support, and the
    bounds are of this adversary alone; f lies in the span of the kernel sections of all the support's inputs. What is
    proved, and what is not, is in the user guide.

    Parameters
    ----------
    kernel : Gaussian, default=None
        The kernel of the inputs; None means ``Gaussian(sigma="median")``. No other kernel has these integrals.
    radius : float or {"sampling", "cv"}, default=0.1
        ε: 0 is kernel ridge regression on the sample, √2 or more admits every distribution. Below 1e-6 take 0.
        ``"sampling"`` is (1 + √(log(1/(1 - confidence))))/√n, within which the sample's law lies with that probability
        if the bandwidths do not depend on the sample. ``"cv"`` takes the best of 0, .003, .01, .03, .1 and .3 on held
        out rows: 30 fits.
    confidence : float, default=0.95
        Of ``radius="sampling"``.
    regularization : float, default=1e-3
        λ > 0.
    support : int, array, str, tuple or estimator, default=50
        How many pairs are drawn from the sample, pairs as an array of shape (m, d + 1) with y last, or a rule as in
        :class:`mercer.SumOfSquaresDensity`.
    adversary_support : int, default=100
        r, how many pairs of the support the adversary's densities are made of, chosen from the mass matrix; functions
        and the ball's distance have all. It belongs to the problem: the fewer, the weaker the adversary. A step takes
        of the order of r²m² operations; with r of 30 to 50 a support of 500 is fitted in half a minute.
    target_sigma : float or {"median", "slope"}, default="median"
        τ, or the rule it is found by; 1 where all targets are equal. The smaller, the more changes of y cost.
    relaxation : {None, "rkhs"}, default=None
        ``"rkhs"`` admits every vector of the Hilbert space within ε of the sample's instead of distributions.
    keep_sample : bool, default=True
        Whether the adversary may keep a share of the sample. If not, ε must exceed the distance of the nearest density.
    truncation : float, default=1e-6
        Densities are made of the eigenvectors of their points' mass matrix with eigenvalues above this part of the
        largest. It belongs to the problem: the less, the more the adversary can do.
    tol : float, default=1e-6
        The certified relative gap to reach.
    max_iter : int, default=300
        Newton steps at most; 30 to 60 are usual.
    random_state : int, Generator or None, default=None
        Draws the support.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true value stops.
    verbose : bool, default=False
        Log the phases, the certified gap and the time to the logger ``mercer``.

    Attributes
    ----------
    dual_coef_, support_ : arrays of shape (m,) and (m, d + 1)
        f = Σ dual_coef_ₐ k(·, ξₐ), ξ the inputs of the support, whose pairs have y last.
    robust_risk_, sample_risk_ : float
        No admissible distribution has a larger mean squared error than the first: proved. The second is the sample's.
    certificate_ : RegressionCertificate
        Bounds on the optimum; ``upper`` is ``robust_risk_`` + λ‖f‖².
    sample_share_, adversary_ : float and GaussianSquares or None
        The share of the sample in the worst distribution, and the density of the rest, of (x, y σ/τ) and of mass one.
    adversary_coef_, price_coef_ : arrays of shape (r, r) and (m,)
        The coefficients of that density and of the prices that prove ``robust_risk_``.
    adversary_support_ : array of int of shape (r,)
        The rows of ``support_`` that densities are made of.
    radius_, radius_errors_ : float and array of shape (6,) or None
        ε, and with ``radius="cv"`` the held-out mean squared errors that chose it.
    distance_, mmd_ : float
        How far the worst distribution is from the sample, projected on the span of the support and without projection;
        nan where that would cost too much or lose its digits.
    kernel_, target_sigma_, sample_weight_ : Gaussian, float and array or None
        With their parameters fixed, and the weights of the fit.
    history_, status_, n_iter_ : tuple of Iteration, Status and int
        How the solver went.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RobustKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1))
    >>> model = RobustKernelRidge(radius=0.05).fit(X, np.sin(2 * X[:, 0]))
    >>> model.certificate_.holds(1e-6), bool(model.robust_risk_ > model.sample_risk_)
    (True, True)
    """

    dual_coef_: Array
    support_: Array
    robust_risk_: float
    sample_risk_: float
    certificate_: RegressionCertificate
    sample_share_: float
    adversary_: GaussianSquares | None
    adversary_coef_: Array
    adversary_support_: Array
    radius_: float
    radius_errors_: Array | None
    price_coef_: Array
    distance_: float
    mmd_: float
    kernel_: Gaussian
    target_sigma_: float
    sample_weight_: Array | None
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    _n_rows: int
    _bases: tuple[Array, ...]
    _always_double = True
    _has_targets = True
    _checks = declared(
        keep_sample=true_or_false,
        radius=check_radius,
        confidence=fraction,
        adversary_support=at_least(1),
        callback=function_of("one line of history_", ValueError),
        verbose=true_or_false,
        truncation=fraction,
        tol=positive_number,
        max_iter=at_least(1),
        regularization=positive_number,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        radius: Any = 0.1,
        confidence: float = CONFIDENCE,
        regularization: float = 1e-3,
        support: Any = 50,
        adversary_support: int = ADVERSARY_SUPPORT,
        target_sigma: Any = "median",
        relaxation: str | None = None,
        keep_sample: bool = True,
        truncation: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.radius = radius
        self.confidence = confidence
        self.regularization = regularization
        self.support = support
        self.adversary_support = adversary_support
        self.target_sigma = target_sigma
        self.relaxation = relaxation
        self.keep_sample = keep_sample
        self.truncation = truncation
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RobustKernelRidge:
        """Fit to the pairs of the rows of X and the entries of y, which may have weights."""
        given = self._begin_fit(X, y, sample_weight)
        X, y, weights = given.points, given.targets, given.shares
        with config_context(dtype="float64"):
            self.radius_, self.radius_errors_ = self._chosen_radius(given)
            kernel = self._checked_kernel(given.kernel)
            tau = target_width(self.target_sigma, y, weights)
            support = self._chosen_support(given, float(kernel.sigma) / tau)
            pairs = make_pairs(X, y, given.weights, support, float(kernel.sigma), tau)
            pairs = pairs.thinned(int(self.adversary_support), given.rng)
            with one_thread_for(support.shape[0], X):
                found = self._solved(pairs)
        self.kernel_, self.target_sigma_, self.support_ = kernel, tau, support
        self.sample_weight_, self._n_rows = given.weights, int(X.shape[0])
        self.adversary_support_ = pairs.chosen_rows
        for name, value in found.items():
            setattr(self, name, value)
        warn_of_regression(self, "centre y, raise regularization or truncation")
        return self

    def predict(self, X: Any) -> Array:
        """f at the rows of X."""
        X = self._new_points(X)
        return as_double(GramOperator(self.kernel_, X, self._inputs) @ self.dual_coef_)

    def adversary_density(self, X: Any, y: Any) -> Array:
        """The density of the worst distribution at pairs (x, y), the share of the sample left out.

        It integrates to 1 - ``sample_share_``.
        """
        X = self._new_points(X)
        y = like(y, X, dtype=X.dtype)
        if tuple(y.shape) != (X.shape[0],):
            raise ValueError(
                f"y has shape {tuple(y.shape)}: it must have one entry for each of the {X.shape[0]} rows of X."
            )
        if self.adversary_ is None:
            return namespace(y).zeros_like(y)
        stretch = float(self.kernel_.sigma) / self.target_sigma_
        values = self.adversary_.density(beside(X, y * stretch))
        return (1.0 - self.sample_share_) * stretch * values

    @property
    def _inputs(self) -> Array:
        return contiguous(self.support_[:, :_TARGET])

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.robust.verify_ridge import verify_robust_ridge  # which knows this class

        recheck.refuse_extension("a regression")
        return verify_robust_ridge(self, X, y)

    def _check_parameters(self) -> None:
        """Refuse what is no parameter, and what has no effect."""
        if self.relaxation not in _RELAXATIONS:
            raise ValueError(f"relaxation={self.relaxation!r} must be None or 'rkhs'.")
        super()._check_parameters()
        if self.relaxation == "rkhs":
            self._refuse_options_of_densities()
        if self.confidence != CONFIDENCE and self.radius != SAMPLING:
            raise ValueError("confidence has no effect unless radius='sampling': leave it out.")
        if self.radius == CROSS_VALIDATED and not self.keep_sample:
            raise ValueError(
                "radius='cv' tries balls that hold no density at all: give a number, or leave keep_sample=True."
            )
        if self.radius == 0 and not self.keep_sample:
            raise ValueError("radius=0 leaves no density in the ball: raise radius, or leave keep_sample=True.")
        if not isinstance(self.radius, str) and 0 < self.radius < _NO_RADIUS:
            raise ValueError(f"radius={self.radius:g} is no ball in double precision: take radius=0.")

    def _refuse_options_of_densities(self) -> None:
        usual = {"keep_sample": True, "truncation": TRUNCATION, "adversary_support": ADVERSARY_SUPPORT}
        for option, value in usual.items():
            if getattr(self, option) != value:
                raise ValueError(
                    f"{option} has no effect with relaxation='rkhs', whose adversary has no densities: leave it out."
                )

    def _chosen_radius(self, given: FitInput) -> tuple[float, Array | None]:
        """ε, and the errors that cross-validation chose it by."""
        if self.radius == CROSS_VALIDATED:
            return cross_validated_radius(self, given)
        if self.radius == SAMPLING:
            return sampling_radius(given.shares, float(self.confidence)), None
        return float(self.radius), None

    def _checked_kernel(self, kernel: Kernel) -> Gaussian:
        if not isinstance(kernel, Gaussian):
            raise ValueError(
                f"kernel={kernel!r} has no closed form for the integrals of the squared loss: use Gaussian()."
            )
        require_one_length(kernel, self.n_features_in_)
        if not 1 / _LARGEST_WIDTH < float(kernel.sigma) < _LARGEST_WIDTH:
            raise ValueError(
                f"{kernel!r} has a width whose square leaves double precision: bring X to a scale near one."
            )
        return kernel

    def _chosen_support(self, given: FitInput, stretch: float) -> Array:
        """Pairs (ξ, η), chosen among (x, y σ/τ), where one distance fits all coordinates."""
        support, X = self.support, given.points
        if is_tensor(support) or (isinstance(support, np.ndarray | list) and np.ndim(support) == 2):
            support = copied(like(support, X, dtype=X.dtype))
            support[:, _TARGET] *= stretch
        chosen = choose_support(support, beside(X, given.targets * stretch), given.shares, given.rng)
        chosen[:, _TARGET] /= stretch
        return chosen

    def _formulated(self, pairs: Pairs, bases: tuple[Array, ...] | None = None) -> Formulation:
        """The problem that the parameters pose, on spans that are known or not."""
        terms = Terms(float(self.radius_), float(self.regularization), bool(self.keep_sample), float(self.truncation))
        return self._formulation(pairs, terms, bases)

    @property
    def _formulation(self) -> type[Formulation]:
        return Relaxation if self.radius_ == 0 or self.relaxation == "rkhs" else Game

    def _solved(self, pairs: Pairs) -> dict[str, Any]:
        """The fitted attributes that follow from the solution."""
        problem = self._formulated(pairs)
        callbacks = () if self.callback is None else (self.callback,)
        solution = problem.solve(Effort(float(self.tol), int(self.max_iter), callbacks, bool(self.verbose)))
        coefficients, certificate = problem.coefficients(solution.point), solution.certificate
        return {
            "_bases": problem.bases,
            **coefficients.named(),
            **problem.described(coefficients),
            "certificate_": certificate,
            "robust_risk_": certificate.robust_risk,
            "sample_risk_": certificate.sample_risk,
            "status_": solution.status,
            "history_": solution.history,
            "n_iter_": solution.n_iter,
        }
