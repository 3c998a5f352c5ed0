"""A path of bandwidths agrees with single fits, names its degenerate ends, and refuses bad input in one sentence."""

from __future__ import annotations

import dataclasses
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer import Gaussian, Laplacian, Linear, Matern, Precomputed, SDPEmbedding, Sobolev, rank_path
from mercer.datasets import interval, three_clusters, two_moons
from mercer.embedding import Diagnosis
from mercer.operators.diffusion import DegenerateKernelError
from mercer.solvers import Status


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=20, n_outliers=4, random_state=1)[0]


@pytest.fixture(scope="module")
def path(X):
    """Every diagnosis but one: from points that see nothing to points that all look alike."""
    return rank_path(X, [1e-6, 0.06, 1.5, 4.0, 400.0, 1e9], random_state=0, max_products=2000)


def test_every_bandwidth_is_diagnosed_and_none_ends_the_path(path):
    assert path.diagnoses == (
        Diagnosis.ISOLATED,
        Diagnosis.NEARLY_ISOLATED,
        Diagnosis.INFORMATIVE,
        Diagnosis.INFORMATIVE,
        Diagnosis.NEARLY_CONSTANT,
        Diagnosis.CONSTANT,
    )
    np.testing.assert_array_equal(path.sigmas, [1e-6, 0.06, 1.5, 4.0, 400.0, 1e9])
    assert "Every point is isolated" in path.entries[0].note
    assert "All points look alike" in path.entries[-1].note
    for entry in path.entries:
        assert entry.diagnosis.degenerate == (entry.rank == 0) == (entry.status is None)


@pytest.mark.parametrize("i", [2, 3])
def test_entries_are_those_of_single_fits(path, X, i):
    entry = path.entries[i]
    model = SDPEmbedding(Gaussian(entry.sigma), random_state=3).fit(X)
    assert entry.rank == model.rank_
    np.testing.assert_allclose(entry.eigenvalues, model.eigenvalues_, atol=1e-4)
    assert entry.objective == pytest.approx(model.certificate_.lower, rel=2e-6)
    assert entry.relative_gap <= 1e-6
    assert entry.status is Status.CONVERGED
    assert entry.n_products > 0


def test_diffusion_eigenvalues_against_the_dense_matrix(path, X):
    for entry in path.entries[2:4]:
        K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / entry.sigma**2)
        m = K.sum(axis=1)
        expected = np.sort(np.linalg.eigvals(K / m[:, None]).real)[::-1][1:6]
        np.testing.assert_allclose(entry.diffusion_eigenvalues, expected, atol=1e-10)
        np.testing.assert_allclose(entry.spectral_gaps, expected[:-1] - expected[1:], atol=1e-10)
        assert entry.staying == pytest.approx(np.median(1 / m))
        assert entry.signal == pytest.approx(np.max(1 - m**2 / m.sum()))


def test_eigenvalues_that_are_all_one():
    """Nearly every eigenvalue is one here, and a dense search for a few of them is known to lose some."""
    path = rank_path(two_moons()[0], [0.00056, 0.00224], random_state=0, max_iter=1)
    np.testing.assert_allclose(path.diffusion_eigenvalues, np.ones((2, 5)), atol=1e-3)


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_diffusion_eigenvalues_of_a_larger_sample(sigma, monkeypatch):
    """Block Lanczos against the dense matrix, also where eigenvalues near one repeat."""
    X = three_clusters(n_per_cluster=60, n_outliers=8)[0]
    (dense,) = rank_path(X, [sigma], random_state=0, max_iter=1).entries
    monkeypatch.setattr(sys.modules["mercer.embedding.rank_path"], "_DENSE_UP_TO", 10)
    (sparse,) = rank_path(X, [sigma], random_state=0, max_iter=1).entries
    np.testing.assert_allclose(sparse.diffusion_eigenvalues, dense.diffusion_eigenvalues, atol=2e-6)
    assert np.all(sparse.diffusion_eigenvalues <= dense.diffusion_eigenvalues + 1e-12)


def test_neighbours_kept_and_the_step_against_their_definitions(path, X):
    n = len(X)
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    for entry in path.entries[2:4]:
        model = SDPEmbedding(Gaussian(entry.sigma), random_state=3).fit(X)
        assert entry.correlation == pytest.approx(model.certificate_.lower / model.diagonal_.sum(), rel=1e-5)
        near = [
            np.argsort(np.where(np.eye(n) == 1, np.inf, table), axis=1)[:, :15]
            for table in (squares, np.sum((model.embedding_[:, None] - model.embedding_) ** 2, axis=2))
        ]
        kept = np.mean([len({*a} & {*b}) / 15 for a, b in zip(*near, strict=True)])
        assert entry.kept == pytest.approx(kept, abs=5e-3)  # a neighbour more or less where the solutions differ


