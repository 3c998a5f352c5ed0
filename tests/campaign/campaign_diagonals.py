"""Embeddings whose diagonal is prescribed, met or not exceeded: fits, verifications, levels and proofs of any point.

The truth of diag B ≤ d is found without the library's halves: by an interior-point method for the inequality itself, in
extended precision, with a bracket that believes nothing of how it went.
"""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, exact, lower_inverse, solve, to_long
from campaign_elliptope import Bracket, optimum, step_length, value
from campaign_embeddings import SOLVERS, Truth
from campaign_forgery import forged, watched
from campaign_problems import kernel_for, matrix, points, precision_of, weights
from campaign_runner import Trial

import mercer
from mercer import Precomputed, SDPEmbedding
from mercer.certificates import certify_elliptope
from mercer.embedding.degeneracy import refuse_degenerate
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.prescribed import Prescribed

METHODS = ("factorisation", "deflated-lanczos", "chebyshev-filter")
_STEPS, _ENOUGH = 100, 1e-18


def bounded_optimum(J):
    """The bracket of max ⟨J, X⟩ over X ≽ 0 with diag X ≤ 1, J an object array of mpf; its dual has y ≥ 0."""
    scale = max((abs(x) for x in np.ravel(J)), default=0)
    if scale == 0:
        return Bracket(LONG(0), LONG(0))
    unit = mpmath.mpf(2) ** mpmath.floor(mpmath.log(scale, 2))
    J = to_long(J / unit)
    X, y = _interior_point(J)
    back = LONG(2) ** int(mpmath.log(unit, 2))
    return Bracket(_attained(J, X) * back, _dual(J, y) * back)


def _interior_point(J):
    """Z = Diag(y) - J and X, y and s = 1 - diag X: complementary pairs, driven to ZX = μI and ys = μ together."""
    n = J.shape[0]
    X, y = LONG(0.5) * np.eye(n, dtype=LONG), LONG(1.1) * np.sum(np.abs(J), axis=1) + LONG(1e-30)
    best = None
    for _ in range(_STEPS):
        Z = np.diag(y) - J
        factor = cholesky(Z)
        if factor is None:
            break
        inverse = lower_inverse(factor)
        inverse = inverse.T @ inverse
        s = 1 - np.diag(X)
        gap = np.sum(Z * X) + y @ s
        if best is None or gap < best[0]:
            best = gap, X, y
        if gap <= _ENOUGH * np.sum(y):
            break
        moved = _step(X, y, Z, inverse, s, gap / (2 * n) / 4)
        if moved is None:
            break
        X, y = moved
    return best[1:]


def _step(X, y, Z, inverse, s, mu):
    system = inverse * X + np.diag(s / y)
    if cholesky(system) is None:
        return None
    dy = solve(system, mu * np.diag(inverse) + mu / y - 1)
    moved = (inverse * dy) @ X
    dX = -(moved + moved.T) / 2 + mu * inverse - X
    primal = min(step_length(X, dX), _reach(s, -np.diag(dX)))
    dual = min(step_length(Z, np.diag(dy)), _reach(y, dy))
    return None if min(primal, dual) < 1e-7 else (X + primal * dX, y + dual * dy)


def _reach(values, change):
    falling = change < 0
    return min(LONG(1), LONG(0.9) * np.min(values[falling] / -change[falling])) if falling.any() else LONG(1)


def _attained(J, X):
    """The value of a feasible point near X, and that of zero, less what rounding can make of it."""
    n, best = J.shape[0], LONG(0)
    for power in range(-19, -9):
        L = cholesky(X + LONG(10) ** power * np.eye(n, dtype=LONG))
        if L is not None:
            L = L / np.maximum(np.sqrt(np.sum(L * L, axis=1)), 1)[:, None]
            best = max(best, np.sum(J * (L @ L.T)))
            break
    return best - 8 * (2 * n + 4) * EPS * np.sum(np.abs(J))


