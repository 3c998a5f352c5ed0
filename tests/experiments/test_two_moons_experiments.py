"""PSD22 Figs 7 and 8: two moons."""

import numpy as np
import pytest

from mercer.datasets import radial_moons
from mercer.experiments import Verdict, two_moons_clustering, two_moons_embedding


@pytest.fixture(scope="module")
def embedding():
    return two_moons_embedding(n_per_moon=100, max_iter=300)


@pytest.fixture(scope="module")
def clustering():
    return two_moons_clustering((1e-4, 0.2, 1.0), n_runs=2, n_per_moon=80, stopped=())


def test_moons_are_mirror_images():
    X, labels = radial_moons(50, random_state=4)
    assert np.bincount(labels).tolist() == [50, 50]
    lower, upper = X[labels == 0] - [1, 0], X[labels == 1]
    np.testing.assert_allclose(lower, upper * [1, -1], atol=1e-15)
    radii = np.linalg.norm(radial_moons(4000, random_state=1)[0][4000:], axis=1)
    assert radii.std() == pytest.approx(1 / 6, rel=0.05)


def test_the_optimum_has_rank_one_and_parts_the_moons(embedding):
    assert embedding.sdp.rank_ == 1
    assert embedding.sdp.certificate_.holds(1e-6)
    sides = embedding.sdp.embedding_[:, 0] > 0
    assert np.mean(sides == embedding.labels.astype(bool)) in (0.0, 1.0)


def test_the_stopped_run_is_shown_and_explained(embedding):
    early, exact = embedding.comparisons
    assert "300 power steps" in early.quantity
    assert embedding.stopped.certificate_.relative_gap > 1e-6
    assert embedding.stopped.rank_ > 1
    assert exact.verdict is Verdict.DIFFERS
    assert exact.measured == "1.0000"
    assert "certified" in exact.reason
    titles = [ax.get_title() for ax in embedding.figure().axes]
    assert titles[0] == "Two moons"
    assert titles[1].startswith("Certified, rank 1")
    assert titles[2].startswith("300 power steps")


def test_narrow_kernels_part_the_moons_and_wide_ones_do_not(clustering):
    scores = clustering.scores["SDP"]
    assert np.nanmin(scores[1]) > 0.5 > np.nanmax(scores[2])
    assert all(np.nanmin(values) >= 0 for values in clustering.scores.values())


def test_a_kernel_too_narrow_leaves_a_gap_and_no_error(clustering):
    assert np.isnan(clustering.scores["SDP"][0]).all()
    assert len(clustering.sdp_spectra[0]) == 0
    assert np.isfinite(clustering.raw).all()


def test_claims_and_readings(clustering):
    """With the projection on the circle of PSD22 section 5.2."""
    quantities = [c.quantity for c in clustering.comparisons]
    assert quantities[:3] == ["mean NMI over all σ", "standard deviation, mean over σ", "the same on the circle"]
    assert "NMI of SDP, σ = 0.2" in quantities
    assert all(c.reason for c in clustering.comparisons)


def test_four_panels(clustering):
    titles = [ax.get_title() for ax in clustering.figure().axes]
    assert titles == ["NMI of k-means", "… on the circle", "Eigenvalues of B / Tr B", "Eigenvalues of Ā"]


def test_stopped_runs_stand_beside_the_converged_ones():
    result = two_moons_clustering((0.4,), n_runs=1, n_per_moon=60, stopped=(0.4, 0.7))
    assert list(result.stopped) == [0.4]
    last = result.comparisons[-1]
    assert last.quantity == "power method as the authors stop it, last sample, σ = 0.4"
    assert last.verdict is Verdict.AGREES
    np.testing.assert_allclose(result.stopped[0.4].eigenvalues_, result.sdp_spectra[0], atol=1e-4)
