"""Levels of an embedding: every one judged by the programme that the coordinates before it leave, Q as it is stored."""

from __future__ import annotations

from functools import partial

import numpy as np
from campaign_embeddings import METHODS, SOLVERS, Truth
from campaign_forgery import forged, watched
from campaign_problems import kernel_for, matrix, points, precision_of, weights
from campaign_runner import Trial, Verdict

import mercer
from mercer import Precomputed, SDPEmbedding, SelfTuning
from mercer.certificates import certify_elliptope
from mercer.embedding.diffusion_problem import DiffusionProblem


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([5, seed])
    dtype = precision_of(rng)
    trial = Trial("levels", seed, dtype)
    n = 30 if seed % 25 == 3 else int(rng.choice([3, 4, 5, 6, 8, 10]))
    X, kernel, family = _problem(rng, dtype, n)
    w = weights(rng, n)
    with mercer.config_context(dtype=dtype):
        _fits(trial, rng, kernel, X, w, family)
        _arbitrary(trial, rng, kernel, X, w, family)
    return trial.verdicts


def _problem(rng, dtype, n):
    kind = rng.integers(3)
    if kind == 0:
        return matrix(rng, dtype, n), Precomputed(), "matrix"
    X = points(rng, dtype, n)
    if kind == 1:
        return X, kernel_for(rng, X), "points"
    neighbours = None if rng.random() < 0.2 else int(rng.integers(1, 5))
    scale = int(rng.integers(1, 4))
    of_pair = "smaller" if rng.random() < 0.5 else "mean"
    return X, SelfTuning(neighbours, scale, connect=bool(rng.random() < 0.5), pair_scale=of_pair), "graph"


def _truth(model, X, precision):
    """The truth of a model's first level, on the rows and weights that it states."""
    rows = np.arange(X.shape[0]) if model.landmarks_ is None else model.landmarks_
    part = X[np.ix_(rows, rows)] if isinstance(model.kernel_, Precomputed) else X[rows]
    return Truth(model.kernel_, part, model.sample_weight_, precision)


def _fits(trial, rng, kernel, X, w, family):
    """A fit with levels, its verification, and verifications of others put in its place."""
    options = {
        "n_levels": int(rng.integers(2, 4)),
        "solver": str(rng.choice(SOLVERS)),
        "certify": True if rng.random() < 0.7 else ("deflated-lanczos", "chebyshev-filter")[trial.seed % 2],
        "random_state": trial.seed,
        "max_iter": int(rng.integers(1, 4)) if rng.random() < 0.15 else 300,
    }
    with watched() as seen:
        model = trial.ask(f"{family} fit", lambda: SDPEmbedding(kernel, **options).fit(X, sample_weight=w))
    if model is None:
        return
    truths = _judged(trial, f"{family} fit", model, X, [level.certificate for level in model.levels_], seen.bases)
    if truths is None:
        return
    fitted = seen.bases[: len(model.levels_) - 1]
    again = _verified(trial, f"{family} verify", model, X, truths)
    if again is not None and not all(map(np.array_equal, fitted, again)):
        wrong = "the stored coordinates give another basis than the fit had"
        trial.verdicts.append(Verdict(trial.part, trial.seed, trial.precision, f"{family} basis", wrong, np.inf))
    number, size = int(rng.integers(len(model.levels_))), 10 ** rng.uniform(-9, 0.3)
    turned = partial(_turned, rng, number, size)
    trial.ask(f"{family} tampering", lambda: forged(model, X, turned))
    _verified(trial, f"{family} verify tampered", model, X, truths[:1])
    if trial.precision == "float32":
        with mercer.config_context(dtype="float64"):
            _verified(trial, f"{family} verify in float64", model, X, truths[:1])


def _turned(rng, which, size, number, H):
    return H + size * rng.normal(size=H.shape) if number == which else H


def _verified(trial, kind, model, X, truths):
    """Judge the certificate of every level that a verification makes; the bases that it had."""
    with watched() as seen:
        certificate = trial.ask(kind, lambda: mercer.verify(model, X, random_state=1))
    if certificate is None:
        return None
    _judged(trial, kind, model, X, seen.certificates, seen.bases, truths, attained=True)
    return seen.bases


def _judged(trial, kind, model, X, certificates, bases, truths=(), attained=False):
    """Judge one certificate a level, by the truths at hand and those of further levels; None without a truth."""
    truths = list(truths) or [_truth(model, X, trial.precision)]
    if truths[0].J is None:
        return None
    for number, certificate in enumerate(certificates):
        if number == len(truths):
            truths.append(truths[0].after(bases[number - 1]))
        truth, rows = truths[number], model.levels_[number].coordinates
        value = truth.attained("stored", rows) if attained and truth.rows.size else None
        trial.judge(f"{kind} level {number + 1}", certificate, *truth.brackets, attained=value)
    return truths


def _arbitrary(trial, rng, kernel, X, w, family):
    """Proofs from any points on the complement of any basis of lengths up to √2, by every method."""
    if family == "graph" or (w is not None and not np.all(w > 0)):
        return
    generator = np.random.default_rng(trial.seed)
    if w is not None:
        w = np.ldexp(w, -int(np.frexp(np.max(w))[1]))
    first = trial.ask(
        f"{family} programme", lambda: DiffusionProblem.of(kernel, X.astype(trial.precision), w, generator)
    )
    if first is None:
        return
    Q = _basis(rng, X.shape[0])
    posed = first.complement(Q)
    truth = Truth(kernel, X, w, trial.precision)
    if posed is None or truth.J is None:
        return
    truth = truth.after(Q)
    for method in (*METHODS, "chebyshev-filter"):
        H = rng.normal(size=(X.shape[0], int(rng.integers(1, 4))))
        for _ in range(int(rng.choice([0, 2, 30]))):
            with np.errstate(all="ignore"):
                H = posed.working.project(posed.working.apply(H) + posed.working.shift[:, None] * H, H)
        problem = posed.working if rng.random() < 0.5 else posed.exact
        kind = f"{family} {method}"
        certificate = trial.ask(kind, partial(certify_elliptope, problem, H, rng=generator, method=method))
        if certificate is not None:
            value = truth.attained("given", H) if truth.rows.size else None
            trial.judge(kind, certificate, *truth.brackets, attained=value)


def _basis(rng, n):
    """Orthonormal columns, nearly so, with a row of the unit matrix among them, or of other lengths."""
    q = int(rng.integers(1, min(n, 5)))
    Q = np.linalg.qr(rng.normal(size=(n, q)))[0]
    kind = rng.integers(5)
    if kind == 1:
        Q = Q + 10 ** rng.uniform(-16, -3) * rng.normal(size=Q.shape)
    elif kind == 2:
        Q = Q * rng.uniform(0.3, 1.4, q)
    elif kind == 3:
        near = np.eye(n)[:, :1] + 10 ** rng.uniform(-17, -2) * rng.normal(size=(n, 1))
        Q = np.linalg.qr(np.hstack([near, Q[:, 1:]]))[0]
    elif kind == 4:
        Q[0] = 0.0
    return Q
