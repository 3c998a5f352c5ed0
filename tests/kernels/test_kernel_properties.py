"""What is declared of kernels, against what can be measured of them; counterexamples to rules that would say too much."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space

from mercer import MeanEmbedding, SumOfSquaresDensity, mmd
from mercer.kernels import (
    SSIM,
    Categories,
    ChiSquared,
    Cosine,
    FromDistance,
    Gaussian,
    Geodesic,
    GraphLaplacian,
    Laplacian,
    Linear,
    LocallyLinear,
    Matern,
    Mixed,
    Polynomial,
    Precomputed,
    Properties,
    SelfTuning,
    Sigmoid,
    Sobolev,
)
from mercer.kernels.base import spelled
from mercer.kernels.properties import EVERYTHING, of_normalized, of_power, of_product, of_sum

NOTHING = Properties()
STRICT = "integrally_strictly_positive_definite"
PSD = replace(NOTHING, positive_definite=True)
BASES = [
    Gaussian(1.0),
    Laplacian(1.5),
    Matern(1.5, 1.0),
    Sobolev(2.2, 0.8),
    Linear(),
    Polynomial(2, 0.5, 1.0),
    Polynomial(3, 0.5, 0.0),
    Polynomial(2, 0.5, -1.0),
    Sigmoid(0.5, 0.3),
    Cosine(),
    ChiSquared(0.7),
]
PAIRS = [
    join(a, b)
    for a, b in itertools.combinations_with_replacement(BASES, 2)
    for join in (type(a).__add__, type(a).__mul__)
]
POWERS = [k**p for k in BASES for p in (2, 3, 0.5, 1.5) if p in (2, 3) or k.properties.positive]
ALL = [*BASES, *PAIRS, *POWERS, *(k.normalized() for k in BASES if k.properties.positive_definite)]
rng = np.random.default_rng(0)
NEAR = rng.uniform(0.2, 3.0, (7, 2))
SIGNED = rng.uniform(-3.0, 3.0, (40, 2))


def domain(kernel):
    """Points of both signs, or of one where a chi-squared kernel is inside."""
    return np.abs(SIGNED) if "ChiSquared" in spelled(kernel) else SIGNED


# --- what is said is so ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_declared_is_measured(kernel):
    said, X = kernel.properties, domain(kernel)
    K = kernel(X)
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-10 * values[-1] or said.positive_definite is not True
    assert values[0] < -1e-6 * values[-1] or said.positive_definite is not False
    assert K.min() >= 0 or said.positive is not True
    assert K.min() < 0 or said.positive is not False
    assert np.allclose(kernel(X + 0.7), K, rtol=1e-9) or said.stationary is not True
    assert not np.allclose(kernel(X + 0.7), K, rtol=1e-3) or said.stationary is not False
    far = np.abs(kernel(1e4 * X)).max()
    assert far <= 10 or said.bounded is not True
    assert far > 100 or said.bounded is not False
    if getattr(said, STRICT):
        few = np.linalg.eigvalsh(kernel(NEAR))
        assert few[0] > 1e-9 * few[-1]
    if said.finite_rank:
        line = np.linspace(0.5, 3.0, 40)[:, None]
        assert np.linalg.matrix_rank(kernel(line), tol=1e-10 * np.abs(kernel(line)).max()) < 12


def some_kernel(depth, rng):
    """A kernel made of kernels at random."""
    if depth == 0:
        return BASES[rng.integers(len(BASES))]
    kernel, how = some_kernel(depth - 1, rng), rng.integers(5)
    if how == 0:
        return kernel + some_kernel(depth - 1, rng)
    if how == 1:
        return kernel * some_kernel(depth - 1, rng)
    if how == 2 and kernel.properties.positive_definite:
        return kernel.normalized()
    return kernel ** (float(rng.choice([0.4, 1.3])) if kernel.properties.positive and how == 3 else 2) * 0.7


def test_kernels_made_of_kernels_of_kernels_are_what_they_say():
    told = dict.fromkeys(("positive_definite", "positive", "stationary", "characteristic", STRICT), 0)
    for seed in range(150):
        kernel = some_kernel(3, np.random.default_rng(seed))
        said, X = kernel.properties, domain(kernel)[:25]
        K, scale = kernel(X), np.abs(kernel.diag(X)).max()
        values, few = np.linalg.eigvalsh(K), np.linalg.eigvalsh(kernel(NEAR[:4]))
        assert said.positive_definite in (None, bool(values[0] >= -1e-11 * len(X) * scale)), kernel
        assert said.positive is not True or K.min() >= 0, kernel
        assert said.stationary is not True or np.allclose(kernel(X + 0.7), K, rtol=1e-8, atol=1e-12), kernel
        assert not getattr(said, STRICT) or few[0] > 1e-14 * few[-1], kernel
        for name in told:
            told[name] += getattr(said, name) is True
    assert min(told.values()) > 10  # each was put to the test


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_no_two_statements_contradict_each_other(kernel):
    said = kernel.properties
    rich = (said.universal, said.characteristic, getattr(said, STRICT))
    assert said.finite_rank is not True or rich == (False, False, False)
    assert True not in rich or said.finite_rank is False
    if getattr(said, STRICT):
        assert said.positive_definite is True
        assert said.characteristic is True or said.bounded is not True
    assert not (said.positive_definite is False and getattr(said, STRICT))
    if said.stationary and said.continuous and said.positive_definite:
        assert said.bounded is True
        assert said.characteristic is getattr(said, STRICT)


@pytest.mark.parametrize(
    "kernel",
    [k for k in ALL if k.properties.finite_rank and k.properties.positive_definite],
    ids=repr,
)
def test_a_kernel_of_finite_rank_does_not_tell_two_distributions_apart(kernel):
    """On more points than the rank there is a difference of two distributions whose embedding is zero."""
    X = domain(kernel)
    assert kernel.properties.characteristic is False
    scale = np.sqrt(np.maximum(kernel.diag(X), 1e-3))
    nowhere = null_space(np.vstack([kernel(X) / scale[:, None], np.ones(len(X))]), rcond=1e-11)
    signed = nowhere[:, 0] / np.maximum(nowhere[:, 0], 0).sum()
    p, q = np.maximum(signed, 0), np.maximum(-signed, 0)
    assert p.sum() == pytest.approx(1.0)
    assert q.sum() == pytest.approx(1.0)
    with pytest.warns(UserWarning, match=r"is not characteristic: different distributions can be at distance zero"):
        assert abs(mmd(X, X, kernel, x_weights=p, y_weights=q)) < 1e-10 * kernel.diag(X).max()
    assert mmd(X, X, Gaussian(1.0), x_weights=p, y_weights=q) > 1e-3


@pytest.mark.parametrize("kernel", [k for k in ALL if k.properties.characteristic], ids=repr)
def test_a_characteristic_kernel_sees_what_moments_do_not(kernel):
    """The nodes of two Gauss rules have eight moments in common."""
    (x, p), (y, q) = (np.polynomial.legendre.leggauss(n) for n in (4, 5))
    value = mmd(1.5 + x[:, None], 1.5 + y[:, None], kernel, x_weights=p / 2, y_weights=q / 2)
    assert value > 1e-12


# --- rules that would say too much ----------------------------------------------------------------------------


def test_two_kernels_that_are_not_universal_can_have_a_universal_sum():
    """The even and the odd part of a Gaussian kernel see nothing of an odd and an even measure; their sum is Gaussian."""
    X, odd, even = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([1.0, 1.0])
    K, mirrored = Gaussian(1.0)(X), Gaussian(1.0)(X, -X)
    assert abs(odd @ (K + mirrored) @ odd) < 1e-15
    assert abs(even @ (K - mirrored) @ even) < 1e-15
    one = replace(PSD, universal=False, characteristic=False, finite_rank=False)
    assert of_sum(one, one).universal is None
    assert of_sum(one, one).characteristic is None
    assert (Linear() + Polynomial(2)).properties.universal is False  # finitely many functions stay finitely many


def test_products_of_characteristic_kernels_need_not_be_characteristic():
    left, right, apart = np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), np.array([1.0, -1.0])
    assert apart @ left @ apart > 0
    assert apart @ right @ apart > 0
    assert apart @ (left * right) @ apart == 0
    one = replace(PSD, characteristic=True, bounded=True)
    assert of_product(one, one).characteristic is None


def test_a_product_with_a_jump_need_not_be_universal():
    """A Gaussian times the stationary kernel that is one at x = y alone has functions that vanish but at some points."""
    jump = replace(PSD, stationary=True, bounded=True, positive=True, continuous=False)
    assert of_product(EVERYTHING, jump).universal is None
    assert getattr(of_product(EVERYTHING, jump), STRICT) is None
    smooth = of_product(EVERYTHING, replace(jump, continuous=True))
    assert (smooth.universal, smooth.characteristic, getattr(smooth, STRICT)) == (True, True, True)


def test_a_universal_kernel_with_a_jump_on_the_diagonal_is_not_universal_when_normalised():
    mixed = Gaussian(1.0) + Cosine()
    assert mixed.properties.universal is True
    assert mixed.properties.continuous is False
    assert mixed.normalized().properties.universal is None
    assert (Gaussian(1.0) + Linear()).normalized().properties.universal is True


def test_an_even_power_can_be_stationary_and_definite_where_the_kernel_is_neither():
    signs = np.array([1.0, -1.0, 1.0])
    assert np.all(np.outer(signs, signs) ** 2 == 1)
    unlike = Properties(stationary=False, positive_definite=False, positive=False)
    assert of_power(unlike, 2).stationary is None
    assert of_power(unlike, 2).positive_definite is None
    assert of_power(unlike, 3).stationary is False
    assert of_power(unlike, 1) == unlike


def test_a_normalised_kernel_can_be_stationary_where_the_kernel_is_not():
    """exp(x · y) over its lengths is a Gaussian."""
    X = SIGNED[:5]
    K = np.exp(X @ X.T)
    lengths = np.sqrt(K.diagonal())
    np.testing.assert_allclose(K / np.outer(lengths, lengths), Gaussian(np.sqrt(2))(X))
    assert of_normalized(replace(PSD, stationary=False)).stationary is None


def test_powers_that_are_not_whole_are_definite_only_where_a_kernel_is_infinitely_divisible():
    """The hat max(0, 1 - |x - y|) is psd and stationary, and its tenth root is not."""
    hat = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    assert np.linalg.eigvalsh(hat)[0] > 0
    assert np.linalg.eigvalsh(hat**0.1)[0] < -0.1
    known = replace(EVERYTHING, infinitely_divisible=None)
    assert of_power(known, 0.5) == replace(NOTHING, bounded=True, stationary=True, positive=True, continuous=True)
    assert (Gaussian() ** 0.5).properties == EVERYTHING
    assert ((Gaussian() * Laplacian()) ** 0.3).properties == EVERYTHING
    assert (ChiSquared() ** 0.5).properties.universal is True
    assert (ChiSquared() ** 0.5).properties.characteristic is None
    assert (ChiSquared() ** 1.5).properties.characteristic is True
    assert ((Gaussian() + Laplacian()) ** 0.5).properties.positive_definite is None


@pytest.mark.parametrize(
    "kernel", [Matern(0.3, 1.0), Matern(2.5, 1.0), Sobolev(4.0, 1.0), Laplacian(1.0), ChiSquared()]
)
@pytest.mark.parametrize("exponent", [0.05, 0.3, 0.7])
def test_small_powers_of_infinitely_divisible_kernels(kernel, exponent):
    K = (kernel**exponent)(np.abs(SIGNED))
    assert np.linalg.eigvalsh(K)[0] > -1e-13 * len(K)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("coef0", [-2.0, 0.0, 2.0])
def test_sigmoids_are_indefinite_whatever_their_parameters(gamma, coef0):
    x = np.array([[0.1], [60.0]]) / np.sqrt(gamma)
    assert Sigmoid().properties.positive_definite is False
    assert np.linalg.eigvalsh(Sigmoid(gamma, coef0)(x))[0] < 0


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_polynomials_with_a_negative_constant_are_indefinite(degree):
    kernel = Polynomial(degree, 1.0, -0.5)
    assert kernel.properties.positive_definite is False
    x = np.linspace(-1.0, 1.0, 15)[:, None]
    assert np.linalg.eigvalsh(kernel(x))[0] < -1e-6


# --- small things ---------------------------------------------------------------------------------------------


def test_nothing_follows_from_nothing():
    for found in (of_sum(NOTHING, NOTHING), of_product(NOTHING, NOTHING), of_power(NOTHING, 3), of_normalized(NOTHING)):
        assert found == NOTHING
    assert Precomputed().properties == NOTHING
    assert Polynomial(1.5).properties.positive_definite is None


def test_multiples_sums_and_products_of_the_best_are_the_best():
    for kernel in (2.0 * Gaussian(), Gaussian() * Matern(), Gaussian() ** 3, Gaussian().normalized()):
        assert kernel.properties == EVERYTHING
    assert (Gaussian() + Matern()).properties == replace(EVERYTHING, infinitely_divisible=None)
    assert (2.0 * Sigmoid()).properties == Sigmoid().properties


def test_properties_do_not_need_data():
    assert (Gaussian("median") * Polynomial()).properties.positive_definite is True


@pytest.mark.filterwarnings("ignore:The density accounts for nothing")
def test_what_is_needed_and_missing_is_named():
    X = SIGNED[:9]
    with pytest.warns(UserWarning, match=r"^Linear\(\) is not characteristic.*Pass kernel=Gaussian\(\), which is\.$"):
        MeanEmbedding(Linear(), X).distance(MeanEmbedding(Linear(), X[::2]))
    with pytest.warns(UserWarning, match=r"^Polynomial.* is not universal: squares of its functions come near few"):
        SumOfSquaresDensity(Polynomial(2), support=X[:5, :1], reference="gaussian").fit(X[:, :1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mmd(X, X[::2], SelfTuning().resolve(SIGNED))  # unknown is not missing
        MeanEmbedding(Linear(), X).norm()


def test_the_table_of_the_guide_is_in_step():
    guide = (Path(__file__).parents[2] / "docs/user_guide/kernels.rst").read_text(encoding="utf-8")
    names = [field.name.replace(STRICT, "strict").replace("_", " ") for field in fields(Properties)]
    head = re.search(r"^   \* - kernel\n((?:     - .*\n){10})", guide, re.M)
    assert re.findall(r"- (.*)", head[1]) == names
    rows = dict(re.findall(r"^   \* - :class:`(\w+)`\n((?:     - .*\n){10})", guide, re.M))
    kinds = [Gaussian, Laplacian, Matern, Sobolev, Linear, Polynomial, Sigmoid, Cosine, ChiSquared]
    kinds += [Categories, Mixed, SelfTuning]
    trained = [FromDistance(), SSIM((8, 8)), Geodesic(), LocallyLinear(), GraphLaplacian()]
    kernels = [*(kind() for kind in kinds), *trained, Precomputed()]
    assert list(rows) == [type(kernel).__name__ for kernel in kernels]
    mark = {True: "yes", False: "no", None: "?"}
    for kernel in kernels:
        said = kernel.properties
        assert re.findall(r"- (.*)", rows[type(kernel).__name__]) == [
            mark[getattr(said, field.name)] for field in fields(said)
        ]