def test_suggestion_is_the_best_of_those_that_remember(X):
    path = rank_path(X, [1.0, 1.5, 2.0, 3.0, 8.0, 1e9], random_state=0)
    fit = [entry for entry in path.entries if entry.diagnosis is Diagnosis.INFORMATIVE and entry.correlation >= 0.5]
    assert 1 < len(fit) < sum(diagnosis is Diagnosis.INFORMATIVE for diagnosis in path.diagnoses)
    assert path.suggested is max(fit, key=lambda entry: entry.kept)
    forgetful = path.entries[4]
    assert forgetful.kept > path.suggested.kept  # nearly the data again, and so no choice
    assert forgetful.correlation < 0.5
    assert repr(path.suggested_kernel) == f"Gaussian(sigma={path.suggested.sigma!r})"
    assert f"sigma = {path.suggested.sigma:.4g}" in path.reason
    assert f"{path.suggested.kept:.0%} of the nearest neighbours" in path.reason
    assert f"{len(fit)} bandwidths" in path.reason


def test_suggestion_on_moons_tells_them_apart():
    X, labels = two_moons(150, random_state=0)
    path = rank_path(X, random_state=0)
    embedding = SDPEmbedding(path.suggested_kernel, random_state=0).fit_transform(X)
    assert cross_val_score(KNeighborsClassifier(5), embedding, labels).mean() > 0.97
    near = path.suggested.sigma / Gaussian().resolve(X).sigma
    assert 0.1 < near < 0.6  # at the median they are one cloud
    assert path.suggested.kept > 0.8


@pytest.mark.parametrize(
    ("sigmas", "why"),
    [
        ([1e-6, 1e9], r"of 2 bandwidths none is informative \(1 isolated, 1 constant\)"),
        ([20.0], r"of 1 bandwidth none .* one step of the walk keeps half \(the most is \d% at 20\)"),
    ],
)
def test_no_suggestion_says_why(X, sigmas, why):
    path = rank_path(X, sigmas, random_state=0)
    assert path.suggested is None
    with pytest.raises(ValueError, match=f"No bandwidth is suggested: {why}.*take SelfTuning"):
        _ = path.suggested_kernel


def test_doubts_about_a_suggestion_are_said():
    """Clusters of fifty points, each nearly one point in the embedding: few of the neighbours stay the nearest."""
    path = rank_path(three_clusters(n_per_cluster=50, n_outliers=0)[0], [1.2, 1e9], random_state=0)
    assert path.suggested is path.entries[0]
    assert "smallest of the grid" in path.reason
    assert "less than half" in path.reason


def test_arrays_over_the_path(path):
    ranks = path.ranks
    assert ranks[0] == ranks[-1] == 0
    assert path.eigenvalues.shape == (6, ranks.max())
    assert path.diffusion_eigenvalues.shape == (6, 5)
    assert np.isnan(path.eigenvalues[[0, -1]]).all()
    assert np.isnan(path.relative_gaps[[0, -1]]).all()
    assert np.isnan(path.objectives[[0, -1]]).all()
    np.testing.assert_allclose(np.sum(path.eigenvalues[1:-1], axis=1), 1.0, atol=1e-3)
    assert path.n_products == sum(entry.n_products for entry in path.entries)


def test_table_has_a_line_for_every_bandwidth(path):
    *lines, last = str(path).splitlines()
    assert len(lines) == 7
    assert last == path.reason
    assert lines[0].startswith("sigma")
    column = lines[0].index("diagnosis")
    assert [line[column:] for line in lines[1:]] == [diagnosis.value for diagnosis in path.diagnoses]
    assert [line.split()[0] for line in lines[1:]] == ["1e-06", "0.06", "1.5", "4", "400", "1e+09"]


def test_the_ends_of_the_interval():
    """PSD17 section 6.2: rank two at σ = 0.7, and one at σ = 1 on an even number of points."""
    path = rank_path(interval(200), [0.7, 1.0], random_state=0)
    np.testing.assert_array_equal(path.ranks, [2, 1])


def test_default_grid_is_logarithmic_around_the_median(X):
    path = rank_path(X, random_state=0, max_iter=3)
    median = Gaussian().resolve(X).sigma
    assert path.sigmas[0] == pytest.approx(median / 16)
    assert path.sigmas[-1] == pytest.approx(4 * median)
    np.testing.assert_allclose(path.sigmas[1:] / path.sigmas[:-1], np.sqrt(2))


