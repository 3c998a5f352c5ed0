"""The programme and its solvers on tensors: NumPy's steps to rounding, and no tensor becomes a NumPy array."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed, rp_cholesky
from mercer.certificates import certify_elliptope
from mercer.datasets import three_clusters
from mercer.operators import RankOneUpdate
from mercer.problems import Elliptope
from mercer.solvers import (
    AcceleratedPower,
    Climb,
    Goal,
    Minorise,
    ProjectedPower,
    Run,
    Status,
    TrustRegion,
    solve,
    solve_interior_point,
)
from mercer.solvers.elliptope.escape import escape_direction

torch = pytest.importorskip("torch")
X = three_clusters(n_per_cluster=30, n_outliers=6)[0]


def _problem(points, sigma=1.2, dtype=None) -> Elliptope:
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=sigma), points, dtype=dtype))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary)


def _stand_in(problem: Elliptope) -> RankOneUpdate:
    low = rp_cholesky(problem.operator.undeflated(), 24, np.random.default_rng(0))
    return RankOneUpdate(low, problem.removed, -1.0)


@pytest.fixture
def pair(refuse_numpy):
    """The same problem of NumPy and of tensors, which refuse to become NumPy's."""
    return _problem(X), _problem(torch.asarray(X))


def _host(tensor):
    """The values of a tensor that refuses every door, one by one."""
    assert isinstance(tensor, torch.Tensor)
    flat = tensor.reshape(-1)
    return np.array([float(flat[i]) for i in range(flat.shape[0])]).reshape(tuple(tensor.shape))


def test_the_parts_of_a_problem(pair):
    ours, theirs = pair
    rng = np.random.default_rng(0)
    H, G = rng.standard_normal((96, 3)), rng.standard_normal((96, 3))
    H[4] = 0
    TH, TG = torch.asarray(H), torch.asarray(G)
    np.testing.assert_allclose(_host(theirs.apply(TH)), ours.apply(H), atol=1e-14)
    np.testing.assert_allclose(_host(theirs.multipliers(TH, TG)), ours.multipliers(H, G), rtol=1e-13)
    np.testing.assert_allclose(_host(theirs.project(TH, TG)), ours.project(H, G), rtol=1e-14)
    unit = ours.project(H, G)
    assert theirs.row_residual(torch.asarray(unit), TG) == pytest.approx(ours.row_residual(unit, G), rel=1e-12)
    assert theirs.objective(TH, TG) == pytest.approx(ours.objective(H, G), rel=1e-12)
    for mine, other in zip(theirs.principal(TH), ours.principal(H), strict=True):
        np.testing.assert_allclose(_host(mine), other, atol=1e-12)
    assert theirs.reduced(TH, 0.2).shape == ours.reduced(H, 0.2).shape
    drawn = theirs.random_point(4, np.random.default_rng(1)), ours.random_point(4, np.random.default_rng(1))
    np.testing.assert_allclose(_host(drawn[0]), drawn[1], rtol=1e-14)
    assert theirs.n_columns == ours.n_columns == 3


@pytest.mark.parametrize("method", [ProjectedPower, AcceleratedPower, TrustRegion, Minorise])
def test_methods_take_the_same_steps(pair, method):
    results = []
    for problem in pair:
        steps = method(_stand_in(problem)) if method is Minorise else method()
        start = problem.random_point(5, np.random.default_rng(0))
        results.append(solve(problem, steps, start, goal=Goal(1.0, residual_tol=1e-5, max_iter=300)))
    ours, theirs = results
    assert ours.status is theirs.status
    assert ours.status is Status.CONVERGED or method in (ProjectedPower, AcceleratedPower)  # which take more steps
    assert ours.n_iter == theirs.n_iter
    np.testing.assert_allclose(
        _host(theirs.point.H), ours.point.H, atol=1e-7
    )  # a residual of 1e-5, and the same way there
    assert theirs.history[-1].objective == pytest.approx(ours.history[-1].objective, rel=1e-12)


