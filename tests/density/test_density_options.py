"""Every parameter does something or is refused; units, weights and bandwidths of any size end in numbers or a sentence."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer.density.sos as sos
from mercer import Gaussian, Laplacian, RobustKernelRidge, SumOfSquaresDensity, config_context, verify
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.solvers import Status
from mercer.solvers.conic import conic_spectrahedron
from mercer.solvers.spectrahedron.accelerated import project_on_simplex

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
y = np.sin(X[:, 0])


def density(X=X, weights=None, **options):
    options = {"kernel": Gaussian(0.9), "support": 8, "random_state": 0, **options}
    return SumOfSquaresDensity(**options).fit(X, sample_weight=weights)


def ridge(X=X, y=y, weights=None, **options):
    return RobustKernelRidge(**{"support": 8, "random_state": 0, **options}).fit(X, y, weights)


# --- nothing ignored in silence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"solver": "conic", "max_iter": 5}, r"^max_iter has no effect with solver='conic', .*: leave it out\.$"),
        ({"solver": "conic", "warm_start": True}, r"^warm_start has no effect with solver='conic'"),
        ({"solver": "fast"}, r"^solver='fast' must be one of"),
        ({"tol": 0.0}, r"^tol"),
        ({"max_iter": 0}, r"^max_iter=0 must be a whole number"),
        ({"truncation": 1.0}, r"^truncation"),
        ({"regularization": -1.0}, r"^regularization"),
        ({"callback": 3}, r"^callback=3 must be a function"),
        ({"warm_start": "yes"}, r"^warm_start='yes' must be True or False\.$"),
    ],
)
def test_options_are_looked_at_before_the_integrals(options, sentence, monkeypatch):
    monkeypatch.setattr(sos, "make_programme", None)
    with pytest.raises(ValueError, match=sentence):
        density(**options)


def test_the_conic_solver_tells_its_callback():
    pytest.importorskip("cvxpy")
    seen = []
    model = density(solver="conic", callback=seen.append)
    assert tuple(seen) == model.history_
    assert len(seen) == 1
    assert model.n_iter_ == 1
    assert density(solver="conic", callback=lambda line: True).status_ is Status.STOPPED


def test_the_conic_solver_hears_the_tolerance():
    pytest.importorskip("cvxpy")
    setting = Setting(Gaussian(0.9), X[:6], density().measure_)
    problem = make_programme(setting, Sample(X, None), regularization=0.1, truncation=1e-8)
    values = [problem.value(conic_spectrahedron(problem, tol=tol)) for tol in (1e-8, 1e-11)]
    assert values[0] != values[1]


def test_a_failure_of_the_conic_solver_is_one_sentence():
    pytest.importorskip("cvxpy")
    with pytest.raises(
        ArithmeticError, match=r"^The conic solver ended without a solution, with the status .*: use solver='auto'\.$"
    ):
        density(solver="conic", regularization=1e90)


@pytest.mark.parametrize("fit", [density, ridge, lambda **options: ridge(radius=0.0, **options)])
def test_an_interrupt_warns(fit):
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        assert fit(callback=interrupt).status_ is Status.INTERRUPTED


# --- units --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-100, 1e-80, 1e-8, 1e90])
@pytest.mark.parametrize("reference", ["lebesgue", "gaussian"])
def test_a_density_is_the_same_in_any_unit(unit, reference):
    one, other = density(reference=reference), density(unit * X, kernel=Gaussian(0.9 * unit), reference=reference)
    assert other.score(unit * X) + 2 * np.log(unit) == pytest.approx(one.score(X), abs=1e-5)
    assert other.mmd_ == pytest.approx(one.mmd_, rel=1e-4)  # both are solved to a tolerance
    assert other.certificate_.upper == pytest.approx(one.certificate_.upper, rel=1e-8)
    assert verify(other, unit * X).upper == other.certificate_.upper


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e154, 1e160, 1e307])
def test_weights_have_no_unit(unit):
    shares = np.linspace(0.5, 1.0, 40)
    one, other = density(weights=shares), density(weights=unit * shares)
    rel = 1e-3 if unit < 1e-308 else 1e-9  # numbers that small have four digits
    assert other.certificate_.upper == pytest.approx(one.certificate_.upper, rel=rel)
    one, other = ridge(weights=shares), ridge(weights=unit * shares)
    assert other.certificate_.upper == pytest.approx(one.certificate_.upper, rel=max(rel, 1e-6))


@pytest.mark.parametrize("sigma", [1e-300, 1e-150, 1e-8, 1e-3, 1e3, 1e8, 1e150])
@pytest.mark.parametrize("reference", ["lebesgue", "gaussian"])
def test_bandwidths_of_any_size_end_in_numbers_or_a_sentence(sigma, reference):
    if sigma < 1e-100 or (sigma > 1e100 and reference == "gaussian"):
        with pytest.raises(ValueError, match=r"^Gaussian.* times as narrow or wide as the points .*\.$|beyond double"):
            density(kernel=Gaussian(sigma), reference=reference)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = density(kernel=Gaussian(sigma), reference=reference)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert np.isfinite(model.mmd_)
    assert verify(model, X).upper == model.certificate_.upper


def test_a_reference_without_mass_at_the_points_is_refused():
    with pytest.raises(ValueError, match=r"^The kernel's sections have no mass under the reference measure"):
        density(reference=(1e6, 1.0))


def test_a_simplex_far_away_is_projected_on():
    out = project_on_simplex(np.array([-1e90, -1e90 * (1 + 1e-15), -2e90]))
    assert out.sum() == pytest.approx(1)
    assert np.all(out >= 0)


def test_the_precision_of_the_configuration_is_not_that_of_densities():
    with config_context(dtype="float32"):
        single, other = density(), ridge()
        assert verify(single, X).upper == single.certificate_.upper
    assert single.certificate_.upper == density().certificate_.upper
    assert verify(single, X).lower == single.certificate_.lower
    assert verify(other, X, y).upper == other.certificate_.upper


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=str)
def test_one_point_and_equal_points(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for points in (X[:1], np.repeat(X[:1], 5, axis=0)):
            model = density(points, kernel=kernel)
            assert verify(model, points).upper == model.certificate_.upper
