"""SOS section 2.1: the relaxed player never moves, the true one does for a window of radii."""

import numpy as np
import pytest

from mercer.experiments import Verdict, relaxed_adversary


@pytest.fixture(scope="module")
def result():
    return relaxed_adversary(radii=[0.3, 0.8, 1.1, 1.17, 1.18, 1.2, 1.27, 1.28, 1.35])


def test_the_relaxed_player_never_moves(result):
    assert np.all(result.relaxed_answers == 0.0)


def test_the_true_player_moves_inside_a_window(result):
    moved = (result.radii >= 1.18) & (result.radii <= 1.27)
    assert np.all(result.answers[~moved] == 0.0)
    assert np.all((result.answers[moved] >= 0.395) & (result.answers[moved] <= 0.455))
    assert 1.17 < result.window[0] < 1.18
    assert 1.27 < result.window[1] < 1.28
    assert 0.4 <= result.answer <= 0.46
    assert np.all(np.diff(result.values) <= 0)  # a larger ball never helps the player


def test_the_adversary_answers_the_answer(result):
    """At a saddle point nothing near θ* gains more, and the worst distribution lies on the sphere."""
    assert result.worst.distance(result.data) == pytest.approx(result.radius, abs=1e-7)
    assert result.adversary.certificate.upper - result.adversary.certificate.lower < 1e-7
    assert result.anywhere.covers == "box"
    assert result.anywhere.certificate.lower <= result.adversary.value
    here, near = (result.worst(np.array([[result.answer + t]]))[0] for t in (0.0, 0.02))
    assert here == pytest.approx(near, rel=0.02)  # a stationary point of the adversary's returns
    assert result.relaxed_vector.distance(result.data) == pytest.approx(result.radius, rel=1e-12)
    assert result.relaxed_vector([[0.0]])[0] < 0


def test_comparisons_and_figure(result):
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 4
    titles = [ax.get_title().split(",")[0] for ax in result.figure().axes]
    assert titles[:2] == ["RKHS norm relaxation", "MMD solution"]


def test_where_the_player_stays():
    result = relaxed_adversary(radius=0.5, n_points=21, radii=[0.3, 0.5])
    assert result.answer == 0.0
    assert np.isnan(result.window[0])
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES, Verdict.DIFFERS, Verdict.DIFFERS, Verdict.AGREES]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_points": 80}, r"^n_points=80 must be odd"),
        ({"sigma": -1.0}, r"^sigma=-1.0 must be greater than 0\.$"),
        ({"radius": 0}, r"^radius=0 must be greater than 0\.$"),
        ({"half_width": "wide"}, r"^half_width='wide' must be a finite number\.$"),
        ({"radii": [0.0, 1.0]}, r"^radii must be positive"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        relaxed_adversary(**options)
