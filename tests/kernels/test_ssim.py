"""Structural similarity of images: against scikit-image with the published constants, and its kernel's definiteness."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from mercer import SSIM, GramOperator

rng = np.random.default_rng(0)
DIGITS = load_digits().data[:60]
SMOOTH = np.cumsum(np.cumsum(rng.normal(size=(8, 14, 17)), axis=1), axis=2).reshape(8, -1)
COLOURS = rng.uniform(0, 255, (5, 13 * 12 * 3))


def oracle(X, Y, shape, **options):
    similarity = pytest.importorskip("skimage.metrics").structural_similarity
    axis = None if len(shape) == 2 else 2
    return np.array(
        [
            [
                similarity(
                    x.reshape(shape), y.reshape(shape), use_sample_covariance=False, channel_axis=axis, **options
                )
                for y in Y
            ]
            for x in X
        ]
    )


@pytest.mark.parametrize(
    ("X", "shape", "ours", "theirs"),
    [
        (SMOOTH, (14, 17), {"data_range": 40.0}, {"gaussian_weights": True, "sigma": 1.5}),
        (COLOURS, (13, 12, 3), {"data_range": 255}, {"gaussian_weights": True, "sigma": 1.5}),
        (SMOOTH, (14, 17), {"data_range": 40.0, "window": "uniform"}, {"win_size": 7}),
        (DIGITS[:12], (8, 8), {"data_range": 16, "window": "uniform", "size": 5}, {"win_size": 5}),
        (SMOOTH, (14, 17), {"data_range": 9.0, "size": 7, "sigma": 0.9}, {"gaussian_weights": True, "sigma": 0.9}),
    ],
)
def test_the_index_is_scikit_images(X, shape, ours, theirs):
    kernel = SSIM(shape, **ours).resolve(X)
    want = oracle(X, X[:4], shape, data_range=ours["data_range"], **theirs)
    assert_allclose(kernel.similarity(X, X[:4]), want, atol=1e-12)
    assert_allclose(kernel.similarity(X).diagonal(), 1.0, atol=1e-14)


def by_hand(x, y, window, span):
    """Means of S₁S₂ and of 2 - S₁ - S₂, window by window."""
    p, index, squared = len(window), [], []
    for r in range(x.shape[0] - p + 1):
        for q in range(x.shape[1] - p + 1):
            a, b = (image[r : r + p, q : q + p] for image in (x, y))
            m, n = np.sum(window * a), np.sum(window * b)
            v, w = np.sum(window * (a - m) ** 2), np.sum(window * (b - n) ** 2)
            c = np.sum(window * (a - m) * (b - n))
            first = (2 * m * n + (0.01 * span) ** 2) / (m**2 + n**2 + (0.01 * span) ** 2)
            second = (2 * c + (0.03 * span) ** 2) / (v + w + (0.03 * span) ** 2)
            index.append(first * second)
            squared.append(2 - first - second)
    return np.mean(index), np.mean(squared)


@pytest.mark.parametrize("distance", ["metric", "index"])
def test_the_distance_and_its_kernel_are_those_of_the_definition(distance, on):
    X, shape = SMOOTH, (14, 17)
    away = np.arange(11) - 5
    line = np.exp(-(away**2) / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2
    pairs = [[by_hand(x.reshape(shape), y.reshape(shape), window, 30.0) for y in X] for x in X]
    D = np.array([[1 - index if distance == "index" else squared for index, squared in row] for row in pairs])
    kernel = on(SSIM(shape, distance, data_range=30.0).resolve(X))
    H = np.eye(8) - 1 / 8
    allowed = GramOperator(SSIM(shape, distance, data_range=30.0).resolve(X), X).entry_error.absolute
    assert np.abs(kernel(X) + 0.5 * H @ D @ H).max() < allowed < 1e-7
    assert_allclose(kernel(X), -0.5 * H @ D @ H, atol=1e-12)
    assert_allclose(kernel(X[:3], X), (-0.5 * H @ D @ H)[:3], atol=1e-12)
    assert np.array_equal(kernel(X).diagonal(), kernel.diag(X))


@pytest.mark.parametrize("distance", ["metric", "index"])
def test_the_kernel_is_positive_semi_definite(distance):
    """S₁ and S₂ are Mercer kernels of windows: an inner product times 1/(a + b)."""
    noisy = DIGITS + rng.normal(size=DIGITS.shape) * rng.uniform(0, 20, (60, 1))
    extremes = np.concatenate([noisy, -noisy[:20], noisy[:20] + 1e3, 1e-3 * noisy[:20]])
    kernel = SSIM((8, 8), distance, 16.0, "uniform", 3).resolve(extremes)
    values = np.linalg.eigvalsh(kernel(extremes))
    assert kernel.properties.positive_definite is True
    assert values[0] > -1e-12 * values[-1]
    assert np.linalg.eigvalsh(kernel.similarity(extremes))[0] > -1e-12 * len(extremes)
    assert np.abs(kernel(extremes)).max() < 4  # bounded


def test_the_distance_obeys_the_triangle_inequality():
    kernel = SSIM((8, 8), data_range=16.0, window="uniform", size=5).resolve(DIGITS)
    K = kernel(DIGITS)
    D = np.sqrt(np.maximum(K.diagonal()[:, None] + K.diagonal() - 2 * K, 0))
    assert np.all(D[:, :, None] <= D[:, None, :] + D[None].swapaxes(1, 2).swapaxes(0, 1).swapaxes(1, 2) + 1e-9)


def test_the_data_range_is_that_of_the_training_images():
    kernel = SSIM((14, 17)).resolve(SMOOTH)
    assert kernel.data_range == SMOOTH.max() - SMOOTH.min()
    assert np.array_equal(kernel(SMOOTH), SSIM((14, 17), data_range=kernel.data_range).resolve(SMOOTH)(SMOOTH))


def test_precisions_products_and_pickles():
    kernel = SSIM((8, 8), data_range=16.0, window="uniform", size=5).resolve(DIGITS)
    K = kernel(DIGITS)
    narrow = kernel(DIGITS.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, K, atol=1e-5)
    v = rng.normal(size=(60, 2))
    assert_allclose(GramOperator(pickle.loads(pickle.dumps(kernel)), DIGITS) @ v, K @ v, atol=1e-12)
    assert GramOperator(kernel, DIGITS).entry_error.absolute < 1e-8
    few = SSIM((8, 8), data_range=16.0, window="uniform", size=5, n_center=7).resolve(DIGITS)
    H = np.eye(60) - 1 / 60
    assert_allclose(H @ few(DIGITS) @ H, K, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SSIM((8, 8)), "No window of 11 × 11 pixels lies in an image of 8 × 8: pass a smaller size"),
        (lambda: SSIM((8, 9), size=5), r"X has 64 features, but shape=\(8, 9\) is that of 72 pixels"),
        (lambda: SSIM(64), r"shape=64 must be \(height, width\)"),
        (lambda: SSIM((8.0, 8)), "an extent of shape=8.0 must be a whole number"),
        (lambda: SSIM((8, 8), size=4), "size=4 must be odd"),
        (lambda: SSIM((8, 8), "brunet", size=5), "distance='brunet' must be one of 'metric', 'index'"),
        (lambda: SSIM((8, 8), window="round"), "window='round' must be one of"),
        (lambda: SSIM((8, 8), data_range=0.0, size=5), "data_range=0.0 must be greater than 0"),
        (lambda: SSIM((8, 8), sigma=-1.0, size=5), "sigma=-1.0 must be"),
    ],
)
def test_what_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make().resolve(DIGITS)


def test_images_without_a_range_are_refused():
    with pytest.raises(ValueError, match="All pixels of the training images are equal"):
        SSIM((8, 8), size=5).resolve(np.ones((4, 64)))
