"""The estimator: kernel ridge regression against the worst distribution of an MMD ball (SOS section 4, Example 2)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.backends.threads import blas_for
from mercer.certificates.certificate import Certificate
from mercer.certificates.saddle_point import certify_saddle_point
from mercer.certificates.strong_convexity import certify_strongly_convex
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.robust_game import (
    Pairs,
    function_basis,
    make_ball,
    make_game,
    make_pairs,
    make_precise,
    make_relaxed,
)
from mercer.density.support import choose_support
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.bandwidth import check_rule
from mercer.kernels.validation import positive_number
from mercer.linalg.random import as_generator
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.precise_regression import PreciseRegression
from mercer.problems.robust_regression import RobustRegression
from mercer.solvers.newton import minimise_by_newton
from mercer.solvers.result import Status
from mercer.solvers.saddle_point import SaddlePoint, solve_saddle_point
from mercer.validation import checked_weights, fraction, normalised, resolved_kernel, whole_number

Array = np.ndarray[Any, np.dtype[Any]]

_RELAXATIONS = (None, "rkhs")
_MOST_OPERATIONS = 4e9  # in extended precision, a quarter of a minute
_ROUNDING = 1e-14
_LEAST_RADIUS = 1e-6  # below, the prices of the ball cost less than rounding
_MARGIN = 0.5  # of the gap to reach, the rest is for rounding
_TARGET = -1  # the column of a pair that holds y


class RobustKernelRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression that prepares for the worst distribution of pairs near the sample.

        min_f max_μ  ∫ (f(x) - y)² dμ(x, y) + λ‖f‖²      over distributions μ with MMD(μ, sample) ≤ ε

    The MMD is that of the kernel exp(-‖x-x'‖²/σ² - (y-y')²/τ²) of pairs, between 0 and √2. The adversary keeps a share
    of the sample where it is and spreads the rest as a kernel sum of squares on the support; the learner's f lies in
    the span of the kernel sections of the support's inputs. The loss is in closed form, the game convex in f and linear
    in μ: it is solved to a certified gap, see ``mercer.problems.robust_regression`` for the mathematics.

    Parameters
    ----------
    kernel : Gaussian, default=None
        The kernel of the inputs; None means ``Gaussian(sigma="median")``. No other kernel has these integrals.
    radius : float, default=0.1
        ε. At 0 it is kernel ridge regression on the sample, scikit-learn's ``KernelRidge`` with ``alpha`` n times the
        regularisation where the support is the whole sample. A ball of ε = √2 holds every distribution.
        Between 0 and 1e-6 the answer is that of 0 for all purposes, and rounding leaves no proof of it.
    regularization : float, default=1e-3
        λ > 0.
    support : int, array, str, tuple or estimator, default=50
        Pairs that carry the adversary's densities, and whose inputs carry f: how many are drawn from the sample, pairs
        as an array of shape (m, d + 1) with y last, ``"kmeans"``, ``("kmeans", m)``, or an estimator with ``indices_``,
        as in :class:`mercer.SumOfSquaresDensity`. More is finer, and gives the adversary more: time grows like m⁵,
        memory like m⁴/2. A second or two at 50, up to a minute and half a gigabyte at 100; beyond 150 it stops making
        sense.
    target_sigma : float or {"median", "slope"}, default="median"
        τ, or the rule it is found by; 1 where all targets are equal. The smaller, the dearer are changes of y.
    relaxation : {None, "rkhs"}, default=None
        ``"rkhs"``: instead of distributions the adversary has all vectors of the Hilbert space within ε of the sample's
        (Staib and Jegelka 2019). The worst loss is then a penalty, ε‖f²‖ in the space of bandwidth σ/√2; their terms
        with y, which lie in no such space, are dropped, as in their experiments. SOS section 2.1 shows what it misses.
    keep_sample : bool, default=True
        Whether the adversary may keep a share of the sample. False leaves densities alone, as SOS (18) has it: then ε
        must exceed the distance of the nearest density.
    truncation : float, default=1e-6
        Densities are made of the eigenvectors of the support's mass matrix (SOS W) with eigenvalues above this part of
        the largest. It belongs to the problem, not to its accuracy: the less, the sharper and wider are the adversary's
        densities, and the larger the risk; below 1e-7 rounding has the last word.
    tol : float, default=1e-6
        The certified relative gap to reach.
    max_iter : int, default=300
        Newton steps at most; 30 to 60 are usual. Where rounding spoils the proof, as with targets far from zero, the
        integrals are formed anew in extended precision, and the game is solved again with as many steps.
    random_state : int, Generator or None, default=None
        Draws the support.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true value stops. Not for the relaxation.

    Attributes
    ----------
    dual_coef_ : array of shape (m,)
        f = Σ dual_coef_ₐ k(·, ξₐ), ξ the inputs of the support.
    support_ : array of shape (m, d + 1)
        The pairs of the support, y last.
    robust_risk_ : float
        No admissible distribution has a larger mean squared error: proved. Of the relaxation, the sample's plus the
        penalty.
    sample_risk_ : float
        The mean squared error on the sample.
    certificate_ : Certificate
        Bounds on the optimum; ``upper`` is ``robust_risk_`` + λ‖f‖².
    sample_share_ : float
        The share of the sample in the worst distribution.
    adversary_ : GaussianSquares or None
        The density of the other part, of mass one, in the coordinates (x, y σ/τ); None where there is no such part.
    adversary_coef_ : array of shape (m, m)
        B of that part, k_zᵀBk_z up to the volume of a squared section: Σ B_pq exp(-‖ζ_p-ζ_q‖²/(2σ²)) is its mass,
        1 - ``sample_share_``, in the same coordinates.
    price_coef_ : array of shape (m,)
        The proof of ``robust_risk_``: a function g = Σ price_coef_ₐ k(·, ζₐ) of pairs. What a distribution moves costs
        it at most ε‖g‖, so its risk is at most max ((f - y)² - g, over the class) + mean of g over the sample + ε‖g‖.
    distance_, mmd_ : float
        How far the worst distribution is from the sample: projected on the span of the support, as the ball has it
        (SOS Lemma 3), and without projection, NaN for supports beyond exact sums.
    kernel_, target_sigma_ : Gaussian and float
        With their parameters fixed.
    sample_weight_ : array of shape (n,) or None
        The weights of the fit.
    history_, status_, n_iter_ : tuple, Status and int
        How the solver went, in the round that was kept.

    Notes
    -----
    Everything is dense: the cost depends on the support, and on n only through n m. The solver works in double
    precision; its bounds are recomputed in extended precision, and :func:`mercer.verify` does so from the model and the
    data.

    *What is proved.* For every distribution of the class, a share of the sample and a density of the truncated span,
    whose MMD from the sample is at most ε, the mean squared error of f is at most ``robust_risk_``; and no f in the
    span of the support's sections has a worst case plus λ‖f‖² below ``certificate_.lower``. The ball of the game is
    that of the MMD projected on the span of the support (SOS Lemma 3), which is larger, so that the first statement
    holds for either ball and the second for the projected one.

    *What is not.* Nothing follows for distributions outside the class, and nothing can: pairs have no bound, and a mass
    δ moved to a target Y costs √2 δ of MMD at most and gains δ Y², so that the worst squared loss over all of SOS (17)
    is infinite for every ε > 0. The class, by its support, τ and the truncation, is what makes the problem finite.

    *Where it departs from SOS (17)-(18).* There is no penalty λ‖f‖² there, and f is any function of the Hilbert space;
    the support is the sample; densities alone are admitted, in the ball of the MMD itself.

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

    def __init__(
        self,
        kernel: Any = None,
        *,
        radius: float = 0.1,
        regularization: float = 1e-3,
        support: Any = 50,
        target_sigma: Any = "median",
        relaxation: str | None = None,
        keep_sample: bool = True,
        truncation: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: Any = None,
        callback: Any = None,
    ) -> None:
        self.kernel = kernel
        self.radius = radius
        self.regularization = regularization
        self.support = support
        self.target_sigma = target_sigma
        self.relaxation = relaxation
        self.keep_sample = keep_sample
        self.truncation = truncation
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RobustKernelRidge:
        """Fit to the pairs of the rows of X and the entries of y, which may have weights."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, y_numeric=True)
        y = np.asarray(y, np.float64)
        radius, regularization = self._checked_numbers()
        n = self._n_rows = int(X.shape[0])
        self.sample_weight_ = None if sample_weight is None else checked_weights(sample_weight, n, "sample_weight")
        weights = normalised(self.sample_weight_, n)
        self.kernel_ = self._checked_kernel(resolved_kernel(self.kernel, X, weights))
        self.target_sigma_ = self._resolved_target_sigma(y, weights)
        self.support_ = self._chosen_support(X, y, weights)
        pairs = make_pairs(X, y, weights, self.support_, float(self.kernel_.sigma), self.target_sigma_)
        solve = self._relax if radius == 0 or self.relaxation == "rkhs" else self._play
        with blas_for(self.support_.shape[0]):
            U, features = function_basis(pairs, integrated=radius > 0)
            beta = solve(pairs, U, features, radius, regularization)
        self.dual_coef_ = pairs.size * (U @ beta)
        self.sample_risk_ = pairs.size**2 * float(weights @ (features @ beta - pairs.targets) ** 2)
        self._warn()
        return self

    def predict(self, X: Any) -> Array:
        """f at the rows of X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return np.asarray(GramOperator(self.kernel_, X, self._inputs) @ self.dual_coef_, np.float64)

    def adversary_density(self, X: Any, y: Any) -> Array:
        """The density of the worst distribution at pairs (x, y), the share of the sample left out.

        It integrates to 1 - ``sample_share_``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        y = np.asarray(y, np.float64)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y has shape {y.shape}: it must have one entry for each of the {X.shape[0]} rows of X.")
        if self.adversary_ is None:
            return np.zeros(X.shape[0])
        stretch = float(self.kernel_.sigma) / self.target_sigma_
        values = self.adversary_.density(np.column_stack([X, y * stretch]))
        return np.asarray((1.0 - self.sample_share_) * stretch * values)

    @property
    def _inputs(self) -> Array:
        return np.ascontiguousarray(self.support_[:, :_TARGET])

    def _checked_numbers(self) -> tuple[float, float]:
        if self.relaxation not in _RELAXATIONS:
            raise ValueError(f"relaxation={self.relaxation!r} must be None or 'rkhs'.")
        if not isinstance(self.keep_sample, bool | np.bool_):
            raise ValueError(f"keep_sample={self.keep_sample!r} must be True or False.")
        radius = positive_number(self.radius, "radius", zero=True)
        if radius == 0 and not self.keep_sample and self.relaxation is None:
            raise ValueError("radius=0 leaves no density in the ball: raise radius, or leave keep_sample=True.")
        return radius, positive_number(self.regularization, "regularization")

    def _checked_kernel(self, kernel: Kernel) -> Gaussian:
        if not isinstance(kernel, Gaussian):
            raise ValueError(
                f"kernel={kernel!r} has no closed form for the integrals of the squared loss: use Gaussian()."
            )
        return kernel

    def _resolved_target_sigma(self, y: Array, weights: Array) -> float:
        check_rule(self.target_sigma, "target_sigma")
        if not isinstance(self.target_sigma, str):
            return positive_number(self.target_sigma, "target_sigma")
        present = y[weights > 0]
        if np.all(present == present[0]):
            return 1.0
        return float(resolved_kernel(Gaussian(sigma=self.target_sigma), y[:, None], weights).sigma)  # type: ignore[attr-defined]

    def _chosen_support(self, X: Array, y: Array, weights: Array) -> Array:
        """Pairs (ξ, η), chosen among (x, y σ/τ), where one distance fits all coordinates."""
        stretch = float(self.kernel_.sigma) / self.target_sigma_
        support = self.support
        if isinstance(support, np.ndarray | list) and np.ndim(support) == 2:
            support = np.array(support, np.float64)
            support[:, _TARGET] *= stretch
        chosen = choose_support(support, np.column_stack([X, y * stretch]), weights, as_generator(self.random_state))
        chosen[:, _TARGET] /= stretch
        return chosen

    def _relax(self, pairs: Pairs, U: Array, features: Array, radius: float, regularization: float) -> Array:
        """Penalised least squares; the adversary is no distribution, or the sample."""
        problem = make_relaxed(pairs, U, features, radius=radius, regularization=regularization)
        # a decrease of so much leaves a gap of at most its quotient by λ, where the features are at most one
        tol = max(positive_number(self.tol, "tol") * min(1e-3, regularization), _ROUNDING)
        max_iter = whole_number(self.max_iter, "max_iter", 1)
        found = minimise_by_newton(problem, problem.start(), tol=tol, max_iter=max_iter)
        certificate = certify_strongly_convex(problem.precise(), found.x)
        self._keep(certificate, found.status, found.history, found.n_iter, pairs.size)
        penalty = radius * problem.precise().square_norm(found.x)
        self.robust_risk_ = pairs.size**2 * (problem.sample_loss(found.x) + penalty)
        self.sample_share_: float = 1.0
        self.adversary_: GaussianSquares | None = None
        self.distance_ = self.mmd_ = 0.0
        m = self.support_.shape[0]
        self.adversary_coef_, self.price_coef_ = np.zeros((m, m)), np.zeros(m)
        return found.x

    def _play(self, pairs: Pairs, U: Array, features: Array, radius: float, regularization: float) -> Array:
        """The saddle point."""
        ball = make_ball(pairs, fraction(self.truncation, "truncation"))
        make = partial(
            make_game,
            *(pairs, U, features, ball),
            radius=radius,
            regularization=regularization,
            sample=bool(self.keep_sample),
        )
        game = make()
        precise = make_precise(pairs, U, ball, game)
        found, certificate = self._proved(game, precise, U)
        if self._spoilt(found, certificate) and U.shape[1] * U.shape[0] ** 4 <= _MOST_OPERATIONS:
            again = self._proved(make(dtype=np.longdouble), precise, U)
            found, certificate = min((found, certificate), again, key=lambda one: one[1].relative_gap)
        if self._spoilt(found, certificate):
            found = replace(found, status=Status.STALLED)
        self._keep(certificate, found.status, found.history, found.n_iter, pairs.size)
        self.robust_risk_ = pairs.size**2 * precise.worst_case(U @ found.beta, found.prices)
        self.price_coef_ = pairs.size**2 * (ball.whitening @ found.prices)
        self._describe(pairs, ball, game, found)
        return found.beta

    def _proved(self, game: RobustRegression, precise: PreciseRegression, U: Array) -> tuple[SaddlePoint, Certificate]:
        """The saddle point, and its proof in extended precision."""
        found = solve_saddle_point(
            game,
            partial(certify_saddle_point, game),
            tol=_MARGIN * positive_number(self.tol, "tol"),
            max_iter=whole_number(self.max_iter, "max_iter", 1),
            callback=self.callback,
        )
        return found, certify_saddle_point(precise, U @ found.beta, found.prices, found.adversary)

    def _spoilt(self, found: SaddlePoint, certificate: Certificate) -> bool:
        """Whether rounding, and nothing else, keeps the proof from the tolerance."""
        return found.status in (Status.CONVERGED, Status.STALLED) and not certificate.holds(self.tol)

    def _keep(self, certificate: Certificate, status: Status, history: Any, n_iter: int, size: float) -> None:
        """Store how the solver went, the bounds in the units of y²."""
        self.certificate_ = scaled(certificate, size**2)
        self.status_, self.history_, self.n_iter_ = status, history, n_iter

    def _describe(self, pairs: Pairs, ball: SumOfSquares, game: RobustRegression, found: SaddlePoint) -> None:
        """Store the worst distribution."""
        adversary = game.admissible(found.adversary.matrix, found.adversary.share)
        self.sample_share_ = float(adversary.share)
        self.distance_ = float(np.linalg.norm(game.displacement(adversary)))
        B = self.adversary_coef_ = ball.basis @ adversary.matrix @ ball.basis.T
        self.adversary_, self.mmd_ = None, 0.0
        if float(np.trace(adversary.matrix)) > 0:
            self.adversary_ = GaussianSquares(pairs.joint_support, B, pairs.sigma)
            self.mmd_ = self._exact_distance(pairs, ball, B, 1.0 - self.sample_share_)

    def _exact_distance(self, pairs: Pairs, ball: SumOfSquares, B: Array, moved: float) -> float:
        """‖w_p - moved·w‖ without projection, w the embedding of the sample and w_p that of the density part."""
        norm = ball.integrals.squared_norm(B)
        if norm is None:
            return float("nan")
        joint, weights = pairs.joint, pairs.weights
        sample = float(weights @ np.asarray(GramOperator(Gaussian(sigma=pairs.sigma), joint) @ weights, np.float64))
        cross = float(weights @ ball.integrals.embed(B, joint))
        return float(np.sqrt(max(norm - 2 * moved * cross + moved**2 * sample, 0.0)))

    def _warn(self) -> None:
        if not self.certificate_.holds(self.tol) and self.status_ is not Status.STOPPED:
            advice = "centre y, raise regularization or truncation"
            if self.status_ is Status.MAX_ITER:
                advice = "raise max_iter"
            elif self.radius < _LEAST_RADIUS:
                advice = "take radius=0"
            warnings.warn(
                f"The certified relative gap is {self.certificate_.relative_gap:.1e}, not {self.tol:.1e}: {advice}, "
                "or accept the gap.",
                ConvergenceWarning,
                stacklevel=3,
            )


def scaled(certificate: Certificate, factor: float) -> Certificate:
    """The same proof in other units."""
    return replace(certificate, lower=factor * certificate.lower, upper=factor * certificate.upper)
