"""The fill distance and the constant of the objective's discretisation, against what is known of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import cKDTree

from mercer import Matern
from mercer.embedding import discretization_constant, fill_distance


def test_an_interval_is_exact():
    X = np.array([[0.0], [0.5], [2.0]])
    assert fill_distance(X, ("box", -1.0, 2.0)) == 1.0
    assert fill_distance(X, ("box", 0.0, 3.0)) == 1.0
    assert fill_distance(X, ("box", 0.0, 2.0)) == 0.75
    assert fill_distance(X, ("ball", 0.0, 0.25)) == 0.25
    assert fill_distance(np.array([[-5.0], [5.0]]), ("box", -1.0, 1.0)) == 5.0


def test_points_are_a_maximum():
    rng = np.random.default_rng(0)
    X, places = rng.standard_normal((30, 3)), rng.standard_normal((50, 3))
    nearest = np.linalg.norm(places[:, None] - X, axis=2).min(axis=1)
    assert fill_distance(X, places) == pytest.approx(nearest.max(), rel=1e-14)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_grid_of_cubes_is_known(dim):
    side = (np.arange(4) + 0.5) / 4
    X = np.stack(np.meshgrid(*[side] * dim), axis=-1).reshape(-1, dim)
    known = math.sqrt(dim) / 8
    assert known <= fill_distance(X, ("box", 0.0, 1.0), tol=1e-2) <= 1.01 * known * (1 + 1e-12)


def test_a_disk_is_enclosed():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    angle, radius = rng.uniform(0, 2 * np.pi, 200_000), np.sqrt(rng.uniform(size=200_000))
    inside = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    seen = cKDTree(X).query(np.concatenate([inside, inside / radius[:, None]]))[0].max()
    found = fill_distance(X, ("ball", (0.0, 0.0), 1.0), tol=1e-3)
    assert seen <= found <= 1.01 * seen
    assert fill_distance(np.zeros((1, 2)), ("ball", (3.0, 4.0), 1.0)) == pytest.approx(6.0, rel=1e-3)


@pytest.mark.parametrize(
    ("domain", "sentence"),
    [
        (("cube", 0, 1), "domain must be an array of points"),
        (("box", 1.0, 0.0), "the first must be below the second"),
        (("ball", 0.0, -1.0), "the radius of domain"),
        (np.ones((3, 5)), "give points with 2 features"),
    ],
)
def test_what_is_no_domain_is_refused(domain, sentence):
    with pytest.raises(ValueError, match=sentence):
        fill_distance(np.ones((2, 2)), domain)
    with pytest.raises(ValueError, match="too large to be searched"):
        fill_distance(np.ones((2, 9)), ("box", 0.0, 2.0))


def test_the_constant_is_the_paper_s_formula():
    n, delta, square, top = 100, 0.05, 4.0, 1.5
    beta = math.log(2 * square / (top * delta))
    c = 4 * square * beta / (3 * n) + math.sqrt(2 * square * top * beta / n)
    found = discretization_constant(n, delta, kappa=2.0, top_eigenvalue=top)
    assert found == pytest.approx(2 * square * c + c**2, rel=1e-14)
    far = [discretization_constant(n, top_eigenvalue=0.5) for n in (10**6, 4 * 10**6)]
    assert far[0] / far[1] == pytest.approx(2, rel=1e-2)  # it falls like 1/√n


def test_the_constant_of_a_kernel_is_that_of_its_eigenvalue():
    X, kernel = np.linspace(-1, 1, 50)[:, None], Matern(1.5, 1.0)
    top = float(np.linalg.eigvalsh(kernel(X))[-1]) / 50
    assert discretization_constant(80, kernel=kernel, X=X) == pytest.approx(
        discretization_constant(80, top_eigenvalue=top), rel=1e-12
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delta": 0.5, "top_eigenvalue": 0.5}, "delta=0.5 must lie between 0 and 1/2"),
        ({}, "Give top_eigenvalue, or kernel and X"),
        ({"top_eigenvalue": 2.0}, "exceeds"),
    ],
)
def test_constants_of_nothing_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        discretization_constant(10, **options)