def _dual(J, y):
    n = J.shape[0]
    raised = y + 4 * (n + 2) * EPS * (y + np.abs(np.diag(J))) + 2 * EPS * np.sum(np.abs(J), axis=1)
    if np.any(y < 0) or cholesky(np.diag(y) - J) is None:
        return LONG(np.inf)
    return np.sum(raised) * (1 + 4 * n * EPS)


class DiagonalTruth(Truth):
    """The truth of a programme whose diagonal is d, or at most d."""

    def __init__(self, kernel, X, w, dtype, d, at_most):
        weights = np.ones(len(d)) if w is None else w
        self._lengths, self._at_most = exact(weights) * exact(d), at_most
        super().__init__(kernel, X, w, dtype)

    def _judge(self, found):
        self.rows = np.array([i for i in range(len(self._lengths)) if self._lengths[i] > 0], int)
        s = np.array([mpmath.sqrt(self._lengths[i]) for i in self.rows], object)
        every = [(name, s[:, None] * M[np.ix_(self.rows, self.rows)] * s) for name, M in self.diffusions]
        self.J = every[0][1] if every else None
        self.brackets = [(name, bounded_optimum(J) if self._at_most else optimum(J)) for name, J in every]
        if self._together and every:
            low, high = (
                pick(getattr(b, side) for _, b in self.brackets) for pick, side in ((min, "low"), (max, "high"))
            )
            self.brackets = [("the matrix", (low, high))]

    def attained(self, name, H, d=None):
        """What rows attain: those of unit length, or, of an inequality and with d, those of the lengths that they have."""
        H = np.asarray(H, LONG)[self.rows]
        if not self._at_most or d is None:
            return name, *value(self.J, H)
        H = H / np.sqrt(np.asarray(d, LONG)[self.rows])[:, None]
        lengths = np.sqrt(np.sum(H * H, axis=1))
        J = to_long(self.J)
        whole = (np.diag(J) > 0) & (lengths > 0)
        H = H / np.where(whole, lengths, np.maximum(lengths, 1))[:, None]
        return name, np.sum(J * (H @ H.T)), 8 * (H.shape[1] + H.shape[0] + 4) * EPS * np.sum(np.abs(J))


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([9, seed])
    dtype = precision_of(rng)
    trial = Trial("diagonals", seed, dtype)
    n = int(rng.choice([2, 3, 4, 5, 6, 8]))
    w = weights(rng, n)
    if rng.random() < 0.7:
        X, kernel, family = _matrix(rng, dtype, n), Precomputed(), "matrix"
    else:
        X = points(rng, dtype, n)
        kernel, family = kernel_for(rng, X), "points"
    d, at_most = _diagonal(rng, n), bool(rng.random() < 0.6)
    family = f"{family} {'at most' if at_most else 'equal'}"
    truth = DiagonalTruth(kernel, X, w, dtype, d, at_most)
    if truth.J is None:
        return trial.verdicts
    with mercer.config_context(dtype=dtype):
        _fits(trial, rng, kernel, X, w, d, at_most, truth, family)
        _arbitrary(trial, rng, kernel, X, w, d, at_most, family)
        if n > 3:
            _levels(trial, rng, kernel, X, w, d, at_most, truth, family)
    return trial.verdicts


def _matrix(rng, dtype, n):
    """Any of the campaign's matrices, or one whose points repel themselves."""
    if rng.random() < 0.4:
        return matrix(rng, dtype, n)
    K = rng.normal(size=(n, n)) if rng.random() < 0.5 else np.abs(rng.normal(size=(n, n)))
    K = (K + K.T) / 2 + 1.5 - np.diag(10 ** rng.uniform(-8, 1, n))
    K = K + max(0.0, 0.1 - K.sum(axis=1).min()) / n
    return np.asarray(K.astype(dtype), np.float64)


