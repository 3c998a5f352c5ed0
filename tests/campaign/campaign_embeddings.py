"""Embeddings: fits, verifications, stopped and tampered solutions, and proofs of arbitrary points by every method."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
from campaign_arithmetic import LONG, exact, kernel_matrix
from campaign_elliptope import complement, diffusion_matrix, embedding_matrix, optimum, programme, value
from campaign_forgery import forged
from campaign_problems import kernel_for, matrix, points, precision_of, weights
from campaign_runner import Trial, quiet

import mercer
from mercer import Precomputed, SDPEmbedding
from mercer.certificates import certify_elliptope
from mercer.embedding.diffusion_problem import DiffusionProblem

METHODS = ("factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos")
SOLVERS = ("auto", "power", "accelerated", "trust-region")


class Truth:
    """J of the exact kernel and of the entries that floating point gives, with the brackets of their optima."""

    def __init__(self, kernel, X, w, dtype, entries=True):
        w = exact(np.ones(X.shape[0]) if w is None else w)
        matrices = [("the exact kernel", kernel_matrix(kernel, X))]
        if entries and not isinstance(kernel, Precomputed):
            with quiet():
                floating = np.asarray(kernel(X), np.float64)
            matrices.append(("the entries of floating point", exact((floating + floating.T) / 2)))
        if isinstance(kernel, Precomputed) and not np.array_equal(X, X.T):
            matrices += [
                ("one triangle", exact(np.tril(X) + np.tril(X, -1).T)),
                ("another", exact(np.triu(X) + np.triu(X, 1).T)),
            ]
        matrices = [(name, K) for name, K in matrices if _has_degrees(K, w)]
        self.diffusions = [(name, diffusion_matrix(K, w)) for name, K in matrices]
        self._together = isinstance(kernel, Precomputed)
        self._judge([(name, *embedding_matrix(K, w)) for name, K in matrices])

    def _judge(self, found):
        self.J, self.rows = found[0][1:] if found else (None, None)
        self.brackets = [(name, optimum(J)) for name, J, _ in found]
        if self._together and self.brackets:
            every = [bracket for _, bracket in self.brackets]
            self.brackets = [("the matrix", (min(b.low for b in every), max(b.high for b in every)))]

    def after(self, Q):
        """The truth of the level on the complement of the columns of Q, whose entries are taken as they are."""
        Q, level = exact(Q), copy.copy(self)
        level.diffusions = [(name, complement(M, Q)) for name, M in self.diffusions]
        size = max(abs(x) for x in np.ravel(self.diffusions[0][1]))
        level._judge([(name, *programme(M, [size] * len(M))) for name, M in level.diffusions])
        return level

    def attained(self, name, H):
        """What H attains under the exact kernel, rows brought to unit length."""
        found, error = value(self.J, np.asarray(H, LONG)[self.rows])
        return name, max(found, LONG(0)), error  # a bound of zero needs no solution


def _has_degrees(K, w):
    n = len(w)
    return all(sum(K[i, j] * w[j] for j in range(n)) > 0 for i in range(n))


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([1, seed])
    dtype = precision_of(rng)
    trial = Trial("embeddings", seed, dtype)
    n = 40 if seed % 25 == 3 else int(rng.choice([2, 3, 4, 5, 6, 8]))  # from 32 on there is a stand-in
    w = weights(rng, n)
    if rng.random() < 0.25:
        X, kernel, family = matrix(rng, dtype, n), Precomputed(), "matrix"
    else:
        X = points(rng, dtype, n)
        kernel, family = kernel_for(rng, X), "points"
    if w is not None and n > 3 and rng.random() < 0.15:
        w[rng.integers(n)] = 0.0
    alive = np.arange(n) if w is None else np.flatnonzero(w)  # the others take no part
    part, shares = _part(kernel, X, alive), None if w is None else w[alive]
    truth = Truth(kernel, part, shares, dtype)
    if truth.J is None:
        return trial.verdicts
    with mercer.config_context(dtype=dtype):
        _fits(trial, rng, kernel, X, w, truth, family)
        _arbitrary(trial, rng, kernel, part, shares, truth, family)
        if seed % 3 == 0 and n > 2:
            _landmarks(trial, rng, kernel, X, family)
    return trial.verdicts


def _part(kernel, X, rows):
    return X[np.ix_(rows, rows)] if isinstance(kernel, Precomputed) else X[rows]


def _fits(trial, rng, kernel, X, w, truth, family):
    """A fit and its verification; one that was stopped; one that was tampered with; its extension to other points."""
    options = {
        "solver": "conic" if trial.seed % 40 == 7 else str(rng.choice(SOLVERS)),
        "certify": [True, True, *METHODS][rng.integers(6)],
        "initial_rank": int(rng.integers(1, 11)),
        "random_state": int(trial.seed),
    }
    stop, kind = _stop(rng)
    options.update(stop)
    model = trial.ask(f"{family} fit{kind}", lambda: SDPEmbedding(kernel, **options).fit(X, sample_weight=w))
    if model is None:
        return
    trial.judge(f"{family} fit{kind}", model.certificate_, *truth.brackets)
    _verified(trial, model, X, truth, f"{family} verify")
    trial.ask(f"{family} tampering", lambda: _tamper(model, X, rng))
    _verified(trial, model, X, truth, f"{family} verify tampered")
    if family == "points" and rng.random() < 0.5:
        _extended(trial, rng, model, X)
    if trial.precision == "float32":  # a model of one precision may be judged in the other
        with mercer.config_context(dtype="float64"):
            _verified(trial, model, X, truth, f"{family} verify in float64")


def _stop(rng):
    kind = rng.integers(6)
    if kind == 0:
        return {"max_iter": int(rng.integers(1, 4))}, " stopped"
    if kind == 1:
        return {"max_products": int(rng.integers(1, 40))}, " stopped"
    if kind == 2:
        return {"callback": lambda iteration: True}, " stopped"
    return {}, ""


def _verified(trial, model, X, truth, kind):
    certificate = trial.ask(kind, lambda: mercer.verify(model, X, random_state=1))
    if certificate is not None:
        trial.judge(kind, certificate, *truth.brackets, attained=truth.attained("stored", model.coordinates_))


def _tamper(model, X, rng):
    """Turn the rows of the solution by a little or a lot; their lengths stay, and all else is made to agree."""
    size = 10 ** rng.uniform(-9, 0.3)
    forged(model, X, lambda number, H: H + size * rng.normal(size=H.shape))


def _extended(trial, rng, model, X):
    """The extension certified on another sample: some of the points, and new ones between them."""
    mixed = (X + X[rng.permutation(X.shape[0])]) / 2
    other = np.unique(np.vstack([X[: X.shape[0] // 2 + 1], mixed]).astype(trial.precision), axis=0).astype(np.float64)
    if other.shape[0] < 2:
        return
    kind = "points verify extended"
    certificate = trial.ask(kind, lambda: mercer.verify(model, other, extended=True, random_state=2))
    if certificate is not None:
        trial.judge(kind, certificate, *Truth(model.kernel_, other, None, trial.precision).brackets)


def _arbitrary(trial, rng, kernel, X, w, truth, family):
    """Proofs from random points, from rank one and from near the optimum, by every method."""
    generator = np.random.default_rng(trial.seed)
    given = X.astype(trial.precision)
    if w is not None:
        w = np.ldexp(w, -int(np.frexp(np.max(w))[1]))  # weights have no unit; estimators see to that
    programme = trial.ask(f"{family} programme", lambda: DiffusionProblem.of(kernel, given, w, generator))
    if programme is None:
        return
    for method in METHODS:
        H = rng.normal(size=(X.shape[0], int(rng.integers(1, 5))))
        for _ in range(int(rng.choice([0, 0, 2, 30]))):
            with np.errstate(all="ignore"):
                H = programme.working.project(programme.working.apply(H) + programme.working.shift[:, None] * H, H)
        tol = [None, 1e-6, 1e-3][rng.integers(3)]
        kind = f"{family} {method}"
        prove = partial(certify_elliptope, programme.working, H, rng=generator, tol=tol, method=method)
        certificate = trial.ask(kind, prove)
        if certificate is not None:
            trial.judge(kind, certificate, *truth.brackets, attained=truth.attained("given", H))


def _landmarks(trial, rng, kernel, X, family):
    """A weighted problem on some of the rows."""
    n = X.shape[0]
    rows = rng.choice(n, int(rng.integers(2, n)), replace=False)
    shares = None if rng.random() < 0.3 else 10 ** rng.uniform(-8, 2, rows.size)
    chosen = rows if shares is None else (rows, shares)
    kind = f"{family} landmarks"
    make = SDPEmbedding(kernel, landmarks=chosen, random_state=trial.seed)
    model = trial.ask(kind, lambda: make.fit(X))
    if model is None:
        return
    truth = Truth(
        kernel, _part(kernel, X, rows), np.full(rows.size, n / rows.size) if shares is None else shares, trial.precision
    )
    if truth.J is None:
        return
    trial.judge(kind, model.certificate_, *truth.brackets)
    _verified(trial, model, X, truth, f"{kind} verify")
