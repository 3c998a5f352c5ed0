"""Densities that are kernel sums of squares: the Gaussian kernel, whose integrals have closed forms."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
from campaign_arithmetic import exact, kernel_matrix, kernel_value, to_long
from campaign_problems import precision_of, weights
from campaign_runner import Trial
from campaign_spectrahedron import minimum
from mpmath import mpf

import mercer
from mercer import Gaussian, SumOfSquaresDensity
from mercer.certificates import certify_spectrahedron
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue
from mercer.problems.sum_of_squares_enclosures import Sample

_BOX = 1e-12
_STORED = 1e-12
_READ = 1e-8  # what is within a billionth of the factor that predicts is taken for it


class Truth:
    """W, K̃, the tensor and the target to seventy digits; the programme over the functions that the model keeps."""

    def __init__(self, sigma, support, measure, X, w, regularization, basis, whitening):
        self.sigma, self.measure = mpf(float(sigma)), measure
        Z = exact(support)
        m = Z.shape[0]
        self.kernel, self.support = Gaussian(sigma), Z
        self.regularization = mpf(float(regularization))
        self.K = kernel_matrix(self.kernel, support)
        self.embed_sample(X, w)
        integral = cache(lambda *rows: self._integral([Z[r] for r in rows]))
        self.W = np.array([[integral(*sorted((p, q))) for q in range(m)] for p in range(m)], object)
        self.tensor = np.array(
            [[[integral(*sorted((p, q, r))) for q in range(m)] for p in range(m)] for r in range(m)], object
        )
        self.projection = self._projection(exact(whitening))
        self.basis = exact(basis)

    def embed_sample(self, X, w):
        """Σ a_i k(x_i, z_r) with weights brought to sum one."""
        X, w = exact(X), exact(np.ones(len(X)) if w is None else w)
        values = [[kernel_value(self.kernel, x, z) for x in X] for z in self.support]
        self.target = np.array([sum(w * row) / sum(w) for row in np.array(values, object)], object)

    def _integral(self, centres):
        """∫ Π k(x, z) dρ(x) over some centres z."""
        count, value = len(centres), mpf(1)
        for axis in range(len(centres[0])):
            zs = [centre[axis] for centre in centres]
            mean = sum(zs) / count
            value *= mpmath.exp(-sum((z - mean) ** 2 for z in zs) / self.sigma**2)
            value *= self._along(axis, mean, count)
        return value

    def _along(self, axis, mean, count):
        """∫ exp(-J(x - z̄)²/σ²) dρ along one axis."""
        s2 = self.sigma**2
        if isinstance(self.measure, Lebesgue):
            return mpmath.sqrt(mpmath.pi * s2 / count)
        if isinstance(self.measure, Box):
            low, high = mpf(float(self.measure.lower[axis])), mpf(float(self.measure.upper[axis]))
            root = mpmath.sqrt(count) / self.sigma
            part = mpmath.erf(root * (high - mean)) - mpmath.erf(root * (low - mean))
            return mpmath.sqrt(mpmath.pi * s2 / count) / 2 * part
        assert isinstance(self.measure, GaussianMeasure)
        centre, var = mpf(float(self.measure.mean[axis])), mpf(float(self.measure.std)) ** 2
        return mpmath.exp(-count * (mean - centre) ** 2 / (s2 + 2 * count * var)) / mpmath.sqrt(
            1 + 2 * count * var / s2
        )

    def _projection(self, V):
        """Orthonormal coordinates of the span of V's columns: L⁻¹Vᵀ with VᵀK̃V = LLᵀ."""
        return _lower_solve(_cholesky(V.T.dot(self.K).dot(V)), V.T)

    def bracket(self):
        """Of the optimum over B = TCTᵀ with C ≽ 0, Tr(BW) = 1.

        On a box the library takes the integrals that floating point gives for the programme's own: what they may be
        wrong by is added.
        """
        L = _cholesky(self.basis.T.dot(self.W).dot(self.basis))
        T = _lower_solve(L, self.basis.T).T  # orthonormal in L²(ρ)
        inside = np.array([T.T.dot(each).dot(T) for each in self.tensor], object)
        q = self.projection.shape[0]
        A = np.array([sum(inside[r] * self.projection[k, r] for r in range(len(inside))) for k in range(q)], object)
        R = T.T.dot(self.K).dot(T) * self.regularization
        low, high = minimum(to_long(A), to_long(self.projection.dot(self.target)), to_long(R))
        return low - self.uncertain(low), high + self.uncertain(high)

    def uncertain(self, value):
        """How far the integrals of a box can move an objective; zero for other measures."""
        b = to_long(self.projection.dot(self.target))
        return _BOX * (np.sum(b * b) + abs(value)) if isinstance(self.measure, Box) else np.longdouble(0)

    def attained(self, name, *factors, slack=0.0):
        """The least objective of B = FFᵀ brought to mass one, for factors that differ by rounding."""
        values = to_long(np.array([self._value(F) for F in factors], object))
        b = to_long(self.projection.dot(self.target))
        value = min(values)
        return name, value, self.uncertain(value) + slack * (np.sum(b * b) + abs(value))

    def _value(self, F):
        B = F.dot(F.T)
        mass = sum((B * self.W).ravel())
        embedded = np.array([sum((each * B).ravel()) for each in self.tensor], object) / mass
        residual = self.projection.dot(embedded - self.target)
        return residual.dot(residual) + self.regularization * sum((B * self.K).ravel()) / mass

    def stored(self, F, slack=_STORED):
        """What a model's factor attains: the certificate is about its coordinates, which are the same to rounding."""
        return self.attained("stored", exact(F), slack=slack)

    def mass(self, F):
        F = exact(F)
        return float(sum((F.dot(F.T) * self.W).ravel()))


