"""Kernelised embeddings: fits, verifications, stopped solutions, and proofs of arbitrary points and multipliers."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import LONG, exact, kernel_matrix
from campaign_elliptope import optimum, value
from campaign_problems import points, precision_of, spread, weights
from campaign_runner import Trial, quiet

import mercer
from mercer import Gaussian, KernelizedSDPEmbedding, Laplacian, Matern
from mercer.certificates.kernelized import certify_kernelized
from mercer.embedding.kernelized_problem import pose
from mercer.support import Support

NAME = "kernelized"


class Truth:
    """J of the exact kernel and of the entries that floating point gives, with the brackets of their optima."""

    def __init__(self, kernel, X, w, d, strength, nugget):
        w = exact(np.ones(len(X)) if w is None else w)
        shares = np.array([x / sum(w) for x in w], object)
        with quiet():
            floating = np.asarray(kernel(X), np.float64)
        found = [("the exact kernel", kernel_matrix(kernel, X)), ("the entries of floating point", exact(floating))]
        programmes = [
            (name, _matrix(K, shares, [K[i, i] for i in range(len(K))] if d is None else exact(d), strength, nugget))
            for name, K in found
        ]
        self.J = programmes[0][1]
        self.brackets = [(name, optimum(J)) for name, J in programmes]

    def attained(self, name, H):
        return name, *value(self.J, np.asarray(H, LONG))


def _matrix(K, shares, d, strength, nugget):
    """Diag(√d)(P K̄ P - λK⁻¹)Diag(√d) to seventy digits."""
    n = len(shares)
    K = K.copy()
    K[np.diag_indices(n)] += mpmath.mpf(nugget)
    s = K.dot(shares)
    centred = (K - s[:, None] * s / shares.dot(s)) * shares[:, None] * shares
    inverse = mpmath.matrix(K.tolist()) ** -1
    M = centred - mpmath.mpf(strength) * np.array(inverse.tolist(), object).reshape(n, n)
    root = np.array([mpmath.sqrt(x) for x in d], object)
    M = root[:, None] * M * root
    return (M + M.T) / 2


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([9, seed])
    trial = Trial(NAME, seed, precision_of(rng))
    n = int(rng.choice([2, 3, 4, 5, 6, 8]))
    X = np.unique(points(rng, trial.precision, n), axis=0)
    n = len(X)
    if n < 2:
        return trial.verdicts
    w = weights(rng, n)
    kernel = _kernel(rng, X)
    d = None if rng.random() < 0.6 else 10 ** rng.uniform(-2, 2, n)
    strength = float(10 ** rng.uniform(-7, 1))
    nugget = 0.0 if rng.random() < 0.8 else float(10 ** rng.uniform(-9, -1))
    options = {"regularization": strength, "diagonal": d, "nugget": nugget, "tol": float(10 ** rng.uniform(-9, -2))}
    if rng.random() < 0.2:
        options["max_iter"] = int(rng.integers(1, 5))
    with mercer.config_context(dtype=trial.precision):
        model = trial.ask("fit", lambda: KernelizedSDPEmbedding(kernel, **options).fit(X, sample_weight=w))
        if model is None:
            return trial.verdicts
        truth = Truth(kernel, X, w, d, strength, nugget)
        trial.judge("fit", model.certificate_, *truth.brackets, attained=truth.attained("stored", model.coordinates_))
        _verified(trial, model, X, truth)
        _arbitrary(trial, rng, kernel, X, w, truth, (d, strength, nugget), model)
    return trial.verdicts


def _kernel(rng, X):
    size = spread(X) * float(10 ** rng.uniform(-1, 1.5))
    kind = rng.integers(5)
    if kind == 0:
        return Gaussian(size)
    return Laplacian(size) if kind == 1 else Matern(float(rng.choice([0.5, 1.5, 2.5])), size)


def _verified(trial, model, X, truth):
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is not None:
        trial.judge("verify", certificate, *truth.brackets, attained=truth.attained("stored", model.coordinates_))


def _arbitrary(trial, rng, kernel, X, w, truth, setting, model):
    """Proofs from points and multipliers that no solver found, near the optimum and far from it."""
    d, strength, nugget = setting
    if w is not None:
        w = np.ldexp(w, -2 * (int(np.frexp(np.max(w))[1]) // 2))
    programme = trial.ask("programme", lambda: pose(kernel, X, Support(None, w), d, strength, nugget))
    if programme is None:
        return
    for size in 10 ** rng.uniform(-12, 1, 3):
        H = np.asarray(model.coordinates_) + size * rng.normal(size=model.coordinates_.shape)
        y = np.asarray(model.multipliers_)
        y = y + size * rng.normal(size=len(X)) * np.abs(y).max()
        given = y if rng.random() < 0.6 else None
        kind = "arbitrary multipliers" if given is not None else "arbitrary point"
        certificate = trial.ask(kind, lambda H=H, given=given: certify_kernelized(programme, H, multipliers=given))
        if certificate is not None:
            trial.judge(kind, certificate, *truth.brackets, attained=truth.attained("given", H))
