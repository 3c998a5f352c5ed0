"""Densities that minimise a convex function of their mean embedding or other linear functionals (SOS 6, 8, 15)."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.backends import config_context
from mercer.backends.arrays import Array, contiguous, to_numpy
from mercer.certificates import Certificate
from mercer.density.convex_functional import ConvexFunctional
from mercer.density.feasible_start import inside_bounds
from mercer.density.optimal_problem import certified, pose, trimmed
from mercer.density.setting import Setting, choose_kernel, choose_reference
from mercer.density.values import DensityValues
from mercer.density.verify_optimal import verify_optimal
from mercer.estimator import Recheck
from mercer.kernels.checks import as_points
from mercer.problems.convex_squares import ConvexSquares, PricedFactor
from mercer.problems.sum_of_squares import Spans
from mercer.progress import make_visible, warn_user
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Iteration, Solution, Status
from mercer.solvers.spectrahedron.barrier import Barrier
from mercer.validation import (
    distinct_rows,
    fraction,
    function_of,
    is_precomputed,
    non_negative,
    positive_number,
    true_or_false,
    whole_number,
)

_SMALL = 1e-3  # of the gap of the first density: tol is relative to no smaller objective
_MARGIN = 0.5  # of tol: the certificate, which counts rounding too, is to keep what was asked for


@final
class OptimalDensity(DensityValues):
    """The density that :func:`mercer.optimal_density` found; it answers all that a fitted SumOfSquaresDensity does.

    Attributes
    ----------
    support_, coefficients_, factor_ : arrays of shape (m, d), (m, m) and (m, r)
        The points z; B = F Fᵀ; and F.
    rank_, eigenvalues_ : int and array of shape (r,)
        The number of squares, and the mass of each in falling order.
    functionals_ : array of shape (q,)
        u at this density.
    prices_ : array of shape (q,)
        By how much the optimum falls for each unit that a bound of u gives way: positive for the upper bound, negative
        for the lower one, next to zero where u lies between them.
    certificate_ : Certificate
        The objective, and a proved lower bound for all densities on this support that keep the bounds.
    history_, status_, n_iter_ : tuple of Iteration, Status, int
        As the solver went on; why it ended; steps it took.
    kernel_, measure_, regularization_ : Kernel, Measure, float
        As in SumOfSquaresDensity.
    integration_error_, log_scale_ : float
        An estimate of the error of ∫ p dρ = 1; and the logarithm of the volume by which integrals are scaled.
    """

    coefficients_: Array
    factor_: Array
    rank_: int
    eigenvalues_: Array
    functionals_: Array
    prices_: Array
    certificate_: Certificate
    history_: tuple[Iteration, ...]
    status_: Status
    n_iter_: int
    regularization_: float
    integration_error_: float
    _spans: Spans
    _truncation: float

    def _new_points(self, X: Any) -> Array:
        X, d = np.asarray(to_numpy(as_points(X)), np.float64), self.support_.shape[1]
        if X.shape[1] != d:
            raise ValueError(f"X has {X.shape[1]} features where the density has {d}.")
        return X

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate:
        recheck.refuse_extension("a density")
        return verify_optimal(self, X)


def optimal_density(
    functional: ConvexFunctional,
    support: Any,
    kernel: Any = None,
    *,
    reference: Any = "lebesgue",
    box: Any = None,
    regularization: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 500,
    truncation: float = 1e-8,
    callback: Any = None,
    verbose: bool = False,
) -> OptimalDensity:
    """The density that minimises a convex function of its embedding, its moments or its cells (SOS 6, 8, 15).

    Among all p(x) = k_xᵀ B k_x, B ≽ 0, of mass one on the support points, the one with the least

        F(u) + λ Tr(B K̃),   lower ≤ u ≤ upper,

    u linear functionals of p. By convexity one eigenvalue bounds what any other density of this form could gain:
    optimum ≥ f + λ_min(∇f) - ⟨∇f, C⟩. The user guide says what is proved, and three examples are worked there.

    Parameters
    ----------
    functional : ConvexFunctional
        F, u and the bounds. Before the run ``gradient`` is held against ``value`` on segments between densities; during
        it, every pair of evaluations against convexity. What contradicts itself raises a ValueError.
    support : array of shape (m, d)
        The points z.
    kernel : Kernel, default=None
        None means the Gaussian with a bandwidth for densities, chosen from the support.
    reference, box :
        The measure ρ, as in :class:`mercer.SumOfSquaresDensity`.
    regularization : float, default=0.0
        λ ≥ 0. At λ = 0 optimal densities may be many; the one in their middle is returned.
    tol : float, default=1e-6
        The proved gap to stop at, relative to the objective, or to a thousandth of the gap that the search begins with
        where that is larger.
    max_iter : int, default=500
        Newton steps at most.
    truncation : float, default=1e-8
        Eigenvalues of W = ∫ k_x k_xᵀ dρ below this part of the largest are cut off.
    callback, verbose :
        As in :class:`mercer.SumOfSquaresDensity`.

    Returns
    -------
    OptimalDensity

    Raises
    ------
    ValueError
        If no density keeps the bounds, which is proved, or none does with room to spare.

    Notes
    -----
    Cost of a step for q functionals: q m³ + q² m² operations, some ten to sixty steps; memory q m² numbers.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> from mercer.density import ConvexFunctional, Moments
    >>> mean = ConvexFunctional(Moments(2), lower=[0.45, 0.0], upper=[0.55, 0.32])
    >>> z = np.linspace(0, 1, 12)[:, None]
    >>> p = mercer.optimal_density(mean, z, mercer.Gaussian(sigma=0.3), box=(0, 1), regularization=1e-3)
    >>> p.certificate_.holds(1e-5), bool(0.45 <= p.mean()[0] <= 0.55)
    (True, True)
    """
    if not isinstance(functional, ConvexFunctional):
        raise TypeError(f"functional must be a mercer.density.ConvexFunctional, not {functional!r}.")
    tol, max_iter = positive_number(tol, "tol"), whole_number(max_iter, "max_iter", 1)
    function_of("one line of history_", ValueError)(callback, "callback")
    true_or_false(verbose, "verbose")
    setting = _setting(support, kernel, reference, box)
    if verbose:
        make_visible()
    with config_context(dtype="float64"):
        strength, cut = non_negative(regularization, "regularization"), fraction(truncation, "truncation")
        problem = pose(functional, setting, strength, cut)
        start = inside_bounds(problem, max_iter)
        first = Barrier().start(problem, start)
        assert first.gap is not None
        goal = Goal(_MARGIN * tol, absolute=_MARGIN * tol * _SMALL * first.gap, max_iter=max_iter)
        solution = solve(
            problem,
            Barrier(),
            start,
            goal=goal,
            callbacks=() if callback is None else (callback,),
            shown=bool(verbose),
        )
        density = _stored(setting, problem, solution, goal, functional.accuracy)
        density._truncation = float(cut)
    _warn_of(density, tol, first.gap)
    return density


def _setting(support: Any, kernel: Any, reference: Any, box: Any) -> Setting:
    if is_precomputed(kernel):
        raise ValueError("A density is a function of points: give a kernel such as Gaussian(), not Precomputed().")
    points = np.asarray(to_numpy(as_points(support, "support")), np.float64)
    if points.shape[0] == 0:
        raise ValueError("support must be points, at least one.")
    points = contiguous(points[distinct_rows(points)[0]])
    weights = np.full(points.shape[0], 1.0 / points.shape[0])
    measure = choose_reference(reference, box, points, weights)
    return Setting(choose_kernel(kernel, points, weights, points), points, measure)


def _stored(
    setting: Setting, problem: ConvexSquares, solution: Solution[PricedFactor], goal: Goal, accuracy: float
) -> OptimalDensity:
    """The solution as numbers, and the certificate of these."""
    density, squares = OptimalDensity(), problem.squares
    kept = trimmed(problem, solution.point, goal)
    density.kernel_, density.support_, density.measure_ = setting
    density._factor, density.eigenvalues_, rounding = kept.squares
    point = PricedFactor(squares.coordinates(density._factor), kept.below, kept.above)
    density.certificate_, density._spans = certified(problem, point, accuracy), squares.spans
    density.status_, density.history_, density.n_iter_ = solution.status, solution.history, solution.n_iter
    density.regularization_, density.log_scale_ = squares.regularization, squares.integrals.log_scale
    density.factor_ = density._factor * float(np.exp(-0.5 * density.log_scale_))
    density.coefficients_, density.rank_ = density.factor_ @ density.factor_.T, int(density.factor_.shape[1])
    density.functionals_ = problem.functional_values(point.factor / np.linalg.norm(point.factor))
    density.prices_ = kept.above - kept.below
    density.integration_error_ = squares.integrals.error + rounding
    return density


def _warn_of(density: OptimalDensity, tol: float, first: float) -> None:
    """Say where the optimum was not proved to its tolerance, and what to do."""
    proof = density.certificate_
    if proof.upper - proof.lower <= tol * max(abs(proof.upper), _SMALL * first):
        return
    advice = density.status_.message
    if density.status_ in (Status.STALLED, Status.CONVERGED):
        advice = (
            "a function with kinks is not differentiable: smooth it, or state what it bounds as lower and upper; else "
            "raise truncation, state a finer accuracy of the functional, or loosen tol."
        )
    warn_user(
        f"The certified gap is {proof.upper - proof.lower:.1e}, not {tol:g} of the objective: {advice}",
        ConvergenceWarning,
    )
