"""Embeddings of rows that come some at a time: fits to landmarks, and certificates of all rows by their blocks."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from campaign_embeddings import Truth
from campaign_problems import points, precision_of, stationary
from campaign_runner import Trial

import mercer
from mercer import SDPEmbedding
from mercer.backends.cpu import streamed


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([15, seed])
    dtype = precision_of(rng)
    trial = Trial("blocks", seed, dtype)
    n = int(rng.choice([3, 4, 5, 6, 8]))
    X = points(rng, dtype, n)
    kernel = stationary(rng, X)
    few = np.sort(rng.choice(n, int(rng.integers(2, n)), replace=False))
    with mercer.config_context(dtype=dtype), _of_few_rows(rng):
        make = SDPEmbedding(kernel, landmarks=few, random_state=seed)
        model = trial.ask("landmarks", lambda: make.fit(mercer.open_rows(X)))
        if model is not None:
            _judge(trial, rng, model, X, few)
    return trial.verdicts


def _of_few_rows(rng):
    """Blocks of a few rows, of either side."""
    stack, rows = ExitStack(), [int(k) for k in rng.integers(1, 5, 2)]
    stack.enter_context(patch.object(streamed, "source_rows", lambda *_, **__: rows[0]))
    stack.enter_context(patch.object(streamed, "panel_rows", lambda *_, **__: rows[1]))
    return stack


def _judge(trial, rng, model, X, few):
    shares = np.full(few.size, X.shape[0] / few.size)
    truth = Truth(model.kernel_, X[few], shares, trial.precision)
    if truth.J is not None:
        trial.judge("landmarks", model.certificate_, *truth.brackets)
    mixed = np.vstack([X, (X + X[rng.permutation(X.shape[0])]) / 2]).astype(trial.precision)
    for kind, given in (("extended to its rows", X), ("extended to others", np.unique(mixed.astype(float), axis=0))):
        rows = mercer.open_rows(given)
        certificate = trial.ask(kind, lambda rows=rows: mercer.verify(model, rows, extended=True, random_state=2))
        if certificate is not None:
            trial.judge(kind, certificate, *Truth(model.kernel_, given, None, trial.precision).brackets)
