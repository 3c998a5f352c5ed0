"""What the robust regressor and classifier share: fitting on candidate pairs, values of f, and bounds on the risk."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.arrays import Array, Labels, as_double, like, taken, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate, RegressionCertificate
from mercer.certificates.candidate_game import Strategy, priced_level
from mercer.estimator import KernelEstimator, Recheck, keeps_earlier_fit
from mercer.kernels import Kernel
from mercer.kernels.checks import as_points
from mercer.operators import GramOperator
from mercer.problems.candidate_enclosures import kernel_ball
from mercer.problems.candidate_game import Stakes
from mercer.problems.losses import Loss
from mercer.robust.advice import warn_of_regression
from mercer.robust.candidates import CandidateProblem, Candidates, MorePairs, Sample, require_memory
from mercer.robust.formulation import Effort
from mercer.solvers.solution import Iteration, Status
from mercer.validation import at_least, declared, function_of, non_negative, normalised, positive_number, true_or_false

COEFFICIENTS = ("dual_coef_", "price_coef_", "adversary_weights_", "slopes_")
_NO_RADIUS = 1e-100
_WHOLE = 2 * (1 + 1e-9)  # times the root of the largest k(x, x), the distance of two distributions at most


class Units(NamedTuple):
    """What targets were divided by, a power of two, and what the losses of such targets are to be multiplied by."""

    target: float
    loss: float


class RobustMachine(KernelEstimator):
    """A function with the least worst mean loss over the distributions on candidate pairs near the sample.

    A subclass says what its targets, its losses and its kernel of targets are.
    """

    loss: Any
    radius: Any
    regularization: Any
    candidates: Any
    tol: Any
    max_iter: Any
    callback: Any
    dual_coef_: Array
    inputs_: Array
    candidate_index_: Array
    candidate_targets_: Labels
    adversary_weights_: Array
    verbose: bool
    price_coef_: Array
    slopes_: Array
    level_: float
    robust_risk_: float
    sample_risk_: float
    distance_: float
    certificate_: RegressionCertificate
    kernel_: Kernel
    sample_weight_: Array | None
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    _units: Units
    _n_rows: int
    _always_double = True
    _has_targets = True
    _checks = declared(
        radius=non_negative,
        regularization=positive_number,
        tol=positive_number,
        max_iter=at_least(1),
        callback=function_of("one line of history_", ValueError),
        verbose=true_or_false,
    )

    @abstractmethod
    def _chosen_loss(self) -> Loss:
        """The loss, in the units of y."""

    @abstractmethod
    def _of_targets(self, y: Array, weights: Array) -> dict[str, Any]:
        """The fitted attributes that follow from the targets, by name."""

    @abstractmethod
    def _coded(self, y: Array) -> Array:
        """Numbers for targets, NumPy's."""

    @abstractmethod
    def _shown(self, targets: Array, X: Any) -> Array:
        """Targets as the user knows them, for numbers."""

    @abstractmethod
    def _unit(self, targets: Array, weights: Array) -> float:
        """What targets are to be divided by, a power of two."""

    @abstractmethod
    def _more_pairs(self, X: Any, targets: Array) -> MorePairs:
        """The candidates besides the sample."""

    @abstractmethod
    def _similarity(self, one: Array, other: Array | None, unit: float) -> Ball:
        """The kernel of targets, which were divided by a unit; None for the other ones means the same."""

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the pairs of the rows of X and the entries of y, which may have weights."""
        given = self._begin_fit(X, y, sample_weight)
        with config_context(dtype="float64"):
            self.kernel_ = self._checked_kernel(given.kernel)
            for name, value in self._of_targets(given.targets, given.shares).items():
                setattr(self, name, value)
            problem, units = self._posed(given.points, given.targets, given.weights)
            with one_thread_for(problem.size, given.points):
                found = self._solved(problem, units)
        self.sample_weight_, self._n_rows, self._units = given.weights, int(given.points.shape[0]), units
        for name, value in found.items():
            setattr(self, name, value)
        warn_of_regression(self, "raise regularization, or bring X to a scale at which kernel_ is near one")
        return self

    def risk_bound(self, X: Any, y: Any) -> float:
        """A mean loss that no distribution within the radius of the sample exceeds on the candidates and these pairs.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs.
        y : array of shape (m,)
            Their targets.

        Returns
        -------
        float
            ``robust_risk_``, plus what the losses of these pairs, less their prices, exceed ``level_`` by; proved.
        """
        check_is_fitted(self)
        if self.radius == 0:
            raise ValueError("radius=0 admits the sample alone: there is no bound for other distributions.")
        X, y = self._checked_data(X, y, fitting=False)
        unit, targets = self._units.loss, self._coded(y) / self._units.target
        with config_context(dtype="float64"):
            self._require_counted_radius(X)
            near = kernel_ball(self.kernel_, X, self.inputs_)
            known = self._coded(self.candidate_targets_) / self._units.target
            pairs = near[:, to_numpy(self.candidate_index_)] * self._similarity(targets, known, self._units.target)
        values = near @ ball(to_numpy(self.dual_coef_) / self._units.target)
        losses = self._chosen_loss().scaled(self._units.target).enclosed(values, targets)
        left = (losses - pairs @ ball(to_numpy(self.price_coef_) / unit)) * unit - self.level_
        return float((Ball(max(float(left.upper().max()), 0.0)) + self.robust_risk_).upper())

    def _require_counted_radius(self, X: Any) -> None:
        """Refuse points at which distributions lie farther apart than the radius that the proof counted."""
        known, new = (float(to_numpy(self.kernel_.diag(points)).max()) for points in (self.inputs_, X))
        if self.radius > _WHOLE * float(np.sqrt(known)) and new > known:
            raise ValueError(
                f"radius={self.radius:g} exceeds the distance of any two distributions on the candidates, "
                f"{2 * float(np.sqrt(known)):.3g}, which the proof counted, and k(x, x) is larger at these points: add "
                "them to the candidates, or fit with a smaller radius."
            )

    def _values(self, X: Any) -> Array:
        """f at the rows of X."""
        X = self._new_points(X)
        return as_double(GramOperator(self.kernel_, X, self.inputs_) @ self.dual_coef_)

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        from mercer.robust.verify_machine import verify_machine  # which knows this class

        recheck.refuse_extension("a robust machine")
        return verify_machine(self, X, y)

    def _check_parameters(self) -> None:
        """Refuse what is no parameter."""
        super()._check_parameters()
        if 0 < self.radius < _NO_RADIUS:
            raise ValueError(f"radius={self.radius:g} is no ball in double precision: take radius=0.")

    def _checked_kernel(self, kernel: Kernel) -> Kernel:
        if not kernel.properties.positive_definite:
            raise ValueError(
                f"kernel={kernel!r} is not known to be positive semi-definite, which the proof rests on: use one that "
                "is, such as Gaussian()."
            )
        return kernel

    def _given_inputs(self, given: Any, X: Any) -> Any:
        """Inputs of further candidates, checked, where X lies."""
        inputs = like(as_points(given, "candidates"), X, dtype=X.dtype)
        if inputs.shape[1] != X.shape[1]:
            raise ValueError(f"candidates has {inputs.shape[1]} features and X has {X.shape[1]}: they must agree.")
        return inputs

    def _given_pair(self, given: tuple[Any, ...], X: Any) -> tuple[Any, Any]:
        """Inputs of further candidates, and their targets as they were given."""
        if len(given) != 2:
            raise ValueError(f"candidates has {len(given)} parts: give inputs, or a pair (inputs, targets).")
        return self._given_inputs(given[0], X), given[1]

    def _posed(self, X: Any, y: Array, weights: Array | None) -> tuple[CandidateProblem, Units]:
        """The game on the sample and its further candidates, in units of the targets."""
        targets, loss = self._coded(y), self._chosen_loss()
        if weights is not None:  # a row without weight is no row, but one that predictions may be asked of
            self.kernel_.diag(X)  # which refuses what is no point of the kernel
            used = np.flatnonzero(to_numpy(weights) > 0)
            X, targets, weights = taken(X, used), targets[used], to_numpy(weights)[used]
        more, unit = self._more_pairs(X, targets), self._unit(targets, normalised(weights, targets.size))
        if self.radius == 0:  # none of them may have weight
            more = MorePairs(X[:0], targets[:0])
        candidates = Candidates(Sample(X, targets / unit, weights), MorePairs(more.inputs, more.targets / unit))
        require_memory(candidates.size)
        strength = float(self.regularization) * (unit ** (2 - loss.degree) if loss.degree else 1.0)
        largest = float(to_numpy(self.kernel_.diag(candidates.inputs)).max())
        radius = min(float(self.radius), _WHOLE * float(np.sqrt(largest)))  # a larger ball holds no more
        similarity = self._similarity(candidates.targets, None, unit)
        stakes = Stakes(loss.scaled(unit), radius, strength)
        return CandidateProblem(candidates, self.kernel_, similarity, stakes), Units(unit, unit**loss.degree)

    def _solved(self, problem: CandidateProblem, units: Units) -> dict[str, Any]:
        """The fitted attributes that follow from the solution."""
        callbacks = () if self.callback is None else (self.callback,)
        solution = problem.solve(Effort(float(self.tol), int(self.max_iter), callbacks, bool(self.verbose)))
        strategy = problem.strategy(solution.point)
        X = problem.candidates.inputs
        coefficients = zip(COEFFICIENTS, _in_units(strategy, units), strict=True)
        return {
            **{name: like(value, X) for name, value in coefficients},
            **self._described(problem, strategy, solution.certificate, units),
            "certificate_": solution.certificate.in_units(units.loss),
            "status_": solution.status,
            "history_": solution.history,
            "n_iter_": solution.n_iter,
        }

    def _described(
        self, problem: CandidateProblem, strategy: Strategy, certificate: RegressionCertificate, units: Units
    ) -> dict[str, Any]:
        """What follows from the coefficients, by the names of the attributes."""
        candidates = problem.candidates
        return {
            "inputs_": candidates.inputs,
            "candidate_index_": like(candidates.place, candidates.inputs),
            "candidate_targets_": self._shown(candidates.targets * units.target, candidates.inputs),
            "level_": units.loss * priced_level(problem.enclosures, strategy),
            "robust_risk_": units.loss * certificate.robust_risk,
            "sample_risk_": units.loss * certificate.sample_risk,
            "distance_": problem.distance(strategy.weights),
        }


def _in_units(strategy: Strategy, units: Units) -> Strategy:
    """Coefficients of a game in units of its targets, as those of the user's targets have them; without rounding."""
    dual, price, weights, slopes = strategy
    return Strategy(units.target * dual, units.loss * price, weights, units.loss / units.target * slopes)


def out_of_units(strategy: Strategy, units: Units) -> Strategy:
    """The opposite."""
    return _in_units(strategy, Units(1 / units.target, 1 / units.loss))
