"""Machines against the worst distribution on candidates, and worst expectations: their proofs done again to 70 digits.

Both proofs are made of numbers that a result keeps: a function f, prices g, weights μ and slopes. From those numbers,
which are exact, the bounds follow; here without rounding. A certificate may claim no more than they give.
"""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_arithmetic import exact, kernel_value
from campaign_problems import precision_of, spread, stationary, weights
from campaign_runner import Trial
from mpmath import mpf

import mercer
from mercer import MeanEmbedding, RobustKernelClassifier, RobustKernelRegressor, worst_case_expectation

NAME = "adversaries"
_BETWEEN = mpf(2) ** -40  # weights are drawn to the sample by a little more than they need


def gram(kernel, X, Y=None):
    """The kernel matrix as an object array of mpf."""
    X = exact(X)
    Y = X if Y is None else exact(Y)
    return np.array([[kernel_value(kernel, x, y) for y in Y] for x in X], object)


def shares_of(w, n):
    """Weights over their sum."""
    w = exact(np.ones(n) if w is None else w)
    return w / sum(w)


def run(seed):
    rng = np.random.default_rng([seed, 99])
    trial = Trial(NAME, seed, precision_of(rng))
    with mercer.config_context(dtype=trial.precision):  # proofs are in double precision, whatever this says
        if seed % 2:
            _expectation(trial, rng)
        else:
            _machine(trial, rng)
    return trial.verdicts


# --- machines -----------------------------------------------------------------------------------------------


class MachineTruth:
    """The two bounds that a fitted machine's coefficients prove."""

    def __init__(self, model, X, y, w):
        self.model, self.labels = model, isinstance(model, RobustKernelClassifier)
        place = np.asarray(model.candidate_index_)
        self.K = gram(model.kernel_, model.inputs_)
        self.place, self.targets = place, self._coded(model.candidate_targets_)
        self.pairs = self.K[np.ix_(place, place)] * self._similarity()
        self.shares = self._sample(X, self._coded(y), w)
        self.dual, self.prices = exact(model.dual_coef_), exact(model.price_coef_)
        self.mu, self.slopes = exact(model.adversary_weights_), exact(model.slopes_)
        self.radius, self.strength = mpf(float(model.radius)), mpf(float(model.regularization))

    def _coded(self, y):
        if self.labels:
            return exact(np.where(np.asarray(y) == self.model.classes_[1], 1.0, -1.0))
        return exact(y)

    def _similarity(self):
        y = self.targets
        if self.labels:
            other = mpf(float(self.model.label_similarity))
            return np.array([[mpf(1) if a == b else other for b in y] for a in y], object)
        width = mpf(float(self.model.target_sigma_))
        return np.array([[mpmath.exp(-(((a - b) / width) ** 2)) for b in y] for a in y], object)

    def _sample(self, X, y, w):
        """The sample's weights on the candidates, each row found by its numbers."""
        rows = {}
        for number, at in enumerate(self.place):
            rows.setdefault((tuple(map(float, self.model.inputs_[at])), self.targets[number]), number)
        total = np.array([mpf(0)] * self.place.size, object)
        for x, target, weight in zip(X, y, shares_of(w, len(X)), strict=True):
            if weight > 0:
                total[rows[tuple(float(v) + 0.0 for v in x), target]] += weight
        return total

    def loss(self, f, y):
        rest = f - y
        if self.model.loss == "squared":
            return rest**2
        if self.model.loss == "absolute":
            return abs(rest)
        if self.model.loss == "huber":
            limit = mpf(float(self.model.threshold))
            return rest**2 if abs(rest) <= limit else limit * (2 * abs(rest) - limit)
        if self.model.loss == "hinge":
            return max(1 - y * f, mpf(0))
        return mpmath.log1p(mpmath.exp(-y * f)) if y * f > -100 else -y * f + mpmath.log1p(mpmath.exp(y * f))

    def intercept(self, p, y):
        """The constant of the tangent with slope p, and whether there is one."""
        if self.model.loss in ("squared", "huber"):
            limit = mpf(float(self.model.threshold)) if self.model.loss == "huber" else mpmath.inf
            return -p * (y + p / 4), abs(p) <= 2 * limit
        if self.model.loss == "absolute":
            return -p * y, abs(p) <= 1
        q = -y * p
        if self.model.loss == "hinge":
            return q, 0 <= q <= 1
        return (mpf(0) if q in (0, 1) else -q * mpmath.log(q) - (1 - q) * mpmath.log(1 - q)), 0 <= q <= 1

    def upper(self):
        """The worst mean loss that f and g prove, and that plus the penalty."""
        values = self.K.dot(self.dual)
        losses = [self.loss(values[at], y) for at, y in zip(self.place, self.targets, strict=True)]
        penalty = self.strength * self.dual.dot(values)
        sample = sum(s * loss for s, loss in zip(self.shares, losses, strict=True))
        if self.radius == 0:
            return sample, sample + penalty
        g = self.pairs.dot(self.prices)
        largest = 2 * mpmath.sqrt(max(self.K[i, i] for i in range(len(self.K))))
        radius = min(self.radius, largest)
        size = mpmath.sqrt(max(self.prices.dot(g), mpf(0)))
        risk = max(loss - price for loss, price in zip(losses, g, strict=True)) + self.shares.dot(g) + radius * size
        return risk, risk + penalty

    def lower(self):
        """The largest number that no learner can go below which the weights and slopes prove."""
        mu = self.mu / sum(self.mu) if self.radius > 0 and sum(self.mu) > 0 else self.shares
        moved = mu - self.shares
        away = mpmath.sqrt(max(moved.dot(self.pairs.dot(moved)), mpf(0)))
        part = mpf(1) if self.radius == 0 or away <= self.radius else self.radius / away
        return max(self._tangents(self.shares + less * part * moved) for less in (mpf(1), 1 - _BETWEEN))

    def _tangents(self, mu):
        constants = [self.intercept(p, y) for p, y in zip(self.slopes, self.targets, strict=True)]
        if not all(sound for _, sound in constants):
            return -mpmath.inf
        pull = mu * self.slopes
        along = self.K[np.ix_(self.place, self.place)].dot(pull)
        return sum(m * c for m, (c, _) in zip(mu, constants, strict=True)) - pull.dot(along) / (4 * self.strength)


