"""Likelihoods of sections with covariances of their own: square roots of normal densities, found by a mixture."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import exact
from campaign_likelihoods import DIGITS, LikelihoodTruth
from campaign_problems import precision_of, weights
from campaign_runner import Trial
from mpmath import mpf

import mercer
from mercer import SumOfSquaresDensity
from mercer.certificates import certify_likelihood
from mercer.density.fitting_problem import sections_likelihood
from mercer.problems.sum_of_squares_enclosures import Sample

_STORED = 1e-12


class MixtureTruth(LikelihoodTruth):
    """The programme of the sections that a model has, whose numbers are taken as they are."""

    def __init__(self, model, X, w, basis):
        sections = model.sections_
        roots = np.broadcast_to(sections.roots, (len(sections.means), *sections.roots.shape[1:]))
        self.means = [mean for _ in sections.factors for mean in exact(sections.means)]
        self.precisions = [exact(L).dot(exact(L).T) / mpf(float(c)) for c in sections.factors for L in roots]
        m, self.regularization, self.basis = len(self.means), mpf(float(model.regularization_)), exact(basis)
        self.K = np.array([[mpf(int(p == q)) for q in range(m)] for p in range(m)], object)
        self.W = np.array([[self._overlap(p, q) for q in range(m)] for p in range(m)], object)
        self.measure = model.measure_
        self.embed_sample(X, w)

    def embed_sample(self, X, w):
        X, w = exact(X), exact(np.ones(len(X)) if w is None else w)
        kept = [i for i in range(len(X)) if w[i] > 0]
        self.shares = [w[i] / sum(w) for i in kept]
        self.sections = np.array([[self._section(X[i], k) for k in range(len(self.means))] for i in kept], object)

    def _section(self, x, k):
        """N(x; μ, P⁻¹)^{1/2}."""
        P, apart = self.precisions[k], x - self.means[k]
        height = (_determinant(P) / (2 * mpmath.pi) ** len(x)) ** (mpf(1) / 4)
        return height * mpmath.exp(-apart.dot(P).dot(apart) / 4)

    def _overlap(self, p, q):
        """∫ φ_p φ_q dx, by the integral of the exponential of a quadratic."""
        P, Q, d = self.precisions[p], self.precisions[q], len(self.means[p])
        both, (mu, nu) = P + Q, (self.means[p], self.means[q])
        middle = _solved(both, P.dot(mu) + Q.dot(nu))
        least = (mu - middle).dot(P).dot(mu - middle) + (nu - middle).dot(Q).dot(nu - middle)
        heights = (_determinant(P) * _determinant(Q) / (2 * mpmath.pi) ** (2 * d)) ** (mpf(1) / 4)
        return heights * (4 * mpmath.pi) ** (mpf(d) / 2) / mpmath.sqrt(_determinant(both)) * mpmath.exp(-least / 4)


def _determinant(P):
    return mpmath.det(mpmath.matrix(P.tolist()))


def _solved(P, b):
    return np.array(list(mpmath.lu_solve(mpmath.matrix(P.tolist()), mpmath.matrix(b.tolist()))), object)


def run(seed):
    """The verdicts of one problem."""
    with mpmath.workdps(DIGITS):
        return _run(seed)


def _run(seed):
    rng = np.random.default_rng([16, seed])
    dtype = precision_of(rng)
    trial = Trial("mixtures", seed, dtype)
    n, d = int(rng.integers(4, 16)), int(rng.integers(1, 3))
    X = rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, (n, 1))
    if rng.random() < 0.3:
        X[-1] += 10 ** rng.uniform(0, 4)  # far from all others
    X = np.asarray((X * 2.0 ** rng.integers(-20, 20)).astype(dtype), np.float64)
    w = weights(rng, n)
    options = {
        "objective": "likelihood",
        "support": ("mixture", int(rng.integers(1, 3))),
        "scales": [(1.0,), (1.0, 3.0)][rng.integers(2)],
        "regularization": [None, 0.0, float(10 ** rng.uniform(-6, 0))][rng.integers(3)],
        "truncation": float(rng.choice([1e-10, 1e-6])),
        "random_state": seed,
    }
    with mercer.config_context(dtype=dtype):
        model = trial.ask("fit", lambda: SumOfSquaresDensity(**options).fit(X, sample_weight=w))
        if model is not None:
            _judge(trial, rng, model, X, w)
    return trial.verdicts


def _judge(trial, rng, model, X, w):
    shares = np.full(len(X), 1 / len(X)) if w is None else w / np.sum(w)
    options = {"regularization": model.regularization_, "truncation": model.truncation}
    problem = trial.ask("programme", lambda: sections_likelihood(model.sections_, Sample(X, shares), **options))
    if problem is None:
        return
    truth = MixtureTruth(model, X, w, problem.basis)
    bracket, attained = ("the exact sections", truth.bracket()), truth.stored(model.factor_, _STORED)
    trial.judge("fit", model.certificate_, bracket, minimised=True, attained=attained)
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is not None:
        trial.judge("verify", certificate, bracket, minimised=True, attained=attained)
    if w is not None:  # shares are other weights by a rounding
        truth.embed_sample(X, shares)
        bracket = ("the exact sections", truth.bracket())
    factor = rng.normal(size=(problem.dimension, int(rng.integers(1, problem.dimension + 1))))
    certificate = trial.ask("arbitrary", lambda: certify_likelihood(problem, factor))
    if certificate is not None:
        same = (factor, factor / np.linalg.norm(factor))
        attained = truth.attained("given", *(truth.basis.dot(exact(each)) for each in same))
        trial.judge("arbitrary", certificate, bracket, minimised=True, attained=attained)
