"""SOS Fig 2: the authors' loss is undercut and certified, every density has mass one, all panels are drawn."""

import numpy as np
import pytest

from mercer.datasets import data_folder, load_real
from mercer.experiments import Verdict, moons_bandwidth, moons_regularization, moons_support
from mercer.experiments.sos.two_moons import _mass_on_a_grid, _moons

real = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")
QUICK = {"tol": 1e-5}


@real
def test_the_points_are_the_same_without_the_folder(monkeypatch):
    """As a set, to the single precision in which the authors drew them."""
    theirs, as_theirs = _moons()
    np.testing.assert_array_equal(theirs, load_real("sos_moons")["X"])
    assert as_theirs
    monkeypatch.delenv("MERCER_DATA")
    ours, as_theirs = _moons()
    assert not as_theirs
    order = [np.lexsort(X.T) for X in (theirs, ours)]
    np.testing.assert_allclose(theirs[order[0]], ours[order[1]], atol=1e-6)


@real
def test_the_authors_loss_is_undercut_and_certified():
    result = moons_regularization((1e-3,))
    (model,) = result.models.values()
    assert model.certificate_.upper <= 1.8022225e-3
    assert model.certificate_.upper - model.certificate_.lower < 1e-8
    loss, rank = result.comparisons
    assert (loss.verdict, rank.verdict) == (Verdict.AGREES, Verdict.AGREES)
    assert (loss.paper, loss.measured, rank.measured) == (1.8028e-3, "1.802222e-03", 2)
    assert "another order" not in loss.reason


def test_regularisation_takes_squares_away():
    result = moons_regularization((1e-1, 1e-4), n_support=20, **QUICK)
    heavy, light = (result.models[value] for value in (1e-1, 1e-4))
    assert heavy.rank_ == 1 < light.rank_
    traces = [np.sum(m.coefficients_ * m.kernel_(m.support_)) for m in (heavy, light)]
    assert traces[0] < traces[1]
    assert [c.quantity for c in result.comparisons] == ["objective, λ = 0.1", "objective, λ = 0.0001"]
    assert next(ax.get_title() for ax in result.figure().axes) == "λ = 0.1, rank 1"


def test_mass_is_one_where_the_authors_lose_some(monkeypatch):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    result = moons_bandwidth((0.1, 10.0), n_support=15, **QUICK)
    for value, model in result.models.items():
        assert _mass_on_a_grid(model, result.X, value) == pytest.approx(1, abs=1e-8)
    narrow, wide = result.comparisons
    assert narrow.verdict is Verdict.AGREES
    assert wide.verdict is Verdict.DIFFERS
    assert wide.paper == 0.81
    assert "another order" in wide.reason


@pytest.mark.filterwarnings("ignore:The MMD between density and sample")  # few points, on purpose
def test_the_support_grows(monkeypatch):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    result = moons_support((5, 15), **QUICK)
    assert all("another order" in comparison.reason for comparison in result.comparisons)
    assert [model.support_.shape[0] for model in result.models.values()] == [5, 15]
    np.testing.assert_array_equal(result.models[5.0].support_, result.X[:5])
    figure = result.figure()
    assert [ax.get_title().split(",")[0] for ax in figure.axes] == ["m = 5 of n = 100", "m = 15 of n = 100"]
    assert [ax.get_legend() is None for ax in figure.axes] == [False, True]


def test_what_is_not_certified_does_not_agree():
    """A tolerance of one half leaves a gap, and the comparison says so."""
    result = moons_support((15,), tol=0.5)
    (model,) = result.models.values()
    assert model.certificate_.upper - model.certificate_.lower > 1e-8
    assert result.comparisons[0].verdict is Verdict.DIFFERS


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [moons_regularization, moons_bandwidth, moons_support])
def test_every_panel_is_certified(experiment):
    result = experiment()
    assert len(result.figure().axes) == len(result.models) == 4
    for model in result.models.values():
        assert model.certificate_.upper - model.certificate_.lower < 1e-8
    assert all(c.verdict is Verdict.AGREES for c in result.comparisons if c.paper == "the minimum")


@pytest.mark.parametrize(
    ("experiment", "options", "sentence"),
    [
        (moons_bandwidth, {"sigmas_squared": [0.0]}, r"^sigma_squared=0.0 must be greater than 0\.$"),
        (moons_support, {"n_supports": [101]}, r"^n_support=101 is more than the 100 points there are\.$"),
        (moons_support, {"n_supports": [0]}, r"^n_support=0 must be a whole number of at least 1"),
        (moons_regularization, {"regularizations": [-1.0]}, r"regularization=-1.0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(experiment, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        experiment(**options)


def test_a_quantity_is_either_varied_or_set():
    with pytest.raises(TypeError, match="'n_support'"):
        moons_support((5,), n_support=5)
    with pytest.raises(TypeError, match="'regularisation'"):
        moons_support((5,), regularisation=1e-3)