def _machine(trial, rng):
    n, d = int(rng.integers(3, 9)), int(rng.integers(1, 3))
    X, labels = rng.normal(size=(n, d)), rng.random() < 0.5
    if rng.random() < 0.3:
        X[1] = X[0]
    y = rng.normal(size=n) * 10 ** rng.uniform(-6, 6)
    if labels:
        y = np.where(np.arange(n) % 2 == 0, "no", "yes")
    options = {
        "kernel": stationary(rng, X),
        "radius": float(rng.choice([0.0, 10 ** rng.uniform(-6, 0.5)], p=[0.15, 0.85])),
        "regularization": float(10 ** rng.uniform(-8, 1)),
        "tol": float(10 ** rng.uniform(-10, -3)),
        "loss": str(rng.choice(["logistic", "hinge"] if labels else ["squared", "huber", "absolute"])),
    }
    if labels:
        model = RobustKernelClassifier(label_flips=bool(rng.random() < 0.5), **options)
    else:
        grid, size = rng.choice([0, 2, 3]), float(np.abs(y).max())
        model = RobustKernelRegressor(target_grid=int(grid) or None, threshold=0.3 * size, **options)
    w = weights(rng, n)
    fitted = trial.ask(model.loss, lambda: model.fit(X, y, sample_weight=w))
    if fitted is None:
        return
    truth = MachineTruth(fitted, X, y, w)
    risk, upper = truth.upper()
    lower = max(truth.lower(), mpf(0))
    _judge(trial, model.loss, fitted.certificate_, lower, upper)
    again = trial.ask("verify", lambda: mercer.verify(fitted, X, y))
    if again is not None:
        _judge(trial, f"{model.loss}, verified", again, lower, upper)
    proved = np.longdouble(fitted.robust_risk_)
    if proved < float(risk):
        trial.judge(f"{model.loss}, risk", _Claim(float(risk), float(proved)))


