"""The certificate without the matrix: bounds from products and from low-rank factors, the best of them kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.rounding import UNIT
from mercer.certificates.allowances import Allowances
from mercer.certificates.certificate import GOOD_GAP, N_LEAST, EmbeddingCertificate
from mercer.certificates.chebyshev import bound_by_filter
from mercer.certificates.krylov import Deflated, bound_by_lanczos, deflate
from mercer.certificates.low_rank_bound import StandIn, bound_by_leftover_lanczos, bound_by_trace
from mercer.certificates.low_rank_factors import given_stand_in, own_stand_ins
from mercer.certificates.residuals import least_on_space, optimality_residuals
from mercer.certificates.scaled_matrix import ScaledMatrix, positive_multipliers, raised_on_isolated_rows, space_error
from mercer.linalg.lanczos import RandomStarts
from mercer.operators import LowRankOperator
from mercer.operators.base import is_sparse
from mercer.problems import Elliptope

_ATTEMPTS = 3  # random ones at most, each with an equal share of the failure probability
_NEAR = 2.0  # a gap at most this many times the least possible one is near enough where the tolerance is out of reach
_NEAREST = 1.1  # the same where no tolerance is given
_STAND_IN_SHARE, _KRYLOV_SHARE = 0.5, 0.25  # of the memory limit
_LOOSE, _RAISING = 1e-5, 0.4  # from this tolerance on, this part of it may go into larger multipliers


class _Bound(NamedTuple):
    """An upper bound, how it was proved, the chance that it is wrong, and the rank of the stand-in that it needed."""

    upper: float
    method: str
    failure_probability: float = 0.0
    rank: int = 0


_ProductBound = Callable[[ScaledMatrix, RandomStarts, float | None, float], tuple[float, Deflated, str]]


def _lanczos(scaled: ScaledMatrix, starts: RandomStarts, goal: float | None, resolution: float) -> Any:
    found = bound_by_lanczos(scaled.deflated, starts, lift=scaled.lift, goal=goal, resolution=resolution)
    return *found, "deflated Lanczos bound"


def _filtered(scaled: ScaledMatrix, starts: RandomStarts, goal: float | None, resolution: float) -> Any:
    rounding = scaled.product_rounding
    found = bound_by_filter(scaled.deflated, starts, rounding=rounding, goal=goal, resolution=resolution)
    return *found, "Chebyshev filter bound"


@final
class MatrixFreeProof:
    """Bounds from products with J, recomputed from H; attempts may follow one another, and the best bound is kept.

    Parameters
    ----------
    problem : Elliptope
        The problem.
    H : array of shape (n, r)
        Unit rows.
    starts : RandomStarts
        Starts of Lanczos and pivots, and the probability that any of the attempts is wrong.
    tol : float or None
        The relative gap that matters.
    """

    def __init__(self, problem: Elliptope, H: Array, starts: RandomStarts, *, tol: float | None) -> None:
        self.problem, self.tol, self.active = problem, tol, problem.active
        columns = get_config().share(_KRYLOV_SHARE) // (8 * max(1, problem.size))
        self._starts = replace(starts.share(_ATTEMPTS), most_columns=columns)
        self._before, self._entries, self._spent = problem.n_columns, 0, 0.0
        self._allowed = Allowances(problem)
        self.H = namespace(H).where(self.active[:, None], H, 0.0)
        self.G = as_double(problem.apply(self.H))
        self.z = problem.multipliers(self.H, self.G)
        self.lower = self._allowed.lower(self.z[self.active], H.shape[1])
        on, wanted = self.active, GOOD_GAP if tol is None else tol
        self._diagonal = _own_affinities(problem)[on]
        self._scale_by(positive_multipliers(self.H[on], self.G[on], self.z[on], self._diagonal, wanted))
        self._best = _Bound(np.inf, "no bound")
        self._reached = -np.inf

    def _scale_by(self, y: Array) -> None:
        """Go on with these multipliers; a stand-in belongs to those before."""
        self._scaled = ScaledMatrix(self.problem, self._allowed, y, self.H, self.G)
        self._widest = self._scaled.deflated
        self._stand_in: StandIn | None = None

    def _raise_isolated_rows(self) -> None:
        """Spend a part of a loose tolerance on isolated rows, whose eigenvalues would cost Lanczos many steps."""
        if self.tol is None or self.tol < _LOOSE or self.lower <= 0 or self.problem.indefinite:
            return
        allowance = _RAISING * self.tol * self.lower
        self._scale_by(raised_on_isolated_rows(self._scaled.multipliers, self._diagonal, allowance))

    # --- what is aimed at ---------------------------------------------------------------------------------------

    @property
    def goal(self) -> float | None:
        """The bound on λmax(M) that proves the tolerance."""
        if self.tol is None or self.lower <= 0:
            return None
        return self._scaled.top_for(self.lower * (1 + self.tol))

    @property
    def done(self) -> bool:
        """Whether the tolerance is proved, or the bound near the best that these multipliers allow."""
        if self.lower <= 0 or not np.isfinite(self._best.upper):
            return False
        gap = self._best.upper / self.lower - 1
        if gap <= (GOOD_GAP if self.tol is None else self.tol):
            return True
        if self._additive_may_help:
            return False
        least = self._scaled.upper(self._known_top) / self.lower - 1
        return gap <= _NEAREST * least if self.tol is None else least > self.tol and gap <= _NEAR * least

    @property
    def _additive_may_help(self) -> bool:
        """Where some multiplier is not positive, or Jᵢᵢ < 0 and so no multiplier is safely so."""
        return bool((self._diagonal < 0).any() or (self.z[self.active] <= 0).any())

    @property
    def _known_top(self) -> float:
        """A value that λmax(M) is known to reach."""
        return max(self._reached, self._scaled.deflated.inside_top)

    # --- attempts -----------------------------------------------------------------------------------------------

    def attempt(self, method: str, stand_in: LowRankOperator | None, *, quick: bool = False) -> None:
        """One method alone, or "auto": from the cheapest to the most costly until done.

        ``quick``: "auto" takes no more than a given stand-in.
        """
        auto, products = method == "auto", method in ("deflated-lanczos", "chebyshev-filter")
        if self.problem.indefinite and not auto and not products:
            raise ValueError(f"method={method!r} needs a positive semi-definite operator, without a shift.")
        if not self.problem.indefinite and not products:
            for candidate in self._candidates(stand_in, everything=not auto):
                self._by_trace(candidate)
                if self.done:
                    break
            if self._stand_in is not None and (method == "residual-lanczos" or (auto and not quick and not self.done)):
                self._by_leftover_lanczos(self._stand_in, patient=not auto)
        if products or (auto and not quick and not self.done):
            sparse = auto and is_sparse(self.problem.operator)
            self._by_products(_filtered if sparse or method == "chebyshev-filter" else _lanczos)

    def _candidates(self, stand_in: LowRankOperator | None, everything: bool = False) -> Any:
        if stand_in is not None:
            yield given_stand_in(self._scaled, stand_in)
            return
        memory = get_config().share(_STAND_IN_SHARE)
        for candidate in own_stand_ins(self._scaled, self._starts.rng, memory, everything=everything):
            self._entries += candidate.rank
            yield candidate

    def _by_trace(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self._reached = max(self._reached, stand_in.next_value(0))
        top, self._widest = bound_by_trace(stand_in, goal=self._stand_in_goal())
        self._keep(_Bound(self._scaled.upper(top), "pivoted Cholesky proof", rank=stand_in.rank))

    def _by_leftover_lanczos(self, stand_in: StandIn, *, patient: bool) -> None:
        goal = self._stand_in_goal()
        top, widest = bound_by_leftover_lanczos(stand_in, self._starts, goal=goal, patient=patient)
        self._widest = max(self._widest, widest, key=lambda deflated: deflated.Q.shape[1])
        self._keep_by_chance(self._scaled.upper(top), "residual Lanczos bound", stand_in.rank)

    def _stand_in_goal(self) -> float:
        """The tolerance; where none is given, or it is out of reach, a little above what is known to be reached."""
        reached = self._known_top
        near = (_NEAREST if self.tol is None else _NEAR) - 1
        return max(self.goal or 0.0, reached + GOOD_GAP / 2 + near * max(reached - 1.0, 0.0))

    def _by_products(self, bound: _ProductBound) -> None:
        """λmax(M) from products alone, and where that does not do, λmax(J - Diag(z))."""
        self._raise_isolated_rows()
        scaled = self._scaled
        top, self._widest, name = bound(scaled, self._starts, self.goal, max(GOOD_GAP, scaled.rounding))
        self._reached = max(self._reached, self._widest.inside_top)
        self._keep_by_chance(scaled.upper(top), name)
        if not self.done and self._additive_may_help:
            self._by_additive_lanczos()

    def _by_additive_lanczos(self) -> None:
        """Σz + nδ, δ ≥ λmax(J - Diag(z)) on the complement of H and beyond: for multipliers that are not positive."""
        z, active = self.z, self.active

        def multiply(V: Array) -> Array:
            return as_double(self.problem.apply(V)) - z[:, None] * V

        count = int(active.sum())
        goal = (self.lower * (1 + (self.tol or 0.0)) - float(z.sum())) / count if self.goal is not None else None
        scale = as_double(self.problem.scale)
        lift = max(float((as_double(self.problem.shift) + z)[active].max()), 0.0) + self._allowed.lift(scale)
        deflated, resolution = deflate(multiply, self.H), GOOD_GAP * abs(self.lower) / count
        excess, _ = bound_by_lanczos(deflated, self._starts, lift=lift, goal=goal, resolution=resolution)
        size = self._allowed.product * (self._allowed.norm * float((scale**2).max()) + float(abs(z).max()))
        excess = max(excess + space_error(deflated) * size, 0.0)
        Y = z[active] + excess + 8 * UNIT * (abs(z[active]) + excess)
        self._keep_by_chance(self._allowed.upper(Y), "additive Lanczos bound")

    def _keep_by_chance(self, upper: float, method: str, rank: int = 0) -> None:
        """The same for a bound from random starts: it is wrong if any of the attempts so far is."""
        self._spent += self._starts.failure_probability
        self._keep(_Bound(upper, method, self._spent, rank))

    def _keep(self, found: _Bound) -> None:
        """Keep the bound if it is the best so far."""
        self._best = min(self._best, found, key=lambda bound: bound.upper)

    # --- the record ---------------------------------------------------------------------------------------------

    def certificate(self, spectrum: bool) -> EmbeddingCertificate:
        """The best bound, with the residuals that the products so far give."""
        on, best = self.active, self._best
        H, G, z = self.H[on], self.G[on], self.z[on]
        return EmbeddingCertificate(
            lower=self.lower,
            upper=best.upper,
            failure_probability=best.failure_probability,
            method=best.method,
            least_eigenvalues=self._least_eigenvalues() if spectrum else self.z[:0],  # before products are counted
            n_products=self.problem.n_columns - self._before + self._entries,
            **optimality_residuals(as_double(self.problem.scale)[on], H, G, z),
            stand_in_rank=best.rank,
            rounding=self._allowed.width(z, H.shape[1]) + self._scaled.rounding * float(self._scaled.multipliers.sum()),
        )

    def _least_eigenvalues(self) -> Array:
        """Estimates on the widest space that was taken out, widened by the stand-in if that has more to say."""
        widest, scaled = self._widest, self._scaled
        taken = widest.Q.shape[1] - scaled.deflated.Q.shape[1]
        if taken < N_LEAST and self._stand_in is not None:
            widest = widest.enlarged(self._stand_in.vectors(N_LEAST)[:, taken:])
        Q = widest.Q * self.active[:, None]
        ratio = namespace(self.z).where(self.active, self.z / scaled.y, 0.0)
        return least_on_space(Q, widest.inside, ratio, scaled.root, min(N_LEAST, int(self.active.sum())))


def _own_affinities(problem: Elliptope) -> Array:
    """The diagonal of J, with its sign: a diffusion states none below zero."""
    values = as_double(problem.scale) ** 2 * as_double(problem.operator.diagonal())
    if problem.repulsion is None:
        return values
    repulsion = as_double(problem.repulsion)
    return namespace(values).where(repulsion > 0, -repulsion, values)
