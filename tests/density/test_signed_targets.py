"""Targets with negative coefficients: SOS Lemma 3 by its own formula, cancellation, certificates, and what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

import mercer
from mercer import Gaussian, MeanEmbedding, SumOfSquaresDensity
from mercer.kernels.integrals import kernel_integrals
from mercer.problems.sum_of_squares_enclosures import exact_shares

KERNEL = Gaussian(1.0)


@pytest.fixture(scope="module")
def mixture():
    """Signal and background in equal parts, and background alone: twice the first less the second is the signal."""
    rng = np.random.default_rng(0)
    signal, background = rng.normal([2.0, 0.0], 0.5, (300, 2)), rng.normal([-1.0, 0.0], 1.0, (600, 2))
    X = np.concatenate([signal, background])
    return X, np.concatenate([np.full(600, 2 / 600), np.full(300, -1 / 300)])


@pytest.fixture(scope="module")
def model(mixture):
    X, weights = mixture
    return SumOfSquaresDensity(KERNEL, support=X[::30], signed=True).fit(X, sample_weight=weights)


def test_a_background_is_taken_off(model):
    assert np.allclose(model.mean(), [2.0, 0.0], atol=0.35)  # the sample's own mean is at -0.5
    assert model.density([[2.0, 0.0]])[0] > 20 * model.density([[-1.0, 0.0]])[0]


def test_the_distance_is_that_of_lemma_3(mixture, model):
    """U(B)ᵀK̃⁻¹U(B) - 2⟨B, V⟩ + ‖P_m v‖² with V_pq = u_pqᵀK̃⁻¹K(X̃, X)a (11), from the tensor of the support."""
    X, weights = mixture
    Z, B = model.support_, model.coefficients_
    integrals = kernel_integrals(KERNEL, Z, model.measure_)
    scale = np.exp(integrals.log_scale)
    tensor = scale * np.stack([integrals.weighted_mass(row) for row in np.eye(Z.shape[0])], axis=2)
    inverse, sections = np.linalg.pinv(KERNEL(Z), rcond=1e-11), KERNEL(Z, X) @ (weights / weights.sum())
    U, V = np.einsum("pq,pqr->r", B, tensor), tensor @ (inverse @ sections)
    squared = U @ inverse @ U - 2 * np.sum(B * V) + sections @ inverse @ sections
    assert model.projected_mmd_**2 == pytest.approx(squared, rel=1e-4)
    assert model.sample_norm_**2 == pytest.approx(sections @ inverse @ sections, rel=1e-6)


def test_the_whole_distance_is_that_of_the_embeddings(mixture, model):
    X, weights = mixture
    target = MeanEmbedding(KERNEL, X, weights / weights.sum())
    assert model.mmd_ == pytest.approx(target.distance(MeanEmbedding.of_density(model)), rel=1e-6)


def test_the_certificate_bounds_every_density_and_is_verified(mixture, model):
    X, weights = mixture
    proof = mercer.verify(model, X)
    assert proof.holds(1e-6)
    plain = SumOfSquaresDensity(KERNEL, support=X[::30], regularization=model.regularization_).fit(X[:300])
    integrals = kernel_integrals(KERNEL, model.support_, model.measure_)
    inverse, v = (
        np.linalg.pinv(KERNEL(model.support_), rcond=1e-11),
        KERNEL(model.support_, X) @ weights / weights.sum(),
    )
    rest = integrals.embed(plain._factor @ plain._factor.T) - v  # the density of the signal alone is one of the class
    value = rest @ inverse @ rest + model.regularization_ * np.sum(plain.coefficients_ * KERNEL(model.support_))
    assert value >= proof.lower * (1 - 1e-6)
    copy = pickle.loads(pickle.dumps(model))
    copy.sample_weight_ = np.abs(copy.sample_weight_)
    with pytest.raises(ValueError, match="damaged|changed|not the data"):
        mercer.verify(copy, X)


def test_weights_of_equal_rows_cancel():
    rng = np.random.default_rng(1)
    X, extra = rng.normal(size=(60, 2)), rng.normal(size=(20, 2)) + 3.0
    weights = np.concatenate([np.full(60, 3.0), np.full(60, -2.0), np.full(20, 5.0), np.full(20, -5.0)])
    signed = SumOfSquaresDensity(KERNEL, support=X[:10], regularization=1e-3, tol=1e-9, signed=True)
    signed.fit(np.concatenate([X, X, extra, extra]), sample_weight=weights)
    plain = SumOfSquaresDensity(KERNEL, support=X[:10], regularization=1e-3, tol=1e-9).fit(X)
    assert signed.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-9)
    assert np.allclose(signed.density(X), plain.density(X), rtol=1e-4, atol=1e-7)
    units = SumOfSquaresDensity(KERNEL, support=X[:10], regularization=1e-3, tol=1e-9, signed=True)
    units.fit(np.concatenate([X, X, extra, extra]), sample_weight=2.0**-900 * weights)
    assert np.array_equal(units.coefficients_, signed.coefficients_)


def test_weights_that_are_not_negative_mean_the_same_with_and_without():
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(50, 2)), rng.uniform(0.0, 1.0, 50)
    one, other = (
        SumOfSquaresDensity(KERNEL, support=10, random_state=0, signed=s).fit(X, sample_weight=weights)
        for s in (False, True)
    )
    assert np.array_equal(one.coefficients_, other.coefficients_)


def test_shares_of_signed_weights_are_exact():
    """A sum that cancels to a millionth of its terms: the radius covers what is lost, and is small."""
    weights = np.array([1.0, 0.3, -1.3 + 1e-6, -(2.0**-60)])
    shares = exact_shares(weights, 4)
    total = sum(map(Fraction, weights))
    for k, weight in enumerate(weights):
        off = abs(Fraction(float(shares.hi[k])) + Fraction(float(shares.lo[k])) - Fraction(weight) / total)
        assert off <= Fraction(float(shares.radius[k]))
        assert float(shares.radius[k]) <= 1e-22 * max(abs(float(shares.hi[k])), 1.0) * 1e6
    heavy = exact_shares(np.array([2.0**-1000, -(2.0**1000), 2.0**1001]), 3)
    assert heavy.hi[1] == -1.0


@pytest.mark.parametrize(
    ("weights", "signed", "sentence"),
    [
        ([1.0, -1.0, 2.0], False, "negative at index 1: weights must not be negative, unless signed=True"),
        ([1.0, -1.0, 0.0], True, "the target is divided by the sum, so that a signed one needs a positive sum"),
        ([-1.0, -1.0, 1.0], True, "sums to -1: "),
        ([0.0, 0.0, 0.0], True, "needs a positive sum"),
        ([1.0, np.nan, 1.0], True, "has a NaN or an infinity at index 1"),
        ([1.0, 1.0], True, "one entry for each of the 3 points"),
    ],
)
def test_weights_that_make_no_target_are_refused(weights, signed, sentence):
    with pytest.raises(ValueError, match=sentence):
        SumOfSquaresDensity(KERNEL, signed=signed).fit(np.eye(3)[:, :2], sample_weight=weights)


def test_signed_is_true_or_false():
    with pytest.raises(ValueError, match="signed"):
        SumOfSquaresDensity(KERNEL, signed="yes").fit(np.eye(3))