def _diagonal(rng, n):
    kind = rng.integers(4)
    if kind == 0:
        return np.full(n, 10 ** rng.uniform(-6, 6))
    if kind == 1:
        return rng.uniform(0.1, 2, n)
    d = 10 ** rng.uniform(-8, 0, n)
    if kind == 3 and n > 3:
        d[rng.integers(n)] = 0.0
    return d


def _model(trial, rng, kernel, d, at_most, **options):
    asked = d if rng.random() < 0.7 else (lambda Z: d if len(Z) == len(d) else np.full(len(Z), d.max()))
    return SDPEmbedding(
        kernel,
        diagonal=asked,
        diagonal_constraint="at most" if at_most else "equal",
        random_state=trial.seed,
        **options,
    )


def _fits(trial, rng, kernel, X, w, d, at_most, truth, family):
    """A fit, its verification, and that of another solution put into it."""
    options = {
        "solver": str(rng.choice([*SOLVERS, "interior-point"])),
        "certify": [True, True, *METHODS][rng.integers(5)],
        "max_iter": int(rng.integers(1, 4)) if rng.random() < 0.2 else 300,
    }
    made = _model(trial, rng, kernel, d, at_most, **options)
    model = trial.ask(f"{family} fit", lambda: made.fit(X, sample_weight=w))
    if model is None:
        return
    trial.judge(f"{family} fit", model.certificate_, *truth.brackets)
    _verified(trial, model, X, d, truth, f"{family} verify")
    size = 10 ** rng.uniform(-9, 0.3)
    trial.ask(f"{family} tampering", lambda: forged(model, X, lambda _, H: H + size * rng.normal(size=H.shape)))
    _verified(trial, model, X, d, truth, f"{family} verify tampered")


def _verified(trial, model, X, d, truth, kind):
    certificate = trial.ask(kind, lambda: mercer.verify(model, X, random_state=1))
    if certificate is not None and model.landmarks_ is None:
        attained = truth.attained("stored", model.coordinates_, d)
        trial.judge(kind, certificate, *truth.brackets, attained=attained)


def _arbitrary(trial, rng, kernel, X, w, d, at_most, family):
    """Proofs from any points, in the arithmetic of the fit and in double; a filter's polynomials need the latter."""
    generator = np.random.default_rng(trial.seed)
    if w is not None:
        if not np.all(w > 1e-30 * w.max()):
            return
        w = np.ldexp(w, -int(np.frexp(np.max(w))[1]))
    given = X.astype(trial.precision)

    def pose():
        posed = DiffusionProblem.of(kernel, given, w, generator, prescribed=Prescribed(d, None, at_most))
        refuse_degenerate(posed.operator, kernel, given)
        return posed

    posed = trial.ask(f"{family} programme", pose)
    if posed is None:
        return
    truth = DiagonalTruth(kernel, X, w, trial.precision, d, at_most)
    for method in METHODS:
        problem = posed.working if rng.random() < 0.5 and method != "chebyshev-filter" else posed.exact
        H = rng.normal(size=(problem.size, int(rng.integers(1, 5))))
        for _ in range(int(rng.choice([0, 2, 30]))):
            with np.errstate(all="ignore"):
                H = problem.project(problem.apply(H) + problem.shift[:, None] * H, H)
        kind = f"{family} {method}"
        certificate = trial.ask(kind, partial(certify_elliptope, problem, H, rng=generator, method=method))
        if certificate is not None:
            trial.judge(kind, certificate, *truth.brackets)


def _levels(trial, rng, kernel, X, w, d, at_most, truth, family):
    """Every level, judged by the programme that the coordinates before it leave."""
    kind = f"{family} level"
    made = _model(trial, rng, kernel, d, at_most, n_levels=2, max_iter=300)
    with watched() as seen:
        model = trial.ask(kind, lambda: made.fit(X, sample_weight=w))
    if model is None or len(model.levels_) < 2:
        return
    trial.judge(f"{kind} 2", model.levels_[1].certificate, *truth.after(seen.bases[0]).brackets)
    trial.ask(f"{kind} verify", lambda: mercer.verify(model, X, random_state=1))
