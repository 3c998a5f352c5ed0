"""Kernel herding: the greedy rule written out, the distance recomputed, super-samples beside random ones."""

import numpy as np
import pytest

from mercer import Gaussian, Laplacian, MeanEmbedding, SumOfSquaresDensity, kernel_herding, mmd
from mercer.datasets import two_moons
from mercer.kernels import Polynomial


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 2))


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplacian(2.0), Polynomial(2, 1.0, 1.0)])
def test_every_point_is_the_best_of_all_candidates(kernel, X):
    found = kernel_herding(X, 12, kernel=kernel)
    K = kernel(X)
    for t in range(12):
        chosen = [np.append(found.indices[:t], x) for x in range(300)]
        squares = [K.mean() + K[np.ix_(rows, rows)].mean() - 2 * K[:, rows].mean() for rows in chosen]
        mine = squares[found.indices[t]]
        assert mine <= min(squares) * (1 + 1e-12) + 1e-12
        assert found.distances[t] ** 2 == pytest.approx(mine, rel=1e-8, abs=1e-12)


def mmd_of(kernel, X, Y):
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    return K.mean() + L.mean() - 2 * M.mean()


def test_super_samples_beat_random_ones_and_fall_like_one_over_t(X):
    found = kernel_herding(X, 100, kernel=Gaussian(1.5))
    rng = np.random.default_rng(1)
    random = np.mean([mmd(X, X[rng.integers(0, 300, 100)], Gaussian(1.5), squared=False) for _ in range(10)])
    assert found.distances[-1] < random / 5
    slope = np.polyfit(np.log([10, 20, 40, 80]), np.log(found.distances[[9, 19, 39, 79]]), 1)[0]
    assert slope < -0.8
    assert found.embedding.distance(MeanEmbedding(Gaussian(1.5), X)) == pytest.approx(found.distances[-1], rel=1e-6)


def test_refined_points_are_local_optima_and_no_worse(X):
    kernel = Gaussian(1.0)
    plain, refined = (kernel_herding(X, 25, kernel=kernel, refine=refine) for refine in (False, True))
    assert refined.indices is None
    assert refined.distances[0] < plain.distances[0]
    w = MeanEmbedding(kernel, X)
    step = 1e-4 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    around = refined.points[-1] + step
    gain = [w(points) - kernel(points, refined.points[:-1]).sum(1) / 25 for points in (refined.points[-1:], around)]
    assert (gain[0] >= gain[1] - 1e-10).all()
    assert refined.distances[-1] ** 2 == pytest.approx(mmd_of(kernel, X, refined.points), rel=1e-8)


def test_of_a_density_and_of_a_frame():
    points, _ = two_moons(n_points=200)
    model = SumOfSquaresDensity(Gaussian(0.5), support=20, random_state=0).fit(points)
    target = MeanEmbedding.of_density(model)
    with pytest.raises(ValueError, match=r"^The measure is a density, which has no points to choose from: give"):
        kernel_herding(target, 5)
    found = kernel_herding(target, 40, candidates=points)
    assert found.distances[-1] == pytest.approx(target.distance(found.embedding), rel=1e-6)
    moved = kernel_herding(target, 5, candidates=points, refine=True)
    assert moved.distances[4] <= found.distances[4]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": points[:, 0], "b": points[:, 1]})
    kernel = Gaussian(0.5)
    np.testing.assert_array_equal(
        kernel_herding(frame, 6, kernel=kernel).indices, kernel_herding(points, 6, kernel=kernel).indices
    )


def test_tensors_choose_the_same_points(X):
    torch = pytest.importorskip("torch")
    found = kernel_herding(torch.as_tensor(X), 8, kernel=Gaussian(1.5))
    assert torch.is_tensor(found.points)
    np.testing.assert_array_equal(found.indices.numpy(), kernel_herding(X, 8, kernel=Gaussian(1.5)).indices)


def test_distinct_and_weights(X):
    weights = np.zeros(300)
    weights[7] = 3.0
    target = MeanEmbedding(Gaussian(1.0), X, weights)
    assert set(kernel_herding(target, 4).indices) == {7}
    assert len(set(kernel_herding(target, 4, distinct=True).indices)) == 4
    assert kernel_herding(target, 4).distances[-1] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_points": 0}, "^n_points=0 must be"),
        ({"candidates": np.zeros((3, 5))}, "^candidates has 5 features and the measure 2: they must agree.$"),
        ({"candidates": np.zeros((0, 2))}, "^candidates has no rows"),
        ({"distinct": True, "n_points": 301}, "^There are 300 candidates, fewer than the 301 distinct"),
        ({"refine": True, "kernel": Laplacian(1.0)}, "^refine=True needs Gaussian"),
        ({"refine": True, "distinct": True}, "^refine=True moves points off"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(options, sentence, X):
    with pytest.raises(ValueError, match=sentence):
        kernel_herding(X, **{"n_points": 5, **options})


def test_a_measure_without_mass_is_refused(X):
    signed = MeanEmbedding(Gaussian(1.0), X[:2], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"^The measure has the mass 0: points of positive weight"):
        kernel_herding(signed, 3)
    with pytest.raises(ValueError, match="^kernel belongs to a sample"):
        kernel_herding(MeanEmbedding(Gaussian(1.0), X), 3, kernel=Gaussian(2.0))
