"""The interval [-1, 1], where the answer is known (PSD17 section 6.2, converged)."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, SDPEmbedding
from mercer.datasets import interval

_CASES = {"narrow": (0.1, 2001), "middle": (0.7, 2001), "even": (1.0, 2000), "odd": (1.0, 2001)}


@pytest.fixture(scope="module")
def models():
    fitted = {}

    def fit(name):
        if name not in fitted:
            sigma, n = _CASES[name]
            X = interval(n)
            fitted[name] = X, SDPEmbedding(Gaussian(sigma=sigma), random_state=0).fit(X)
        return fitted[name]

    return fit


@pytest.mark.parametrize(("name", "rank"), [("narrow", 2), ("middle", 2), ("even", 1), ("odd", 2)])
def test_rank_and_everything_that_always_holds(name, rank, models):
    X, model = models(name)
    assert model.rank_ == rank
    assert model.embedding_.shape == (len(X), rank)
    assert model.certificate_.holds(1e-6)
    assert model.status_.name == "CONVERGED"
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-11)
    scale = np.abs(model.embedding_).max()
    assert np.abs(model.transform(X.copy()) - model.embedding_).max() < 1e-5 * scale
    assert model.eigenvalues_.sum() == pytest.approx(1.0, abs=1e-12)
    least = model.certificate_.least_eigenvalues
    assert np.all(np.abs(least[:rank]) < 1e-6)
    assert least[rank] > 1e-4


def test_spectrum_of_the_middle_bandwidth(models):
    _, model = models("middle")
    np.testing.assert_allclose(model.eigenvalues_, [0.991575, 0.008425], atol=1e-6)


def test_even_number_of_points_has_the_closed_form(models):
    """Rank one: plus or minus sign(x) √d."""
    X, model = models("even")
    closed = np.sign(X[:, 0]) * np.sqrt(model.diagonal_)
    sign = np.sign(closed @ model.embedding_[:, 0])
    np.testing.assert_allclose(sign * model.embedding_[:, 0], closed, atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, [1.0], atol=1e-12)
    assert model.certificate_.relative_gap < 1e-10


def test_odd_number_of_points_turns_the_middle_one_into_a_dimension(models):
    X, model = models("odd")
    assert model.eigenvalues_[0] == pytest.approx(0.999855, abs=1e-6)
    assert model.eigenvalues_[1] == pytest.approx(1.446e-4, rel=1e-3)
    middle = model.embedding_[1000]
    assert X[1000, 0] == 0
    assert abs(middle[0]) < 1e-5 * abs(middle[1])


@pytest.mark.parametrize("name", ["narrow", "middle", "odd"])
def test_mirror_symmetry(name, models):
    """x → -x turns the embedding into its mirror image: the learned kernel does not notice."""
    _, model = models(name)
    E = model.embedding_[::50]
    mirrored = model.embedding_[::-1][::50]
    np.testing.assert_allclose(mirrored @ mirrored.T, E @ E.T, atol=1e-5 * model.diagonal_.max())
