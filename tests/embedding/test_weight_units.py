"""Weights have no unit: their ratios decide, whatever power of ten they come in."""

import numpy as np
import pytest

import mercer
from mercer import DiffusionOperator, Gaussian, GramOperator, QuadratureSparsifier, SDPEmbedding
from mercer.validation import normalised

UNITS = [2.0**-660, 2.0**512, 2.0**532, 2.0**1020]  # about 1e-199, 1e154, 1e160, 1e307


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 3))


@pytest.fixture(scope="module")
def w():
    return np.random.default_rng(1).uniform(0.5, 2, 40)


@pytest.mark.parametrize("unit", [*UNITS, 2.0**-1074])
def test_weights_that_sum_to_one_are_the_same_bit_for_bit(unit):
    w = np.array([1.0, 3.0, 2.0, 1.0])
    assert np.array_equal(normalised(unit * w, 4), normalised(w, 4))
    assert np.isclose(normalised(unit * w, 4).sum(), 1)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rule", ["median", "slope"])
def test_bandwidths_are_the_same_bit_for_bit(unit, rule, X, w):
    assert Gaussian(rule).resolve(X, unit * w).sigma == Gaussian(rule).resolve(X, w).sigma


@pytest.mark.parametrize("value", [1e-310, 1e-200, 0.3, 7.0, 1e154, 1e160, 1e308])
def test_the_median_under_equal_weights_is_the_median(value, X):
    assert Gaussian().resolve(X, np.full(40, value)).sigma == Gaussian().resolve(X).sigma


@pytest.mark.parametrize("unit", UNITS)
def test_embeddings_are_the_same_bit_for_bit_but_for_their_unit(unit, X, w):
    once, far = (SDPEmbedding(Gaussian(), random_state=0).fit(X, sample_weight=u * w) for u in (1.0, unit))
    root = np.sqrt(unit)
    assert far.certificate_.lower == once.certificate_.lower
    assert far.certificate_.upper == once.certificate_.upper
    assert np.array_equal(far.embedding_ * root, once.embedding_)
    assert np.array_equal(far.transform(X + 0.1) * root, once.transform(X + 0.1))
    np.testing.assert_allclose(far.diagonal_ * unit, once.diagonal_, rtol=1e-12)
    np.testing.assert_allclose(far.novelty(X), once.novelty(X) - np.log(unit), rtol=1e-14)
    assert np.array_equal(far.sample_weight_, unit * w)
    again, first = (mercer.verify(model, X, random_state=0) for model in (far, once))
    assert (again.lower, again.upper) == (first.lower, first.upper)


def test_a_warm_start_in_another_unit(X, w):
    model = SDPEmbedding(Gaussian(), warm_start=True, random_state=0).fit(X, sample_weight=1e-300 * w)
    model.fit(X, sample_weight=w)
    assert model.certificate_.holds(1e-6)


def test_weights_whose_lengths_cannot_be_written_are_refused(X):
    with pytest.raises(ValueError, match="go as one over the weights, and exceed the largest number: multiply"):
        SDPEmbedding(Gaussian(), random_state=0).fit(X, sample_weight=np.full(40, 1e-310))


@pytest.mark.parametrize("unit", UNITS)
def test_landmarks_stand_for_weights_of_any_unit(unit, X, w):
    def fit(u):
        nodes = QuadratureSparsifier(Gaussian(2.0), n_nodes=10)
        return SDPEmbedding(Gaussian(2.0), landmarks=nodes, random_state=0).fit(X, sample_weight=u * w)

    if unit > 2.0**1000:
        with pytest.raises(ValueError, match="stands for more weight than the largest number"):
            fit(2.0**1022)
        return
    assert np.array_equal(fit(unit).landmarks_, fit(1.0).landmarks_)
    np.testing.assert_allclose(fit(unit).embedding_ * np.sqrt(unit), fit(1.0).embedding_, rtol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-660, 2.0**532])
def test_a_diffusion_operator_takes_weights_of_any_unit(unit, X, w):
    near, far = (DiffusionOperator(GramOperator(Gaussian(1.0), X, weights=u * w)) for u in (1.0, unit))
    assert np.array_equal(near.stationary, far.stationary)
    np.testing.assert_allclose(far.to_dense(), near.to_dense(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_row_too_light_for_the_arithmetic_is_one_without_weight(dtype, X, w):
    light, none = w.copy(), w.copy()
    light[3], none[3] = 1e-300 if dtype == "float64" else 1e-35, 0.0
    with mercer.config_context(dtype=dtype):
        options = {"tol": 1e-3, "residual_tol": 1e-3, "random_state": 0}
        a, b = (SDPEmbedding(Gaussian(2.0), **options).fit(X, sample_weight=v) for v in (light, none))
    assert np.array_equal(a.embedding_, b.embedding_)
    assert np.isfinite(a.embedding_).all()


def test_weights_of_a_bandwidth_are_checked(X):
    with pytest.raises(ValueError, match="sample_weight is negative at index 3"):
        Gaussian().resolve(X, np.where(np.arange(40) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="there is one of positive weight: pass a number"):
        Gaussian().resolve(X, np.eye(40)[3])
