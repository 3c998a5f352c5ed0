"""Bandwidths at which points are nearly isolated: every fit ends in bounded work, and ends proved."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import mercer
import mercer.solvers.elliptope.staircase as staircase
from mercer import Gaussian, Precomputed, SDPEmbedding, rank_path, verify
from mercer.datasets import three_clusters, two_moons, wine
from mercer.embedding.rank_path_result import Diagnosis
from mercer.operators.diffusion import DegenerateKernelError
from mercer.solvers import Status


def digits(n):
    return StandardScaler().fit_transform(load_digits().data)[:n]


SAMPLES = {
    "digits": lambda: digits(150),
    "wine": lambda: wine()[0],
    "clusters": lambda: three_clusters(30, 8)[0],
    "moons": lambda: two_moons(n_points=120)[0],
    "line": lambda: np.linspace(0, 1, 80)[:, None],
}


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SDPEmbedding(random_state=0, **options).fit(X)


# --- up to 2000 points ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", 2.0 ** np.arange(-6, 2))
@pytest.mark.parametrize("name", SAMPLES)
def test_every_bandwidth_ends_proved(name, factor):
    """Converged, or flat with a proof; degenerate ends are refused by name. Never trapped, never without a proof."""
    X = SAMPLES[name]()
    sigma = factor * Gaussian().resolve(X).sigma
    try:
        model = fitted(X, kernel=Gaussian(sigma=sigma))
    except DegenerateKernelError:
        assert factor < 0.1
        return
    assert model.status_ in (Status.CONVERGED, Status.FLAT)
    assert model.certificate_.holds(1e-6)
    assert model.n_products_ <= 20 * len(X) + 6000
    if model.status_ is Status.CONVERGED:
        assert model.history_[-1].row_residual <= 1e-6
    assert verify(model, X, random_state=1).lower == pytest.approx(model.certificate_.lower, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "sigmas"),
    [(250, (2.0, 1.0)), pytest.param(1000, (2.0, 1.0), marks=pytest.mark.slow)],
)
def test_digits_where_a_climb_alone_wanders(n, sigmas):
    X = digits(n)
    for sigma in sigmas:
        model = fitted(X, kernel=Gaussian(sigma=sigma))
        by_name = fitted(X, kernel=Gaussian(sigma=sigma), solver="interior-point")
        for fit in (model, by_name):
            assert fit.status_ in (Status.CONVERGED, Status.FLAT)
            assert fit.certificate_.holds(1e-6)
            assert fit.rank_ <= np.sqrt(2 * n) + 2
        assert model.certificate_.lower == pytest.approx(by_name.certificate_.lower, rel=1e-6)
        if n == 1000 and sigma == 2.0:
            assert model.certificate_.lower == pytest.approx(832.259, abs=1e-3)


def test_climb_hands_over_and_the_dual_is_kept():
    X = digits(250)
    model = fitted(X, kernel=Gaussian(sigma=1.4))
    phases = [line.phase for line in model.history_]
    assert {"climb", "interior point"} == set(phases)
    assert phases[0] == "climb"
    assert [line.number for line in model.history_] == sorted(line.number for line in model.history_)
    assert model.multipliers_.shape == (250,)
    d = model.diagonal_
    K = Gaussian(sigma=1.4)(X)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    slack = np.diag(model.multipliers_) - np.sqrt(np.outer(d, d)) * A
    assert np.linalg.eigvalsh(slack)[0] > -1e-9
    assert model.multipliers_.sum() == pytest.approx(model.certificate_.upper, rel=1e-8)


def test_an_ordinary_bandwidth_has_no_interior_points():
    X, _ = three_clusters(60, 10)
    model = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X)
    assert {line.phase for line in model.history_} == {"climb"}
    assert model.multipliers_ is None


def test_a_run_can_be_repeated():
    X = digits(200)
    one, two = (fitted(X, kernel=Gaussian(sigma=1.4)) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    assert one.n_products_ == two.n_products_


def test_indefinite_affinities_by_the_interior_point_method():
    X, _ = three_clusters(20, 4)
    K = Gaussian(sigma=3.0)(X)
    K = np.where(K > 0.2, K, 0.0)
    assert np.linalg.eigvalsh(K)[0] < -1e-3
    one = fitted(K, kernel=Precomputed(), solver="interior-point")
    other = fitted(K, kernel=Precomputed())
    assert one.certificate_.holds(1e-6)
    assert one.certificate_.lower == pytest.approx(other.certificate_.lower, rel=2e-6)


def test_weights_over_decades():
    X = digits(60)
    w = 10.0 ** np.random.default_rng(0).uniform(-4, 0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SDPEmbedding(Gaussian(sigma=3.0), solver="interior-point", random_state=0).fit(X, sample_weight=w)
    assert model.certificate_.holds(1e-6)


def test_landmarks_and_extension():
    X = digits(300)
    model = fitted(X, kernel=Gaussian(sigma=1.4), landmarks=np.arange(0, 300, 3))
    assert model.certificate_.holds(1e-6)
    assert model.embedding_.shape[0] == 300


# --- what is said -----------------------------------------------------------------------------------------------


def test_flat_end_says_so(monkeypatch):
    """With no columns left for the way to the boundary the rows do not settle, though the gap is proved."""
    monkeypatch.setattr(staircase, "_LEAST_CLIMB", 0)
    monkeypatch.setattr(staircase, "_CLIMB", 0)
    monkeypatch.setattr(staircase, "_SHARP", 1e-7)
    X = digits(120)
    with pytest.warns(ConvergenceWarning, match=r"gap is proved, .* nearly flat.* Nearly isolated: At least half"):
        model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(X)
    assert model.status_ is Status.FLAT
    assert model.certificate_.holds(1e-6)
    path = rank_path(X, [1.0], random_state=0)
    assert path.diagnoses == (Diagnosis.NEARLY_ISOLATED,)


def test_verbose_names_the_phases(caplog):
    with caplog.at_level("INFO", logger="mercer"):
        model = fitted(digits(150), kernel=Gaussian(sigma=1.4), verbose=True)
    lines = [record.getMessage() for record in caplog.records]
    steps = [line for line in lines if line.startswith("interior point, step ")]
    assert len(steps) == sum(line.phase == "interior point" for line in model.history_)
    assert all(", gap " in line and line.endswith(" s") for line in steps)


# --- by name: refusals and ends ---------------------------------------------------------------------------------


def test_memory_that_does_not_suffice_is_named_before_the_work():
    X = digits(300)
    with (
        mercer.config_context(memory_limit="5MB"),
        pytest.raises(ValueError, match="needs 7.2 MB for 300 points and the memory limit allows 5 MB: raise memory"),
    ):
        SDPEmbedding(Gaussian(sigma=2.0), solver="interior-point").fit(X)


def test_without_the_memory_the_climb_ends_by_itself():
    with mercer.config_context(memory_limit="2MB"):
        model = fitted(digits(200), kernel=Gaussian(sigma=1.4))
    assert {line.phase for line in model.history_} == {"climb"}
    assert model.status_ in (Status.CONVERGED, Status.FLAT, Status.CRAWLING)


def test_a_budget_below_the_columns_it_forms_is_refused():
    with pytest.raises(ValueError, match="forms 100 columns and max_products=50 allows fewer: raise max_products"):
        SDPEmbedding(Gaussian(sigma=2.0), solver="interior-point", max_products=50).fit(digits(100))


def test_a_budget_too_small_for_the_interior_point_method_is_kept():
    with pytest.warns(ConvergenceWarning, match="product budget ran out"):
        model = SDPEmbedding(Gaussian(sigma=1.4), max_products=2050, random_state=0).fit(digits(250))
    assert model.n_products_ <= 2050
    assert model.status_ is Status.MAX_PRODUCTS


@pytest.mark.parametrize("step", [0, 6])
def test_interruption_of_the_interior_point_method(step):
    X = digits(120)

    def press(line):
        if line.phase == "interior point" and line.number == step:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SDPEmbedding(Gaussian(sigma=2.0), solver="interior-point", callback=press).fit(X)
    assert model.status_ is Status.INTERRUPTED
    reference = fitted(X, kernel=Gaussian(sigma=2.0))
    assert model.certificate_.lower <= reference.certificate_.upper
    assert model.certificate_.upper >= reference.certificate_.lower


def test_interruption_between_interior_point_and_boundary(monkeypatch):
    def press(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(staircase.Climb, "_starts", press)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SDPEmbedding(Gaussian(sigma=2.0), solver="interior-point").fit(digits(60))
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.relative_gap < 1e-2


def test_steps_that_run_out_are_not_the_users(monkeypatch):
    """The method's own bound on its steps: what it found is taken on, and the certificate says how good it is."""
    monkeypatch.setattr(staircase, "STEPS", 9)
    model = fitted(digits(100), kernel=Gaussian(sigma=2.0), solver="interior-point")
    assert model.status_ is not Status.MAX_ITER
    assert model.certificate_.relative_gap < 1e-2


