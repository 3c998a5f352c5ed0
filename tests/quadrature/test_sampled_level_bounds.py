"""Every part of the interval of a level that is known by draws is needed, and it is that of the theorem."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from mercer import Gaussian, Linear
from mercer.certificates import certify_measure, sampled_level
from mercer.certificates.sampled_level import level_of, widened
from mercer.quadrature import sampled
from mercer.quadrature.proof_on_request import at_sampled_level
from mercer.quadrature.sample import make_problem, make_sample
from mercer.quadrature.sampled import Potential

KERNEL = Gaussian(1.2)


def potential_of(kernel, X, weights=None):
    sample = make_sample(X, kernel, weights)
    return Potential(make_problem(X, kernel, sample, without_pass=True), sample)


@pytest.mark.parametrize("size", [0.01, 1.0])  # an interval that ends at zero, and one that does not
def test_the_interval_is_that_of_maurer_and_pontil(size):
    residuals = size * np.random.default_rng(0).uniform(0.5, 1.5, 400)
    surplus, explained, largest = 0.3 * size, 0.7, 0.05
    level = level_of(residuals, surplus, explained, largest)
    logarithm, twice = math.log(4 / sampled_level.ODDS), residuals.mean() + surplus
    spread = math.sqrt(2 * residuals.var(ddof=1) * logarithm / 400)
    slope = 7 * 2 * largest * logarithm / (3 * 399)

    def ends(more):
        """The largest x with x² ≤ twice + spread + slope x, and the least with x² ≥ twice - spread - slope x."""
        high = max(np.roots([1, -more * slope, -(twice + more * spread)]))
        low = max(np.roots([1, more * slope, -max(twice - more * spread, 0.0)]))
        return low**2, high**2

    (low, high), (lowest, highest) = ends(1.01), ends(1.03)
    assert lowest <= level.low - explained <= low
    assert high <= level.high - explained <= highest
    assert level.estimate == pytest.approx(explained + twice)


def test_weights_that_are_not_the_best_are_no_part_of_the_residual():
    X = np.random.default_rng(1).normal(size=(40, 2))
    nodes, values = np.arange(3), np.array([0.9, 0.8, 0.7])
    level = at_sampled_level(potential_of(KERNEL, X), nodes, values)[1]
    exactly = np.mean(KERNEL(X) ** 2)
    assert level.low <= exactly <= level.high < 2 * exactly


def test_a_heavy_point_that_no_draw_meets_is_within_the_range():
    X, weights = np.r_[np.linspace(1.0, 1.1, 50), 1000.0][:, None], np.r_[np.full(50, 0.02), 1e-6]
    posed, level = at_sampled_level(potential_of(Linear(), X, weights), np.array([0]), np.array([1.0]))
    apart = weights / weights.sum()
    apart[0] -= 1.0
    proof = widened(certify_measure(posed, np.array([0]), np.array([1.0]), alpha=0.0, on_nodes=True), level)
    assert 0.5 * apart @ (X @ X.T) ** 2 @ apart <= proof.upper


def test_the_potential_at_the_nodes_knows_its_rounding():
    X = np.random.default_rng(2).normal(size=(60, 2))
    potential, nodes = potential_of(KERNEL, X), np.arange(0, 60, 7)
    sections = potential.exact_on(nodes).law.sections
    with mpmath.workdps(40):
        for row in nodes:
            squares = [sum((mpf(float(a)) - mpf(float(b))) ** 2 for a, b in zip(X[row], x, strict=True)) for x in X]
            exactly = sum(mpmath.exp(-2 * s / mpf(1.2) ** 2) for s in squares) / 60
            off = abs(mpf(float(sections.values[row])) - exactly)
            assert off <= sections.errors[row] < 1e-12
            assert sections.errors[row] > 60 * 2**-53 * float(exactly)


def test_points_of_the_proof_do_not_come_from_the_numbers_that_chose_the_nodes(monkeypatch):
    seeds, drawn = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: seeds.append(seed) or drawn(seed))
    X = drawn(3).normal(size=(200, 2))
    potential = potential_of(KERNEL, X)
    potential.pool(5)
    chosen = set(seeds)
    seeds.clear()
    at_sampled_level(potential, np.arange(5), np.full(5, 0.2))
    assert seeds
    assert not chosen & set(seeds)


def test_few_draws_make_the_interval_wider(monkeypatch):
    X = np.random.default_rng(4).normal(size=(200, 2))
    widths = []
    for draws in (20, 1000):
        monkeypatch.setattr(sampled, "ROWS_OF_PROOF", draws)
        level = at_sampled_level(potential_of(KERNEL, X), np.arange(5), np.full(5, 0.2))[1]
        widths.append(level.high - level.low)
    assert widths[0] > 3 * widths[1]
