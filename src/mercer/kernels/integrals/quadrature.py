"""Integrals of kernel sections by Gauss-Legendre rules, with an error estimated by refinement."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.backends.config import require_free_memory
from mercer.kernels.base import Kernel
from mercer.kernels.integrals.base import KernelIntegrals, SquareMasses, summed_squares
from mercer.kernels.integrals.gaussian import GaussianMixture
from mercer.kernels.integrals.integral_enclosures import IntegralEnclosures, NodeEnclosures
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Measure
from mercer.kernels.stationary import Gaussian

MOST_FEATURES = 3
_GOAL = 1e-12
_FIRST, _GROWTH = 16, 1.4
_MOST_ENTRIES = 6 * 10**6  # of the matrix k(nodes, support)
_MOST_NODES = 10**5
_LONGEST_RULE = 320
_EVEN_PANELS = 200
_PANEL_NODES = 5  # between two support points, where the kernel is smooth
_NEGLIGIBLE = 1e-8  # of a kernel, whose square is then below rounding
_DISTANCES = np.geomspace(1e-100, 1e100, 16_001)  # in any unit of length
_LONGEST_TAIL = 720  # of these distances, nine powers of ten, from half a kernel's height to nothing
_NORMAL_REACH = 9.0  # standard deviations beyond which a normal law has mass 1e-18
_LARGEST = float(np.log(np.finfo(np.float64).max))  # logarithm of a number
_PAIRWISE_UP_TO = 6000
_COPIES = 4


class _Rule(NamedTuple):
    """Nodes of shape (Q, d) and their weights."""

    nodes: Array
    weights: Array


@final
class NodeIntegrals(KernelIntegrals):
    """∫ g dρ ≈ Σ_q w_q g(x_q) for every g, on a tensor product of Gauss-Legendre rules in at most three dimensions.

    Of a measure that is a sum over nodes, these are taken, in any dimension, and nothing is approximated. Elsewhere the
    rule is refined until two of them agree to 1e-12 on W and on a third-order integral, or until the matrix
    k(nodes, support) would exceed 6·10⁶ entries; ``error`` is how much the last two differ, relative to the largest
    entry. Smooth kernels reach rounding; a kernel with kinks does so in one dimension, where the panels end at the
    support points (at other points Y an error of the square of a panel's length is left), and has an error that falls
    with a power of the number of nodes in two and three. The rule is found by NumPy, and brought to the library of the
    points before the kernel is evaluated at its nodes.

    Cost: Q m² a product, Q m memory.
    """

    def __init__(self, kernel: Kernel, points: Array, measure: Measure) -> None:
        if isinstance(measure, DiscreteMeasure):
            rule, error = _Rule(measure.points, measure.weights), 0.0
            _require_memory(kernel, rule.weights.shape[0] * points.shape[0])
            K = as_double(kernel(rule.nodes, points))
        else:
            rule, K, error = _refined(kernel, points, measure)
        self._rule, self._K = rule, K
        masses = namespace(K).sum(rule.weights[:, None] * K**2, axis=0)
        if not float(masses.max()) > 0:
            raise ValueError(f"{kernel!r} vanishes at all nodes of the reference: take one nearer to the support.")
        log_scale = float(np.log(float(masses.max())))
        self._weights = rule.weights * float(np.exp(-log_scale))
        super().__init__(kernel, points, measure, log_scale, error)

    @property
    def n_nodes(self) -> int:
        """Q."""
        return int(self._weights.shape[0])

    def weighted_nodes(self) -> tuple[Array, Array, Array]:
        """Nodes (Q, d), their scaled weights (Q,), and k between them and the support (Q, m)."""
        return self._rule.nodes, self._weights, self._K

    def mass(self, Y: Array | None = None) -> Array:
        towards = self._K if Y is None else as_double(self.kernel(self._rule.nodes, Y))
        return (towards.T * self._weights) @ self._K

    def embed(self, B: Array, Y: Array | None = None) -> Array:
        masses = self._masses(B)
        return self._K.T @ masses if Y is None else self._multiply(Y, self._rule.nodes, masses)

    def weighted_mass(self, c: Array, Y: Array | None = None) -> Array:
        function = self._K @ c if Y is None else self._multiply(self._rule.nodes, Y, c)
        return (self._K.T * (self._weights * function)) @ self._K

    def contracted(self, c: Array, Y: Array) -> Array:
        towards = as_double(self.kernel(self._rule.nodes, Y))
        return (towards.T * (self._weights * (self._K @ c))) @ self._K

    def enclosures(self) -> IntegralEnclosures:
        """The values at the nodes and the weights, as NumPy arrays."""
        parts = self.points, self._rule.nodes, self._K, self._weights
        return NodeEnclosures(self.kernel, *(to_numpy(part) for part in parts))

    def enclosures_with(self, Y: Array) -> IntegralEnclosures:
        xp, nodes = namespace(Y), self._rule.nodes
        values = xp.concat([self._K, as_double(self.kernel(nodes, Y))], axis=1)
        parts = xp.concat([self.points, Y]), nodes, values, self._weights
        return NodeEnclosures(self.kernel, *(to_numpy(part) for part in parts))

    def square_masses(self, F: Array) -> SquareMasses:
        return summed_squares(self._K, self._weights, F)

    def at_nodes(self, F: Array) -> tuple[Array, Array] | None:
        if self.n_nodes > _PAIRWISE_UP_TO:
            return None
        return self._rule.nodes, self._weights * namespace(F).sum((self._K @ F) ** 2, axis=1)

    def mixture(self, B: Array) -> GaussianMixture:
        """The measure p_B dρ as masses at the nodes: normal laws without width."""
        return GaussianMixture(self._masses(B), self._rule.nodes, 0.0)

    def _masses(self, B: Array) -> Array:
        """p_B(x_q) w_q."""
        return self._weights * namespace(B).einsum("qp,qp->q", self._K @ B, self._K)

    def _multiply(self, X: Array, Y: Array, v: Array) -> Array:
        """k(X, Y) v, a tile at a time."""
        return self.kernel.matrix(X, Y).multiply(v[:, None])[:, 0]


def _refined(kernel: Kernel, points: Array, measure: Measure) -> tuple[_Rule, Array, float]:
    """A rule in the library of the points, k(nodes, support), and how much it differs from the rule before it."""
    plain, where = to_numpy(points), _at_home(measure)
    lower, upper = _extent(kernel, plain, where)
    panels = _panels(kernel, plain, lower, upper)
    kept: tuple[_Rule, Array] | None = None
    coarse: tuple[Array, Array] | None = None
    error, count = np.inf, float(_FIRST if panels is None else _PANEL_NODES)
    while error > _GOAL:
        rule = _tensor_rule(lower, upper, panels, int(count), where)
        if coarse is not None and not _affordable(rule, points):
            break
        _require_memory(kernel, rule.weights.shape[0] * points.shape[0])
        rule = _Rule(*(like(part, points) for part in rule))
        K = as_double(kernel(rule.nodes, points))
        fine = (K.T * rule.weights) @ K, (K.T * (rule.weights * K.sum(axis=1))) @ K
        if coarse is not None:
            error = max(_differing(f, c) for f, c in zip(fine, coarse, strict=True))
        coarse, kept = fine, (rule, K)
        count *= _GROWTH
    assert kept is not None
    return *kept, float(error)


def _differing(fine: Array, coarse: Array) -> float:
    """The largest difference, as a part of the largest entry; none where no node of either sees anything."""
    largest = max(float(abs(fine).max()), float(abs(coarse).max()))
    return float(abs(fine - coarse).max()) / largest if largest > 0 else 0.0


def _at_home(measure: Measure) -> Measure:
    """The measure with its corners, or its mean, as NumPy arrays."""
    if isinstance(measure, Box):
        return Box(to_numpy(measure.lower), to_numpy(measure.upper))
    if isinstance(measure, GaussianMeasure):
        covariance = None if measure.covariance is None else to_numpy(measure.covariance)
        return GaussianMeasure(to_numpy(measure.mean), measure.std, covariance)
    return measure


def _require_memory(kernel: Kernel, entries: int) -> None:
    """Refuse a matrix k(nodes, support), and three like it, beyond the memory limit of the configuration."""
    advice = "take a smaller support, a kernel with closed forms such as Gaussian()"
    require_free_memory(8 * _COPIES * entries, f"The quadrature of {kernel!r} takes", advice)


def _affordable(rule: _Rule, points: Array) -> bool:
    return rule.weights.shape[0] <= min(_MOST_NODES, _MOST_ENTRIES // points.shape[0])


def _extent(kernel: Kernel, points: Array, measure: Measure) -> tuple[Array, Array]:
    """Corners of a box outside of which nothing is left to integrate: of ρ, or of the kernel at any support point."""
    reach = _reach(kernel, points)
    lower, upper = points.min(axis=0) - reach, points.max(axis=0) + reach
    if isinstance(measure, Box):
        ends = measure.lower, measure.upper
    elif isinstance(measure, GaussianMeasure):
        reaching = _NORMAL_REACH * measure.deviations()
        ends = measure.mean - reaching, measure.mean + reaching
    elif np.isfinite(reach):
        return lower, upper
    else:
        raise ValueError(
            f"{kernel!r} is not known to vanish at infinity, so its square has no integral over R^d: give a box."
        )
    lower, upper = np.maximum(lower, ends[0]), np.minimum(upper, ends[1])
    return (lower, upper) if np.all(lower < upper) else ends  # nothing is left of kernels that far away


def _reach(kernel: Kernel, points: Array) -> float:
    """The distance from which on a stationary kernel is negligible; infinity where there is none."""
    if not kernel.properties.stationary:
        return np.inf
    axis = np.zeros((_DISTANCES.size, points.shape[1]))
    axis[:, 0] = _DISTANCES
    with np.errstate(all="ignore"):
        values = np.abs(kernel(np.zeros((1, points.shape[1])), axis)[0]) / kernel.diag(points[:1])[0]
    high, low = (np.flatnonzero(values > level)[-1:] for level in (0.5, _NEGLIGIBLE))
    if low.size == 0 or low[0] + 1 == _DISTANCES.size or low[0] - high[-1] > _LONGEST_TAIL:
        return np.inf
    return float(_DISTANCES[low[0] + 1])


def _panels(kernel: Kernel, points: Array, lower: Array, upper: Array) -> Array | None:
    """Where a rule in one dimension is broken: at the kinks, and evenly for those of other points. None: nowhere."""
    if points.shape[1] > 1 or isinstance(kernel, Gaussian):
        return None
    inside = points[(points[:, 0] > lower[0]) & (points[:, 0] < upper[0]), 0]
    return np.unique(np.concatenate([inside, np.linspace(lower[0], upper[0], _EVEN_PANELS + 1)]))


def _tensor_rule(lower: Array, upper: Array, panels: Array | None, count: int, measure: Measure) -> _Rule:
    """A rule with ``count`` nodes in each dimension, or in each panel of the only one."""
    pieces = -(-count // _LONGEST_RULE)  # a rule with many nodes takes the cube of their number to find
    x, w = np.polynomial.legendre.leggauss(-(-count // pieces))
    if panels is not None:
        line, weights = _line_rule(panels, x, w)
        nodes = line[:, None]
    else:
        lines = [_line_rule(np.linspace(lo, hi, pieces + 1), x, w) for lo, hi in zip(lower, upper, strict=True)]
        nodes = np.stack([a.reshape(-1) for a in np.meshgrid(*[a for a, _ in lines], indexing="ij")], axis=1)
        weights = np.ones(1)
        for _, line in lines:
            weights = np.outer(weights, line).reshape(-1)
    logs = measure.log_density(nodes)
    if logs.max() > _LARGEST:
        raise ValueError(
            f"The reference has the density e^{float(logs.max()):.0f} in places, which exceeds the largest number: "
            "multiply X by a constant."
        )
    return _Rule(np.ascontiguousarray(nodes), weights * np.exp(logs))


def _line_rule(ends: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """A rule on [-1, 1] repeated on every panel of a line."""
    lengths = np.diff(ends)
    nodes = ends[:-1, None] + lengths[:, None] * (x + 1) / 2
    return nodes.reshape(-1), (lengths[:, None] * w / 2).reshape(-1)
