"""Densities by maximum likelihood, with and without a penalty: logarithms and integrals to fifty digits and more."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import eliminated, exact, kernel_value, to_long
from campaign_densities import Truth, _cholesky, _lower_solve, _reference
from campaign_problems import precision_of, weights
from campaign_runner import Trial
from mpmath import mpf

import mercer
from mercer import Gaussian, SumOfSquaresDensity
from mercer.certificates import certify_likelihood
from mercer.density.fitting_problem import kernel_likelihood
from mercer.density.setting import Setting
from mercer.problems.sum_of_squares_enclosures import Sample

DIGITS = 50
_LEAST_BARRIER = mpf(10) ** -22
_STORED = 1e-12


class LikelihoodTruth(Truth):
    """-Σ a log p + λ Tr(B K̃) over B = TCTᵀ with C ≽ 0, Tr(BW) = 1, in nats a point."""

    def __init__(self, model, X, w, basis):
        m = model.support_.shape[0]
        super().__init__(
            model.kernel_.sigma, model.support_, model.measure_, X, w, model.regularization_, basis, np.eye(m)[:, :1]
        )

    def embed_sample(self, X, w):
        X, w = exact(X), exact(np.ones(len(X)) if w is None else w)
        kept = [i for i in range(len(X)) if w[i] > 0]
        self.shares = [w[i] / sum(w) for i in kept]
        self.sections = np.array([[kernel_value(self.kernel, X[i], z) for z in self.support] for i in kept], object)

    def _projection(self, V):
        return None

    def bracket(self):
        """What a barrier method attains, and the least of the tangents at its densities."""
        L = _cholesky(self.basis.T.dot(self.W).dot(self.basis))
        T = _lower_solve(L, self.basis.T).T  # orthonormal in L²(ρ)
        rows = self.sections.dot(T)
        sizes = [mpmath.sqrt(sum(x**2 for x in row)) for row in rows]
        rows = np.array([row / size for row, size in zip(rows, sizes, strict=True)], object)
        constant = -2 * sum(a * mpmath.log(size) for a, size in zip(self.shares, sizes, strict=True))
        low, high = optimum(rows, self.shares, T.T.dot(self.K).dot(T) * self.regularization)
        return tuple(to_long(np.array([low + constant, high + constant], object)))

    def attained(self, name, *factors, slack=0.0):
        values = to_long(np.array([self._value(F) for F in factors], object))
        return name, min(values), slack * (1 + abs(min(values)))

    def _value(self, F):
        B = F.dot(F.T)
        mass = sum((B * self.W).ravel())
        densities = [sum(x**2 for x in row.dot(F)) / mass for row in self.sections]
        logs = sum(a * mpmath.log(p) for a, p in zip(self.shares, densities, strict=True))
        return self.regularization * sum((B * self.K).ravel()) / mass - logs


def optimum(rows, shares, R):
    """min -Σ a log gᵀCg + ⟨R, C⟩ over C ≽ 0 with Tr C = 1: a bound from below and a value."""
    s, mu = R.shape[0], mpf(1)
    C = np.array([[mpf(int(i == j)) / s for j in range(s)] for i in range(s)], object)
    low, high = -mpf("inf"), mpf("inf")
    while mu > _LEAST_BARRIER:
        for _ in range(60):
            C, decrement = _newton(rows, shares, R, C, mu)
            if decrement < mu / 100:
                break
        below, value = _bounds(rows, shares, R, C)
        low, high = max(low, below), min(high, value)
        mu /= 10
    return low, high


def _bounds(rows, shares, R, C):
    densities = [row.dot(C).dot(row) for row in rows]
    gamma = sum(np.outer(row, row) * (a / q) for row, a, q in zip(rows, shares, densities, strict=True))
    logs = sum(a * mpmath.log(q) for a, q in zip(shares, densities, strict=True))
    least = min(mpmath.eigsy(mpmath.matrix((R - gamma).tolist()), eigvals_only=True))
    return 1 - logs + least, -logs + sum((R * C).ravel())


def _newton(rows, shares, R, C, mu):
    """A step of f(C) - μ log det C on Tr C = 1, as long as it falls, and half of what it promised."""
    s, G = R.shape[0], _cholesky(C)
    i, j = np.triu_indices(s)
    weight = np.array([mpf(1) if a == b else mpmath.sqrt(2) for a, b in zip(i, j, strict=True)], object)
    inside = [np.outer(u, u)[i, j] * weight for u in rows.dot(G)]
    densities = [row.dot(C).dot(row) for row in rows]
    unit = np.array([mpf(int(a == b)) for a, b in zip(i, j, strict=True)], object)
    gradient = G.T.dot(R).dot(G)[i, j] * weight - unit * mu
    hessian = np.diag([mu] * len(i)).astype(object)
    for each, a, q in zip(inside, shares, densities, strict=True):
        gradient, hessian = gradient - each * (a / q), hessian + np.outer(each, each) * (a / q**2)
    trace = G.T.dot(G)[i, j] * weight
    system = [[*hessian[k], trace[k], -gradient[k]] for k in range(len(i))] + [[*trace, mpf(0), mpf(0)]]
    step = np.array(eliminated(system)[: len(i)], object)
    D = np.full((s, s), mpf(0), object)
    D[i, j] = D[j, i] = step / weight
    move, length, here = G.dot(D).dot(G.T), mpf(1), _barrier(rows, shares, R, C, mu)
    while length > mpf(2) ** -60:
        moved = C + move * length
        moved = (moved + moved.T) / (2 * sum(moved.diagonal()))
        if _barrier(rows, shares, R, moved, mu) <= here:
            return moved, -gradient.dot(step)
        length /= 2
    return C, mpf(0)


def _barrier(rows, shares, R, C, mu):
    try:
        pivots = _cholesky(C).diagonal()
    except (TypeError, ZeroDivisionError):
        return mpf("inf")
    if any(isinstance(x, mpmath.mpc) or x <= 0 for x in pivots):
        return mpf("inf")
    densities = [row.dot(C).dot(row) for row in rows]
    logs = sum(a * mpmath.log(q) for a, q in zip(shares, densities, strict=True))
    return sum((R * C).ravel()) - logs - 2 * mu * sum(mpmath.log(x) for x in pivots)


def run(seed):
    """The verdicts of one problem."""
    with mpmath.workdps(DIGITS):
        return _run(seed)


def _run(seed):
    rng = np.random.default_rng([13, seed])
    dtype = precision_of(rng)
    trial = Trial("likelihoods", seed, dtype)
    n, m, d = int(rng.integers(2, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    unit = float(2.0 ** rng.integers(-40, 40)) if rng.random() < 0.2 else 1.0
    X = rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, (n, 1))
    if rng.random() < 0.2:
        X[-1] += 10 ** rng.uniform(0, 2)  # far from the others
    if rng.random() < 0.2:
        X = X[rng.integers(0, n, n)]
    X = np.asarray((X * unit).astype(dtype), np.float64)
    w, reference = weights(rng, n), _reference(rng, X, unit)
    options = {
        "objective": "likelihood",
        "support": X[:m],
        "regularization": [None, 0.0, float(10 ** rng.uniform(-6, 0) * unit**d)][rng.integers(3)],
        "truncation": float(rng.choice([1e-10, 1e-6, 1e-12])),
        **({} if "box" in reference else reference),
    }
    stop, kind = ({}, "fit") if rng.random() < 0.7 else ({"max_iter": 1}, "fit stopped")
    kernel = Gaussian(float(10 ** rng.uniform(-0.5, 0.8) * unit))
    with mercer.config_context(dtype=dtype):
        model = trial.ask(kind, lambda: SumOfSquaresDensity(kernel, **options, **stop).fit(X, sample_weight=w))
        if model is not None:
            _judge(trial, rng, model, X, w, kind)
    return trial.verdicts


def _judge(trial, rng, model, X, w, kind):
    """A fit, its verification, a disturbed factor and densities that no solver found."""
    setting = Setting(model.kernel_, model.support_, model.measure_)
    shares = np.full(len(X), 1 / len(X)) if w is None else w / np.sum(w)
    options = {"regularization": model.regularization_, "truncation": model.truncation}
    problem = trial.ask("programme", lambda: kernel_likelihood(setting, Sample(X, shares), **options))
    if problem is None:
        return
    truth = LikelihoodTruth(model, X, w, problem.basis)
    bracket, attained = ("the exact integrals", truth.bracket()), truth.stored(model.factor_, _STORED)
    trial.judge(kind, model.certificate_, bracket, minimised=True, attained=attained)
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is not None:
        trial.judge("verify", certificate, bracket, minimised=True, attained=attained)
    if w is not None:  # shares are other weights by a rounding
        truth.embed_sample(X, shares)
        bracket = ("the exact integrals", truth.bracket())
    for _ in range(3):
        factor = rng.normal(size=(problem.dimension, int(rng.integers(1, problem.dimension + 1))))
        factor *= 10 ** rng.uniform(-3, 3, (problem.dimension, 1))
        certificate = trial.ask("arbitrary", lambda f=factor: certify_likelihood(problem, f))
        if certificate is not None:
            same = (factor, factor / np.linalg.norm(factor))
            attained = truth.attained("given", *(truth.basis.dot(exact(each)) for each in same))
            trial.judge("arbitrary", certificate, bracket, minimised=True, attained=attained)
