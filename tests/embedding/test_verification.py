"""`verify` judges a model by its coordinates, its kernel and the data, and by nothing else."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import Gaussian, Laplacian, Precomputed, SDPEmbedding, verify
from mercer.certificates import Certificate
from mercer.datasets import three_clusters, two_moons
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.levels import recorded
from mercer.embedding.solve import Solved
from mercer.support import Support

KERNEL = Gaussian(sigma=1.2)


@pytest.fixture(scope="module")
def clusters():
    X, _ = three_clusters(n_per_cluster=40, n_outliers=10)
    return X, SDPEmbedding(KERNEL, random_state=0).fit(X)


def _objective(model, X):
    """⟨Ā, B⟩ by the papers' formulas, from the kernel matrix of X and the coordinates."""
    K = model.kernel_(X)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    return float(np.sum(A * (model.coordinates_ @ model.coordinates_.T)))


def test_it_proves_what_the_fit_proved(clusters):
    X, model = clusters
    certificate = verify(model, X)
    assert isinstance(certificate, Certificate)
    assert certificate.holds(1e-6)
    assert certificate.lower == pytest.approx(_objective(model, X), rel=1e-8)
    assert certificate.lower <= model.certificate_.upper
    assert certificate.upper >= model.certificate_.lower
    assert certificate.failure_probability == 0


def test_it_uses_nothing_that_the_solver_left(clusters):
    X, model = clusters
    robbed = copy.deepcopy(model)
    for name in ("certificate_", "history_", "status_", "n_iter_", "n_products_"):
        delattr(robbed, name)
    assert verify(robbed, X).holds(1e-6)


def test_a_forged_certificate_is_not_believed(clusters):
    """Random directions of the right lengths, with all that follows from them, under the certificate of the optimum."""
    X, model = clusters
    forged = copy.deepcopy(model)
    rng = np.random.default_rng(0)
    programme = DiffusionProblem.of(model.kernel_, X, None, rng)
    H = programme.working.random_point(2, rng)
    everything = Support(None, None)
    made = recorded(programme, Solved(H, None, model.status_, model.history_, None, 0), everything, [])
    forged._store(X, X, everything, [made._replace(level=replace(made.level, certificate=model.certificate_))])
    assert forged.certificate_.holds(1e-6)
    assert not verify(forged, X).holds(0.1)


def _extension(**changes):
    def change(model):
        fields = {name: value(getattr(model._extension, name)) for name, value in changes.items()}
        model._extension = replace(model._extension, **fields)

    return change


def _attribute(name, value):
    return lambda model: setattr(model, name, value(getattr(model, name)))


TAMPERING = {
    "embedding rolled": _attribute("embedding_", lambda e: np.roll(e, 1, axis=0)),
    "embedding zero": _attribute("embedding_", np.zeros_like),
    "embedding scaled": _attribute("embedding_", lambda e: 1.0001 * e),
    "embedding of another sign": _attribute("embedding_", lambda e: e * [-1, 1]),
    "embedding cut": _attribute("embedding_", lambda e: e[:, :1]),
    "embedding not finite": _attribute("embedding_", lambda e: np.where(np.arange(len(e))[:, None] == 3, np.nan, e)),
    "one row of the embedding": _attribute("embedding_", lambda e: np.where(np.arange(len(e))[:, None] == 3, -e, e)),
    "coordinates rotated": _attribute("coordinates_", lambda c: c @ np.array([[0.6, 0.8], [-0.8, 0.6]])),
    "coordinates rolled": _attribute("coordinates_", lambda c: np.roll(c, 1, axis=0)),
    "coordinates of other lengths": _attribute("coordinates_", lambda c: 1.0001 * c),
    "eigenvalues": _attribute("eigenvalues_", lambda v: v[::-1]),
    "eigenvalues cut": _attribute("eigenvalues_", lambda v: v[:1]),
    "rank": _attribute("rank_", lambda r: r + 1),
    "diagonal": _attribute("diagonal_", lambda d: 1.0001 * d),
    "stationary": _attribute("stationary_", lambda p: np.roll(p, 1)),
    "kernel": _attribute("kernel_", lambda k: Gaussian(sigma=1.0001 * k.sigma)),
    "no kernel": _attribute("kernel_", lambda k: None),
    "weights": _attribute("sample_weight_", lambda w: np.full(130, 2.0)),
    "landmarks": _attribute("landmarks_", lambda w: np.arange(130)),
    "kernel of the extension": _extension(kernel=lambda k: Laplacian(sigma=1.2)),
    "points of the extension": _extension(points=lambda X: X + 1e-3),
    "rows of the extension": _extension(support=lambda s: Support(np.arange(130), s.weights)),
    "unit of the extension": _extension(support=lambda s: Support(None, np.full(130, 4.0))),
    "weights of the extension": _extension(weights=lambda w: 2 * w),
    "slopes": _extension(slopes=lambda b: -b),
    "volume": _extension(log_volume=lambda v: v + 1e-3),
    "cap": _extension(levels=lambda all: (replace(all[0], log_longest=all[0].log_longest + 1e-3), *all[1:])),
    "columns of transform": _attribute("_n_features_out", lambda n: 1),
    "certificate": _attribute("certificate_", lambda c: replace(c, lower=1.01 * c.upper, upper=1.02 * c.upper)),
    "no extension": lambda model: delattr(model, "_extension"),
    "no spectrum": lambda model: delattr(model, "eigenvalues_"),
}


