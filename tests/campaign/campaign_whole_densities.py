"""Densities fitted in the whole MMD: every integral over two points in closed form, to seventy digits."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import exact, kernel_value, to_long
from campaign_densities import Truth, _cholesky, _lower_solve, _reference, judge_density
from campaign_problems import precision_of, weights
from campaign_runner import Trial
from campaign_spectrahedron import minimum
from mpmath import mpf

import mercer
from mercer import Gaussian, SumOfSquaresDensity
from mercer.kernels.integrals.measures import GaussianMeasure


class WholeTruth(Truth):
    """‖v‖² - 2⟨v, w_p⟩ + ‖w_p‖² + λ Tr(B K̃) over the functions that the model keeps."""

    def __init__(self, model, X, w, basis):
        m = model.support_.shape[0]
        super().__init__(
            model.kernel_.sigma, model.support_, model.measure_, X, w, model.regularization_, basis, np.eye(m)[:, :1]
        )
        every = range(m)
        self.pairs = [(p, q) for p in every for q in every]
        self.energy = np.array([[self._double(*one, *two) for two in self.pairs] for one in self.pairs], object)

    def embed_sample(self, X, w):
        super().embed_sample(X, w)
        X, w = exact(X), exact(np.ones(len(X)) if w is None else w)
        a, Z = w / sum(w), self.support
        self.squared = sum(
            a[i] * a[j] * kernel_value(self.kernel, X[i], X[j]) for i in range(len(X)) for j in range(len(X))
        )
        self.potential = np.array(
            [[sum(a[i] * self._integral([p, q, X[i]]) for i in range(len(X))) for q in Z] for p in Z], object
        )

    def _double(self, p, q, r, s):
        """∬ k(x, z_p) k(x, z_q) k(x, y) k(y, z_r) k(y, z_s) dρ(x) dρ(y)."""
        value = mpf(1)
        for axis in range(self.support.shape[1]):
            one, two = ([self.support[row][axis] for row in rows] for rows in ((p, q), (r, s)))
            value *= self._double_along(axis, one, two)
        return value

    def _double_along(self, axis, one, two):
        """Along an axis: the integral of exp(-uᵀPu/2 + cᵀu - rest/2) over the plane."""
        s2, normal = self.sigma**2, isinstance(self.measure, GaussianMeasure)
        precision = 1 / mpf(float(self.measure.std)) ** 2 if normal else mpf(0)
        centre = mpf(float(self.measure.mean[axis])) if normal else mpf(0)
        own, across = 6 / s2 + precision, -2 / s2
        linear = [2 * sum(zs) / s2 + precision * centre for zs in (one, two)]
        rest = 2 * sum(z**2 for z in (*one, *two)) / s2 + 2 * precision * centre**2
        determinant = own**2 - across**2
        inner = (own * (linear[0] ** 2 + linear[1] ** 2) - 2 * across * linear[0] * linear[1]) / determinant
        value = 2 * mpmath.pi / mpmath.sqrt(determinant) * mpmath.exp((inner - rest) / 2)
        return value * precision / (2 * mpmath.pi) if normal else value

    def bracket(self):
        L = _cholesky(self.basis.T.dot(self.W).dot(self.basis))
        T = _lower_solve(L, self.basis.T).T  # orthonormal in L²(ρ)
        s, m = T.shape[1], T.shape[0]
        couples = [(i, j) for i in range(s) for j in range(i, s)]
        columns = np.array(
            [[(T[p, i] * T[q, j] + T[p, j] * T[q, i]) / 2 for i, j in couples] for p, q in self.pairs], object
        )
        form = columns.T.dot(self.energy).dot(columns)  # of the entries i ≤ j of C, those off the diagonal twice
        form = form + np.eye(len(couples)) * (max(abs(x) for x in form.ravel()) * mpf(10) ** -55)
        root = _cholesky(form)
        A = np.array([[[mpf(0)] * s for _ in range(s)] for _ in couples], object)
        for number, (i, j) in enumerate(couples):
            for k in range(len(couples)):
                A[k, i, j] = A[k, j, i] = root[number, k]
        R = T.T.dot(self.K).dot(T) * self.regularization - 2 * T.T.dot(self.potential).dot(T)
        assert m == self.K.shape[0]
        low, high = minimum(to_long(A), to_long(np.array([mpf(0)] * len(couples), object)), to_long(R))
        offset = to_long(np.array([self.squared], object))[0]
        slip = np.longdouble(1e-18) * (abs(low) + abs(offset))  # of the sum in extended precision
        return low + offset - slip, high + offset + slip

    def _value(self, F):
        B = F.dot(F.T)
        mass = sum((B * self.W).ravel())
        flat = np.array([B[p, q] for p, q in self.pairs], object) / mass
        energy, cross = flat.dot(self.energy.dot(flat)), sum((B * self.potential).ravel()) / mass
        return self.squared - 2 * cross + energy + self.regularization * sum((B * self.K).ravel()) / mass


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([11, seed])
    dtype = precision_of(rng)
    trial = Trial("whole_densities", seed, dtype)
    n, m, d = int(rng.integers(3, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    unit = float(2.0 ** rng.integers(-40, 40)) if rng.random() < 0.2 else 1.0
    X = np.asarray(((rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, (n, 1))) * unit).astype(dtype), np.float64)
    w = weights(rng, n)
    reference = _reference(rng, X, unit)
    options = {
        "objective": "mmd",
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
            judge_density(trial, rng, model, X, w, kind, lambda problem: _truth(model, X, w, problem))
    return trial.verdicts


def _truth(model, X, w, problem):
    assert problem.comparison.is_whole
    return WholeTruth(model, X, w, problem.basis)
