"""The Hilbert-Schmidt independence criterion: its definition, its kin, and what it accepts."""

import numpy as np
import pytest

from mercer import Gaussian, Laplacian, Linear, Precomputed, config_context, hsic, mmd
from mercer.kernels import Categories


def two_variables(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.sin(2 * x[:, :1]) + 0.3 * rng.normal(size=(n, 1))


def test_it_is_the_trace_of_centred_matrices():
    x, y = two_variables()
    k, l, n = Gaussian(1.3), Laplacian(0.7), 40
    centring = np.eye(n) - 1 / n
    expected = np.trace(k(x) @ centring @ l(y) @ centring) / (n - 1) ** 2
    assert hsic(x, y, k, l) == pytest.approx(expected, rel=1e-12)


def test_it_is_the_squared_norm_of_a_cross_covariance():
    x, y = two_variables()
    cross = (x - x.mean(0)).T @ (y - y.mean(0)) / (len(x) - 1)
    with pytest.warns(UserWarning, match="not characteristic"):
        assert hsic(x, y, Linear(), Linear()) == pytest.approx((cross**2).sum(), rel=1e-12)


def test_it_is_the_discrepancy_of_joint_law_and_product_of_margins():
    x, y = two_variables(12)
    k, l, n = Gaussian(1.3), Laplacian(0.7), 12
    pairs = np.concatenate([np.repeat(x, n, axis=0), np.tile(y, (n, 1))], axis=1)
    distance = mmd(np.concatenate([x, y], axis=1), pairs, k.on([0, 1]) * l.on([2]))
    assert hsic(x, y, k, l) == pytest.approx(distance * (n / (n - 1)) ** 2, rel=1e-10)


def test_unbiased_is_the_sum_over_quadruples():
    from itertools import permutations

    x, y = two_variables(7)
    K, L = Gaussian(1.3)(x), Laplacian(0.7)(y)
    terms = [
        K[i, j] * (L[i, j] + L[q, r] - L[i, q] - L[j, r]) for i, j, q, r in permutations(range(7), 4)
    ]  # the kernel of the U-statistic, whose symmetrisation has the same mean
    assert hsic(x, y, Gaussian(1.3), Laplacian(0.7), estimator="unbiased") == pytest.approx(np.mean(terms), rel=1e-10)


def test_a_weight_of_two_is_the_row_twice():
    x, y = two_variables(15)
    counts = np.random.default_rng(1).integers(0, 4, 15)
    rows = np.repeat(np.arange(15), counts)
    weighed = hsic(x, y, sample_weight=counts)
    assert weighed == pytest.approx(hsic(x[rows], y[rows]), rel=1e-12)


def test_large_samples_take_no_matrix_and_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("mercer.dependence.centred_gram._STORED", 10)
    x, y = two_variables(900)
    plain = np.trace((H := np.eye(900) - 1 / 900) @ Gaussian(1.0)(x) @ H @ Laplacian(0.7)(y)) / 899**2
    seen: list[float] = []
    for threads in (1, 2):
        with config_context(n_threads=threads, memory_limit="64MB"):
            seen.append(hsic(x, y, Gaussian(1.0), Laplacian(0.7)))
    assert seen[0] == seen[1] == pytest.approx(plain, rel=1e-11)
    unbiased = hsic(x, y, Gaussian(1.0), Laplacian(0.7), estimator="unbiased")
    assert unbiased == pytest.approx(_unbiased(Gaussian(1.0)(x), Laplacian(0.7)(y)), rel=1e-9)


def _unbiased(K, L):
    """(4) of Song et al. 2012 as it is printed."""
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    total = np.trace(K @ L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * (K.sum(0) @ L.sum(0)) / (n - 2)
    return total / (n * (n - 3))


def test_vectors_matrices_texts_frames_tensors_and_single_precision():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    x, y = two_variables(30)
    expected = hsic(x, y)
    assert hsic(x, y[:, 0]) == expected
    assert hsic(torch.as_tensor(x), torch.as_tensor(y)) == expected
    assert hsic(Gaussian().resolve(x)(x), y, Precomputed()) == pytest.approx(expected, rel=1e-12)
    with config_context(dtype="float32"):
        assert hsic(x, y) == pytest.approx(expected, rel=1e-4)
    colours = np.array(["red", "blue", "green"])[np.arange(30) % 3]
    codes = (np.arange(30) % 3)[:, None]
    by_colour = hsic(codes, y, Categories(1.0))
    assert hsic(colours, y) == pytest.approx(by_colour, rel=1e-12)
    assert hsic(pandas.Series(colours), y) == pytest.approx(by_colour, rel=1e-12)
    frame = pandas.DataFrame({"size": x[:, 0], "colour": colours})
    both = Gaussian("columns").on([0]) * Categories().on([1])
    assert hsic(frame, y) == pytest.approx(hsic(np.c_[x[:, 0], codes], y, both), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((np.zeros((3, 1)), np.zeros((4, 1))), {}, "the same in all 3 rows"),
        ((np.arange(3.0), np.arange(4.0)), {}, "X has 3 rows and Y has 4"),
        ((np.arange(3.0), np.arange(3.0)), {"estimator": "unbiased"}, "4 are needed"),
        ((np.arange(1.0), np.arange(1.0)), {}, "two observations or more"),
        ((np.array([1.0, np.nan, 2.0]), np.arange(3.0)), {}, "X has nan in row 1"),
        ((np.arange(3.0), np.arange(3.0)), {"estimator": "linear"}, "must be one of"),
        ((np.arange(4.0), np.arange(4.0)), {"sample_weight": np.full(4, 0.25)}, "its sum must be more than one"),
        ((np.arange(4.0), np.arange(4.0)), {"sample_weight": np.ones(4), "estimator": "unbiased"}, "leave it out"),
        ((np.arange(4.0), np.arange(4.0)), {"x_kernel": []}, "x_kernel is an empty list"),
        ((np.eye(3), np.arange(3.0)), {"x_kernel": [Precomputed(), Gaussian()]}, "give it alone"),
        ((np.arange(4.0), np.arange(4.0)), {"y_kernel": ["rbf", "laplacian"]}, "hsic takes one kernel"),
        ((np.array([["a", "b"], ["c", "d"]]), np.arange(2.0)), {}, "X must hold numbers"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        hsic(*arguments, **options)