@pytest.mark.parametrize("change", TAMPERING.values(), ids=TAMPERING)
def test_what_a_person_reads_or_predicts_with_is_what_is_certified(clusters, change):
    X, model = clusters
    tampered = copy.deepcopy(model)
    change(tampered)
    with pytest.raises(
        ValueError, match=r"^The (model is damaged|model has coordinates|embedding cannot belong)[^\n]*\.$"
    ):
        verify(tampered, X)


@pytest.mark.parametrize("part", ["extended rows", "solved rows"])
def test_rows_without_weight_are_looked_at_too(part):
    X, _ = three_clusters(n_per_cluster=30, n_outliers=10)
    model = SDPEmbedding(KERNEL, landmarks=np.arange(0, 100, 2), n_components=3, random_state=0).fit(X)
    assert verify(model, X).holds(1e-6)
    model.embedding_[1 if part == "extended rows" else 0] *= -1
    with pytest.raises(ValueError, match="embedding_ is not what the coordinates, the kernel and X give"):
        verify(model, X)


def test_a_model_of_single_precision_is_verified_in_double(clusters):
    X, _ = clusters
    with mercer.config_context(dtype="float32"):
        model = SDPEmbedding(KERNEL, tol=1e-2, residual_tol=1e-3, random_state=0).fit(X)
        assert verify(model, X).holds(1e-2)
    assert verify(model, X).holds(1e-2)


def test_truncated_models_are_verified_in_all_their_dimensions(clusters):
    X, model = clusters
    short = SDPEmbedding(KERNEL, n_components=1, random_state=0).fit(X)
    assert short.embedding_.shape[1] == 1 < model.rank_
    assert verify(short, X).holds(1e-6)


@pytest.mark.parametrize("seed", [None, 0, 3])
def test_any_seed_will_do(clusters, seed):
    X, model = clusters
    assert verify(model, X, random_state=seed).holds(1e-6)


def test_early_stop_is_called_by_its_name():
    X, _ = two_moons(n_points=80)
    with pytest.warns(UserWarning, match="budget ran out"):
        model = SDPEmbedding(Gaussian(sigma=0.3), solver="power", max_iter=3, random_state=0).fit(X)
    assert not verify(model, X).holds(1e-6)
    assert verify(model, X).lower == pytest.approx(_objective(model, X), rel=1e-6)


def test_weights_and_landmarks():
    X, _ = three_clusters(n_per_cluster=30, n_outliers=10)
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    weighted = SDPEmbedding(KERNEL, random_state=0).fit(X, sample_weight=weights)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    certificate = verify(weighted, X)
    assert certificate.holds(1e-6)
    whole = verify(SDPEmbedding(KERNEL, random_state=0).fit(repeated), repeated)
    assert certificate.lower <= whole.upper  # a row of weight two is the row twice: one optimum
    assert whole.lower <= certificate.upper
    landmarks = np.arange(0, len(X), 2)
    model = SDPEmbedding(KERNEL, landmarks=landmarks, random_state=0).fit(X)
    assert verify(model, X).holds(1e-6)
    full = SDPEmbedding(KERNEL, random_state=0).fit(X)
    extended = verify(model, X, extended=True)
    assert extended.lower <= full.certificate_.upper
    assert extended.upper >= full.certificate_.lower
    assert extended.holds(0.1)


def test_extension_on_the_training_set_is_the_solution(clusters):
    X, model = clusters
    extended = verify(model, X, extended=True)
    assert extended.holds(2e-6)
    assert extended.lower == pytest.approx(verify(model, X).lower, rel=1e-6)


def test_extension_to_a_fresh_sample_is_bracketed(clusters):
    _, model = clusters
    fresh, _ = three_clusters(n_per_cluster=50, n_outliers=5, random_state=5)
    extended = verify(model, fresh, extended=True)
    own = SDPEmbedding(KERNEL, random_state=0).fit(fresh)
    assert extended.lower <= own.certificate_.upper
    assert extended.upper >= own.certificate_.lower
    assert extended.relative_gap > own.certificate_.relative_gap


def test_precomputed_affinities(clusters):
    X, _ = clusters
    K = Laplacian(sigma=2.0)(X)
    model = SDPEmbedding(Precomputed(), random_state=0).fit(K)
    assert verify(model, K).holds(1e-6)
    assert verify(model, K, extended=True).holds(1e-5)
    with pytest.raises(ValueError, match="must be square"):
        verify(model, K[:50], extended=True)


def test_other_data_are_refused(clusters):
    X, model = clusters
    with pytest.raises(ValueError, match="fitted to 130 points, X has 129"):
        verify(model, X[:-1])
    with pytest.raises(ValueError, match="features"):
        verify(model, X[:, :1])
    with pytest.raises(ValueError, match="cannot belong to this X: the squared length of row"):
        verify(model, X[::-1])
    with pytest.raises(ValueError, match="cannot belong to this X"):
        verify(model, 1.5 * X)
    with pytest.raises(ValueError, match="at least two points"):
        verify(model, X[:1], extended=True)


def test_damaged_coordinates_are_refused(clusters):
    X, model = clusters
    damaged = copy.deepcopy(model)
    damaged.coordinates_ = damaged.coordinates_.copy()
    damaged.coordinates_[3, 0] = np.nan
    with pytest.raises(ValueError, match="damaged"):
        verify(damaged, X)
    damaged.coordinates_ = model.coordinates_[:-1]
    with pytest.raises(ValueError, match="damaged"):
        verify(damaged, X)


def test_what_is_no_fitted_embedding_is_refused(clusters):
    X, _ = clusters
    with pytest.raises(TypeError, match="RobustKernelClassifier, not DiffusionMaps"):
        verify(mercer.DiffusionMaps(), X)
    with pytest.raises(ValueError, match="not fitted"):
        verify(SDPEmbedding(), X)
