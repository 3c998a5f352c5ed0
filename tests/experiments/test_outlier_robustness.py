"""Scores against outliers: what is counted, how settings are chosen, and a picture with or without UMAP."""

import sys

import numpy as np
import pytest

from mercer.experiments import Experiment, OutlierRobustness, outlier_robustness
from mercer.experiments.psd22.outlier_robustness import METHODS, _in_a_box, _measured
from mercer.experiments.report import Verdict


@pytest.fixture(scope="module")
def result():
    return outlier_robustness(
        ("three clusters", "two moons"),
        (0.0, 0.1),
        n_seeds=2,
        n_points=60,
        factors=(1e-9, 1 / 4, 1.0),
        tsne=False,
        umap=False,
    )


def test_shapes_and_ranges(result):
    assert isinstance(result, Experiment)
    assert tuple(result.scores) == METHODS[:-2]
    for method, scores in result.scores.items():
        assert scores.shape == (2, 2, 3, 2, 2)
        embedded = scores[:, :, 1:]
        assert np.all((embedded >= 0) & (embedded <= 1)), method
        assert result.fixed(method).shape == result.tuned(method).shape == result.averaged(method).shape == (2, 2, 2, 2)


def test_clean_clusters_are_found_by_all(result):
    for method in result.scores:
        assert result.fixed(method)[0, 0].min() > 0.95, method


def test_outliers_disturb_diffusion_maps_more(result):
    """Two moons at a quarter of the median, where PSD22 section 5.2 draws them: the reason for the whole method."""
    sdp, maps = (result.scores[METHODS[i]][1, 1, 1, :, 0].mean() for i in (0, 3))
    assert sdp > maps + 0.1


def test_settings_without_an_embedding_are_never_chosen(result):
    assert np.isnan(result.scores[METHODS[0]][:, :, 0]).all()
    for method in result.scores:
        assert np.isfinite(result.tuned(method)).all()
        assert np.all(result.best_settings(method) > 1e-9)


def _made_up(scores):
    settings = dict.fromkeys((METHODS[0], *METHODS[3:5]), (0.5, 1.0, 2.0))
    array = np.broadcast_to(np.asarray(scores, dtype=float)[None, None, :, :, None], (1, 1, 3, 2, 2)).copy()
    return OutlierRobustness(("a",), (0.1,), settings, {METHODS[0]: array, METHODS[3]: array / 2, METHODS[4]: array})


def test_three_ways_to_read_the_scores():
    result = _made_up([[1.0, 0.2], [0.5, 0.5], [0.4, 0.9]])
    np.testing.assert_array_equal(result.tuned(METHODS[0])[0, 0, :, 0], [0.4, 0.9])
    np.testing.assert_array_equal(result.fixed(METHODS[0])[0, 0, :, 0], [0.5, 0.5])
    np.testing.assert_allclose(result.averaged(METHODS[0])[0, 0, :, 0], [1.9 / 3, 1.6 / 3])
    assert result.best_settings(METHODS[0])[0, 0, 0] == 2.0


def test_of_equally_good_settings_the_default_is_taken():
    result = _made_up([[0.7, 0.7], [0.7, 0.7], [0.2, 0.2]])
    assert np.all(result.best_settings(METHODS[0]) == 1.0)
    assert np.all(_made_up([[0.7, 0.9], [0.9, 0.7], [0.1, 0.1]]).best_settings(METHODS[0]) == 1.0)


def test_claims_follow_the_scores():
    verdicts = [comparison.verdict for comparison in _made_up([[1.0, 1.0], [0.5, 0.5], [0.2, 0.2]]).comparisons]
    assert verdicts == [Verdict.AGREES] * 3
    worse = _made_up([[1.0, 1.0], [0.5, 0.5], [0.2, 0.2]])
    worse.scores[METHODS[3]] *= 4
    assert [comparison.verdict for comparison in worse.comparisons] == [Verdict.DIFFERS] * 3


def test_outliers_are_seen_by_k_means_but_not_counted():
    """Two classes on a line; an outlier so far off that it takes a centre: the classes are one cluster then."""
    points = np.concatenate([np.linspace(0, 1, 20), np.linspace(9, 10, 20)])[:, None]
    labels = np.repeat([0, 1], 20)
    assert _measured(points, labels, 0) == (pytest.approx(1.0), pytest.approx(1.0))
    far = np.concatenate([points, [[1e6]]])
    nmi, accuracy = _measured(far, np.append(labels, -1), 0)
    assert nmi == pytest.approx(0.0, abs=1e-9)
    assert accuracy == pytest.approx(1.0)


def test_outliers_fill_a_larger_box():
    X = np.random.default_rng(0).uniform(-1, 3, (400, 2))
    Z, labels = _in_a_box(X, np.zeros(400, dtype=int), 0.2, 0)
    outliers = Z[labels == -1]
    assert len(outliers) == 100
    np.testing.assert_array_equal(Z[:400], X)
    assert np.abs(outliers - 1).max() <= 3.0
    assert np.abs(outliers - 1).max() > 2.5


def test_picture_says_that_umap_is_missing(result):
    figure = result.figure()
    assert len(figure.axes) == 12
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert set(METHODS[:-2]) < set(names)
    assert result.missing in names
    assert result.missing.startswith("t-SNE left out, UMAP ")


def test_umap_that_is_not_installed(monkeypatch):
    module = sys.modules["mercer.experiments.psd22.outlier_robustness"]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = outlier_robustness(("three clusters",), (0.0,), n_seeds=1, n_points=30, factors=(1.0,))
    assert result.missing == "UMAP not installed"
    assert np.isfinite(result.scores["t-SNE"]).all()
    assert METHODS[-1] not in result.scores
    assert np.isfinite(result.tuned(METHODS[0])).all()


def test_progress_and_bad_input():
    lines = []
    outlier_robustness(
        ("three clusters",),
        (0.1,),
        n_seeds=1,
        n_points=30,
        factors=(1.0,),
        tsne=False,
        umap=False,
        progress=lines.append,
    )
    assert lines == ["three clusters, 10 % outliers, seed 0"]
    with pytest.raises(ValueError, match="There is no sample 'five clusters': choose among three clusters, two moons"):
        outlier_robustness(("five clusters",))
    with pytest.raises(ValueError, match="factors must contain 1"):
        outlier_robustness(factors=(0.5,))