def _cholesky(S):
    n = S.shape[0]
    L = np.array([[mpf(0)] * n for _ in range(n)], object)
    for j in range(n):
        for i in range(j, n):
            x = S[i, j] - sum((L[i, k] * L[j, k] for k in range(j)), mpf(0))
            L[i, j] = mpmath.sqrt(x) if i == j else x / L[j, j]
    return L


def _lower_solve(L, B):
    out = np.empty(B.shape, object)
    for i in range(L.shape[0]):
        row = B[i] - sum((out[k] * L[i, k] for k in range(i)), B[i] * 0)
        out[i] = row / L[i, i]
    return out


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([3, seed])
    dtype = precision_of(rng)
    trial = Trial("densities", seed, dtype)
    n, m, d = int(rng.integers(3, 12)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    unit = float(2.0 ** rng.integers(-60, 60)) if rng.random() < 0.2 else 1.0
    X = np.asarray(((rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, (n, 1))) * unit).astype(dtype), np.float64)
    sigma = float(10 ** rng.uniform(-0.5, 0.8) * unit)
    w = weights(rng, n)
    options = {
        "support": X[:m],
        "regularization": [None, 0.0, float(10 ** rng.uniform(-6, 0) * unit**d)][rng.integers(3)],
        "truncation": float(rng.choice([1e-10, 1e-10, 1e-6, 1e-12])),
        "solver": str(rng.choice(["auto", "auto", "accelerated"])),
    }
    options.update(_reference(rng, X, unit))
    stop, kind = [
        ({}, "fit"),
        ({}, "fit"),
        ({"max_iter": 1}, "fit stopped"),
        ({"callback": lambda step: True}, "fit stopped"),
    ][rng.integers(4)]
    if options["solver"] == "accelerated" and not stop:
        stop = {"max_iter": 300}
    with mercer.config_context(dtype=dtype):
        model = trial.ask(kind, lambda: SumOfSquaresDensity(Gaussian(sigma), **options, **stop).fit(X, sample_weight=w))
        if model is not None:
            judge_density(trial, rng, model, X, w, kind, lambda problem: _truth(model, X, w, problem))
    return trial.verdicts


def _truth(model, X, w, problem):
    kernel, lam = model.kernel_, model.regularization_
    return Truth(kernel.sigma, model.support_, model.measure_, X, w, lam, problem.basis, problem.whitening)


def _reference(rng, X, unit):
    kind = rng.integers(4)
    if kind == 1:
        return {"reference": "gaussian"}
    if kind == 2:
        return {"reference": (0.5 * unit, float(rng.uniform(0.5, 3)) * unit)}
    if kind == 3:
        return {"box": (X.min(axis=0) - rng.uniform(0, 1) * unit, X.max(axis=0) + rng.uniform(0, 1) * unit)}
    return {}


def judge_density(trial, rng, model, X, w, kind, truth_of):
    """A fit, its verification, a disturbed factor and densities that no solver found; ``truth_of`` a programme."""
    shares = np.full(len(X), 1 / len(X)) if w is None else w / np.sum(w)
    problem = trial.ask(
        "programme",
        lambda: make_programme(
            Setting(model.kernel_, model.support_, model.measure_),
            Sample(X, shares),
            regularization=model.regularization_,
            truncation=model.truncation,
            objective=model.objective,
        ),
    )
    if problem is None:
        return
    truth = truth_of(problem)
    bracket = ("the exact integrals", truth.bracket())
    trial.judge(kind, model.certificate_, bracket, minimised=True, attained=truth.stored(model.factor_))
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is not None:
        attained = truth.stored(model.factor_)
        trial.judge("verify", certificate, bracket, minimised=True, attained=attained)
    _tampered(trial, rng, model, X, truth, bracket)
    if w is not None:  # the programme was made with shares, which are other weights by a rounding
        truth.embed_sample(X, shares)
        bracket = ("the exact integrals", truth.bracket())
    for _ in range(4):
        factor = rng.normal(size=(problem.dimension, int(rng.integers(1, problem.dimension + 1))))
        factor *= 10 ** rng.uniform(-3, 3, (problem.dimension, 1))
        certificate = trial.ask("arbitrary", lambda f=factor: certify_spectrahedron(problem, f))
        if certificate is not None:
            same = (factor, factor / np.linalg.norm(factor))
            attained = truth.attained("given", *(truth.basis.dot(exact(each)) for each in same))
            trial.judge("arbitrary", certificate, bracket, minimised=True, attained=attained)


def _tampered(trial, rng, model, X, truth, bracket):
    """The factor disturbed, of mass one again, and what belongs to it."""
    F = np.asarray(model.factor_, np.float64)
    F = F * (1 + 10 ** rng.uniform(-9, -0.5) * rng.normal(size=F.shape))
    F = F / np.sqrt(truth.mass(F))
    model.factor_, model.coefficients_ = F, F @ F.T
    certificate = trial.ask("verify tampered", lambda: mercer.verify(model, X))
    if certificate is not None:
        attained = truth.stored(F, _READ)
        trial.judge("verify tampered", certificate, bracket, minimised=True, attained=attained)
