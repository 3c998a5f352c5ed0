"""The estimator: regression with a convex loss against the worst distribution on candidate pairs (SOS 17)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, is_tensor, like, namespace, taken, to_numpy
from mercer.backends.balls import Ball
from mercer.estimator import Regressor
from mercer.kernels import Gaussian
from mercer.problems.candidate_enclosures import kernel_ball
from mercer.problems.losses import AbsoluteLoss, HuberLoss, Loss, SquaredLoss
from mercer.robust.candidates import MorePairs
from mercer.robust.machine import RobustMachine
from mercer.robust.pairs import target_unit, target_width
from mercer.robust.shared_words import with_shared_words
from mercer.validation import declared, one_of, positive_number, whole_number


@final
@with_shared_words
class RobustKernelRegressor(Regressor, RobustMachine):
    """Regression that prepares for the worst distribution near the sample, with any of three losses and any kernel.

        min_f max_μ  Σ_j μ_j ℓ(f(x_j), y_j) + λ‖f‖²      over weights μ of candidate pairs with MMD(μ, sample) ≤ ε

    The candidates are the pairs of the sample and what ``candidates`` and ``target_grid`` add. f may be any function
    of the kernel's Hilbert space. The MMD is that of the kernel k(x, x') exp(-(y-y')²/τ²) of pairs.

    Parameters
    ----------
    $KERNEL
    loss : {"squared", "huber", "absolute"}, default="squared"
        (f - y)²; the same up to ``threshold`` and its tangent beyond; the distance.
    $RADIUS
    regularization : float, default=1e-3
        λ > 0.
    candidates : array of shape (m, d), pair of arrays (inputs, targets), or None, default=None
        Pairs besides the sample; inputs alone have the targets of the grid.
    target_grid : int, array or None, default=None
        Targets that every input may have besides its own: these, or so many between the least and the largest of y.
    target_sigma : float or {"median", "slope"}, default="median"
        τ, or the rule it is found by; 1 where all targets are equal. The smaller, the more changes of y cost.
    threshold : float, default=1.0
        Where Huber's loss begins to grow linearly, in the units of y; has no effect on the others.
    $SOLVER

    Attributes
    ----------
    $FUNCTION
    candidate_index_, candidate_targets_, adversary_weights_ : arrays of shape (N,)
        The candidates, by rows of ``inputs_`` and targets, and the worst distribution on them.
    $GAME
    kernel_, target_sigma_, sample_weight_ : Kernel, float and array or None
        With their parameters fixed, and the weights of the fit.
    $RUN

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Laplacian, RobustKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1))
    >>> model = RobustKernelRegressor(Laplacian(), loss="absolute").fit(X, np.sin(2 * X[:, 0]))
    >>> model.certificate_.holds(1e-6), bool(model.robust_risk_ > model.sample_risk_)
    (True, True)
    """

    target_sigma_: float
    _checks = declared(
        **RobustMachine._checks,
        loss=one_of("squared", "huber", "absolute"),
        threshold=positive_number,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        loss: str = "squared",
        radius: float = 0.1,
        regularization: float = 1e-3,
        candidates: Any = None,
        target_grid: Any = None,
        target_sigma: Any = "median",
        threshold: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 300,
        callback: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.radius = radius
        self.regularization = regularization
        self.candidates = candidates
        self.target_grid = target_grid
        self.target_sigma = target_sigma
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def predict(self, X: Any) -> Array:
        """f at the rows of X."""
        return self._values(X)

    def _chosen_loss(self) -> Loss:
        if self.loss == "huber":
            return HuberLoss(float(self.threshold))
        return SquaredLoss() if self.loss == "squared" else AbsoluteLoss()

    def _of_targets(self, y: Array, weights: Array) -> dict[str, Any]:
        return {"target_sigma_": target_width(self.target_sigma, y, weights)}

    def _coded(self, y: Array) -> Array:
        return np.asarray(to_numpy(y), np.float64)

    def _shown(self, targets: Array, X: Any) -> Array:
        return like(targets, X)

    def _unit(self, targets: Array, weights: Array) -> float:
        return target_unit(targets, weights)

    def _more_pairs(self, X: Any, targets: Array) -> MorePairs:
        grid = self._grid(targets)
        inputs, own = self._further(X, grid)
        every = namespace(X).concat([X, inputs])
        crossed = taken(every, np.repeat(np.arange(every.shape[0]), grid.size))
        if own is None:
            return MorePairs(crossed, np.tile(grid, every.shape[0]))
        return MorePairs(namespace(X).concat([inputs, crossed]), np.concatenate([own, np.tile(grid, every.shape[0])]))

    def _further(self, X: Any, grid: Array) -> tuple[Any, Array | None]:
        """The inputs of ``candidates``, and their targets where they have some."""
        given = self.candidates
        if given is None:
            return X[:0], None
        if not isinstance(given, tuple):
            if grid.size == 0:
                raise ValueError("candidates has inputs alone: give a pair (inputs, targets), or a target_grid.")
            return self._given_inputs(given, X), None
        inputs, own = self._given_pair(given, X)
        return inputs, finite_targets(own, inputs.shape[0], "the targets of candidates")

    def _grid(self, targets: Array) -> Array:
        given = self.target_grid
        if given is None:
            return np.empty(0)
        if isinstance(given, Integral) and not isinstance(given, bool):
            return np.linspace(targets.min(), targets.max(), whole_number(given, "target_grid", 2))
        values = to_numpy(given) if is_tensor(given) else np.asarray(given)
        return finite_targets(values, values.size, "target_grid")

    def _similarity(self, one: Array, other: Array | None, unit: float) -> Ball:
        kernel = Gaussian(sigma=self.target_sigma_ / unit)
        return kernel_ball(kernel, one[:, None], None if other is None else other[:, None])


def finite_targets(values: Any, count: int, name: str) -> Array:
    """Real numbers, so many of them, or a sentence that says what is wrong."""
    values = np.asarray(to_numpy(values))
    if values.shape != (count,):
        raise ValueError(f"{name} has shape {values.shape}: it must have one entry for each of {count} inputs.")
    if values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite real numbers.")
    return values.astype(np.float64)
