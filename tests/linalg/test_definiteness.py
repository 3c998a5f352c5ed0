"""What is proved of the least eigenvalue of a symmetric map is true, and sharp enough to be of use."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.sparse

from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed, SDPEmbedding, config_context
from mercer.certificates import certify_elliptope
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.linalg import definiteness as module
from mercer.linalg import prove_definiteness
from mercer.linalg.definiteness import spectral_radius


def _cloud(n, seed=0, d=3):
    return np.random.default_rng(seed).standard_normal((n, d))


def _banded(n, width, seed=0):
    """A Gaussian cut off at a distance: affinities that are not negative, of an indefinite matrix."""
    X = _cloud(n, seed, 2)
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    return np.where(apart < width, np.exp(-(apart**2)), 0.0)


def _walk(K):
    return DiffusionOperator(GramOperator(Precomputed(), K)).undeflated()


def _prove(K, seed=0):
    walk = _walk(K)
    x = walk.stationary
    return walk, prove_definiteness(walk, x, rng=np.random.default_rng(seed), nonnegative=walk.gram.nonnegative)


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_semidefinite_matrix_needs_no_shift_at_the_level_of_rounding_either(sigma, dtype):
    K = Gaussian(sigma)(_cloud(200)).astype(dtype)
    walk, proof = _prove(K)
    assert proof.shift == 0.0
    assert proof.failure_probability == 0.0
    assert proof.slack < (1e-9 if dtype == "float64" else 1e-4)
    assert np.linalg.eigvalsh(walk.to_dense().astype(float))[0] >= -proof.slack


@pytest.mark.parametrize("width", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("estimate", ["exact", "lanczos"])
def test_the_shift_of_an_indefinite_matrix_is_enough_and_hardly_more(width, estimate, monkeypatch):
    if estimate == "lanczos":
        monkeypatch.setattr("mercer.linalg.definiteness._EXACT_UP_TO", 10)
    walk, proof = _prove(_banded(150, width))
    least = np.linalg.eigvalsh(walk.to_dense())[0]
    assert least < -1e-3
    assert -least <= proof.shift <= -1.1 * least
    assert proof.failure_probability == 0.0


def test_a_matrix_that_is_indefinite_by_little_is_shifted():
    K = Gaussian(2.0)(_cloud(100))
    walk = _walk(K)
    values, vectors = np.linalg.eigh(walk.to_dense())
    dip = walk.to_dense() - (values[0] + 1e-7) * np.outer(vectors[:, 0], vectors[:, 0])
    dip = (dip + dip.T) / 2
    proof = prove_definiteness(GramOperator(Precomputed(), dip), walk.stationary, rng=np.random.default_rng(0))
    assert 1e-7 <= proof.shift <= 1.1e-7 + 1e-9


@pytest.mark.parametrize("width", [0.4, 1.0])
def test_without_room_for_a_copy_the_bound_is_true_too(width):
    """192 products: weaker by a few per cent of the spectral radius, and by a stated probability."""
    K = _banded(400, width)
    with config_context(memory_limit="1MB"):
        walk, proof = _prove(K)
    least = np.linalg.eigvalsh(walk.to_dense())[0]
    assert -least <= proof.shift <= -least + 0.06
    assert 0 < proof.failure_probability <= 1e-9


def _few_neighbours(n, loops, seed):
    """A random sparse graph without negative entries, of loops up to this size, nearly bipartite where they are small.

    Its walk then has eigenvalues near -1, which loops alone lift.
    """
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, (2, 3 * n))
    kept = (rows - cols) % 2 == 1
    graph = scipy.sparse.csr_array((rng.exponential(size=kept.sum()), (rows[kept], cols[kept])), shape=(n, n))
    ring = scipy.sparse.csr_array((np.full(n, 1e-3), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    graph = graph + ring
    return (graph + graph.T + scipy.sparse.diags_array(loops * rng.random(n))).tocsr()


@pytest.mark.parametrize("loops", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_loops_of_a_sparse_matrix_bound_its_spectrum_without_a_copy_and_without_chance(loops, seed, monkeypatch):
    for name in ("_by_factorisation", "_by_lanczos"):
        monkeypatch.setattr(module, name, None)
    monkeypatch.setattr(module, "_SPARSE_FROM", 100)
    graph = _few_neighbours(200, loops, seed)
    walk, proof = _prove(graph)
    least = np.linalg.eigvalsh(walk.to_dense())[0]
    assert proof.failure_probability == 0.0
    assert -least <= proof.shift + proof.slack
    staying = graph.diagonal() / graph.sum(axis=1)
    assert proof.shift == pytest.approx(max(0.0, 1 - 2 * staying.min()), abs=1e-12)
    if loops == 0.0:  # bipartite: the bound is reached
        assert proof.shift == pytest.approx(-least, rel=1e-9)
        assert proof.shift >= -least


def test_loops_that_weigh_as_much_as_all_neighbours_make_a_sparse_matrix_definite(monkeypatch):
    monkeypatch.setattr(module, "_SPARSE_FROM", 100)
    graph = _few_neighbours(200, 0.0, 0)
    walk, proof = _prove((graph + scipy.sparse.diags_array(graph.sum(axis=1))).tocsr())
    assert proof.shift == 0.0
    assert -np.linalg.eigvalsh(walk.to_dense())[0] <= proof.slack + 1e-15
    assert proof.slack < 1e-11


@pytest.mark.parametrize("seed", range(3))
def test_what_lanczos_has_not_seen_yet_is_counted(seed, monkeypatch):
    """A shallow Krylov space sees less than the whole spectrum: its Ritz value alone would be a false bound."""
    monkeypatch.setattr("mercer.linalg.definiteness._DEPTH", 20)
    walk = _walk(_banded(400, 1.0))
    ritz, _ = module._largest_gap(walk, 1.0, np.random.default_rng(seed))
    least = np.linalg.eigvalsh(walk.to_dense())[0]
    assert ritz - 1.0 < -least
    with config_context(memory_limit="1MB"):
        assert _prove(walk.gram.to_dense(), seed)[1].shift >= -least


def test_a_wide_margin_is_known_without_a_copy():
    K = _banded(400, 0.4)
    K += 2 * np.diag(K.sum(axis=1))
    with config_context(memory_limit="1MB"):
        _, proof = _prove(K)
    assert proof.shift == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_radius_bounds_spectra_of_any_sign(seed):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((60, 60))
    M = M + M.T
    gram = GramOperator(Precomputed(), M)
    radius = spectral_radius(gram, rng.uniform(0.1, 1, 60))
    assert np.abs(np.linalg.eigvalsh(M)).max() <= radius
    proof = prove_definiteness(gram, np.ones(60), rng=rng)
    assert proof.shift >= -np.linalg.eigvalsh(M)[0]


def test_a_walk_has_the_radius_one():
    walk = _walk(_banded(100, 1.0))
    assert 1.0 <= spectral_radius(walk, walk.stationary, nonnegative=True) <= 1 + 1e-12


@pytest.mark.parametrize(("seed", "shift"), [(164, 1e-15), (335, 1e-15), (382, 1e-15)])
def test_the_rounding_of_the_factorisation_is_counted(seed, shift):
    """These factorisations run to their end although the matrix, in forty digits, dips below what was added."""
    B = np.random.default_rng(seed).standard_normal((16, 4))
    K = B @ B.T
    K = (K + K.T) / 2
    with mpmath.workdps(40):
        least = float(min(mpmath.eigsy(mpmath.matrix(K.tolist()), eigvals_only=True)))
    proved = module._proved(GramOperator(Precomputed(), K), shift, 0.0)
    if proved is not None:  # another LAPACK may stop sooner, which proves nothing and claims nothing
        assert proved >= -least
        assert proved > shift


def test_no_eigenvalue_by_arpack_on_the_way(monkeypatch):
    """A matrix costs what its points cost: the same columns, the same stand-in, the same proof."""

    def refuse(*args, **kwargs):
        raise AssertionError("ARPACK was asked")

    monkeypatch.setattr("mercer.linalg.eigen.eigsh", refuse)
    Z = _cloud(1501)
    K = Gaussian(1.0)(Z)
    given = SDPEmbedding(Precomputed(), random_state=0).fit(K)
    points = SDPEmbedding(Gaussian(1.0), random_state=0).fit(Z)
    assert given.n_stand_in_products_ > 0
    assert abs(given.n_products_ - points.n_products_) <= 0.2 * points.n_products_
    assert given.certificate_.lower == pytest.approx(points.certificate_.lower, rel=1e-7)
    assert given.certificate_.holds(1e-6)


def test_what_is_left_below_zero_is_an_error_of_the_entries_to_every_proof():
    """A matrix that dips below zero by less than rounding goes without a shift; its dip is counted where entries err."""
    walk = _walk(Gaussian(2.0)(_cloud(60)))
    values, vectors = np.linalg.eigh(walk.to_dense())
    root = np.sqrt(walk.degrees)
    dip = walk.to_dense() - (values[0] + 5e-11) * np.outer(vectors[:, 0], vectors[:, 0])
    K = root[:, None] * dip * root
    K = (K + K.T) / 2
    programme = DiffusionProblem.of(Precomputed(), K, None, np.random.default_rng(0))
    least = np.linalg.eigvalsh(programme.operator.undeflated().to_dense())[0]
    assert least < -4e-11
    assert not programme.working.indefinite
    assert programme.operator.rounding().entries >= -least
    assert programme.operator.undeflated().rounding().entries >= -least
    assert programme.operator.rounding().semidefinite  # but for what is counted
    indefinite = DiffusionProblem.of(Precomputed(), _banded(60, 1.0) + 0.5 * np.eye(60), None, np.random.default_rng(0))
    assert indefinite.working.indefinite
    assert not indefinite.operator.rounding().semidefinite


def test_a_shift_that_may_be_too_small_is_a_chance_of_the_certificate():
    K = _banded(300, 1.0) + 0.5 * np.eye(300)
    with config_context(memory_limit="600kB"):
        programme = DiffusionProblem.of(Precomputed(), K, None, np.random.default_rng(0))
        problem, chance = programme.working, programme.working.failure_probability
        H = problem.random_point(3, programme.rng)
        chances = []
        for problem.failure_probability in (chance, 0.0):
            proof = certify_elliptope(problem, H, rng=np.random.default_rng(0), method="deflated-lanczos")
            chances.append(proof.failure_probability)
    assert chance > 0
    assert chances[0] - chances[1] == pytest.approx(chance, rel=1e-6)