def test_a_fit_that_runs_out_says_so_without_a_warning(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (entry,) = rank_path(X, [1.5], random_state=0, max_iter=2).entries
    assert entry.diagnosis is Diagnosis.NOT_CONVERGED
    assert entry.status in (Status.MAX_ITER, Status.MAX_PRODUCTS)
    assert entry.relative_gap > 1e-6


def test_warm_starts_need_fewer_columns_for_the_same_objectives(X):
    sigmas = [1.4, 1.7, 2.0, 2.4, 2.8, 3.4, 4.0]
    warm, cold = (rank_path(X, sigmas, warm_start=warm, random_state=0) for warm in (True, False))
    assert all(diagnosis is Diagnosis.INFORMATIVE for diagnosis in (*warm.diagnoses, *cold.diagnoses))
    np.testing.assert_allclose(warm.objectives, cold.objectives, rtol=2e-6)
    np.testing.assert_array_equal(warm.ranks, cold.ranks)
    assert warm.n_products + warm.n_stand_in_products < 0.8 * (cold.n_products + cold.n_stand_in_products)
    first = [(path.entries[-1].n_products, path.entries[-1].n_stand_in_products) for path in (warm, cold)]
    assert first[0] == first[1]  # the largest bandwidth comes first, and has nothing to start from


def test_a_flat_optimum_is_named():
    """Two certified solutions of one problem, their spectra far apart: the rank is not a property of the data."""
    X = three_clusters(n_per_cluster=50, n_outliers=6)[0]
    sigma = 0.1 * Gaussian().resolve(X).sigma
    (cold,) = rank_path(X, [sigma], random_state=0).entries
    warm = rank_path(X, sigma * 2.0 ** np.arange(4), random_state=0)
    assert cold.diagnosis is warm.entries[0].diagnosis is Diagnosis.FLAT
    assert cold.rank > warm.entries[0].rank
    assert cold.rigidity < 1e-12  # free to move in its own dimensions
    assert warm.entries[0].undetermined > 0.01  # or into others
    assert warm.entries[-1].rigidity > 0.1
    assert cold.objective == pytest.approx(warm.entries[0].objective, rel=2e-6)
    spectra = [entry.eigenvalues[:2].sum() for entry in (cold, warm.entries[0])]
    assert abs(spectra[0] - spectra[1]) > 0.01
    assert warm.entries[-1].diagnosis is Diagnosis.INFORMATIVE


def test_what_is_undetermined_bounds_what_lies_elsewhere(X):
    """A worse embedding has at most gap/tol times that share of its trace outside the dimensions of the optimum."""
    sigma, tol = 2.0, 1e-6
    (entry,) = rank_path(X, [sigma], tol=tol, residual_tol=1e-9, random_state=0).entries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        worse = SDPEmbedding(Gaussian(sigma), solver="power", max_iter=3, random_state=0).fit(X).coordinates_
    best = SDPEmbedding(Gaussian(sigma), residual_tol=1e-9, random_state=0).fit(X).coordinates_
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / sigma**2)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    y = np.sum(best * (A @ best), axis=1) / np.sum(best**2, axis=1)
    kernel_of_slack = np.linalg.eigh(np.diag(y) - A)[1][:, : entry.rank]
    outside = 1 - np.sum((kernel_of_slack.T @ worse) ** 2) / np.sum(worse**2)
    loss = 1 - np.sum(worse * (A @ worse)) / entry.objective
    assert loss > 10 * tol
    assert 0 < outside <= entry.undetermined * loss / tol * (1 + 1e-3)


def test_landmarks(X):
    """The diagnosis comes from the landmarks with their weights; the eigenvalues are those of all points."""
    rows = np.arange(0, len(X), 2)
    (entry,) = rank_path(X, [2.0], landmarks=rows, random_state=0).entries
    K = np.exp(-np.sum((X[rows][:, None] - X[rows]) ** 2, axis=2) / 4)
    m = K.sum(axis=1) * len(X) / len(rows)
    assert entry.staying == pytest.approx(np.median(1 / m))
    whole = rank_path(X, [2.0], random_state=0).entries[0]
    np.testing.assert_allclose(entry.diffusion_eigenvalues, whole.diffusion_eigenvalues, atol=1e-12)


def test_ctrl_c_ends_the_path_with_what_there_is(X):
    def stop(iteration):
        raise KeyboardInterrupt

    path = rank_path(X, [1.0, 2.0, 4.0], random_state=0, callback=stop)
    assert len(path.entries) == 1
    assert path.entries[0].status is Status.INTERRUPTED
    assert path.entries[0].diagnosis is Diagnosis.NOT_CONVERGED