@pytest.mark.parametrize("road", ["stand-in", "power", "interior"])
def test_climbs_end_alike(pair, road):
    results = []
    for problem in pair:
        rng = np.random.default_rng(1)

        def certify(at, problem=problem, rng=rng):
            return certify_elliptope(problem, at.H, rng=rng, tol=1e-6, spectrum=False)

        goal = Goal(1e-6, residual_tol=1e-6, max_iter=500)
        climb = Climb(problem, Run(goal, certify=certify), 1e-5, rng)
        start = problem.random_point(6, np.random.default_rng(0))
        if road == "interior":
            results.append(climb.interior())
        else:
            results.append(climb.automatic(start, _stand_in(problem) if road == "stand-in" else None))
    ours, theirs = results
    assert ours.status is theirs.status is Status.CONVERGED
    assert tuple(theirs.point.H.shape) == ours.point.H.shape
    assert theirs.history[-1].objective == pytest.approx(ours.history[-1].objective, rel=1e-10)


def test_escape_directions_agree_and_ascend(pair):
    """At signs that are stationary in one dimension both libraries find the way out of it."""
    ours, theirs = pair
    signs = np.where(X[:, :1] < X[:, :1].mean(), -1.0, 1.0)
    one = escape_direction(ours, signs, ours.apply(signs), np.random.default_rng(0))
    TS = torch.asarray(signs)
    other = _host(escape_direction(theirs, TS, theirs.apply(TS), np.random.default_rng(0)))
    assert abs(one @ other) >= 0.99 * np.linalg.norm(one) * np.linalg.norm(other)


def test_nothing_outside_the_span_is_no_way_out(refuse_numpy):
    """Two rows whose span is everything: the direction is one of chance, not zero."""
    problem = Elliptope(GramOperator(Precomputed(), torch.eye(2, dtype=torch.float64)), torch.ones(2).double())
    H = torch.eye(2, dtype=torch.float64)
    assert _host(escape_direction(problem, H, problem.apply(H), np.random.default_rng(0))).any()


@pytest.mark.parametrize("definite", [True, False])
def test_interior_points_agree(refuse_numpy, definite):
    M = np.random.default_rng(0).standard_normal((30, 30))
    J = M @ M.T if definite else M + M.T
    J = (J + J.T) / 2
    ours, theirs = solve_interior_point(J, tol=1e-9), solve_interior_point(torch.asarray(J), tol=1e-9)
    assert theirs.status is Status.CONVERGED
    np.testing.assert_allclose(_host(theirs.point.multipliers), ours.point.multipliers, rtol=1e-7)
    X = _host(theirs.point.X)
    np.testing.assert_allclose(np.diagonal(X), 1.0, atol=1e-12)
    assert np.linalg.eigvalsh(X)[0] > -1e-12
    Z = np.diag(_host(theirs.point.multipliers)) - J
    assert np.linalg.eigvalsh(Z)[0] > -1e-10
    assert np.sum(Z * X) == pytest.approx(0.0, abs=1e-8 * np.sum(J * X))
    with pytest.raises(ValueError, match="is not symmetric at"):
        solve_interior_point(torch.asarray(M), tol=1e-6)
    with pytest.raises(ValueError, match=r"J has nan at \(0, 0\)"):
        solve_interior_point(torch.full((2, 2), torch.nan).double(), tol=1e-6)


def test_single_precision(refuse_numpy):
    """Products in single precision leave six digits, in either library."""
    results = []
    for points in (X.astype(np.float32), torch.asarray(X.astype(np.float32))):
        problem = _problem(points)
        start = problem.random_point(5, np.random.default_rng(0))
        assert start.dtype == problem.operator.dtype
        for method in (AcceleratedPower, TrustRegion):
            results.append(solve(problem, method(), start, goal=Goal(1.0, residual_tol=1e-4, max_iter=500)))
    assert all(result.status is Status.CONVERGED for result in results)
    objectives = [result.history[-1].objective for result in results]
    np.testing.assert_allclose(objectives[2:], objectives[:2], rtol=1e-5)
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-4)  # a residual of 1e-4