@pytest.mark.parametrize("solver", ["auto", "interior-point", "power"])
def test_a_stop_of_the_user_s_own_is_no_warning(solver):
    """The callback's author knows; the status and the certificate say the rest."""
    X, _ = three_clusters(20, 4)
    model = SDPEmbedding(Gaussian(sigma=1.2), solver=solver, callback=lambda line: True, random_state=0).fit(X)
    assert model.status_ is Status.STOPPED
    assert model.n_iter_ == 0


def test_budget_of_steps_by_name():
    with pytest.warns(ConvergenceWarning, match="iteration budget ran out"):
        model = SDPEmbedding(Gaussian(sigma=2.0), solver="interior-point", max_iter=4).fit(digits(100))
    assert model.n_iter_ == 4
    assert np.isfinite(model.certificate_.relative_gap)


# --- more points ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1.0, 1.4, 2.0])
def test_a_climb_that_does_not_pay_ends_with_its_best_iterate(sigma, monkeypatch):
    """As beyond 2000 points: judged on the certified gap, never trapped, and with the reason."""
    monkeypatch.setattr(staircase, "_DENSE_UP_TO", 0)
    X = digits(150)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SDPEmbedding(Gaussian(sigma=sigma), random_state=0).fit(X)
    assert model.status_ in (Status.CONVERGED, Status.FLAT, Status.CRAWLING)
    assert model.n_products_ < 60_000
    assert model.certificate_.relative_gap < 1e-2
    proved = fitted(X, kernel=Gaussian(sigma=sigma), solver="interior-point").certificate_
    assert model.certificate_.lower <= proved.upper
    assert model.certificate_.upper >= proved.lower
    if model.status_ is Status.CRAWLING:
        assert "hardly falls any more" in str(caught[-1].message)
        assert "Nearly isolated" in str(caught[-1].message)
