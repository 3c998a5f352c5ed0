"""Sparse measures: programmes with a trace, a penalty, caps, ridges; reduced, stopped and tampered ones."""

from __future__ import annotations

from functools import partial
from itertools import product

import mpmath
import numpy as np
from campaign_arithmetic import eliminated, exact, kernel_matrix, to_long
from campaign_problems import kernel_for, matrix, points, precision_of, weights
from campaign_runner import Trial, quiet
from mpmath import mpf

import mercer
from mercer import Precomputed, QuadratureSparsifier
from mercer.certificates import certify_measure
from mercer.quadrature.sample import make_problem, make_sample

_DIGITS = 110  # S of a wide kernel is singular to any fewer
_KKT = mpf(10) ** -45
_MOST_FACES = 7  # points beyond which all faces are too many
SOLVERS = ("auto", "active-set", "path", "exchange", "exchange-second-order", "exchange-plain")


class Programme:
    """min ½(ω-v)ᵀS(ω-v) + ½Σρv² + α dᵀv over 0 ≤ v ≤ c on some points, with dᵀv = ϰ where that is given."""

    def __init__(self, S, omega, d, caps, ridge, *, alpha=None, kappa=None, nodes=None, convex=True):
        self.S, self.omega, self.d, self.caps, self.ridge = S, omega, d, caps, ridge
        self.alpha, self.kappa, self.convex = mpf(0) if alpha is None else mpf(alpha), kappa, convex
        self.nodes = list(range(len(omega))) if nodes is None else list(nodes)
        self.distortion = S.dot(omega)
        self.constant = omega.dot(self.distortion) / 2

    def value(self, v):
        """The objective of a full vector v of mpf."""
        away = self.omega - v
        return away.dot(self.S.dot(away)) / 2 + (self.ridge * v).dot(v) / 2 + self.d.dot(v) * self.alpha

    def optimum(self, guess=()):
        """The least value: of the face whose stationary point is optimal, or of all faces if not convex."""
        if self.convex:
            found = self._pivoted(guess)
            if found is not None:
                return found
        if self.convex and len(self.nodes) > _MOST_FACES:
            return None
        best = None
        for face in product(*[(0, 1) if self.caps[i] is None else (0, 1, 2) for i in self.nodes]):
            v, multiplier = self._stationary(face)
            if v is None or not self._feasible(v):
                continue
            if self.convex and self._is_optimal(v, multiplier, face):
                return self.value(v)
            best = self.value(v) if best is None else min(best, self.value(v))
        return None if self.convex else best

    def _pivoted(self, guess):
        """From the guess, points below zero leave and the one of steepest descent enters; None where that cycles."""
        guess, seen = set(guess), set()
        face = tuple(1 if i in guess else 0 for i in self.nodes)
        while face not in seen:
            seen.add(face)
            v, multiplier = self._stationary(face)
            if v is None or multiplier is None:
                return None
            if self._feasible(v) and self._is_optimal(v, multiplier, face):
                return self.value(v)
            face = self._neighbour(face, v, multiplier)
        return None

    def _neighbour(self, face, v, multiplier):
        moved = list(face)
        for a, i in enumerate(self.nodes):
            if face[a] == 1 and v[i] <= 0:
                moved[a] = 0
            elif face[a] == 1 and self.caps[i] is not None and v[i] > self.caps[i]:
                moved[a] = 2
        if tuple(moved) != face:
            return tuple(moved)
        slack = self._gradient(v) + self.d * multiplier
        worst = [
            (slack[i] / self.d[i] if s == 0 else -slack[i] / self.d[i] if s == 2 else mpf(0))
            for i, s in zip(self.nodes, face, strict=True)
        ]
        moved[min(range(len(moved)), key=lambda a: worst[a])] = 1
        return tuple(moved)

    def _gradient(self, v):
        return self.S.dot(v) + self.ridge * v - self.distortion + self.d * self.alpha

    def _stationary(self, face):
        v = np.array([mpf(0)] * len(self.omega), object)
        for i, state in zip(self.nodes, face, strict=True):
            if state == 2:
                v[i] = self.caps[i]
        free = [i for i, state in zip(self.nodes, face, strict=True) if state == 1]
        rest = None if self.kappa is None else self.kappa - self.d.dot(v)
        slope = self.S.dot(v) - self.distortion + self.d * self.alpha
        if not free:
            if rest is None:
                return v, mpf(0)
            return (v, None) if abs(rest) <= _KKT * abs(self.kappa) else (None, None)
        k = len(free)
        size = k + (rest is not None)
        M = [[mpf(0)] * (size + 1) for _ in range(size)]
        for a, i in enumerate(free):
            M[a][size] = -slope[i]
            for c, j in enumerate(free):
                M[a][c] = self.S[i, j] + (self.ridge[i] if i == j else 0)
            if rest is not None:
                M[a][k] = M[k][a] = self.d[i]
        if rest is not None:
            M[k][size] = rest
        x = eliminated(M)
        if x is None:
            return None, None
        for a, i in enumerate(free):
            v[i] = x[a]
        return v, x[k] if rest is not None else mpf(0)

    def _feasible(self, v):
        tiny = _KKT * max(abs(x) for x in (*v, mpf(1) / 10**60))
        return all(v[i] >= -tiny and (self.caps[i] is None or v[i] <= self.caps[i] + tiny) for i in self.nodes)

    def _is_optimal(self, v, multiplier, face):
        gradient = self._gradient(v)
        if multiplier is None:  # all at zero or at their caps, under a constraint
            low = max((gradient[i] / self.d[i] for i, s in zip(self.nodes, face, strict=True) if s == 2), default=None)
            high = min((gradient[i] / self.d[i] for i, s in zip(self.nodes, face, strict=True) if s == 0), default=None)
            return low is None or high is None or low <= high
        slack = gradient + self.d * multiplier
        tiny = _KKT * max(abs(x) for x in (*self.distortion, *(self.d * self.alpha)))
        signs = zip(self.nodes, face, strict=True)
        return all((s == 1) or (s == 0 and slack[i] >= -tiny) or (s == 2 and slack[i] <= tiny) for i, s in signs)


