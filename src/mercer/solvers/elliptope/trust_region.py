"""The Riemannian trust region with truncated conjugate gradients: the last digits, where power steps crawl.

On the product of spheres the gradient of -½⟨J, H Hᵀ⟩ - ⟨C, H⟩ is Diag(z) H - G with zᵢ = Gᵢ · Hᵢ, and its Hessian takes
a tangent V to the tangent part of Diag(z) V - J V (Absil, Baker, Gallivan 2007; Boumal, Voroninski, Bandeira 2016). The
preconditioner Diag(z) turns that into I - M, M = Diag(z)^-½ J Diag(z)^-½, whose spectrum lies in [0, 1] at an optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from mercer.backends.arrays import Array, as_double, copied, namespace
from mercer.backends.rounding import EPS
from mercer.linalg.tall import inner_product, row_products
from mercer.problems import Elliptope
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated

_LOOSE, _TIGHT = 0.1, 1e-3  # how far linear systems are solved: first loosely, in the end so that digits come by threes
_FLAT = 1e-12  # a curvature below is that of a rotation of all rows, which changes nothing
_ACCEPT, _SHRINK, _GROW = 0.05, 0.25, 0.75
_VALUE_NOISE = 1e-13  # of the objective: changes below are noise, and count as what the model promised
_LEAST = 1e-300
_PER_ROW = 0.5  # the first radius, in the metric of the preconditioner, that moves every row about this far


@final
class TrustRegion(ElliptopeMethod):
    """One step solves a quadratic model within a trusted radius; several products a step, one each with r columns.

    Parameters
    ----------
    max_inner : int, default=200
        Conjugate-gradient iterations a step at most.
    """

    name = "trust-region"

    def __init__(self, *, max_inner: int = 200) -> None:
        self.max_inner = max_inner

    def begin(self, problem: Elliptope, at: Iterate) -> None:
        self._value = problem.objective(*at)
        self._radius = self._largest = 0.0

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        model = _Model(problem, *at)
        if self._radius == 0.0:
            self._radius = _PER_ROW * math.sqrt(model.size)
            self._largest = 4 * self._radius
        solution = model.solve(self._radius, self.max_inner)
        there = evaluated(problem, problem.project(at.H + solution.V, at.H))
        value = problem.objective(*there)
        noise = _VALUE_NOISE * max(abs(value), abs(self._value))
        agreement = (value - self._value + noise) / (solution.gain + noise)
        if agreement < _SHRINK:
            self._radius = 0.25 * solution.length
        elif agreement > _GROW and solution.at_boundary:
            self._radius = min(2 * self._radius, self._largest)
        if agreement <= _ACCEPT:
            return at
        self._value = value
        return there


@dataclass(frozen=True)
class _Step:
    """A tangent step, its length in the metric, what the model says it gains, and whether the radius cut it short."""

    V: Array
    length: float
    gain: float
    at_boundary: bool


class _Model:
    """The quadratic model of the objective at a point, in the metric |z|."""

    def __init__(self, problem: Elliptope, H: Array, G: Array) -> None:
        self.problem, self.H = problem, H
        self.z = problem.multipliers(H, G)
        own = 0.0 if problem.repulsion is None else as_double(problem.repulsion)  # their curvature where z vanishes
        sizes = abs(as_double(self.z) + own)
        least = EPS * max(float(sizes.max()), _LEAST) if self.z.shape[0] else _LEAST
        self.metric = namespace(sizes).clip(sizes, least, None)
        self.size = float(namespace(sizes).sum(self.metric))
        self.gradient = self.z[:, None] * H - G

    def hessian(self, V: Array) -> Array:
        W = self.z[:, None] * V - self.problem.curvature(V)
        return W - row_products(W, self.H)[:, None] * self.H

    def solve(self, radius: float, max_inner: int) -> _Step:
        """Truncated conjugate gradients (Steihaug, Toint), in the metric of the preconditioner."""
        xp, R = namespace(self.gradient), copied(self.gradient)
        V, HV = xp.zeros_like(R), xp.zeros_like(R)
        D = -R / self.metric[:, None]
        size = -inner_product(R, D)
        first = math.sqrt(size)
        goal = first * min(_LOOSE, max(_TIGHT, first / math.sqrt(self.size)))
        vv, vd, dd = 0.0, 0.0, size  # the inner products of V and D
        at_boundary = False
        for _ in range(max_inner):
            if math.sqrt(size) <= goal:
                break
            HD = self.hessian(D)
            curvature = inner_product(D, HD)
            if abs(curvature) <= _FLAT * dd:
                break
            alpha = size / curvature if curvature > 0 else math.inf
            if curvature <= 0 or vv + 2 * alpha * vd + alpha**2 * dd >= radius**2:
                at_boundary = True
                alpha = (-vd + math.sqrt(vd**2 + dd * max(radius**2 - vv, 0.0))) / dd
            V += alpha * D
            HV += alpha * HD
            if at_boundary:
                vv = radius**2
                break
            R += alpha * HD
            vv += 2 * alpha * vd + alpha**2 * dd
            Z = R / self.metric[:, None]
            size, before = inner_product(R, Z), size
            beta = size / before
            D = -Z + beta * D
            vd = beta * (vd + alpha * dd)
            dd = size + beta**2 * dd
        gain = -2 * inner_product(self.gradient, V) - inner_product(V, HV)
        return _Step(V, math.sqrt(vv), gain, at_boundary)
