"""Robust regressions: the game, ridge regression at radius zero, and the relaxation."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
from campaign_arithmetic import eliminated, exact, to_long
from campaign_densities import _cholesky, _lower_solve
from campaign_game import Game, value
from campaign_problems import precision_of, weights
from campaign_runner import Trial
from mpmath import mpf

import mercer
from mercer import Gaussian, RobustKernelRidge
from mercer.certificates.game import certify_saddle_point
from mercer.certificates.strong_convexity import certify_strongly_convex
from mercer.problems.robust_regression import Adversary, SaddlePoint
from mercer.robust.pairs import make_pairs

_STORED = 1e-12  # relative: the certificate is about the coordinates of dual_coef_, which are the same to rounding


def scaled(certificate, factor):
    return replace(certificate, lower=factor * certificate.lower, upper=factor * certificate.upper)


class Truth:
    """The integrals of the game to seventy digits, in orthonormal bases of the spaces that the model keeps."""

    def __init__(self, model, X, y, w):
        n = X.shape[0]
        w = exact(np.ones(n) if w is None else w)
        self.w = w / sum(w)
        self.sigma, self.tau = mpf(float(model.kernel_.sigma)), mpf(float(model.target_sigma_))
        self.xi, self.eta = exact(model.support_[:, :-1]), exact(model.support_[:, -1])
        self.X, self.y = exact(X), exact(y)
        self.m, self.d = self.xi.shape
        pairs = make_pairs(X, y, model.sample_weight_, model.support_, float(model.kernel_.sigma), model.target_sigma_)
        self.chosen = np.asarray(model.adversary_support_)
        pairs = pairs if self.chosen.size == self.m else pairs._replace(chosen=self.chosen)
        self.pairs, self.given = pairs, model._formulated(pairs)
        self.gram = self._pairs(self.xi, self.xi, self.sigma)
        self.U = _orthonormal(exact(self.given.functions), self.gram)
        self.features = self._pairs(self.X, self.xi, self.sigma).dot(self.U)
        self.H0 = self.features.T.dot(self.features * self.w[:, None])
        self.r0 = self.features.T.dot(self.w * self.y)
        self.c0 = (self.w * self.y).dot(self.y)
        self.plain = model.radius == 0 or model.relaxation == "rkhs"
        self.radius, self.regularization = mpf(float(model.radius)), mpf(float(model.regularization))
        self.keeps_sample = bool(model.keep_sample)
        if not self.plain:
            self._densities(self.given.ball)

    def _pairs(self, a, b, sigma):
        return np.array([[mpmath.exp(-sum((x - y) ** 2) / sigma**2) for y in b] for x in a], object)

    def _product(self, rows, values, sigma):
        """∫ of a product of Gaussians around some centres, divided by that of two at one place: along all axes."""
        count = len(rows)
        centre = sum(values[r] for r in rows) / count
        spread = sum((values[r] - centre) ** 2 for r in rows)
        spread = sum(spread) if isinstance(spread, np.ndarray) else spread
        axes = self.d if isinstance(centre, np.ndarray) else 1
        return mpmath.exp(-spread / sigma**2) * (mpf(2) / count) ** (mpf(axes) / 2)

    def _densities(self, ball):
        """Q, R, S, A and b in the bases of the model's densities and of its projection."""
        m, every = self.m, range(self.m)
        of_y = np.array([[self._product((p, q), self.eta, self.tau) for q in every] for p in every], object)
        middle = np.array([[(self.eta[p] + self.eta[q]) / 2 for q in every] for p in every], object)
        W = np.array([[self._product((p, q), self.xi, self.sigma) for q in every] for p in every], object) * of_y
        basis = np.zeros((m, ball.basis.shape[1]))
        basis[self.chosen] = ball.basis  # zeros for points that densities are not made of
        T = _orthonormal(exact(basis), W)
        gram = self.gram * self._pairs(self.eta[:, None], self.eta[:, None], self.tau)
        V = _orthonormal(exact(ball.whitening), gram)
        triple = [
            np.array([[self._product((p, q, r), self.xi, self.sigma) for q in every] for p in every], object)
            for r in every
        ]
        of_three = [
            np.array([[self._product((p, q, r), self.eta, self.tau) for q in every] for p in every], object)
            for r in every
        ]
        self.T, self.V = T, V
        self.A = [T.T.dot(sum(triple[r] * of_three[r] * V[r, k] for r in every)).dot(T) for k in range(V.shape[1])]
        at_sample = self._pairs(self.X, self.xi, self.sigma) * self._pairs(self.y[:, None], self.eta[:, None], self.tau)
        self.b = V.T.dot(at_sample.T.dot(self.w))
        self.S = T.T.dot(W * (middle**2 + self.tau**2 / 4)).dot(T)
        self.R = [
            T.T.dot(sum(triple[a] * self.U[a, j] for a in range(m)) * of_y * middle).dot(T)
            for j in range(self.U.shape[1])
        ]
        self.Q = [
            [self._fourfold(T, self.U[:, j], self.U[:, k], of_y) for k in range(self.U.shape[1])]
            for j in range(self.U.shape[1])
        ]

    def _fourfold(self, T, u, v, of_y):
        every = range(self.m)
        total = np.array([[mpf(0)] * self.m for _ in every], object)
        for a in every:
            for b in every:
                four = np.array(
                    [[self._product((a, b, p, q), self.xi, self.sigma) for q in every] for p in every], object
                )
                total = total + four * (u[a] * v[b])
        return T.T.dot(total * of_y).dot(T)

    def game(self):
        """The game in extended precision, y in units of its own size, and that size squared."""
        unit = mpf(2) ** int(mpmath.nint(mpmath.log(mpmath.sqrt(self.c0), 2))) if self.c0 > 0 else mpf(1)
        self.unit = unit
        numbers = {"Q": self.Q, "R": np.array(self.R, object) / unit, "S": self.S / unit**2, "H0": self.H0}
        numbers |= {"r0": self.r0 / unit, "A": self.A, "b": self.b}
        arrays = {name: to_long(np.array(values, object)) for name, values in numbers.items()}
        single = {"c0": self.c0 / unit**2, "radius": self.radius, "regularization": self.regularization}
        singles = {name: to_long(np.array([x], object))[0] for name, x in single.items()}
        return Game(**arrays, **singles, keeps_sample=self.keeps_sample)

    def bracket(self):
        """Of the game's value."""
        if self.plain:
            return self._relaxed()
        found = value(self.game())
        return None if found is None else self._in_units(found)

    def _in_units(self, found):
        size = to_long(np.array([self.unit**2], object))[0]
        return found[0] * size, found[1] * size

    def worst_case(self, name, alpha, slack=0.0):
        """What the function of some coefficients (mpf) risks at most, plus the penalty: from below, with its error."""
        beta = self.U.T.dot(self.gram.dot(alpha))
        if self.plain:
            found = to_long(np.array([self.objective(beta)], object))[0]
            return name, found, slack * abs(found)
        game = self.game()
        bracket = value(game, to_long(beta / self.unit))
        if bracket is None:
            return None
        found = self._in_units(bracket)[0]
        return name, found, slack * abs(found)

    # --- ridge regression and the relaxation ------------------------------------------------------------------

    def objective(self, beta):
        """R̂(β) + ε‖f²‖ + λ‖β‖²."""
        loss = beta.dot(self.H0.dot(beta)) - 2 * self.r0.dot(beta) + self.c0
        return loss + self.radius * self._square_norm(beta)[0] + self.regularization * beta.dot(beta)

    def _square_norm(self, beta):
        """‖f²‖ and its gradient in β."""
        if self.radius == 0:
            return mpf(0), beta * 0
        alpha = self.U.dot(beta)
        E = np.array([[x ** mpf("0.5") for x in row] for row in self.gram], object)
        P = (E * alpha).dot(E)
        squares = P * P
        total = alpha.dot(squares.dot(alpha))
        if total <= 0:
            return mpf(0), beta * 0
        norm = mpmath.sqrt(total)
        return norm, self.U.T.dot(squares.dot(alpha)) * 2 / norm

    def _gradient(self, beta):
        slope = (self.H0.dot(beta) - self.r0 + beta * self.regularization) * 2
        return slope + self._square_norm(beta)[1] * self.radius

    def _relaxed(self):
        """Newton's method with differences of the gradient; F - min F ≤ ‖∇F‖²/(4λ)."""
        l = self.U.shape[1]
        ridge = self.H0 + np.diag([self.regularization] * l)
        beta = np.array(_solved(ridge, self.r0), object)
        best = None
        for _ in range(60 if self.radius else 1):
            g = self._gradient(beta)
            bound = self.objective(beta), g.dot(g) / (4 * self.regularization)
            best = bound if best is None or bound[1] < best[1] else best
            if bound[1] <= mpf(10) ** -28 * abs(bound[0]) or not self.radius:
                break
            beta = beta + self._damped(beta, g)
        values = to_long(np.array([best[0] - best[1], best[0]], object))
        return values[0], values[1]

    def _damped(self, beta, g):
        l, h = beta.size, mpf(10) ** -20 * (1 + max(abs(x) for x in beta))
        columns = []
        for k in range(l):
            moved = beta.copy()
            moved[k] = moved[k] + h
            columns.append((self._gradient(moved) - g) / h)
        step = -np.array(_solved(np.array(columns, object), g), object)
        before = self.objective(beta)
        for _ in range(40):
            if self.objective(beta + step) < before:
                return step
            step = step / 2
        return step * 0