class Truth:
    """S of the exact kernel and of the entries that floating point gives, on distinct points."""

    def __init__(self, kernel, X, w, dtype, *, penalty, caps, ridge):
        self.rows = _distinct(X, kernel)
        n = X.shape[0]
        w = exact(np.ones(n) if w is None else w)
        omega = w / sum(w)
        place = [next(r for r in self.rows if r == i or _equal(X, kernel, r, i)) for i in range(n)]
        K = kernel_matrix(kernel, X)
        self.rows = np.array([r for r in self.rows if K[r, r] > 0], int)  # the others take no part
        self.omega = np.array([sum(omega[i] for i in range(n) if place[i] == r) for r in self.rows], object)
        K = K[np.ix_(self.rows, self.rows)]
        self.precomputed = isinstance(kernel, Precomputed)
        self.matrices = [("the exact kernel", K * K, np.diagonal(K))]
        given = X[self.rows]
        given = given[:, self.rows] if self.precomputed else given
        self.hull = self.precomputed and not np.array_equal(given, given.T)
        if self.hull:
            for half in (np.tril(given) + np.tril(given, -1).T, np.triu(given) + np.triu(given, 1).T):
                self.matrices.append(("one triangle", exact(half) ** 2, np.diagonal(exact(half))))
        else:
            with quiet():
                S = exact(given**2 if self.precomputed else (kernel**2)(given))
                diagonal = np.diagonal(exact(given)) if self.precomputed else exact(np.asarray(kernel.diag(given)))
            self.matrices.append(("the entries of floating point", (S + S.T) / 2, diagonal))
        self.penalty = None if penalty is None else exact(penalty)[self.rows]
        self.caps = [None if caps is None else mpf(float(np.broadcast_to(caps, n)[r])) for r in self.rows]
        self.ridge = exact(np.broadcast_to(0.0 if ridge is None else ridge, n)[self.rows])

    def d(self, which):
        return self.matrices[which][2] if self.penalty is None else self.penalty

    def programme(self, which, **form):
        _, S, _ = self.matrices[which]
        return Programme(S, self.omega, self.d(which), self.caps, self.ridge, convex=not self.precomputed, **form)

    def brackets(self, guess=(), *, alpha=None, kappas=None, fraction=None, nodes=None):
        """The brackets for the stated programme; of several ϰ, which differ by rounding, their hull."""
        found = []
        for which, (name, _, _) in enumerate(self.matrices):
            wanted = [None] if kappas is None else [mpf(float(kappa)) for kappa in kappas]
            if fraction is not None:
                wanted.append(mpf(float(fraction)) * self.d(which).dot(self.omega))
            values = [self.programme(which, alpha=alpha, kappa=k, nodes=nodes).optimum(guess) for k in wanted]
            if any(value is None for value in values):
                continue
            scale = self.programme(which).constant
            if not self.precomputed:  # rounding makes entries of no psd matrix; no measure is better than D = 0
                values = [max(value, mpf(0)) for value in values]
            hull = to_long(np.array([min(values) - scale / 10**25, max(values) + scale / 10**25], object))
            found.append((name, (hull[0], hull[1])))
        if self.hull and found:
            return [("the matrix", (min(b[0] for _, b in found), max(b[1] for _, b in found)))]
        return found

    def attained(self, nodes, values, alpha=None):
        v = np.array([mpf(0)] * len(self.rows), object)
        for i, x in zip(nodes, values, strict=True):
            v[i] += mpf(float(x))
        value = self.programme(0, alpha=alpha).value(v)
        return "given", to_long(np.array([value], object))[0], np.longdouble(0)