@pytest.mark.parametrize(
    ("kernel", "parameter", "name"),
    [
        (Laplacian(), None, "sigma"),
        (Matern(nu=0.5), None, "length_scale"),
        (Sobolev(smoothness=3.0, length_scale=7.0), None, "length_scale"),
        (2.0 * Gaussian(), None, "kernel__sigma"),
        (Gaussian() + Laplacian(3.0), "left__sigma", "left__sigma"),
    ],
    ids=repr,
)
def test_kernels_with_a_bandwidth(X, kernel, parameter, name):
    before = repr(kernel)
    path = rank_path(X, [2.0, 1e9], kernel=kernel, parameter=parameter, random_state=0)
    assert repr(kernel) == before
    assert path.parameter == name
    expected = SDPEmbedding(clone(kernel).set_params(**{name: 2.0}), random_state=0).fit(X)
    assert path.entries[0].objective == pytest.approx(expected.certificate_.lower, rel=2e-6)
    assert path.entries[0].rank == expected.rank_
    path = dataclasses.replace(path, entries=(dataclasses.replace(path.entries[0], correlation=0.9),))
    assert path.suggested_kernel.get_params()[name] == 2.0


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(X, scale):
    reference, path = (rank_path(data, random_state=0, max_iter=50) for data in (X, scale * X))
    np.testing.assert_allclose(path.sigmas, scale * reference.sigmas)
    assert path.diagnoses == reference.diagnoses
    np.testing.assert_allclose(path.diffusion_eigenvalues, reference.diffusion_eigenvalues, atol=1e-8)


def test_path_is_frozen(path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        path.entries = ()


def test_every_diagnosis_has_a_sentence():
    for diagnosis in Diagnosis:
        assert diagnosis.message.endswith(".")


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigmas", "message"),
    [
        ([], "sigmas must be a sequence of at least one number, not of shape"),
        (2.0, "sigmas must be a sequence of at least one number, not of shape"),
        ([[1.0, 2.0]], "sigmas must be a sequence of at least one number, not of shape"),
        (["a"], "must be a sequence of positive numbers"),
        ([1.0, None], "every bandwidth must be a finite number greater than 0"),
        ([-1.0, 2.0], "sigmas has -1: every bandwidth must be a finite number greater than 0"),
        ([0.0, 2.0], "sigmas has 0: every bandwidth must be a finite number greater than 0"),
        ([1.0, np.nan], "sigmas has nan: every bandwidth must be"),
        ([1.0, np.inf], "sigmas has inf: every bandwidth must be"),
        ([1.0, 3.0, 2.0], "sigmas must rise strictly, but 3 is followed by 2: sort them"),
        ([1.0, 1.0], "sigmas must rise strictly, but 1 is followed by 1"),
    ],
)
def test_sigmas_that_are_no_grid(X, sigmas, message):
    with pytest.raises(ValueError, match=message):
        rank_path(X, sigmas)


@pytest.mark.parametrize("kernel", [Linear(), Linear() ** 2, Precomputed()], ids=repr)
def test_kernels_without_a_bandwidth(X, kernel):
    with pytest.raises(ValueError, match="has no bandwidth to vary: take one such as Gaussian"):
        rank_path(X, [1.0], kernel=kernel)


def test_kernels_with_two_bandwidths(X):
    with pytest.raises(
        ValueError, match="has several bandwidths: choose one by parameter='left__sigma' or 'right__length_scale'"
    ):
        rank_path(X, [1.0], kernel=Gaussian() + Matern())


def test_parameter_that_is_no_bandwidth(X):
    with pytest.raises(ValueError, match="parameter='nu' is no bandwidth of Matern.*, which has length_scale"):
        rank_path(X, [1.0], kernel=Matern(), parameter="nu")


def test_no_kernel(X):
    with pytest.raises(TypeError, match="must be a kernel of mercer.kernels"):
        rank_path(X, [1.0], kernel=3)


def test_bad_data_is_bad_at_every_bandwidth(X):
    with pytest.raises(DegenerateKernelError, match="All points are equal: there is nothing to embed"):
        rank_path(np.ones((5, 2)), [1.0, 2.0])
    with pytest.raises(ValueError, match="contains NaN"):
        rank_path(np.vstack([X, [[np.nan, 0.0]]]), [1.0])
    with pytest.raises(ValueError, match="n_eigenvalues=0 must be a whole number of at least 1"):
        rank_path(X, [1.0], n_eigenvalues=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        rank_path(X, [1.0], colour="red")
