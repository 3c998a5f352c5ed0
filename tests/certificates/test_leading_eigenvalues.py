"""Bounds of leading eigenvalues, on matrices whose eigenvalues are known and whose products are wrong by a known error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import GramOperator, Precomputed
from mercer.certificates import eigenvalues
from mercer.certificates.eigenvalues import bound_below, certify_leading, enclose_leading, residual_bounds, starts_for

N = 120
VALUES = np.concatenate([[5.0, 4.0, 3.9999, 3.0], np.linspace(2.0, -1.0, N - 4)])
BASIS = np.linalg.qr(np.random.default_rng(0).standard_normal((N, N)))[0]
EXACT = (BASIS * VALUES) @ BASIS.T


@pytest.fixture(params=["factorisation", "Lanczos"])
def road(request, monkeypatch):
    if request.param == "Lanczos":
        monkeypatch.setattr(eigenvalues, "_DENSE_UP_TO", 0)
    return request.param


def wrong_by(error, *, direction=None):
    """A map whose entries are wrong by a matrix of this norm, and what it says of its rounding."""
    u = BASIS[:, 0] if direction is None else direction
    matrix = EXACT + error * np.outer(u, u)
    map_ = GramOperator(Precomputed(), (matrix + matrix.T) / 2)
    return map_, replace(map_.rounding(), entries=abs(error))


def starts(map_, seed=1):
    return starts_for(map_, np.random.default_rng(seed), 1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_leading_eigenvalues_are_enclosed_tightly(count, road):
    map_, rounding = wrong_by(0.0)
    proved = enclose_leading(map_, rounding, BASIS[:, :count], starts(map_))
    assert np.all(proved.lower <= VALUES[:count])
    assert np.all(VALUES[:count] <= proved.upper)
    close = count == 2  # the third eigenvalue lies within 1e-4 of the second
    assert np.all(proved.upper - proved.lower < (1e-3 if close else 1e-9))
    assert VALUES[count] <= proved.beyond <= VALUES[count - 1] + (1e-3 if close else 0.0)
    assert proved.failure_probability <= (1e-9 if road == "Lanczos" else 0)


@pytest.mark.parametrize("missed", [0, 1, 2])
def test_an_eigenvalue_that_was_missed_is_noticed(missed, road):
    map_, rounding = wrong_by(0.0)
    given = np.delete(BASIS[:, :5], missed, axis=1)
    proved = enclose_leading(map_, rounding, given, starts(map_))
    assert np.all(VALUES[:4] <= proved.upper)
    assert proved.upper[missed] >= VALUES[missed]
    assert np.all(proved.lower <= VALUES[:4])
    assert proved.beyond >= VALUES[4]


def test_vectors_that_are_only_near_do_no_harm(road):
    map_, rounding = wrong_by(0.0)
    near = BASIS[:, :3] + 1e-3 * np.random.default_rng(3).standard_normal((N, 3))
    proved = enclose_leading(map_, rounding, near, starts(map_))
    assert np.all((proved.lower <= VALUES[:3]) & (VALUES[:3] <= proved.upper))
    assert np.all(proved.upper - proved.lower < 2e-2)


def test_the_sum_of_the_leading_eigenvalues_counts_the_error_of_each():
    """Of a matrix too large by 1e-6 in each of three leading directions, that is by a matrix of norm 1e-6."""
    leading = BASIS[:, :3]
    map_ = GramOperator(Precomputed(), EXACT + 1e-6 * leading @ leading.T)
    rounding = replace(map_.rounding(), entries=1e-6)
    proved = enclose_leading(map_, rounding, leading, starts(map_))
    certificate = certify_leading(map_, rounding, leading, proved, 4.0)
    assert certificate.lower <= 4 * VALUES[:3].sum() <= certificate.upper
    assert certificate.relative_gap < 1e-5
    assert certificate.n_products >= N
    as_one = replace(rounding, entries=1e-6 / 3)  # as if the three errors were one
    assert certify_leading(map_, as_one, leading, proved, 4.0).lower > 4 * VALUES[:3].sum()


@pytest.mark.parametrize("error", [1e-6, -1e-6])
def test_errors_of_entries_are_counted(error, road):
    """Of a matrix wrong by 1e-6 in its leading direction: without the allowance the bounds exclude the truth."""
    map_, rounding = wrong_by(error)
    honest, blind = (enclose_leading(map_, each, BASIS[:, :2], starts(map_)) for each in (rounding, replace(rounding, entries=0.0)))  # fmt: skip
    assert honest.lower[0] <= VALUES[0] <= honest.upper[0]
    assert not blind.lower[0] <= VALUES[0] <= blind.upper[0]
    wrong = np.linalg.eigh(map_.to_dense())
    pair = wrong[0][-1:], wrong[1][:, -1:]
    assert np.abs(VALUES - pair[0]).min() <= residual_bounds(map_, rounding, *pair)[0]
    assert np.abs(VALUES - pair[0]).min() > residual_bounds(map_, replace(rounding, entries=0.0), *pair)[0]


def test_residuals_bound_the_distance_to_some_eigenvalue():
    map_, rounding = wrong_by(0.0)
    rng = np.random.default_rng(2)
    vectors = BASIS[:, [0, 3, 60]] + [0.0, 1e-5, 1e-2] * rng.standard_normal((N, 3))
    values = np.array([5.0, 3.0, 0.4])
    bounds = residual_bounds(map_, rounding, values, vectors)
    assert np.all(np.abs(VALUES[:, None] - values).min(axis=0) <= bounds)
    assert bounds[0] < 1e-11
    np.testing.assert_allclose(bounds, residual_bounds(map_, rounding, values, 7.0 * vectors), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-560, 2.0**560])
def test_residuals_whose_squares_are_no_numbers(unit):
    map_ = GramOperator(Precomputed(), unit * EXACT)
    vectors = BASIS[:, :1] + 1e-6 * np.random.default_rng(2).standard_normal((N, 1))
    bound = residual_bounds(map_, map_.rounding(), unit * VALUES[:1], vectors)[0]
    assert 1e-7 * unit < bound < 1e-3 * unit


@pytest.mark.parametrize("error", [0.0, 1e-4])
def test_the_least_eigenvalue_is_bounded_from_below(error, road):
    map_, rounding = wrong_by(error, direction=BASIS[:, -1])
    lift = bound_below(map_, rounding, BASIS[:, :3], starts(map_))
    assert 1.0 <= lift <= (1.0 + 1e-9 if road == "factorisation" and not error else 1.01)
    if error and road == "factorisation":
        assert bound_below(map_, replace(rounding, entries=0.0), BASIS[:, :3], starts(map_)) < 1.0
    positive = GramOperator(Precomputed(), EXACT + 2 * np.eye(N))
    assert bound_below(positive, positive.rounding(), BASIS[:, :3], starts(positive)) <= 1e-9


def test_a_basis_of_everything_leaves_nothing_out(road):
    map_, rounding = wrong_by(0.0)
    proved = enclose_leading(map_, rounding, BASIS, starts(map_))
    assert np.all((proved.lower <= VALUES) & (proved.upper >= VALUES))
    assert proved.beyond == -np.inf


def random_spectrum(rng, n):
    """Eigenvalues that fall fast or slowly, in clusters, with zeros and with a negative part, in falling order."""
    values = [
        np.exp(-rng.uniform(0.05, 2.0) * np.arange(n)),
        rng.uniform(0, 1, n),
        np.round(rng.uniform(0, 3, n)),
        np.where(np.arange(n) < rng.integers(1, 9), 1.0, 0.0) + 1e-9 * rng.standard_normal(n),
    ][rng.integers(4)]
    if rng.random() < 0.5:
        values = values - rng.uniform(0, 0.5) * rng.random(n)
    return 10.0 ** rng.uniform(-6, 6) * np.sort(values)[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_no_bound_is_ever_wrong(seed, road):
    """Whatever the spectrum, the vectors given and their errors."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(12, 160)), int(rng.integers(1, 6))
    values, basis = random_spectrum(rng, n), np.linalg.qr(rng.standard_normal((n, n)))[0]
    exact = (basis * values) @ basis.T
    size, wrong = np.abs(values).max(), rng.choice([0.0, 1e-9, 1e-4])
    error = rng.standard_normal((n, n))
    error = wrong * size * (error + error.T) / np.linalg.norm(error + error.T, 2)
    map_ = GramOperator(Precomputed(), (exact + exact.T) / 2 + error)
    rounding = replace(
        map_.rounding(), entries=(wrong + 1e-14) * size
    )  # of which some is the product of three matrices
    chosen = np.sort(rng.permutation(n)[: count + 3]) if rng.random() < 0.3 else np.arange(min(n, count + 3))
    vectors = basis[:, chosen] + rng.choice([0.0, 1e-8, 1e-2]) * rng.standard_normal((n, len(chosen)))
    proved = enclose_leading(map_, rounding, vectors, starts(map_, seed), count=count)
    assert np.all(proved.lower <= values[:count])
    assert np.all(values[:count] <= proved.upper)
    assert values[count] <= proved.beyond
    assert bound_below(map_, rounding, vectors[:, :count], starts(map_, seed + 1)) >= -values[-1]
    pairs = np.einsum("ij,ij->j", vectors, exact @ vectors) / np.sum(vectors**2, axis=0)
    bounds = residual_bounds(map_, rounding, pairs, vectors)
    assert np.all(np.abs(values[:, None] - pairs).min(axis=0) <= bounds)