class _Claim:
    """A pair of bounds, crossed where a risk is claimed that is not proved."""

    def __init__(self, lower, upper):
        self.lower, self.upper = lower, upper


def _judge(trial, kind, certificate, lower, upper):
    """Claims against what is proved: the certificate's upper bound at least, its lower one at most that."""
    high, low = mpf(float(certificate.upper)), mpf(float(certificate.lower))
    slack = abs(upper) * mpf(10) ** -40
    allowance = max(abs(lower), abs(upper)) * _BETWEEN**2  # a concave function between two points so near
    if high < upper - slack:
        trial.judge(f"{kind}, upper", _Claim(float(upper), float(np.nextafter(float(high), -np.inf))))
    elif low > lower + allowance:
        trial.judge(f"{kind}, lower", _Claim(float(low), float(np.nextafter(float(lower), -np.inf))))
    else:
        trial.judge(kind, certificate)


# --- expectations -------------------------------------------------------------------------------------------


def _expectation(trial, rng):
    n, m, d = int(rng.integers(1, 7)), int(rng.integers(0, 9)), int(rng.integers(1, 3))
    X, more = rng.normal(size=(n, d)), rng.normal(size=(m, d)) * 2
    kernel, sense = stationary(rng, np.concatenate([X, more, X + 1])), str(rng.choice(["max", "min"]))
    unit = 10 ** rng.uniform(-8, 8)
    at, size = rng.normal(size=(int(rng.integers(1, 4)), d)), spread(X)
    if rng.random() < 0.5:
        function = MeanEmbedding(kernel, at, unit * rng.normal(size=len(at)))
        values = gram(kernel, np.concatenate([X, more]), at).dot(exact(function.parts[0].weights))
    else:
        coefficients = unit * rng.normal(size=d)

        def function(Z):
            return (Z / size) @ coefficients

        values = None
    radius, w = float(10 ** rng.uniform(-6, 0.3)), weights(rng, n)
    options = {
        "kernel": None if values is not None else kernel,
        "sense": sense,
        "tol": float(10 ** rng.uniform(-9, -3)),
    }
    found = trial.ask(
        "expectation",
        lambda: worst_case_expectation(function, X, radius, candidates=more if m else None, sample_weight=w, **options),
    )
    if found is not None:
        _judge_expectation(trial, found, function, kernel, radius, (X, w))


def _judge_expectation(trial, found, function, kernel, radius, sample):
    sign = 1 if not found.certificate.minimised else -1
    points = found.candidates
    K = gram(kernel, points)
    if isinstance(function, MeanEmbedding):
        part = function.parts[0]
        values = sign * gram(kernel, points, part.means).dot(exact(part.weights))
    else:
        values = sign * exact(function(points))
    shares = np.array([mpf(0)] * len(points), object)
    rows = {tuple(map(float, x)): number for number, x in enumerate(points)}
    for x, weight in zip(sample[0], shares_of(sample[1], len(sample[0])), strict=True):
        shares[rows[tuple(float(v) + 0.0 for v in x)]] += weight
    mu = exact(found.weights)
    mu = mu / sum(mu)
    moved = mu - shares
    away = mpmath.sqrt(max(moved.dot(K.dot(moved)), mpf(0)))
    lower = mu.dot(values) if away <= mpf(radius) else -mpmath.inf
    h = found.dual.parts[0]
    c = sign * exact(h.weights)
    g = gram(kernel, points, h.means).dot(c)
    size = mpmath.sqrt(max(c.dot(gram(kernel, h.means).dot(c)), mpf(0)))
    upper = max(values - g) + shares.dot(g) + mpf(radius) * size
    upper = min(upper, max(values))
    bounds = (found.certificate.lower, found.certificate.upper)
    low, high = bounds if sign > 0 else (-bounds[1], -bounds[0])
    _judge(trial, "expectation", _Claim(low, high), lower, upper)
    if mpf(float(found.mmd)) < away:
        trial.judge("expectation, distance", _Claim(float(away), float(found.mmd)))