def _equal(X, kernel, i, j):
    return not isinstance(kernel, Precomputed) and np.array_equal(X[i], X[j])


def _distinct(X, kernel):
    rows = []
    for i in range(X.shape[0]):
        if not any(_equal(X, kernel, r, i) for r in rows):
            rows.append(i)
    return np.array(rows)


def run(seed):
    """The verdicts of one problem."""
    with mpmath.workdps(_DIGITS):
        return _run(seed)


def _run(seed):
    rng = np.random.default_rng([2, seed])
    dtype = precision_of(rng)
    trial = Trial("measures", seed, dtype)
    n = int(rng.integers(2, 7) if rng.random() < 0.9 else rng.integers(7, 13))
    if rng.random() < 0.25:
        X, kernel, family = matrix(rng, dtype, min(n, 5)), Precomputed(), "matrix"
    else:
        X = points(rng, dtype, n)
        kernel, family = kernel_for(rng, X), "points"
    n = X.shape[0]
    w, extras = weights(rng, n), _extras(rng, X, kernel)
    truth = Truth(kernel, X, w, dtype, penalty=extras["penalty"], caps=extras["max_weight"], ridge=extras["ridge"])
    if truth.rows.size == 0:
        return []
    with mercer.config_context(dtype=dtype):
        _fits(trial, rng, kernel, X, w, truth, extras, family)
        _arbitrary(trial, rng, kernel, X, w, truth, extras, family)
    return trial.verdicts


def _extras(rng, X, kernel):
    """Caps, ridges and penalties; arrays of them where no rows are repeated."""
    n, distinct = X.shape[0], _distinct(X, kernel).size
    extras = {"penalty": None, "max_weight": None, "ridge": None}
    if distinct == n and rng.random() < 0.2:
        extras["penalty"] = 10 ** rng.uniform(-3, 3, n)
    if distinct <= 4 and rng.random() < 0.3:
        extras["max_weight"] = float(10 ** rng.uniform(-1, 0.5) / distinct)
    if rng.random() < 0.3:
        extras["ridge"] = float(10 ** rng.uniform(-8, 0))
    return extras


def _fits(trial, rng, kernel, X, w, truth, extras, family):
    for _ in range(2):
        form, kind = _form(rng, truth)
        stop = [{}, {}, {}, {"max_iter": 1}, {"callback": lambda step: True}][rng.integers(5)]
        kind = f"{family} {kind}{' stopped' if stop else ''}"
        if stop.get("max_iter") and set(form) == {"n_nodes"}:
            stop = {}
        model = trial.ask(
            kind, lambda f=form, s=stop: QuadratureSparsifier(kernel, **(f | s), **extras).fit(X, sample_weight=w)
        )
        if model is None:
            continue
        _judge(trial, kind, model, model.certificate_, truth, form, [model.kappa_])
        for tampered in (False, True):
            if tampered:
                change = np.exp(10 ** rng.uniform(-8, 0) * rng.normal(size=model.weights_.size))
                model.weights_ = model.weights_ * change
                if truth.caps[0] is not None:
                    model.weights_ = np.minimum(model.weights_, float(truth.caps[0]))
            name = f"{family} verify tampered" if tampered else f"{family} verify"
            certificate = trial.ask(name, lambda m=model: mercer.verify(m, X))
            if certificate is not None:
                nodes = np.searchsorted(truth.rows, model.indices_)
                totals = [
                    sum(truth.d(k)[i] * mpf(float(v)) for i, v in zip(nodes, model.weights_, strict=True))
                    for k in range(len(truth.matrices))
                ]
                wanted = {k: v for k, v in form.items() if k != "trace_fraction" or not tampered}
                _judge(trial, name, model, certificate, truth, wanted | {"tampered": tampered, "form": form}, totals)


