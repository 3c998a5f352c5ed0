"""The bound of a stream holds to the last digit, each of its allowances is needed, and nothing can change amid it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import mercer
from mercer import Gaussian, QuadratureSparsifier, config_context, squared_kernel_discrepancy
from mercer.certificates.stream import certify_stream
from mercer.quadrature import sampled, sparsifier, stream
from mercer.quadrature.stream import Reduced, Reduction, Summary
from mercer.quadrature.streaming import settled

KERNEL = Gaussian(1.5)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def exact(values):
    return np.array([mpf(float(value)) for value in np.ravel(values)], object).reshape(np.shape(values))


def energy(points, apart, factor=1):
    """½ apartᵀ S apart of the squared Gaussian kernel, times its factor."""
    points, total = exact(points), mpf(0)
    for x, one in zip(points, apart, strict=True):
        squares = [sum((x - y) ** 2) for y in points]
        total += one * sum(mpmath.exp(-2 * s / mpf(1.5) ** 2) * other for s, other in zip(squares, apart, strict=True))
    return total * mpf(factor) ** 2 / 2


def discrepancy(model, X, weights=None, factor=1):
    """D of a model from rows of a stream."""
    weights = exact(np.ones(len(X)) if weights is None else weights)
    apart = weights / sum(weights)
    for row, value in zip(model.indices_, model.weights_, strict=True):
        apart[row] -= mpf(float(value))
    return energy(X, apart, factor)


def points(n=30, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def test_a_stream_that_is_kept_whole_is_off_by_the_rounding_of_its_weights():
    X, weights = points(3), np.array([0.1, 0.3, 0.7])
    model = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X, sample_weight=weights)
    assert 0 < discrepancy(model, X, weights) <= model.certificate_.upper < 1e-28


def test_a_bound_that_underflows_is_not_zero():
    assert certify_stream(1e-170, 0.0, 1.0, 0).upper > 0


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e-200, 1e307])
def test_weights_count_by_their_ratios(unit):
    X, weights = points(), np.full(30, 2.0 ** math.frexp(unit)[1])
    plain = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[:20]).partial_fit(X[20:])
    model = QuadratureSparsifier(KERNEL, n_nodes=3)
    for rows in (slice(20), slice(20, 30)):
        model.partial_fit(X[rows], sample_weight=weights[rows])
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    assert model.certificate_.upper == plain.certificate_.upper
    assert model.trace_fraction_ == pytest.approx(plain.trace_fraction_)


def test_kernels_and_weights_whose_product_underflows(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 10)
    X, weights = points(), np.full(30, 1e-200)
    model = QuadratureSparsifier(1e-130 * KERNEL, n_nodes=3).partial_fit(X, sample_weight=weights)
    assert 0 < discrepancy(model, X, factor=mpf(1e-130)) <= model.certificate_.upper < 1e-250


def test_weights_beyond_all_measure_are_refused_and_nothing_is_changed():
    X = points()
    model = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X, sample_weight=np.full(30, 1e-10))
    before = model.certificate_
    with pytest.raises(ValueError, match="too large beside those of the first rows"):
        model.partial_fit(X, sample_weight=np.full(30, 1e300))
    assert model.certificate_ is before


def a_fake(distance):
    """A reduction to the same points with weights of sum one, whose distance is what rounding makes of these."""

    def reduced(points, weights, n_nodes):
        shares = weights / weights.sum()
        return Reduced(np.arange(len(shares)), shares, distance(points, weights, shares), 0)

    return Reduction(reduced, lambda points: np.ones(len(points)))


def apart_from(points, weights, shares):
    given, kept = exact(weights), exact(shares)
    return float(mpmath.sqrt(2 * energy(points, given / sum(given) - kept))) * (1 + 1e-15)


@pytest.mark.parametrize("raw", [True, False])
def test_the_rounding_of_weights_that_are_brought_to_a_mass_is_allowed_for(raw):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, weights = 10.0 * np.arange(4.0)[:, None], rng.uniform(1, 9, 4)
        block = Summary(X, weights, np.arange(4), float(weights.sum()))
        after, _ = a_fake(apart_from)(block, 2, raw=raw)
        true = mpmath.sqrt(2 * energy(X, exact(after.weights) - exact(weights)))
        assert true <= after.blocks + after.reductions
        assert (after.blocks == 0, after.reductions == 0) == (not raw, raw)


def test_the_rounding_of_copies_that_are_added_up_is_allowed_for():
    X, weights = np.zeros((40, 1)), np.random.default_rng(0).uniform(0.1, 1, 40)
    block = Summary(X, weights, np.arange(40), float(weights.sum()))
    after, _ = a_fake(apart_from)(block, 2)
    off = abs(mpf(float(after.weights[0])) - sum(exact(weights)))
    assert 0 < off <= after.reductions
    assert after.points.shape == (1, 1)


def test_bounds_of_measures_side_by_side_are_those_of_both():
    one, two = (Summary(points(2), np.ones(2), np.arange(2), 2.0, *bounds) for bounds in ((1.0, 2.0, 3), (4.0, 8.0, 1)))
    both = one.beside(two)
    assert (both.blocks, both.reductions, both.mass, both.level) == (5.0, 10.0, 4.0, 4)
    assert both.points.shape == (4, 2)


def test_the_rounding_of_the_bound_itself_is_allowed_for():
    for blocks, reductions in np.random.default_rng(0).uniform(0, 1, (50, 2)):
        exactly = (Fraction(blocks) + Fraction(reductions)) ** 2 / 2
        assert (
            exactly <= Fraction(certify_stream(blocks, reductions, 1.0, 0).upper) < exactly * (1 + Fraction(1, 10**8))
        )


def test_the_rounding_of_the_last_division_grows_with_the_sums_of_masses():
    X, weights = points(3), np.array([0.1, 0.3, 0.7])
    model = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X, sample_weight=weights)
    one = Summary(X, weights, np.arange(3), float(weights.sum()))
    streams = [replace(model._stream, waiting=(), summaries=(replace(one, level=level),)) for level in (0, 64)]
    few, many = (settled(model, each)[3].reductions for each in streams)
    assert 0 < 10 * few < many


def test_the_discrepancy_stays_that_of_the_first_rows():
    X = points()
    model = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[:20])
    model.set_params(discrepancy="mmd")
    with pytest.raises(ValueError, match="begun with discrepancy='squared'"):
        model.partial_fit(X[20:])
    model.set_params(discrepancy="squared", alpha=0.1)
    with pytest.raises(ValueError, match="alpha needs all rows at once"):
        model.partial_fit(X[20:])


def test_the_arithmetic_stays_that_of_the_first_rows(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 10)
    X = 1e-3 * np.round(points(), 6) + 1000.0  # which single precision cannot tell apart
    X[:, 1] = points()[:, 1]
    model = QuadratureSparsifier(KERNEL, n_nodes=25).partial_fit(X[:10])
    with config_context(dtype="float32"):
        model.partial_fit(X[10:])
        np.testing.assert_array_equal(model.components_, X[model.indices_])
        assert discrepancy(model, X) <= model.certificate_.upper < 1e-11
        assert mercer.verify(model, X).discrepancy < 1e-11


def test_a_stream_with_weights_is_not_verified_as_one_without():
    X, weights = points(), np.r_[np.full(29, 0.5), 15.5]
    model = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X, sample_weight=weights)
    assert not squared_kernel_discrepancy(X, model.components_, KERNEL, y_weights=model.weights_) < 1e-6
    with pytest.raises(ValueError, match="had weights, which the model does not keep"):
        mercer.verify(model, X)
    even = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[:20], sample_weight=np.full(20, 3.0))
    mercer.verify(even, X[:20])
    even.partial_fit(X[20:])
    with pytest.raises(ValueError, match="had weights"):
        mercer.verify(even, X)


@pytest.mark.parametrize("options", [{"evenness": 0.5}, {"potential": "sampled"}])
def test_wishes_for_the_choice_of_nodes_are_refused(options):
    with pytest.raises(ValueError, match="leave evenness and potential='sampled' out"):
        QuadratureSparsifier(KERNEL, n_nodes=3, **options).partial_fit(points())


def test_a_stream_forgets_the_proof_that_an_earlier_fit_left_for_later(monkeypatch):
    monkeypatch.setattr(sampled, "_LEAST_POOL", 20)
    monkeypatch.setattr(sparsifier, "leaves_out_pass", lambda *_: True)
    model = QuadratureSparsifier(KERNEL, n_nodes=3).fit(points())
    assert "_unproved" in vars(model)
    monkeypatch.undo()
    assert "_unproved" not in vars(model.partial_fit(points()))


def test_a_portion_without_weight_changes_nothing():
    X, weights = points(), np.linspace(0.0, 1.0, 30)
    weights[:12] = 0.0
    whole = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[::-1], sample_weight=weights[::-1])
    model = QuadratureSparsifier(KERNEL, n_nodes=3)
    for row in range(29, -1, -1):
        model.partial_fit(X[row : row + 1], sample_weight=weights[row : row + 1])
    np.testing.assert_array_equal(model.indices_, whole.indices_)
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    with pytest.raises(ValueError, match="zero everywhere"):
        QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[:1], sample_weight=[0.0])


def test_a_stream_after_a_fit_is_a_new_one_after_an_array_and_goes_on_after_rows_of_a_file():
    X = points()
    alone = QuadratureSparsifier(KERNEL, n_nodes=3).partial_fit(X[:20])
    np.testing.assert_array_equal(
        QuadratureSparsifier(KERNEL, n_nodes=3).fit(X[20:]).partial_fit(X[:20]).weights_, alone.weights_
    )
    on = QuadratureSparsifier(KERNEL, n_nodes=3).fit(mercer.open_rows(X[:20])).partial_fit(X[20:])
    np.testing.assert_array_equal(on.weights_, alone.partial_fit(X[20:]).weights_)
