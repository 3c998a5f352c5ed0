"""Densities of tensors: fits equal to NumPy's, answers that stay tensors."""

from __future__ import annotations

import numpy as np
import pytest
from sum_of_squares_oracle import minimised

import mercer
from mercer import Gaussian, Laplacian, Matern, SumOfSquaresDensity
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.kernels.integrals.measures import Lebesgue
from mercer.problems.sum_of_squares_enclosures import Sample

torch = pytest.importorskip("torch")

TOL = 1e-10  # of the objective, whose root is what the solutions may differ by
ROOT = 1e-4


def sample(n=60, d=2):
    rng = np.random.default_rng(5)
    return rng.standard_normal((n, d)) + 2 * rng.integers(0, 2, (n, 1)), rng.uniform(0.5, 1.5, n)


def close(ours, expected, tolerance):
    assert isinstance(ours, torch.Tensor)
    ours, expected = ours.numpy(), np.asarray(expected)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * float(np.max(np.abs(expected))))


FITS = {
    "plane": {},
    "box": {"box": (-5.0, 7.0)},
    "Gaussian reference": {"reference": "gaussian"},
    "given reference": {"reference": ([0.5, 1.0], 1.5), "support": ("kmeans", 10)},
    "Laplacian": {"kernel": Laplacian(1.0), "support": 8},
    "Matern on a box": {"kernel": Matern(2.5, 1.0), "support": 6, "box": (-4.0, 6.0)},
    "accelerated": {"solver": "accelerated", "support": 8, "tol": 1e-4},
}


@pytest.mark.filterwarnings("ignore:The MMD between density and sample")  # few points, on purpose
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, torch.float64) for name in FITS), ("plane", torch.float32), ("Laplacian", torch.float32)],
    ids=str,
)
def test_a_fit_to_tensors_is_that_to_arrays(name, dtype):
    options = FITS[name]
    X, weights = sample()
    T = torch.from_numpy(X).to(dtype)
    tol = options.get("tol", TOL)
    options = {"support": 12, "random_state": 0, "tol": tol} | options
    plain = SumOfSquaresDensity(**options).fit(T.numpy(), sample_weight=weights)
    ours = SumOfSquaresDensity(**options).fit(T, sample_weight=torch.from_numpy(weights))
    close(ours.support_, plain.support_, 1e-12)
    assert ours.rank_ == plain.rank_
    assert ours.certificate_.upper == pytest.approx(plain.certificate_.upper, abs=2 * tol)
    assert ours.mmd_ == pytest.approx(plain.mmd_, abs=max(ROOT, tol))
    for name in ("factor_", "coefficients_", "eigenvalues_"):
        assert isinstance(getattr(ours, name), torch.Tensor)
        assert getattr(ours, name).dtype == torch.float64
    close(ours.density(T), plain.density(T.numpy()), max(ROOT, np.sqrt(tol)))
    again = mercer.verify(ours, T)
    assert again.lower <= plain.certificate_.upper
    assert plain.certificate_.lower <= again.upper


@pytest.mark.parametrize(("kernel", "d"), [(Gaussian(0.9), 1), (Gaussian(0.9), 2), (Laplacian(1.0), 1)], ids=str)
def test_questions_are_answered_in_tensors(kernel, d):
    X, _ = sample(d=d)
    T = torch.from_numpy(X)
    plain, ours = (SumOfSquaresDensity(kernel, support=6, random_state=0, tol=TOL).fit(points) for points in (X, T))
    for question in ("mean", "covariance"):
        close(getattr(ours, question)(), getattr(plain, question)(), ROOT)
    close(ours.sample(20, random_state=1), plain.sample(20, random_state=1), 10 * ROOT)
    if d == 1:
        close(ours.cdf(T[:5, 0]), plain.cdf(X[:5, 0]), ROOT)
        close(ours.quantile([0.1, 0.5]), plain.quantile([0.1, 0.5]), ROOT)
    else:
        close(ours.marginal([1]).density(T[:, 1:]), plain.marginal([1]).density(X[:, 1:]), ROOT)
        close(ours.marginal([1]).quantile([0.3]), plain.marginal([1]).quantile([0.3]), ROOT)
        close(ours.conditional([0], [0.1]).mean(), plain.conditional([0], [0.1]).mean(), 10 * ROOT)
        close(
            ours.conditional([0], [0.1]).score_samples(T[:, 1:]),
            plain.conditional([0], [0.1]).score_samples(X[:, 1:]),
            ROOT,
        )


def test_no_sum_over_the_sample_and_no_step_leaves_the_library(request):
    X, weights = sample()
    T, w, far = torch.from_numpy(X), torch.from_numpy(weights), torch.full((1, 2), 1e3, dtype=torch.float64)
    model = SumOfSquaresDensity(Gaussian(0.9), support=12, random_state=0).fit(T, sample_weight=w)
    plain = SumOfSquaresDensity(Gaussian(0.9), support=12, random_state=0).fit(X, sample_weight=weights)
    expected = torch.from_numpy(plain.density(X))
    request.getfixturevalue("refuse_numpy")
    options = {"regularization": 1e-3, "truncation": 1e-10}
    problem = make_programme(Setting(Gaussian(0.9), T[:12], Lebesgue()), Sample(T, w), **options)
    assert minimised(problem, tol=1e-9).point.shape[0] == problem.dimension
    assert float((model.density(T) - expected).abs().max()) <= ROOT * float(expected.max())
    assert float(model.score_samples(far)) == pytest.approx(-2 * 2e6 / 0.81, rel=1e-2)  # finite far from the support


def test_points_of_the_other_library_are_brought_to_that_of_the_fit():
    X, _ = sample()
    T = torch.from_numpy(X)
    plain, ours = (SumOfSquaresDensity(Gaussian(0.9), support=8, random_state=0).fit(points) for points in (X, T))
    assert isinstance(plain.density(T), np.ndarray)
    assert isinstance(ours.density(X), torch.Tensor)
    assert torch.equal(ours.density(X), ours.density(T))
    assert isinstance(ours.marginal([0]).density(X[:, :1]), torch.Tensor)
    assert isinstance(plain.marginal([0]).density(T[:, :1]), np.ndarray)
    assert mercer.verify(ours, X).holds(1e-6)


def test_a_fit_holds_torch_to_one_thread_and_lets_it_go():
    seen, before = [], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = SumOfSquaresDensity(
            Gaussian(0.9), support=8, random_state=0, callback=lambda _: seen.append(torch.get_num_threads())
        )
        model.fit(torch.from_numpy(sample()[0]))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_warm_start_takes_the_factor_of_either_library():
    X, _ = sample()
    model = SumOfSquaresDensity(Gaussian(0.9), support=X[:24], warm_start=True).fit(X)
    rounds = model.n_iter_
    assert model.fit(torch.from_numpy(X)).n_iter_ < rounds
    assert isinstance(model.factor_, torch.Tensor)


@pytest.mark.parametrize("name", ["factor_", "coefficients_", "eigenvalues_", "support_", "_factor"])
def test_a_damaged_model_of_tensors_is_refused(name):
    T = torch.from_numpy(sample()[0])
    model = SumOfSquaresDensity(Gaussian(0.9), support=8, random_state=0).fit(T)
    assert mercer.verify(model, T).holds(1e-6)
    setattr(model, name, 1.001 * getattr(model, name))
    with pytest.raises(ValueError, match="damaged|another"):
        mercer.verify(model, T)
