"""Variance unfoldings: fits to points and to graphs, verifications, stopped solutions, and arbitrary multipliers."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import exact
from campaign_problems import points
from campaign_runner import Trial
from campaign_variance import optimum
from scipy.sparse import csr_array

import mercer
from mercer import MaximumVarianceUnfolding
from mercer.certificates.unfolding import certify_unfolding
from mercer.embedding.unfolding_problem import PosedUnfolding

NAME = "unfoldings"


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([10, seed])
    trial = Trial(NAME, seed, "float64")
    n = int(rng.integers(3, 8))
    X = np.unique(points(rng, "float64", n), axis=0)
    n = len(X)
    if n < 3 or not 1e-100 < np.abs(X).max() < 1e100:
        return trial.verdicts
    given = rng.random() < 0.4
    data = _graph(rng, X) if given else X
    w = None if rng.random() < 0.5 else 10 ** rng.uniform(-3, 1, n)
    options = {
        "n_neighbors": int(rng.integers(1, 4)),
        "distances": str(rng.choice(["kept", "not exceeded"])),
        "distance_tol": float(10 ** rng.uniform(-5, -1)),
        "metric": "precomputed" if given else "euclidean",
        "connect": not given,
        "tol": float(10 ** rng.uniform(-8, -2)),
        "max_iter": int(rng.integers(1, 6)) if rng.random() < 0.2 else 100,
    }
    model = trial.ask("fit", lambda: MaximumVarianceUnfolding(**options).fit(data, sample_weight=w))
    if model is None:
        return trial.verdicts
    edges, squares = np.asarray(model.pairs_), _squares(data, model.pairs_, given)
    truth = _brackets(edges, squares, w, n, model)
    trial.judge("fit", model.certificate_, *truth(model.certificate_))
    certificate = trial.ask("verify", lambda: mercer.verify(model, data))
    if certificate is not None:
        trial.judge("verify", certificate, *truth(certificate))
    _arbitrary(trial, rng, model, data, w, truth)
    return trial.verdicts


def _graph(rng, X):
    """Distances between some pairs of points, as floating point has them, on a connected graph."""
    n = len(X)
    kept = np.triu(rng.random((n, n)) < 0.4, 1)
    kept[np.arange(n - 1), np.arange(1, n)] = True
    lengths = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    lengths = lengths * rng.uniform(0.98, 1.02, (n, n)) if rng.random() < 0.3 else lengths
    half = np.where(kept, lengths, 0.0)
    return csr_array(half + half.T)


def _squares(data, pairs, given):
    """The squared distances of pairs to seventy digits."""
    if given:
        return exact(np.asarray(data.todense())[pairs[:, 0], pairs[:, 1]]) ** 2
    X = exact(data)
    return np.array([sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True)) for i, j in pairs], object)


def _brackets(edges, squares, w, n, model):
    masses = exact(np.ones(n) if w is None else w)
    part = mpmath.mpf(float(model.distance_tol))
    if model.distances == "kept":
        lower, upper = squares * (1 - part) ** 2, squares * (1 + part) ** 2
    else:
        lower, upper = squares * 0, squares
    plain = optimum(edges, lower, upper, masses)

    def truth(certificate):
        """The upper bound is of the programme as it is; the lower one of bounds wider by the violation that is stated."""
        v = mpmath.mpf(float(certificate.violation))
        wide = optimum(edges, lower * (1 - v), upper * (1 + v), masses) if v > 0 else plain
        return [("the programme", (plain.low, wide.high))]

    return truth


def _arbitrary(trial, rng, model, data, w, truth):
    """Proofs from multipliers and points that no solver found."""
    posed = PosedUnfolding.of(model, data, w)
    for size in 10 ** rng.uniform(-10, 0, 3):
        y = np.asarray(model.multipliers_)
        y = y + size * rng.normal(size=y.shape) * np.abs(y).max()
        Y = np.asarray(model.coordinates_)[posed.groups.first] / posed.unit
        Y = Y * (1 + size * rng.normal()) if rng.random() < 0.5 else Y
        made = trial.ask("arbitrary", lambda Y=Y, y=y: posed.in_units(certify_unfolding(posed.problem, Y, y)))
        if made is not None and np.isfinite(made.upper):
            trial.judge("arbitrary", made, *truth(made))
