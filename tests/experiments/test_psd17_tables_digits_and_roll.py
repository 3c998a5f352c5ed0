"""PSD17 Figs 11, 12, 14, D.15 and D.16: tables, handwritten digits and the swiss roll."""

import numpy as np
import pytest

from mercer.datasets import data_folder, load_real
from mercer.experiments import (
    Verdict,
    digits_extended,
    digits_in_space,
    iris_in_plane,
    swiss_roll_in_plane,
    wine_in_plane,
)

real = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")


def _share_of_five(coordinates):
    """The part of the squared length that five points hold, the largest of all coordinates."""
    squares = np.sort(coordinates**2, axis=0)[::-1]
    return (squares[:5].sum(axis=0) / squares.sum(axis=0)).max()


def test_iris_has_rank_two_in_both_scales():
    result = iris_in_plane()
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 2
    centimetres, standardised = result.sdp.values()
    assert abs(centimetres.eigenvalues_[0] - standardised.eigenvalues_[0]) > 1e-3
    assert [len(ax.collections) for ax in result.figure().axes] == [3] * 4  # a family for each species


def test_iris_setosa_stands_apart():
    model = next(iter(iris_in_plane().sdp.values()))
    directions = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    mean = directions[:50].mean(axis=0)
    assert (directions[:50] @ mean).min() > (directions[50:] @ mean).max()


def test_wine_at_a_narrow_bandwidth_isolates_points_in_diffusion_maps_alone():
    result = wine_in_plane((3.0, 1.5), paper_steps=0)
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 2
    assert result.stopped == {}
    assert _share_of_five(result.sdp["σ = 1.5"].embedding_) < 0.2
    assert _share_of_five(result.diffusion_maps["σ = 1.5"].embedding_) > 0.9
    assert _share_of_five(result.diffusion_maps["σ = 3"].embedding_) < 0.5
    axes = result.figure().axes
    drawn = np.concatenate([c.get_offsets() for c in axes[3].collections])
    assert np.abs(drawn).max() == np.abs(result.diffusion_maps["σ = 1.5"].embedding_).max()
    titles = [ax.get_title() for ax in axes]
    assert titles == [
        "SDP embedding, σ = 3: rank 2",
        "SDP embedding, σ = 1.5: rank 2",
        "Diffusion maps, σ = 3",
        "Diffusion maps, σ = 1.5",
    ]


def test_wine_stopped_early_is_reported():
    result = wine_in_plane((1.0,), paper_steps=50)
    (rank,) = result.comparisons
    assert rank.verdict is Verdict.AGREES
    assert result.stopped["σ = 1"].rank_ > 2
    assert "the power method stopped after 50 steps" in rank.reason


@real
def test_fours_and_fives_are_embedded_and_extended():
    result = digits_extended(n_embedded=200, n_extended=200)
    assert set(result.labels) == set(result.extended_labels) == {4, 5}
    assert result.extended.shape == (200, result.sdp.rank_)
    first = load_real("mnist")["y_train"]
    np.testing.assert_array_equal(result.extended_labels, first[np.isin(first, [4, 5])][:200])
    embedded, extended, rank = result.comparisons
    assert embedded.verdict is extended.verdict is Verdict.DIFFERS
    assert embedded.reason == "a part of the images only"
    assert rank.paper == 2
    nearest = np.argmin(np.linalg.norm(result.extended[:, None] - result.sdp.embedding_, axis=2), axis=1)
    assert np.mean(result.labels[nearest] == result.extended_labels) > 0.85
    assert sum(len(c.get_offsets()) for c in result.figure().axes[1].collections) == 400


@real
def test_digits_in_space_are_drawn_in_three_dimensions():
    result = digits_in_space(4.0, n_embedded=200, paper_steps=20)
    assert set(result.labels) == {0, 1, 2, 3}
    assert [c.paper for c in result.comparisons] == [4157, 3, 4]
    assert "the power method stopped after 20 steps has rank" in result.comparisons[2].reason
    flat, space = sorted(result.figure().axes, key=lambda ax: hasattr(ax, "get_zlim"))
    assert hasattr(space, "get_zlim")
    assert not hasattr(flat, "get_zlim")
    assert [text.get_text() for text in space.get_legend().get_texts()] == ["0", "1", "2", "3"]


def test_without_data_the_error_names_the_variable(monkeypatch):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="MERCER_DATA"):
        digits_in_space()


def test_roll_is_embedded_along_its_angle():
    """Points near one another along the sheet have near directions; the ends of the roll are far apart."""
    result = swiss_roll_in_plane(0.35, n_points=300)
    rank = result.comparisons[1]
    assert (rank.verdict, rank.paper) == (Verdict.AGREES, 2)
    assert "size of the paper's roll is not printed" in rank.reason
    order = np.argsort(result.angle)
    unit = result.sdp.embedding_[order] / np.linalg.norm(result.sdp.embedding_[order], axis=1, keepdims=True)
    first, last = unit[:30].mean(axis=0), unit[-30:].mean(axis=0)
    middle = unit[130:170].mean(axis=0)
    assert np.linalg.norm(first) > 0.8
    assert np.linalg.norm(last) > 0.8
    assert middle @ first < 0.5
    assert middle @ last < 0.5


def test_roll_is_drawn_by_angle_and_by_density():
    result = swiss_roll_in_plane(0.4, n_points=200)
    figure = result.figure()
    assert len(figure.axes) == 6
    assert sum(hasattr(ax, "get_zlim") for ax in figure.axes) == 2
    above, below = (ax for ax in figure.axes if ax.get_title() == "Diffusion maps")
    np.testing.assert_allclose(above.collections[0].get_array(), np.sort(result.angle))
    np.testing.assert_allclose(below.collections[0].get_array(), np.sort(result.sdp.stationary_))


@real
@pytest.mark.slow
def test_digits_of_the_paper():
    assert all(c.verdict is Verdict.AGREES for c in digits_extended().comparisons)
    verdicts = [c.verdict for c in digits_in_space(paper_steps=0).comparisons]
    assert verdicts == [Verdict.AGREES, Verdict.AGREES, Verdict.DIFFERS]


@pytest.mark.slow
def test_roll_of_the_paper():
    assert all(c.verdict is Verdict.AGREES for c in swiss_roll_in_plane().comparisons)
