"""Conditional mean embeddings: the ridge formula written out, leave-one-out by leaving out, coverage of error bars."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from mercer import ConditionalMeanEmbedding, Gaussian, Laplacian, Precomputed
from mercer.kernels import Categories


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(60, 2))
    return x, np.column_stack([np.sin(2 * x[:, 0]), x[:, 1]]) + 0.2 * rng.normal(size=(60, 2))


X_NEW = np.array([[0.3, -0.5], [1.5, 1.5], [-8.0, 3.0]])


def test_without_intercept_the_weights_are_those_of_kernel_ridge_regression(pairs):
    x, y = pairs
    model = ConditionalMeanEmbedding(Laplacian(1.5), regularization=1e-3, fit_intercept=False).fit(x, y)
    K, k = Laplacian(1.5)(x), Laplacian(1.5)(X_NEW, x)
    expected = np.linalg.solve(K + 60 * 1e-3 * np.eye(60), k.T).T
    np.testing.assert_allclose(model.weights(X_NEW), expected, atol=1e-10)
    ridge = KernelRidge(alpha=60 * 1e-3, kernel=Laplacian(1.5)).fit(x, y)
    np.testing.assert_allclose(model.predict(X_NEW), ridge.predict(X_NEW), atol=1e-10)
    near = model.embedding(X_NEW[:1])
    np.testing.assert_allclose(near(y[:5]), model.y_kernel_(y[:5], y) @ expected[0], atol=1e-10)


def test_with_intercept_weights_sum_to_one_and_are_equal_far_away(pairs):
    x, y = pairs
    model = ConditionalMeanEmbedding(Gaussian(0.8), regularization=1e-2).fit(x, y)
    beta = model.weights(np.vstack([X_NEW, [[1e3, 1e3]]]))
    np.testing.assert_allclose(beta.sum(axis=1), 1.0, atol=1e-12)
    H = np.eye(60) - 1 / 60
    K, k = Gaussian(0.8)(x), Gaussian(0.8)(X_NEW, x)
    centred = H @ (k.T - K.mean(axis=1, keepdims=True))
    expected = 1 / 60 + np.linalg.solve(H @ K @ H + 60 * 1e-2 * np.eye(60), centred).T
    np.testing.assert_allclose(beta[:3], expected, atol=2e-5)  # the factor leaves out 1e-3 of λ
    np.testing.assert_allclose(model.expectation(np.ones(60), X_NEW), 1.0, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_leaving_one_out_is_fitting_without_it(intercept, pairs):
    x, y = pairs
    options = {"y_kernel": Gaussian(1.0), "fit_intercept": intercept}
    penalty = 1e-2
    model = ConditionalMeanEmbedding(Laplacian(1.0), regularization=penalty, **options).fit(x, y)
    for i in (0, 17):
        rest = np.delete(np.arange(60), i)
        other = ConditionalMeanEmbedding(Laplacian(1.0), regularization=penalty * 60 / 59, **options).fit(
            x[rest], y[rest]
        )
        mu = other.embedding(x[i : i + 1])
        square = 1 - 2 * mu(y[i : i + 1])[0] + mu.norm_squared
        assert model.target_errors_[i] == pytest.approx(np.sqrt(square), rel=1e-5)
    assert model.loo_error_ == pytest.approx(np.mean(model.target_errors_**2), rel=1e-5)


def test_the_penalty_and_the_bandwidth_are_those_of_least_error(pairs):
    x, y = pairs
    model = ConditionalMeanEmbedding(y_kernel=Gaussian(1.0)).fit(x, y)
    assert model.loo_error_ == model.loo_path_[:, 1].min()
    sigma = Gaussian().resolve(x).sigma
    for part in (1, 0.5, 0.25, 0.125):
        for penalty in (1e-4, 1e-2, 1.0):
            other = ConditionalMeanEmbedding(Gaussian(part * sigma), y_kernel=Gaussian(1.0), regularization=penalty)
            assert other.fit(x, y).loo_error_ >= model.loo_error_ * (1 - 1e-3)


def test_error_bars_cover():
    """Over 60 samples of a smooth curve the bars of two standard errors hold the truth nearly as often as they say."""
    rng = np.random.default_rng(1)
    grid = np.linspace(-1.7, 1.7, 9)[:, None]
    inside, spread, far = [], [], []
    for _ in range(60):
        x = rng.uniform(-2, 2, size=(150, 1))
        y = np.sin(x[:, 0]) + (0.1 + 0.2 * (x[:, 0] > 0)) * rng.normal(size=150)
        model = ConditionalMeanEmbedding(Gaussian(1.5), regularization=1e-4).fit(x, y)
        mean, error = model.predict(grid, return_std=True)
        inside.append(abs(mean - np.sin(grid[:, 0])) < 1.96 * error)
        spread.append(mean)
        far.append(error)
    assert 0.9 < np.mean(inside) < 0.99
    np.testing.assert_allclose(np.mean(far, axis=0), np.std(spread, axis=0), rtol=0.35)


def test_the_error_of_an_embedding_is_that_of_its_values(pairs):
    """‖μ̂ - E μ̂‖ over samples, in the norm of the space of y."""
    rng = np.random.default_rng(2)
    kernel, at = Gaussian(1.0), np.array([[0.5]])
    found = []
    for _ in range(40):
        x = rng.uniform(-2, 2, size=(100, 1))
        model = ConditionalMeanEmbedding(Gaussian(1.5), y_kernel=kernel, regularization=1e-3)
        model.fit(x, x[:, 0] + 0.3 * rng.normal(size=100))
        found.append((model.embedding(at), model.embedding_error(at)[0]))
    distances = [a.distance(b) ** 2 / 2 for (a, _), (b, _) in zip(found[::2], found[1::2], strict=True)]
    assert np.mean([e**2 for _, e in found]) == pytest.approx(np.mean(distances), rel=0.4)


def test_weights_are_repetitions(pairs):
    x, y = pairs
    counts = np.arange(60) % 3
    rows = np.repeat(np.arange(60), counts)
    options = {"y_kernel": Gaussian(1.0), "regularization": 1e-3}
    one = ConditionalMeanEmbedding(Laplacian(1.0), **options).fit(x, y, sample_weight=counts)
    other = ConditionalMeanEmbedding(Laplacian(1.0), **options).fit(x[rows], y[rows])
    np.testing.assert_allclose(one.predict(X_NEW), other.predict(X_NEW), atol=1e-9)


def test_precomputed_frames_and_categories(pairs):
    x, y = pairs
    kernel = Gaussian(1.0)
    one = ConditionalMeanEmbedding(kernel, regularization=1e-3).fit(x, y)
    other = ConditionalMeanEmbedding(Precomputed(), regularization=1e-3).fit(kernel(x), y)
    np.testing.assert_allclose(other.predict(kernel(X_NEW, x)), one.predict(X_NEW), atol=1e-10)
    pd = pytest.importorskip("pandas")
    colours = pd.DataFrame({"colour": np.where(x[:, 0] > 0, "red", "blue")})
    model = ConditionalMeanEmbedding(y_kernel=Categories()).fit(x, colours)
    share = model.expectation(lambda codes: codes[:, 0] == 1, [[1.5, 0.0], [-1.5, 0.0]])
    np.testing.assert_allclose(share, [1, 0], atol=0.2)
    with pytest.raises(ValueError, match="^y has categories, which have no mean"):
        model.predict([[0.0, 0.0]])


def test_tensors(pairs):
    torch = pytest.importorskip("torch")
    x, y = pairs
    one = ConditionalMeanEmbedding(Gaussian(1.0), regularization=1e-3).fit(x, y[:, 0])
    other = ConditionalMeanEmbedding(Gaussian(1.0), regularization=1e-3).fit(
        torch.as_tensor(x), torch.as_tensor(y[:, 0])
    )
    mean, error = other.predict(torch.as_tensor(X_NEW), return_std=True)
    expected = one.predict(X_NEW, return_std=True)
    np.testing.assert_allclose(mean.numpy(), expected[0], atol=1e-8)
    np.testing.assert_allclose(error.numpy(), expected[1], atol=1e-8)


def test_what_cannot_be_used_is_refused_in_one_sentence(pairs):
    x, y = pairs
    model = ConditionalMeanEmbedding(Gaussian(1.0), regularization=1e-3).fit(x, y)
    with pytest.raises(ValueError, match=r"^embedding takes one point, not 3"):
        model.embedding(X_NEW)
    with pytest.raises(ValueError, match=r"^function gives values of shape \(3,\) for 60 targets"):
        model.expectation([1.0, 2.0, 3.0], X_NEW)
    with pytest.raises(ValueError, match="^function has a NaN"):
        model.expectation(np.full(60, np.nan), X_NEW)
    with pytest.raises(ValueError, match='^regularization must be a positive number or "loo"'):
        ConditionalMeanEmbedding(regularization="cv").fit(x, y)
    with pytest.raises(ValueError, match=r"pass points, not Precomputed"):
        ConditionalMeanEmbedding(y_kernel=Precomputed()).fit(x, y)
    with pytest.warns(UserWarning, match=r"raise max_rank"):
        ConditionalMeanEmbedding(Laplacian(0.1), regularization=1e-3, max_rank=5).fit(x, y)
