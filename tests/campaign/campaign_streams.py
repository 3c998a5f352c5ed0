"""Streams by merge and reduce: blocks of a few rows, weights over decades, calls that cut the rows anywhere."""

from __future__ import annotations

from unittest.mock import patch

import mpmath
import numpy as np
from campaign_arithmetic import exact, kernel_matrix, to_long
from campaign_measures import Truth
from campaign_problems import points, precision_of, stationary, weights
from campaign_runner import Trial
from mpmath import mpf

import mercer
from mercer import Linear, QuadratureSparsifier
from mercer.quadrature import stream

_DIGITS = 110


def run(seed):
    """The verdicts of one problem."""
    with mpmath.workdps(_DIGITS):
        return _run(seed)


def _run(seed):
    rng = np.random.default_rng([12, seed])
    dtype = precision_of(rng)
    trial = Trial("streams", seed, dtype)
    n = int(rng.integers(2, 25))
    X, w = points(rng, dtype, n), weights(rng, n)
    kernel = Linear() if np.all(X > 0) and np.max(X) < 1e3 else stationary(rng, X)
    discrepancy = str(rng.choice(["squared", "mmd"]))
    cuts = np.sort(rng.integers(1, n, int(rng.integers(0, 4))))
    with mercer.config_context(dtype=dtype), patch.object(stream, "BLOCK", int(rng.integers(2, 9))):
        model = QuadratureSparsifier(kernel, n_nodes=int(rng.integers(1, 5)), discrepancy=discrepancy)
        kind = f"{discrepancy} stream"
        for rows in np.split(np.arange(n), np.unique(cuts)):
            shares = None if w is None else w[rows]
            fitted = trial.ask(kind, lambda rows=rows, w=shares: model.partial_fit(X[rows], sample_weight=w))
            if fitted is None:
                return trial.verdicts
        attained = _attained(kernel, X, w, model)
        trial.judge(kind, model.certificate_, minimised=True, attained=attained)
        _verified(trial, kernel, X, w, model)
    return trial.verdicts


def _attained(kernel, X, w, model):
    """D of the nodes from all rows, to the last digit that a certificate can have."""
    w = exact(np.ones(len(X)) if w is None else w)
    apart = w / sum(w)
    for row, value in zip(model.indices_, model.weights_, strict=True):
        apart[row] -= mpf(float(value))
    K = kernel_matrix(kernel, X)
    S = K * K if model.discrepancy == "squared" else K
    value = to_long(np.array([apart.dot(S.dot(apart)) / 2], object))[0]
    return "nodes of the", value, abs(value) * np.longdouble(1e-17)


def _verified(trial, kernel, X, w, model):
    """Against all rows, which are at hand again: the weights on the nodes, and the best ones there."""
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is None:
        return
    truth = Truth(kernel, X, w, trial.precision, penalty=None, caps=None, ridge=None)
    nodes = [next(a for a, r in enumerate(truth.rows) if np.array_equal(X[r], X[row])) for row in model.indices_]
    brackets = truth.brackets(nodes, alpha=0.0, nodes=nodes) if model.discrepancy == "squared" else []
    trial.judge("verify", certificate, *brackets, minimised=True, attained=_attained(kernel, X, w, model))
