"""PSD17 Figs 1, 9 and 13: three clusters by spectrum, over bandwidths, and extended."""

import numpy as np
import pytest

from mercer.experiments import Verdict, cluster_spectrum, clusters_extended, clusters_over_bandwidths


@pytest.fixture(scope="module")
def over_bandwidths():
    return clusters_over_bandwidths((1.0, 2.0), spectrum_sigmas=(1.0, 2.0, 3.0), n_per_cluster=40, paper_steps=60)


@pytest.fixture(scope="module")
def extended():
    return clusters_extended(n_per_cluster=40)


def _kernel(X, Y, sigma):
    return np.exp(-((X[:, None] - Y) ** 2).sum(axis=2) / sigma**2)


def test_two_eigenvalues_before_the_gap():
    result = cluster_spectrum()
    K = _kernel(result.X, result.X, 1.5)
    m = K.sum(axis=1)
    expected = np.linalg.eigvalsh(K / np.sqrt(np.outer(m, m)))[::-1][1:7]
    np.testing.assert_allclose(result.diffusion_maps.eigenvalues_, expected, atol=1e-10)
    assert result.dimensions == 2
    first, second, gap = result.comparisons
    assert (first.paper, second.paper, gap.verdict) == (0.99, 0.97, Verdict.AGREES)
    assert "does not say where its clusters lie" in first.reason
    titles = [ax.get_title() for ax in result.figure().axes]
    assert titles[:2] == ["Data: three clusters", "Diffusion maps"]


def test_rank_two_at_every_bandwidth(over_bandwidths):
    assert [c.verdict for c in over_bandwidths.comparisons] == [Verdict.AGREES] * 2
    assert all(model.certificate_.holds(1e-6) for model in over_bandwidths.sdp.values())


def test_what_the_early_stop_hides_is_said(over_bandwidths):
    """Sixty power steps are not enough at σ = 1: more dimensions are left, and the reason says so."""
    narrow = over_bandwidths.comparisons[0]
    assert over_bandwidths.stopped[1.0].rank_ > 2
    assert "the power method stopped after 60 steps has rank" in narrow.reason
    assert over_bandwidths.stopped[1.0].certificate_.relative_gap > 1e-6


def test_outliers_lie_farther_out_than_the_clusters(over_bandwidths):
    """Rigidity: the length of a row is √K(x,x), large where the density is low, whatever the bandwidth."""
    outliers = over_bandwidths.labels == -1
    assert outliers.sum() == 8
    for model in over_bandwidths.sdp.values():
        lengths = np.linalg.norm(model.embedding_, axis=1)
        np.testing.assert_allclose(lengths**2, model.diagonal_, rtol=1e-8)
        assert np.median(lengths[outliers]) > 1.5 * np.median(lengths[~outliers])


def test_spectra_over_the_bandwidth(over_bandwidths):
    assert sorted(over_bandwidths.spectra) == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(
        over_bandwidths.spectra[2.0][:2], over_bandwidths.diffusion_maps[2.0].eigenvalues_, atol=1e-10
    )
    assert over_bandwidths.spectra[1.0][0] > over_bandwidths.spectra[3.0][0]


def test_panels(over_bandwidths):
    titles = [ax.get_title() for ax in over_bandwidths.figure().axes]
    assert titles[0] == "Data: 8 outliers"
    assert titles[3:5] == ["SDP embedding, σ = 1: rank 2", "SDP embedding, σ = 2: rank 2"]
    assert titles[5:] == ["Diffusion maps, σ = 1", "Diffusion maps, σ = 2"]


def test_without_the_papers_method():
    result = clusters_over_bandwidths((2.0,), spectrum_sigmas=(2.0,), n_per_cluster=30, paper_steps=0)
    assert result.stopped == {}
    assert "power method" not in result.comparisons[0].reason


def test_extension_is_the_best_place_for_one_more_point(extended):
    """PSD17 Prop 3: of all vectors of length √K(x,x), the extension maximises the objective of N + 1 points."""
    assert extended.comparisons[0].verdict is Verdict.AGREES
    K = _kernel(extended.X, extended.X, 1.5)
    m, new = K.sum(axis=1), _kernel(extended.new, extended.X, 1.5)
    m_new = new.sum(axis=1)
    cross = new / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / m.sum()
    lengths = np.sqrt(1 / m_new - m_new / m.sum())
    np.testing.assert_allclose(np.linalg.norm(extended.extended, axis=1), lengths, rtol=1e-8)
    gain = np.einsum("ij,ij->i", cross @ extended.sdp.embedding_, extended.extended)
    angle = np.linspace(0, 2 * np.pi, 721)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    others = lengths[:, None] * (cross @ extended.sdp.embedding_ @ circle)
    assert np.all(gain[:, None] >= others - 1e-9)
    np.testing.assert_allclose(gain, others.max(axis=1), rtol=1e-4)


def test_a_new_point_joins_its_cluster(extended):
    nearest = np.argmin(np.linalg.norm(extended.sdp.embedding_ - extended.extended[0], axis=1))
    assert extended.labels[nearest] == 0
    nearest = np.argmin(np.linalg.norm(extended.sdp.embedding_ - extended.extended[1], axis=1))
    assert extended.labels[nearest] == 1


def test_new_points_are_drawn_in_both_panels(extended):
    left, right = extended.figure().axes[:2]
    for ax, points in ((left, extended.new), (right, extended.extended)):
        drawn = np.concatenate([c.get_offsets() for c in ax.collections[1:]])
        np.testing.assert_allclose(drawn, points)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_paper_size(seed):
    result = clusters_over_bandwidths(paper_steps=0, random_state=seed)
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 3
