"""The two ways to bound an eigenvalue, on matrices whose eigenvalues are known."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.certificates.factorisation import bound_largest_eigenvalue, least_eigenvalues
from mercer.certificates.krylov import bound_by_lanczos, deflate
from mercer.linalg.lanczos import BlockLanczos, RandomStarts


def _with_spectrum(values, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    n = len(values)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    M = (Q * values) @ Q.T
    return (M + M.T) / 2, Q


@pytest.mark.parametrize("guess", [0.0, 0.5, 0.999999, 1.0, 1.2, -3.0])
@pytest.mark.parametrize("n", [1, 2, 5, 100, 700])
def test_factorisation_bounds_from_any_guess(n, guess):
    """A wrong guess costs work or tightness, never truth."""
    values = np.linspace(-1.0, 1.0, n) if n > 1 else np.ones(1)
    M, _ = _with_spectrum(values)
    top = np.linalg.eigvalsh(M)[-1]
    bound = bound_largest_eigenvalue(M, guess)
    assert bound >= top
    if guess <= 1.0:
        assert bound <= top + 5 * max(1.0 - guess, 1e-10)


def test_factorisation_is_tight():
    M, _ = _with_spectrum(np.linspace(0, 1, 500))
    top = np.linalg.eigvalsh(M)[-1]
    assert top <= bound_largest_eigenvalue(M, top) <= top + 1e-10


def test_factorisation_refuses_what_is_not_finite():
    with pytest.raises(ArithmeticError, match="not symmetric or not finite"):
        bound_largest_eigenvalue(np.full((3, 3), np.nan), 1.0)


def test_factorisation_leaves_the_matrix_alone():
    M, _ = _with_spectrum(np.linspace(0, 1, 30))
    before = M.copy()
    bound_largest_eigenvalue(M, 1.0)
    np.testing.assert_array_equal(M, before)


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("shift", [0.0, 1e-6, 10.0])
def test_least_eigenvalues(n, shift):
    values = np.concatenate([[-0.5, -0.5, 0.0, 0.0, 1e-3], np.linspace(0.1, 2.0, n - 5)])
    S, _ = _with_spectrum(values)
    found = least_eigenvalues(S, 6, shift, np.random.default_rng(0))
    np.testing.assert_allclose(found, values[:6], atol=1e-7)


def _bound(deflated, *, rng, failure_probability=1e-9, block=1, **options) -> float:
    return bound_by_lanczos(deflated, RandomStarts(rng, failure_probability, block), **options)[0]


def _near_one(n: int, inside: int, outside: float) -> tuple[np.ndarray, np.ndarray]:
    values = np.concatenate([np.ones(inside), np.linspace(0.0, outside, n - inside)])
    M, Q = _with_spectrum(values)
    return M, Q[:, :inside]


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("outside", [0.5, 0.9, 0.999, 1.0, 1.05, 3.0])
def test_lanczos_bounds_the_largest_eigenvalue(outside, block):
    """Also where the largest eigenvalue hides in the complement of the space that was expected to hold it."""
    M, directions = _near_one(400, 2, outside)
    top = np.linalg.eigvalsh(M)[-1]
    for seed in range(2):
        bound = _bound(
            deflate(lambda v: M @ v, directions),
            lift=0.0,
            failure_probability=1e-9,
            rng=np.random.default_rng(seed),
            block=block,
        )
        assert bound >= top
        assert bound <= top + (1e-8 if outside < 0.99 else 0.1 * top)


def test_lanczos_bounds_with_imperfect_directions():
    """Directions off by δ cost δ², not δ: that is what the coupling term is for."""
    M, directions = _near_one(600, 2, 0.5)
    rng = np.random.default_rng(0)
    for delta in (1e-2, 1e-3):
        shaken = directions + delta * rng.standard_normal(directions.shape) / np.sqrt(600)
        bound = _bound(deflate(lambda v: M @ v, shaken), lift=0.0, failure_probability=1e-9, rng=rng)
        assert 1.0 - 1e-12 <= bound <= 1.0 + 2 * delta**2 + 1e-9


def test_lanczos_bounds_an_indefinite_map():
    values = np.concatenate([[1.0], np.linspace(-2.0, 0.8, 599)])
    M, Q = _with_spectrum(values)
    deflated = deflate(lambda v: M @ v, Q[:, :1])
    bound = _bound(deflated, lift=2.0, failure_probability=1e-9, rng=np.random.default_rng(0))
    assert 1.0 - 1e-12 <= bound <= 1.0 + 1e-6


@pytest.mark.parametrize("block", [1, 8])
def test_lanczos_on_a_map_far_below_zero(block):
    """The largest eigenvalue is a thousandth of the spread: Ritz values have not found it when the bound must hold."""
    values = np.concatenate([np.linspace(-2000.0, -1.0, 399), [1.0]])
    deflated = deflate(lambda V: values[:, None] * V, np.eye(400)[:, :1])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert _bound(deflated, lift=2000.0, failure_probability=1e-9, rng=rng, goal=1e4, block=block) >= 1.0


def test_lanczos_never_falls_below_in_many_runs():
    """Without deflation to help it: 200 starts on a spectrum dense at its top."""
    values = 1 - np.linspace(0, 1, 300) ** 2
    M, Q = _with_spectrum(values)
    top = np.linalg.eigvalsh(M)[-1]
    deflated = deflate(lambda v: M @ v, Q[:, -1:])  # a direction of no use
    bounds = [
        _bound(deflated, lift=0.0, failure_probability=1e-9, rng=np.random.default_rng(seed)) for seed in range(40)
    ]
    assert min(bounds) >= top


def test_lanczos_on_a_space_that_closes():
    """Three distinct eigenvalues: the Krylov space is exhausted after three steps, far fewer than the bound asks for."""
    values = np.repeat([1.0, 0.6, 0.2], [2, 300, 298])
    M, Q = _with_spectrum(values)
    deflated = deflate(lambda v: M @ v, Q[:, :2])
    bound = _bound(deflated, lift=0.0, failure_probability=1e-9, rng=np.random.default_rng(0))
    assert 1.0 - 1e-12 <= bound <= 1.0 + 1e-9


def test_lanczos_where_nothing_is_left():
    M, Q = _with_spectrum(np.array([1.0, 0.5, 0.2]))
    bound = _bound(deflate(lambda v: M @ v, Q), lift=0.0, failure_probability=1e-9, rng=np.random.default_rng(0))
    assert bound == pytest.approx(1.0, abs=1e-12)


def test_directions_that_hardly_occur_are_not_trusted():
    M, Q = _near_one(100, 2, 0.5)
    deflated = deflate(lambda v: M @ v, np.column_stack([Q, 1e-6 * np.ones(100)]))
    assert deflated.Q.shape == (100, 2)


def test_ritz_value_stays_inside_the_spectrum():
    M, Q = _near_one(300, 2, 0.9)
    for steps in (1, 5, 20, 298):
        space = BlockLanczos(lambda v: M @ v, Q, np.random.default_rng(0))
        space.extend(steps)
        value = float(space.ritz_values()[0])
        assert value <= 0.9 + 1e-12
        assert space.n_columns <= steps
    assert value == pytest.approx(0.9, abs=1e-10)
