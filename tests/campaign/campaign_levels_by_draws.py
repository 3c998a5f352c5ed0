"""Measures whose level is proved by points that are drawn, and fits without the pass that are proved when asked."""

from __future__ import annotations

from unittest.mock import patch

import mpmath
import numpy as np
from campaign_measures import Truth
from campaign_problems import points, precision_of, stationary, weights
from campaign_runner import Trial

import mercer
from mercer import QuadratureSparsifier
from mercer.certificates import certify_measure
from mercer.certificates.sampled_level import widened
from mercer.quadrature import sampled, sparsifier
from mercer.quadrature.proof_on_request import at_sampled_level
from mercer.quadrature.sample import make_problem, make_sample
from mercer.quadrature.sampled import Potential

_DIGITS = 110


def run(seed):
    """The verdicts of one problem."""
    with mpmath.workdps(_DIGITS):
        return _run(seed)


def _run(seed):
    rng = np.random.default_rng([14, seed])
    dtype = precision_of(rng)
    trial = Trial("levels_by_draws", seed, dtype)
    n = int(rng.integers(2, 10))
    X, w = points(rng, dtype, n), weights(rng, n)
    kernel = stationary(rng, X)
    truth = Truth(kernel, X, w, dtype, penalty=None, caps=None, ridge=None)
    with mercer.config_context(dtype=dtype):
        _drawn(trial, rng, kernel, X, w, truth)
        _on_request(trial, rng, kernel, X, w, truth)
    return trial.verdicts


def _drawn(trial, rng, kernel, X, w, truth):
    """Weights that nobody optimised, on some of the points."""
    given = X.astype(trial.precision)

    def make():
        sample = make_sample(given, kernel, w)
        return sample, make_problem(given, kernel, sample, dtype=np.float64, without_pass=True)

    made = trial.ask("problem", make)
    if made is None or not np.array_equal(made[0].rows, truth.rows):
        return
    sample, problem = made
    for _ in range(3):
        nodes = np.sort(rng.choice(problem.size, int(rng.integers(1, problem.size + 1)), replace=False))
        values = sample.weights[nodes] * np.exp(10 ** rng.uniform(-9, 0.5) * rng.normal(size=nodes.size))

        draws = int(rng.choice([2, 10, 100, 1000]))

        def prove(nodes=nodes, values=values, draws=draws):
            with patch.object(sampled, "ROWS_OF_PROOF", draws):
                posed, level = at_sampled_level(Potential(problem, sample), nodes, values)
            return widened(certify_measure(posed, nodes, values, alpha=0.0, on_nodes=True), level)

        certificate = trial.ask("level by draws", prove)
        if certificate is not None:
            attained = truth.attained(nodes, values, 0.0)
            brackets = truth.brackets(nodes, alpha=0.0, nodes=nodes)
            trial.judge("level by draws", certificate, *brackets, minimised=True, attained=attained)


def _on_request(trial, rng, kernel, X, w, truth):
    """Nodes without the pass, whose data are overwritten before somebody asks for the proof."""
    mine, evenness = X.copy(), float(rng.choice([0.0, 0.5]))
    model = QuadratureSparsifier(kernel, n_nodes=int(rng.integers(1, len(truth.rows) + 1)), evenness=evenness)

    def fitted():
        with patch.object(sparsifier, "leaves_out_pass", lambda *_: True), patch.object(sampled, "_OF_NODES", 0):
            return model.fit(mine, sample_weight=w)

    if trial.ask("on request", fitted) is None:
        return
    mine[:] = np.nan
    certificate = trial.ask("on request", lambda: model.certificate_)
    if certificate is not None:
        nodes = np.searchsorted(truth.rows, model.indices_)
        brackets = truth.brackets(nodes, alpha=0.0, nodes=nodes if "same nodes" in certificate.method else None)
        attained = truth.attained(nodes, model.weights_, 0.0)
        trial.judge("on request", certificate, *brackets, minimised=True, attained=attained)
