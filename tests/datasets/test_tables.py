"""Tables have the shapes and scales the papers give, and draws are reproducible."""

import numpy as np
import pytest

from mercer.datasets import (
    data_folder,
    digits,
    htru2,
    iris,
    marrow,
    mnist_pair,
    standardized,
    swiss_roll,
    wine,
)

real = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")


@pytest.mark.parametrize(("load", "shape", "classes"), [(wine, (178, 13), [59, 71, 48]), (iris, (150, 4), [50] * 3)])
def test_standardised_tables(load, shape, classes):
    X, y = load()
    assert X.shape == shape
    assert np.bincount(y).tolist() == classes
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-13)


def test_digits_are_fractions_of_full_ink():
    X, y = digits()
    assert X.shape == (1797, 64)
    assert (X.min(), X.max()) == (0, 1)
    assert set(y) == set(range(10))


def test_a_constant_column_becomes_zero():
    np.testing.assert_array_equal(standardized([[1, 5], [3, 5]]), [[-1, 0], [1, 0]])


def test_swiss_roll_is_a_rolled_sheet():
    X, angle = swiss_roll(500, random_state=3)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_array_equal(X, swiss_roll(500, random_state=3)[0])
    sheet = angle[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    np.testing.assert_allclose(X[:, [0, 2]], standardized(sheet), atol=1e-12)
    assert np.abs(swiss_roll(500, noise=0.5, random_state=3)[0] - X).max() > 1e-3


@real
def test_mnist_pair():
    X, y = mnist_pair()
    assert X.shape == (12584, 784)
    assert (X.min(), X.max()) == (0, 1)
    assert np.sum(y == 1) == 6742
    assert np.sum(y == 4) == 5842
    some, labels = mnist_pair(n=50, random_state=1)
    np.testing.assert_array_equal(some, mnist_pair(n=50, random_state=1)[0])
    assert set(labels) == {1, 4}
    assert len(np.unique(some, axis=0)) == 50


@real
def test_htru2_is_standardised_before_it_is_drawn():
    X, y = htru2()
    assert X.shape == (17898, 8)
    assert y.sum() == 1639
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-9)
    some, _ = htru2(n=20, random_state=2)
    assert all(np.any(np.all(row == X, axis=1)) for row in some)
    with pytest.raises(ValueError, match="17898"):
        htru2(n=20000)


@real
def test_marrow():
    assert marrow().shape == (4142, 100)
    assert marrow().dtype == np.float64