def _form(rng, truth):
    """What is asked for: a trace, a penalty, a number of nodes, or one of them reduced."""
    n, kind = len(truth.rows), rng.integers(8)
    fraction = float(rng.choice([rng.uniform(0.05, 1), 1.0, 1 - 10 ** rng.uniform(-10, -1)]))
    solver = str(rng.choice(SOLVERS))
    if kind < 3:
        limit = {"max_iter": 200} if solver.startswith("exchange") else {}
        return {"trace_fraction": fraction, "solver": solver, **limit}, "trace"
    if kind < 5:
        ratio = np.max(to_long(truth.programme(0).distortion / truth.d(0)))
        return {
            "alpha": float(ratio) * float(10 ** rng.uniform(-12, -0.05)),
            "solver": str(rng.choice(SOLVERS[:3])),
        }, "penalty"
    if kind == 5:
        return {"n_nodes": int(rng.integers(1, n + 2))}, "nodes"
    if kind == 6:
        merge = [None, "eliminate", "strong", "weak"][rng.integers(4)]
        form = {"trace_fraction": fraction, "n_nodes": int(rng.integers(1, n + 1)), "merge": merge}
        return form | ({"reweight": True} if rng.random() < 0.3 else {}), "trace reduced"
    return {"alpha": 0.0}, "no penalty"


def _judge(trial, kind, model, certificate, truth, form, kappas):
    """Compare with the programme that the certificate says it is about."""
    tampered, asked = form.get("tampered", False), form.get("form", form)
    nodes = np.searchsorted(truth.rows, model.indices_)
    on_nodes = "same nodes" in certificate.method
    alone = "trace_fraction" not in asked and "alpha" not in asked
    alpha, fraction = asked.get("alpha"), None if tampered else asked.get("trace_fraction")
    whole = alone and asked["n_nodes"] >= len(truth.rows)
    if alone and (
        not whole
        or any(c is not None and c < o for c, o in zip(truth.caps, truth.omega, strict=True))
        or any(truth.ridge)
    ):
        alpha = 0.0
    elif whole:
        fraction = None if tampered else 1.0
    if asked.get("reweight"):
        alpha = 0.0
    if alpha is not None:
        kappas, fraction = None, None
    brackets = truth.brackets(nodes, alpha=alpha, kappas=kappas, fraction=fraction, nodes=nodes if on_nodes else None)
    attained = truth.attained(nodes, model.weights_, alpha)
    trial.judge(kind, certificate, *brackets, minimised=True, attained=attained)


def _arbitrary(trial, rng, kernel, X, w, truth, extras, family):
    """Proofs of measures that nobody optimised."""
    given = X.astype(trial.precision)
    options = {name: extras[name] for name in ("max_weight", "ridge")}

    def make():
        sample = make_sample(given, kernel, w, extras["penalty"])
        return sample, make_problem(given, kernel, sample, **options)

    made = trial.ask(f"{family} problem", make)
    if made is None:
        return
    sample, problem = made
    if not np.array_equal(sample.rows, truth.rows):
        return  # some points are nothing in this precision
    omega, penalty = sample.weights, sample.penalty
    caps = None if extras["max_weight"] is None else problem.caps
    n = omega.size
    for _ in range(3):
        nodes = np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False))
        values = omega[nodes] * np.exp(10 ** rng.uniform(-6, 0.5) * rng.normal(size=nodes.size))
        values = values if caps is None else np.minimum(values, caps[nodes])
        constrained, on_nodes = rng.random() < 0.5, rng.random() < 0.3
        alpha = None if constrained else float(problem.largest_alpha * 10 ** rng.uniform(-10, 0))
        kappa = float(penalty[nodes] @ values) if constrained else None
        kind = f"{family} arbitrary {'trace' if constrained else 'penalty'}"
        prove = partial(certify_measure, problem, nodes, values, alpha=alpha, kappa=kappa, on_nodes=on_nodes)
        certificate = trial.ask(kind, prove)
        if certificate is None:
            continue
        totals = [
            sum(truth.d(k)[i] * mpf(float(v)) for i, v in zip(nodes, values, strict=True))
            for k in range(len(truth.matrices))
        ]
        kappas = [kappa, *totals] if constrained else None
        brackets = truth.brackets(nodes, alpha=alpha, kappas=kappas, nodes=nodes if on_nodes else None)
        attained = truth.attained(nodes, values, alpha)
        trial.judge(kind, certificate, *brackets, minimised=True, attained=attained)
