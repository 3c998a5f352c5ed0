"""The estimator: kernel ridge regression against the worst distribution of an MMD ball (SOS section 4, Example 2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, contiguous, copied, is_tensor, like, namespace
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.support import choose_support
from mercer.estimator import FitInput, KernelEstimator, Recheck, keeps_earlier_fit
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.bandwidth import check_rule
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.enclosed_regression import PreciseRegression
from mercer.problems.robust_regression import RobustRegression
from mercer.robust.advice import warn_of_regression
from mercer.robust.game import (
    TRUNCATION,
    Pairs,
    beside,
    function_basis,
    make_ball,
    make_game,
    make_pairs,
    make_precise,
    make_relaxed,
)
from mercer.robust.proof import Numbers, Proof, described, prove_game, prove_relaxed
from mercer.solvers.game.newton import minimise_by_newton
from mercer.solvers.game.saddle_point import SaddlePoint, solve_saddle_point
from mercer.solvers.solution import Status
from mercer.validation import (
    at_least,
    declared,
    fraction,
    function_of,
    non_negative,
    positive_number,
    resolved_kernel,
    true_or_false,
)

_RELAXATIONS = (None, "rkhs")
_MOST_OPERATIONS = 4e9  # in extended precision, a quarter of a minute
_LEAST_TOL = 1e-14  # no decrease of the objective below this is more than rounding
_MARGIN = 0.5  # of the gap to reach, the rest is for rounding
_LARGEST_WIDTH = 1e140
_NO_RADIUS = 1e-100
WHOLE = 2.0  # above √2, the largest distance of two distributions: a larger ball holds no more
_TARGET = -1  # the column of a pair that holds y


class RobustKernelRidge(RegressorMixin, KernelEstimator):
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
        Called with the lines of ``history_`` as they come; a true value stops. Of the relaxation and of radius 0 a line
        is the objective after a Newton step.

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
    precision; its bounds are recomputed with twice as many digits and every rounding counted, and :func:`mercer.verify`
    does so from the model and the data. What is certified are exactly the numbers of the fitted attributes, in the
    three spans of functions, densities and prices that the model keeps.

    Fitted to tensors, the array attributes and all answers are tensors on the same device, and torch computes the steps
    of the solver and the sums over the sample, in double precision whatever that of X. The proof is NumPy's, and so are
    the integrals of the loss where they are formed in extended precision.

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

    dual_coef_: Array
    support_: Array
    robust_risk_: float
    sample_risk_: float
    certificate_: Certificate
    sample_share_: float
    adversary_: GaussianSquares | None
    adversary_coef_: Array
    price_coef_: Array
    distance_: float
    mmd_: float
    kernel_: Gaussian
    target_sigma_: float
    sample_weight_: Array | None
    history_: tuple[Any, ...]
    status_: Status
    n_iter_: int
    _always_double = True
    _has_targets = True
    _checks = declared(
        keep_sample=true_or_false,
        radius=non_negative,
        callback=function_of("one line of history_", ValueError),
        truncation=fraction,
        tol=positive_number,
        max_iter=at_least(1),
        regularization=positive_number,
    )

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

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RobustKernelRidge:
        """Fit to the pairs of the rows of X and the entries of y, which may have weights."""
        given = self._begin_fit(X, y, sample_weight)
        X, y, weights = given.points, given.targets, given.shares
        radius, regularization = float(self.radius), float(self.regularization)
        with config_context(dtype="float64"):
            kernel = self._checked_kernel(given.kernel)
            tau = self._resolved_target_sigma(y, weights)
            support = self._chosen_support(given, float(kernel.sigma) / tau)
            pairs = make_pairs(X, y, given.weights, support, float(kernel.sigma), tau)
            solve = self._relax if radius == 0 or self.relaxation == "rkhs" else self._play
            with one_thread_for(support.shape[0], X):
                found = solve(pairs, radius, regularization)
        self.kernel_, self.target_sigma_, self.support_ = kernel, tau, support
        self.sample_weight_, self._n_rows = given.weights, int(X.shape[0])
        for name, value in found.items():
            setattr(self, name, value)
        warn_of_regression(self)
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
        from mercer.robust.recertification import verify_robust_ridge  # which knows this class

        recheck.refuse_extension("a regression")
        return verify_robust_ridge(self, X, y)

    def _check_parameters(self) -> None:
        """Refuse what is no parameter, and what has no effect."""
        if self.relaxation not in _RELAXATIONS:
            raise ValueError(f"relaxation={self.relaxation!r} must be None or 'rkhs'.")
        super()._check_parameters()
        if self.relaxation == "rkhs" and (not self.keep_sample or self.truncation != TRUNCATION):
            option = "truncation" if self.keep_sample else "keep_sample"
            raise ValueError(
                f"{option} has no effect with relaxation='rkhs', whose adversary has no densities: leave it out."
            )
        if self.radius == 0 and not self.keep_sample:
            raise ValueError("radius=0 leaves no density in the ball: raise radius, or leave keep_sample=True.")
        if 0 < self.radius < _NO_RADIUS:
            raise ValueError(f"radius={self.radius:g} is no ball in double precision: take radius=0.")

    def _checked_kernel(self, kernel: Kernel) -> Gaussian:
        if not isinstance(kernel, Gaussian):
            raise ValueError(
                f"kernel={kernel!r} has no closed form for the integrals of the squared loss: use Gaussian()."
            )
        if not 1 / _LARGEST_WIDTH < float(kernel.sigma) < _LARGEST_WIDTH:
            raise ValueError(
                f"{kernel!r} has a width whose square leaves double precision: bring X to a scale near one."
            )
        return kernel

    def _resolved_target_sigma(self, y: Array, weights: Array) -> float:
        check_rule(self.target_sigma, "target_sigma")
        if not isinstance(self.target_sigma, str):
            return positive_number(self.target_sigma, "target_sigma")
        present = y[weights > 0]
        if bool((present == present[0]).all()):
            return 1.0
        return float(resolved_kernel(Gaussian(sigma=self.target_sigma), y[:, None], weights).sigma)  # type: ignore[attr-defined]

    def _chosen_support(self, given: FitInput, stretch: float) -> Array:
        """Pairs (ξ, η), chosen among (x, y σ/τ), where one distance fits all coordinates."""
        support, X = self.support, given.points
        if is_tensor(support) or (isinstance(support, np.ndarray | list) and np.ndim(support) == 2):
            support = copied(like(support, X, dtype=X.dtype))
            support[:, _TARGET] *= stretch
        chosen = choose_support(support, beside(X, given.targets * stretch), given.shares, given.rng)
        chosen[:, _TARGET] /= stretch
        return chosen

    def _relax(self, pairs: Pairs, radius: float, regularization: float) -> dict[str, Any]:
        """Penalised least squares; the adversary is no distribution, or the sample."""
        U, features = function_basis(pairs, integrated=radius > 0)
        problem = make_relaxed(pairs, U, features, radius=radius, regularization=regularization)
        # a decrease of so much leaves a gap of at most its quotient by λ, where the features are at most one
        tol = max(float(self.tol) * min(1e-3, regularization), _LEAST_TOL)
        result = minimise_by_newton(
            problem, problem.start(), tol=tol, max_iter=int(self.max_iter), callback=self.callback
        )
        xp, dual = namespace(U), pairs.size * (U @ result.x)
        nothing = xp.zeros((dual.shape[0], dual.shape[0]), dtype=dual.dtype, device=dual.device)
        numbers = Numbers(dual, xp.zeros_like(dual), nothing, 1.0)
        proof = prove_relaxed(pairs, U, numbers, radius=radius, regularization=regularization)
        return {
            "_bases": (U,),
            **numbers.named(),
            **proof.named(),
            "adversary_": None,
            "distance_": 0.0,
            "mmd_": 0.0,
            "status_": result.status,
            "history_": result.history,
            "n_iter_": result.n_iter,
        }

    def _play(self, pairs: Pairs, radius: float, regularization: float) -> dict[str, Any]:
        """The saddle point."""
        U, features = function_basis(pairs)
        ball = make_ball(pairs, float(self.truncation))
        make = partial(
            make_game,
            *(pairs, U, features, ball),
            radius=min(radius, WHOLE),
            regularization=regularization,
            sample=bool(self.keep_sample),
        )
        game = make()
        precise = make_precise(pairs, U, ball)
        found, numbers, proof = self._proved(pairs, game, precise, ball, U)
        if self._spoilt(found, proof) and U.shape[1] * U.shape[0] ** 4 <= _MOST_OPERATIONS:
            again = self._proved(pairs, make(dtype=np.longdouble), precise, ball, U)
            gaps = proof.certificate.relative_gap, again[2].certificate.relative_gap
            found, numbers, proof = again if gaps[1] < gaps[0] else (found, numbers, proof)
        status = Status.STALLED if self._spoilt(found, proof) else found.status
        return {
            "_bases": (U, *ball.spans),
            **numbers.named(),
            **proof.named(),
            **described(pairs, ball, numbers),
            "status_": status,
            "history_": found.history,
            "n_iter_": found.n_iter,
        }

    def _proved(
        self, pairs: Pairs, game: RobustRegression, precise: PreciseRegression, ball: SumOfSquares, U: Array
    ) -> tuple[SaddlePoint, Numbers, Proof]:
        """The saddle point, the numbers to keep of it, and their proof."""
        found = solve_saddle_point(
            game, game.bounds, tol=_MARGIN * float(self.tol), max_iter=int(self.max_iter), callback=self.callback
        )
        adversary = game.admissible(found.adversary.matrix, found.adversary.share)
        numbers = Numbers(
            pairs.size * (U @ found.beta),
            pairs.size**2 * (ball.whitening @ found.prices),
            ball.basis @ adversary.matrix @ ball.basis.T,
            float(adversary.share),
        )
        return found, numbers, prove_game(pairs, game, precise, ball, U, numbers)

    def _spoilt(self, found: SaddlePoint, proof: Proof) -> bool:
        """Whether rounding, and nothing else, keeps the proof from the tolerance."""
        return found.status in (Status.CONVERGED, Status.STALLED) and not proof.certificate.holds(self.tol)