def _orthonormal(basis, gram):
    """The columns' span in a basis orthonormal for the inner product of gram."""
    return _lower_solve(_cholesky(basis.T.dot(gram).dot(basis)), basis.T).T


def _solved(M, b):
    return eliminated([[*row, x] for row, x in zip(M.tolist(), b, strict=True)])


def run(seed):
    """The verdicts of one problem."""
    rng = np.random.default_rng([4, seed])
    dtype = precision_of(rng)
    trial = Trial("regressions", seed, dtype)
    n, m, d = int(rng.integers(4, 10)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + rng.choice([0, 0, 5.0, 1e3])
    if rng.random() < 0.2:
        X, y = X * 2.0 ** rng.integers(-40, 40), y * 2.0 ** rng.integers(-60, 60)
    w = weights(rng, n)
    spread = float(np.median(np.abs(X - X.mean(axis=0)))) + 1e-300
    options = {
        "support": np.column_stack([X[:m], y[:m]]),
        "radius": float(rng.choice([0.0, 10 ** rng.uniform(-3, 0.1), 10 ** rng.uniform(-2, 0.1)])),
        "regularization": float(10 ** rng.uniform(-8, 0)),
        "relaxation": [None, None, "rkhs"][rng.integers(3)],
        "keep_sample": bool(rng.random() < 0.8),
    }
    stop, kind = [
        ({}, "fit"),
        ({}, "fit"),
        ({"max_iter": 1}, "fit stopped"),
        ({"callback": lambda step: True}, "fit stopped"),
    ][rng.integers(4)]
    if options["radius"] == 0 or options["relaxation"]:
        stop.pop("callback", None)
    if options["radius"] == 0 or options["relaxation"]:
        options["keep_sample"] = True
    name = "ridge" if options["radius"] == 0 else "relaxation" if options["relaxation"] else "game"
    few = np.random.default_rng([5, seed])  # draws of its own: the other problems stay what they were
    if name == "game" and few.random() < 0.5:
        options["adversary_support"] = int(few.integers(1, 3))
    kernel = Gaussian(spread * 10 ** rng.uniform(-0.3, 1.2))
    with mercer.config_context(dtype=dtype):
        make = RobustKernelRidge(kernel, **options, **stop)
        model = trial.ask(f"{name} {kind}", lambda: make.fit(X, y, sample_weight=w))
        if model is None:
            return trial.verdicts
        truth = Truth(model, X, y, w)
        bracket = truth.bracket()
        if bracket is None:
            return trial.verdicts
        _judge(trial, f"{name} {kind}", model, model.certificate_, truth, bracket)
        certificate = trial.ask(f"{name} verify", lambda: mercer.verify(model, X, y))
        if certificate is not None:
            _judge(trial, f"{name} verify", model, certificate, truth, bracket)
        for _ in range(3):
            _arbitrary(trial, rng, f"{name} arbitrary", model, truth, bracket)
        for _ in range(2):
            _tamper(model, rng)
            certificate = trial.ask(f"{name} verify tampered", lambda: mercer.verify(model, X, y))
            if certificate is not None:
                _judge(trial, f"{name} verify tampered", model, certificate, truth, bracket)
    return trial.verdicts


def _judge(trial, kind, model, certificate, truth, bracket):
    attained = truth.worst_case("stored", exact(model.dual_coef_), _STORED)
    trial.judge(kind, certificate, ("the game", bracket), minimised=True, attained=attained)


def _arbitrary(trial, rng, kind, model, truth, bracket):
    """Bounds from a function, prices and an adversary that nobody solved for."""
    pairs, given, U = truth.pairs, truth.given, truth.given.functions
    beta = rng.normal(size=U.shape[1]) * 10 ** rng.uniform(-3, 1)

    def prove():
        if truth.plain:
            options = {"radius": float(model.radius), "regularization": float(model.regularization)}
            return certify_strongly_convex(given.enclosures, beta, **options)
        order = given.ball.dimension
        F = rng.normal(size=(order, order)) * 10 ** rng.uniform(-3, 0)
        prices = rng.normal(size=given.ball.whitening.shape[1]) * 10 ** rng.uniform(-3, 1)
        adversary = Adversary(F @ F.T, float(rng.uniform(0, 1)))
        return certify_saddle_point(given.problem, given.enclosures, SaddlePoint(beta, prices, adversary))

    certificate = trial.ask(kind, prove)
    if certificate is not None:
        size = exact([pairs.size])[0]
        attained = truth.worst_case("given", exact(U).dot(exact(beta)) * size)
        trial.judge(kind, scaled(certificate, pairs.size**2), ("the game", bracket), minimised=True, attained=attained)


def _tamper(model, rng):
    size = 10 ** rng.uniform(-9, 0)
    for name in ("dual_coef_", "price_coef_", "adversary_coef_"):
        values = np.asarray(getattr(model, name), np.float64)
        changed = values * (1 + size * rng.normal(size=values.shape))
        setattr(model, name, (changed + changed.T) / 2 if changed.ndim == 2 else changed)
