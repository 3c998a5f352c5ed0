"""The pairs that an adversary may put weight on: the sample, and whatever else it is given."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, distinct_rows, namespace, taken, to_numpy
from mercer.backends.balls import Ball
from mercer.backends.config import require_free_memory
from mercer.certificates.candidate_game import Strategy, certify_candidate_game
from mercer.certificates.certificate import RegressionCertificate
from mercer.kernels import Kernel
from mercer.linalg.eigen import positive_eigenpairs
from mercer.problems.candidate_enclosures import CandidateEnclosures, Points, kernel_ball
from mercer.problems.candidate_game import CandidateGame, Play, Stakes, Strategies
from mercer.problems.sum_of_squares_enclosures import exact_shares
from mercer.robust.formulation import Effort
from mercer.solvers.game.candidate_barrier import CandidateBarrier
from mercer.solvers.game.candidate_interior_point import CandidateInteriorPoint
from mercer.solvers.run import Goal, Run
from mercer.solvers.solution import Solution, Status

_MARGIN = 0.5  # of the gap to reach, the rest is for rounding
_ROUNDING = 1e-13  # of entries of a kernel matrix: eigenvalues below are no functions
_LARGEST = 2.0**500  # entry of a kernel matrix: products of two, and the halves that exact ones are made of, have room
_ARRAYS = 24  # of N² numbers at a time: the Hessian and its factor count for four each


class Sample(NamedTuple):
    """A sample of pairs, positive weights as given, None for equal ones; targets and weights are NumPy's."""

    inputs: Any
    targets: Array
    weights: Array | None


class MorePairs(NamedTuple):
    """Pairs besides the sample that the adversary may put weight on."""

    inputs: Any
    targets: Array


@final
class Candidates:
    """Distinct pairs: those of the sample, then the others.

    Parameters
    ----------
    sample : Sample
        The data.
    more : MorePairs
        Further pairs.

    Attributes
    ----------
    inputs : array of shape (M, d)
        The distinct inputs, in the library of the sample's.
    place, targets : arrays of shape (N,)
        Which of the inputs each candidate has, and its target.
    """

    def __init__(self, sample: Sample, more: MorePairs) -> None:
        rows = namespace(sample.inputs).concat([sample.inputs, more.inputs])
        targets = np.concatenate([sample.targets, more.targets])
        first, place = (to_numpy(part) for part in distinct_rows(rows))
        pair_first, pair_place = distinct_rows(np.column_stack([place.astype(np.float64), targets]))
        self.inputs = taken(rows, first)
        self.place, self.targets = place[pair_first], targets[pair_first]
        self._of_sample, self._given = pair_place[: sample.targets.size], sample.weights

    @property
    def size(self) -> int:
        """N."""
        return int(self.targets.size)

    @cached_property
    def exact_shares(self) -> Ball:
        """μ̂_j as balls."""
        shares = exact_shares(self._given, self._of_sample.size)
        merged = np.zeros((self.size, self._of_sample.size))
        merged[self._of_sample, np.arange(self._of_sample.size)] = 1.0
        return Ball(merged) @ shares

    @property
    def shares(self) -> Array:
        """μ̂_j."""
        return self.exact_shares.hi


@final
class CandidateProblem:
    """The game on some candidates and what proves its plays.

    Parameters
    ----------
    candidates : Candidates
        The pairs.
    kernel : Kernel
        That of the inputs, resolved.
    similarity : Ball of shape (N, N)
        The kernel of targets.
    stakes : Stakes
        The loss, the radius and the regularisation, in the units of the targets.

    Notes
    -----
    Cost: eigenvectors of matrices of order M and N.
    """

    def __init__(self, candidates: Candidates, kernel: Kernel, similarity: Ball, stakes: Stakes) -> None:
        self.candidates, self.stakes = candidates, stakes
        points = Points(candidates.place, candidates.targets, candidates.exact_shares)
        gram = kernel_ball(kernel, candidates.inputs)
        if not float(abs(gram.hi).max()) < _LARGEST:
            raise ValueError(
                f"{kernel!r} is too large on these points: bring them, or its parameters, to a size near one."
            )
        self.enclosures = CandidateEnclosures(gram, similarity, points, stakes.loss)

    @cached_property
    def bases(self) -> tuple[Array, Array]:
        """Coefficients of orthonormal functions: on the distinct inputs, and of pairs on the candidates."""
        prices = _whitening(self.enclosures.pair_gram.hi) if self.stakes.radius > 0 else np.empty((self.size, 0))
        return _whitening(self.enclosures.gram.hi), prices

    @cached_property
    def game(self) -> CandidateGame:
        """The saddle-point problem."""
        functions, prices = self.bases
        at_candidates = (self.enclosures.gram.hi @ functions)[self.candidates.place]
        priced = self.enclosures.pair_gram.hi @ prices if self.stakes.radius > 0 else prices
        strategies = Strategies(at_candidates, priced)
        return CandidateGame(strategies, self.candidates.targets, self.candidates.shares, self.stakes)

    @property
    def size(self) -> int:
        """N."""
        return self.candidates.size

    def solve(self, effort: Effort) -> Solution[Play]:
        """The saddle point, whose certificate is that of its coefficients.

        The status is ``STALLED`` where rounding, and nothing else, keeps the proof from the tolerance.
        """
        goal = Goal(_MARGIN * effort.tol, max_iter=effort.max_iter)
        run: Run[Play] = Run(
            goal,
            certify=lambda play: self.certify(self.strategy(play)),
            callbacks=effort.callbacks,
            shown=effort.shown,
        )
        found = run.phase(self.game, CandidateInteriorPoint())
        if found.status is Status.STALLED and run.steps_left:
            again = run.phase(self.game, CandidateBarrier())
            found = min(again, found, key=lambda each: each.certificate.relative_gap).ended(again.status)
        spoilt = found.status is Status.CONVERGED and not found.certificate.holds(effort.tol)
        return found.ended(Status.STALLED) if spoilt else found

    def strategy(self, play: Play) -> Strategy:
        """The coefficients of a play."""
        functions, prices = self.bases
        return Strategy(functions @ play.beta, prices @ play.prices, play.weights, play.slopes)

    def certify(self, strategy: Strategy) -> RegressionCertificate:
        """Bounds on the value of the game, in the units of the targets."""
        _, radius, regularization = self.stakes
        return certify_candidate_game(self.enclosures, strategy, radius=radius, regularization=regularization)

    def distance(self, weights: Array) -> float:
        """The maximum mean discrepancy of a distribution on the candidates from the sample."""
        moved = weights - self.candidates.shares
        return float(np.sqrt(max(float(moved @ (self.enclosures.pair_gram.hi @ moved)), 0.0)))


def require_memory(pairs: int) -> None:
    """Refuse more candidates than the memory limit has room for."""
    what = f"A game on {pairs} candidate pairs takes"
    require_free_memory(8.0 * _ARRAYS * pairs**2, what, "fit to fewer rows, or give fewer candidates")


def _whitening(gram: Array) -> Array:
    """Coefficients of an orthonormal basis of the functions that a kernel matrix has."""
    values, vectors = positive_eigenpairs(as_double(gram), _ROUNDING)
    return np.asarray(vectors / np.sqrt(values))
