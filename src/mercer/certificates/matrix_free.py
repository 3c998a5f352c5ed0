"""The certificate without the matrix: bounds from products and from low-rank factors, the best of them kept."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, dtype_name, namespace
from mercer.backends.rounding import UNIT
from mercer.certificates.allowances import Allowances
from mercer.certificates.embedding_certificate import EmbeddingCertificate
from mercer.certificates.krylov import Deflated, bound_by_lanczos, deflate
from mercer.certificates.low_rank_bound import (
    StandIn,
    bound_by_leftover_lanczos,
    bound_by_trace,
    given_stand_in,
    own_stand_ins,
)
from mercer.certificates.multipliers import positive_multipliers, raised_on_isolated_rows, removed_vector
from mercer.certificates.residuals import complementarity, conformality_residual, least_on_space, mean_value_residual
from mercer.operators import LowRankOperator
from mercer.problems import Elliptope

LEAST = 6
_GOOD = 1e-9  # the gap aimed at where no tolerance is given
_ATTEMPTS = 3  # random ones at most, each with an equal share of the failure probability
_NEAR = 2.0  # a gap at most this many times the least possible one is near enough where the tolerance is out of reach
_NEAREST = 1.1  # the same where no tolerance is given
_STAND_IN_SHARE, _KRYLOV_SHARE = 0.5, 0.25  # of the memory limit
_LOOSE, _RAISING = 1e-5, 0.4  # from this tolerance on, this part of it may go into larger multipliers


@final
class MatrixFreeProof:
    """Bounds from products with J, recomputed from H; attempts may follow one another, and the best bound is kept.

    Parameters
    ----------
    problem : Elliptope
        The problem.
    H : array of shape (n, r)
        Unit rows.
    rng : numpy.random.Generator
        Starts and pivots.
    tol : float or None
        The relative gap that matters.
    failure_probability : float
        Of all attempts together.
    block : int
        Columns of a Lanczos block.
    """

    def __init__(
        self,
        problem: Elliptope,
        H: Array,
        *,
        rng: np.random.Generator,
        tol: float | None,
        failure_probability: float,
        block: int,
    ) -> None:
        self.problem, self.rng, self.tol, self.block = problem, rng, tol, block
        self._share = failure_probability / _ATTEMPTS
        self._before, self._entries, self._spent = problem.n_columns, 0, 0.0
        self.active = problem.active
        self.scale = as_double(problem.scale)
        self._allowed = Allowances(problem)
        self._removed = removed_vector(problem)
        self.H = namespace(H).where(self.active[:, None], H, 0.0)
        self.G = as_double(problem.apply(self.H))
        self.z = problem.multipliers(self.H, self.G)
        self.lower = self._allowed.lower(self.z[self.active], H.shape[1])
        self._prepare()
        self.upper, self.method, self._probability, self._rank = np.inf, "no bound", 0.0, 0
        self._reached = -np.inf
        self._stand_in: StandIn | None = None

    def _prepare(self) -> None:
        """The multipliers of H, and what follows from them."""
        on = self.active
        self._diagonal = self.scale[on] ** 2 * as_double(self.problem.operator.diagonal())[on]
        tol = _GOOD if self.tol is None else self.tol
        self._set_multipliers(positive_multipliers(self.H[on], self.G[on], self.z[on], self._diagonal, tol))

    def _set_multipliers(self, y: Array) -> None:
        """Set y, M = Diag(y)^-½ J Diag(y)^-½, and M without the space of Diag(y)^½ H; no product is needed."""
        xp = namespace(self.z)
        self.y = xp.ones_like(self.z)
        self.y[self.active] = y
        self.inverse_root = self.active / xp.sqrt(self.y)
        self.root = self.scale * self.inverse_root
        double = dtype_name(self.problem.operator.dtype) == "float64"
        known = self.inverse_root[:, None] * self.G if double else None
        self.deflated = deflate(self._multiply, xp.sqrt(self.y)[:, None] * self.H, known)
        self._widest = self.deflated
        self.lift = self.problem.shift * float((self.inverse_root**2).max()) + self._allowed.lift(self.root)
        self._rounding = _space_error(self.deflated) * self._allowed.product_error(self.root, self._removed, self.lift)

    def _raise_isolated_rows(self) -> None:
        """Spend a part of a loose tolerance on isolated rows, whose eigenvalues would make Lanczos dear."""
        if self.tol is None or self.tol < _LOOSE or self.lower <= 0 or self.problem.shift > 0:
            return
        self._stand_in = None  # it belonged to the multipliers before
        self._set_multipliers(
            raised_on_isolated_rows(self.y[self.active], self._diagonal, _RAISING * self.tol * self.lower)
        )

    def _multiply(self, V: Array) -> Array:
        return self.inverse_root[:, None] * as_double(self.problem.apply(self.inverse_root[:, None] * V))

    # --- what is aimed at ---------------------------------------------------------------------------------------

    @property
    def goal(self) -> float | None:
        """The bound on λmax(M) that proves the tolerance."""
        if self.tol is None or self.lower <= 0:
            return None
        y = self.y[self.active]
        beside = self._allowed.upper(y) - float(y.sum())  # what rounding adds whatever λmax(M) is
        return (self.lower * (1 + self.tol) - beside) / float(y.sum()) - self._rounding

    @property
    def done(self) -> bool:
        """Whether the tolerance is proved, or the bound near the best that these multipliers allow."""
        if self.lower <= 0 or not np.isfinite(self.upper):
            return False
        gap = self.upper / self.lower - 1
        if gap <= (_GOOD if self.tol is None else self.tol):
            return True
        if self._additive_may_help:
            return False
        least = self._upper(max(self._reached, self.deflated.inside_top)) / self.lower - 1
        return gap <= _NEAREST * least if self.tol is None else least > self.tol and gap <= _NEAR * least

    @property
    def _additive_may_help(self) -> bool:
        return self.problem.shift > 0 or bool((self.z[self.active] <= 0).any())

    def _upper(self, top: float) -> float:
        rounding = self._rounding * max(1.0, top)
        return self._allowed.upper(max(top + rounding, 0.0) * self.y[self.active] * (1 + 8 * UNIT))

    # --- attempts -----------------------------------------------------------------------------------------------

    def run_all(self, stand_in: LowRankOperator | None, *, quick: bool) -> None:
        """From the cheapest to the dearest until done; ``quick``: no more than a stand-in that is given proves."""
        if self.problem.shift == 0:
            for candidate in self._candidates(stand_in):
                self._by_trace(candidate)
                if self.done:
                    return
            if not quick and self._stand_in is not None:
                self._by_leftover_lanczos(self._stand_in, patient=False)
        if not quick and not self.done:
            self._by_lanczos()

    def attempt(self, method: str, stand_in: LowRankOperator | None) -> None:
        """One method alone."""
        if method == "deflated-lanczos":
            self._by_lanczos()
            return
        if self.problem.shift > 0:
            raise ValueError(f"method={method!r} needs a positive semi-definite operator, without a shift.")
        for candidate in self._candidates(stand_in, everything=True):
            self._by_trace(candidate)
            if self.done:
                break
        if self._stand_in is not None and method == "residual-lanczos":
            self._by_leftover_lanczos(self._stand_in, patient=True)

    def _candidates(self, stand_in: LowRankOperator | None, everything: bool = False) -> Any:
        if stand_in is not None:
            yield given_stand_in(self.problem, stand_in, self.root, self.deflated, self._allowed.entries)
            return
        memory = get_config().share(_STAND_IN_SHARE)
        own = own_stand_ins(
            self.problem, self.root, self.deflated, self.rng, memory, self._allowed.entries, everything=everything
        )
        for candidate in own:
            self._entries += candidate.rank
            yield candidate

    def _by_trace(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self._reached = max(self._reached, stand_in.next_value(0))
        top, self._widest = bound_by_trace(stand_in, goal=self._stand_in_goal())
        self._keep(self._upper(top), "pivoted Cholesky proof", 0.0, stand_in.rank)

    def _by_leftover_lanczos(self, stand_in: StandIn, *, patient: bool) -> None:
        top, widest = bound_by_leftover_lanczos(
            stand_in,
            goal=self._stand_in_goal(),
            failure_probability=self._share,
            rng=self.rng,
            block=self.block,
            patient=patient,
        )
        self._spent += self._share
        self._widest = max(self._widest, widest, key=lambda deflated: deflated.Q.shape[1])
        self._keep(self._upper(top), "residual Lanczos bound", self._spent, stand_in.rank)

    def _stand_in_goal(self) -> float:
        """The tolerance; where none is given, or it is out of reach, a little above what is known to be reached."""
        reached = max(self._reached, self.deflated.inside_top)
        near = (_NEAREST if self.tol is None else _NEAR) - 1
        return max(self.goal or 0.0, reached + _GOOD / 2 + near * max(reached - 1.0, 0.0))

    @property
    def _most_columns(self) -> int:
        """What a Krylov space may take of the memory limit, in columns."""
        return get_config().share(_KRYLOV_SHARE) // (8 * max(1, self.problem.size))

    def _by_lanczos(self) -> None:
        self._raise_isolated_rows()
        top, self._widest = bound_by_lanczos(
            self.deflated,
            lift=self.lift,
            failure_probability=self._share,
            rng=self.rng,
            goal=self.goal,
            resolution=max(_GOOD, self._rounding),
            block=self.block,
            most_columns=self._most_columns,
        )
        self._spent += self._share
        self._reached = max(self._reached, self._widest.inside_top)
        self._keep(self._upper(top), "deflated Lanczos bound", self._spent, 0)
        if not self.done and self._additive_may_help:
            self._by_additive_lanczos()

    def _by_additive_lanczos(self) -> None:
        """Σz + nδ, δ ≥ λmax(J - Diag(z)) on the complement of H and beyond: for multipliers that are not positive."""
        z, active = self.z, self.active

        def multiply(V: Array) -> Array:
            return as_double(self.problem.apply(V)) - z[:, None] * V

        count = int(active.sum())
        goal = (self.lower * (1 + (self.tol or 0.0)) - float(z.sum())) / count if self.goal is not None else None
        lift = self.problem.shift + max(float(z.max()), 0.0) + self._allowed.lift(self.scale)
        deflated = deflate(multiply, self.H)
        excess, _ = bound_by_lanczos(
            deflated,
            lift=lift,
            failure_probability=self._share,
            rng=self.rng,
            goal=goal,
            resolution=_GOOD * abs(self.lower) / count,
            block=self.block,
            most_columns=self._most_columns,
        )
        self._spent += self._share
        size = self._allowed.product * (self._allowed.norm * float((self.scale**2).max()) + float(abs(z).max()))
        excess = max(excess + _space_error(deflated) * size, 0.0)
        Y = z[active] + excess + 8 * UNIT * (abs(z[active]) + excess)
        self._keep(self._allowed.upper(Y), "additive Lanczos bound", self._spent, 0)

    def _keep(self, upper: float, method: str, probability: float, rank: int) -> None:
        if upper < self.upper:
            self.upper, self.method, self._probability, self._rank = upper, method, probability, rank

    # --- the record ---------------------------------------------------------------------------------------------

    def certificate(self, spectrum: bool) -> EmbeddingCertificate:
        """The best bound, with the residuals that the products at hand give."""
        least = self._least_eigenvalues() if spectrum else self.z[:0]
        on = self.active
        s, H, G, z = self.scale[on], self.H[on], self.G[on], self.z[on]
        return EmbeddingCertificate(
            lower=self.lower,
            upper=self.upper,
            failure_probability=self._probability,
            method=self.method,
            n_products=self.problem.n_columns - self._before + self._entries,
            least_eigenvalues=least,
            complementarity=complementarity(s, H, G, z),
            mean_value_residual=mean_value_residual(s, H, G, z),
            conformality_residual=conformality_residual(H, G),
            stand_in_rank=self._rank,
            rounding=self._allowed.width(z, H.shape[1]) + self._rounding * float(self.y[on].sum()),
        )

    def _least_eigenvalues(self) -> Array:
        """Estimates on the widest space that was taken out, widened by the stand-in if that has more to say."""
        widest = self._widest
        taken = widest.Q.shape[1] - self.deflated.Q.shape[1]
        if taken < LEAST and self._stand_in is not None:
            X = self._stand_in.vectors(LEAST)[:, taken:]
            product = self._multiply(X)
            widest = widest.enlarged(X, product - widest.Q @ (widest.Q.T @ product))
        Q = widest.Q * self.active[:, None]
        ratio = namespace(self.z).where(self.active, self.z / self.y, 0.0)
        return least_on_space(Q, widest.inside, ratio, self.root, min(LEAST, int(self.active.sum())))


def _space_error(deflated: Deflated) -> float:
    """By how much the errors of products with unit vectors grow in a bound from q of them and a Krylov space."""
    return deflated.amplification * (4 + 2 * float(np.sqrt(deflated.Q.shape[1])))
