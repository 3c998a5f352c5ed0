"""HSIC from features of landmarks: the statistics of all shifts, the level, what is refused."""

import numpy as np
import pytest

from mercer import Categories, Gaussian, Landmarks, Laplacian, Precomputed, hsic, hsic_test
from mercer.dependence import compressed_hsic

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 2))
Y = X[:, :1] ** 2 + 0.5 * rng.normal(size=(90, 1))
K, L = Gaussian(1.5), Gaussian(1.0)


def test_with_every_row_a_landmark_it_is_hsic():
    result = hsic_test(X, Y, K, L, compress=90, rng=0)
    assert result.statistic == pytest.approx(hsic(X, Y, K, L), rel=1e-4)
    assert result.n_resamples == 89
    assert result.pvalue == pytest.approx(1 / 90)


@pytest.mark.parametrize("resamples", [10, 29, 89])
def test_every_resample_is_hsic_of_a_reordering(monkeypatch, resamples):
    """Against the definition, with bins of one row and of several, and rows left over."""
    kept = []
    original = compressed_hsic._side
    monkeypatch.setattr(compressed_hsic, "_side", lambda *args: kept.append(original(*args)) or kept[-1])
    found = hsic_test(X[:89], Y[:89], K, L, n_resamples=resamples, compress=12, rng=5)
    size = max(1, 89 // (resamples + 1))
    bins = 89 // size
    order = np.random.default_rng(5).permutation(89)
    phi, psi = (side.at(order) for side in kept)
    expected = []
    for s in range(bins):
        moved = np.arange(89)
        moved[: bins * size] = (np.arange(bins * size) + s * size) % (bins * size)
        expected.append(np.sum((phi.T @ psi[moved]) ** 2) / 88**2)
    assert found.statistic == pytest.approx(expected[0], rel=1e-9)
    assert found.n_resamples == min(resamples, bins - 1)
    for value in found.null_distribution:
        assert np.min(np.abs(np.array(expected[1:]) - value)) < 1e-12


def test_several_kernels_have_their_own_statistics():
    kernels = [K, Laplacian(2.0)]
    together = hsic_test(X, Y, kernels, [L, Gaussian(3.0)], compress=90, rng=0)
    for part in together.parts:
        assert part.statistic == pytest.approx(hsic(X, Y, *part.kernel), rel=1e-3)
    assert together.rejects(0.05)


@pytest.mark.parametrize("compress", ["landmarks", 20, Landmarks(20)])
def test_the_default_finds_what_the_full_test_finds(compress):
    found = hsic_test(X, Y, compress=compress, n_resamples=60, rng=1)
    assert found.rejects(0.05)
    assert "Y depends on X" in str(found)
    again = hsic_test(X, Y, compress=compress, n_resamples=60, rng=1)
    assert np.array_equal(found.null_distribution, again.null_distribution)
    assert found.witness(X[:3], Y[:3]).shape == (3,)


def test_texts_and_numbers():
    kind = np.where(X[:, 0] > 0, "high", "low")
    assert hsic_test(X, kind, compress=30, n_resamples=50, rng=0).rejects(0.05)
    assert hsic_test(X, kind, K, Categories(), compress=30, n_resamples=50, rng=0).rejects(0.05)


def test_the_level_is_held_on_tied_data():
    """Of 60 tests at 10 % fewer than 26 % reject: four standard deviations."""
    rejected = 0
    for seed in range(60):
        chance = np.random.default_rng(seed)
        x, y = chance.integers(0, 4, 33).astype(float), chance.integers(0, 3, 33).astype(float)
        rejected += hsic_test(x, y, Gaussian(1.0), Gaussian(1.0), n_resamples=19, compress=4, rng=seed).rejects(0.1)
    assert rejected < 16


def test_ties_do_not_reject():
    x = np.repeat([0.1, 0.7], 40)
    y = np.tile([0.3, 1.1], 40)  # as independent as can be, in any order of the pairs
    found = hsic_test(x, y, K, L, compress=2, n_resamples=39, rng=0)
    assert found.pvalue == 1.0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"compress": "thinning"}, "compress='thinning' must be \"landmarks\""),
        ({"compress": True}, "compress=True must be"),
        ({"compress": 1}, "must be a whole number of at least 2"),
        ({"estimator": "unbiased"}, "compress does not go with estimator='unbiased'"),
        ({"sample_weight": np.ones(90)}, "compress does not go with weights"),
        ({"null": "gamma", "x_kernel": K, "y_kernel": L}, 'compress belongs to null="permutation"'),
        ({"scheme": "shifts"}, "scheme='shifts' does not go with compress"),
        ({"x_kernel": Precomputed()}, "Precomputed"),
    ],
)
def test_bad_input_is_named(options, sentence):
    data = K(X) if "x_kernel" in options and isinstance(options["x_kernel"], Precomputed) else X
    with pytest.raises(ValueError, match=sentence):
        hsic_test(data, Y, **{"compress": 10, **options})
