"""What the certificate of the kernelised programme counts: errors of entries and of d, factors, products, coefficients."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from mercer.backends.rounding import EntryError
from mercer.certificates.kernelized import KernelizedProof, certify_kernelized
from mercer.embedding.kernelized_solve import KernelizedSolver
from mercer.kernels import Matern
from mercer.problems.kernelized import KernelizedProgramme, SingularKernelError
from mercer.progress import Phases

NONE = EntryError(0.0)


def programme(n=14, nu=1.5, strength=1e-3, seed=0, error=NONE, spread=1.0):
    rng = np.random.default_rng(seed)
    X, p = spread * rng.uniform(-1, 1, (n, 2)), rng.uniform(0.5, 2, n)
    return KernelizedProgramme(Matern(nu, 1.0)(X), p / p.sum(), np.ones(n), strength, error, np.zeros(n))


def solve(problem):
    proof = KernelizedProof(problem)
    return KernelizedSolver(problem, proof, Phases(""), 1e-8, 1e-6, 60, "auto", None, False).solve()


def optimum(problem):
    found = solve(problem).certificate
    assert found.relative_gap < 1e-8
    return found.objective


def neighbours(problem, size, solved):
    """Matrices within a relative error of the entries, some of which move the optimum as far as they can."""
    rng = np.random.default_rng(1)
    noise = rng.choice([-1.0, 1.0], problem.matrix.shape)
    a = problem.coefficients(solved.coordinates)
    q = problem.shares[:, None] * solved.coordinates
    patterns = [np.ones_like(noise), np.tril(noise) + np.tril(noise, -1).T, np.sign(a @ a.T), np.sign(q @ q.T)]
    for pattern in patterns:
        for sign in (-1, 1):
            matrix = problem.matrix * (1 + 0.999 * sign * size * pattern)
            yield replace(problem, matrix=(matrix + matrix.T) / 2, entry_error=NONE)


@pytest.mark.parametrize(
    ("nu", "strength", "size"), [(1.5, 1e-4, 1e-7), (1.5, 1e-2, 1e-7), (1.5, 1.0, 1e-7), (0.5, 1e-6, 1e-4)]
)
def test_bounds_hold_for_every_matrix_within_the_errors_of_its_entries(nu, strength, size):
    exact = programme(nu=nu, strength=strength)
    uncertain = replace(exact, entry_error=EntryError(size))
    solved = solve(exact)
    wide = KernelizedProof(uncertain).certificate(solved.coordinates, solved.multipliers)
    values = [optimum(near) for near in neighbours(exact, size, solved)]
    assert wide.lower <= min(values)
    assert max(values) <= wide.upper
    assert not solved.certificate.lower <= min(values)  # without the allowance the bounds would be false
    assert not max(values) <= solved.certificate.upper
    assert wide.upper - wide.lower < 1e4 * (max(values) - min(values))  # and the allowance is of the right size


def test_bounds_hold_for_every_diagonal_within_its_errors():
    exact, size = programme(), 1e-6
    solved = solve(exact)
    wide = KernelizedProof(replace(exact, prescribed_error=size * exact.prescribed)).certificate(
        solved.coordinates, solved.multipliers
    )
    for sign in (-1, 1):
        value = optimum(replace(exact, prescribed=(1 + 0.999 * sign * size) * exact.prescribed))
        assert wide.lower <= value <= wide.upper
        assert not solved.certificate.lower <= value <= solved.certificate.upper


def in_extended_precision(matrix):
    return mpmath.matrix(matrix.tolist())


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("error", [0.0, 1e-10])
@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_the_factor_dominates_every_matrix_within_the_errors(nu, error, sharp):
    problem = replace(programme(n=20, nu=nu, error=EntryError(error), spread=0.05), sharp=sharp)
    with mpmath.workdps(60):
        L = in_extended_precision(problem.factor)
        most = in_extended_precision(problem.matrix) + in_extended_precision(problem.radii)
        assert min(mpmath.eigsy(L * L.T - most, eigvals_only=True)) > 0
        bare = problem.matrix.copy()
        computed = in_extended_precision(np.linalg.cholesky(bare))
        assert min(mpmath.eigsy(computed * computed.T - in_extended_precision(bare), eigvals_only=True)) < 0


def test_the_slack_is_formed_as_exactly_as_it_is_said_to_be():
    problem = programme(n=25, nu=2.5, spread=0.3)
    y = problem.dominating * np.random.default_rng(0).standard_normal(25)
    with mpmath.workdps(50):
        L, A = in_extended_precision(problem.factor), in_extended_precision(problem.centred)
        exact = L.T * (mpmath.diag(y.tolist()) - A) * L + problem.regularization * mpmath.eye(25)
        off = exact - in_extended_precision(problem.slack(y))
        norm = max(abs(value) for value in mpmath.eigsy((off + off.T) / 2, eigvals_only=True))
    assert 0 < norm <= KernelizedProof(problem)._forming(y, problem)


def test_what_forming_the_slack_costs_is_counted(monkeypatch):
    problem = programme()
    y = solve(problem).multipliers
    sharp = KernelizedProof(problem).upper(y).upper
    monkeypatch.setattr(KernelizedProof, "_forming", lambda self, y, problem: 1e-3 * problem.regularization)
    assert KernelizedProof(problem).upper(y).upper > sharp * (1 + 1e-5)


def test_the_centred_matrix_is_as_exact_as_it_is_said_to_be():
    problem = programme(n=20, nu=2.5, spread=0.3)
    error = KernelizedProof(problem)._centred_error()
    with mpmath.workdps(50):
        K, p = in_extended_precision(problem.matrix), mpmath.matrix(problem.shares.tolist())
        sums = K * p
        volume = (p.T * sums)[0]
        off = [
            sum(
                abs(p[i] * p[j] * (K[i, j] - sums[i] * sums[j] / volume) - mpmath.mpf(float(problem.centred[i, j])))
                for j in range(20)
            )
            for i in range(20)
        ]
    assert all(0 < far <= bound for far, bound in zip(off, error, strict=True))


def test_the_centred_matrix_moves_no_further_than_its_entries_allow(monkeypatch):
    exact, size = programme(), 1e-6
    solved, proof = solve(exact), KernelizedProof(replace(exact, entry_error=EntryError(size)))
    error = proof._centred_error()
    for near in neighbours(exact, size, solved):
        moved = np.abs(near.centred - exact.centred).sum(axis=1)
        assert np.all(moved <= error)
    bound = proof.upper(solved.multipliers).upper
    monkeypatch.setattr(KernelizedProof, "_centred_error", lambda self: 0 * error)
    assert bound - proof.upper(solved.multipliers).upper >= 0.99 * error.sum()  # d is one


def test_any_coefficients_give_a_true_lower_bound(monkeypatch):
    problem = programme()
    solved = solve(problem)
    truth = solved.certificate.objective
    right = KernelizedProgramme.coefficients
    for wrong in (0.0, 0.9, 1.1, 2.0):
        monkeypatch.setattr(
            KernelizedProgramme, "coefficients", lambda self, rows, wrong=wrong: wrong * right(self, rows)
        )
        assert KernelizedProof(problem).lower(solved.coordinates) < truth
    monkeypatch.undo()
    assert KernelizedProof(problem).lower(solved.coordinates) == pytest.approx(truth, rel=1e-10)


def test_any_dual_variables_give_a_true_upper_bound():
    problem = programme()
    truth, rng = optimum(problem), np.random.default_rng(0)
    proof, y = KernelizedProof(problem), solve(problem).multipliers
    for scale in (0.0, 1e-8, 1e-4, 1.0, 1e3):
        bound = proof.upper(y + scale * rng.standard_normal(y.shape[0]) * np.abs(y).max()).upper
        assert truth <= bound <= proof.programme.dominating.sum() * 1.02 + 1e4 * scale


def test_any_coordinates_give_a_true_lower_bound():
    problem = programme()
    truth, rng = optimum(problem), np.random.default_rng(0)
    for rank in (1, 2, 14):
        assert certify_kernelized(problem, rng.standard_normal((14, rank))).lower <= truth
    assert certify_kernelized(problem, np.zeros((14, 2))).lower <= truth


def test_a_matrix_that_may_be_singular_is_refused():
    problem = programme(error=EntryError(1e-2))
    with pytest.raises(SingularKernelError, match="proved to be above -"):
        KernelizedProof(problem)


def test_the_least_eigenvalue_is_below_the_true_one():
    for nu in (0.5, 1.5, 2.5):
        problem = programme(n=20, nu=nu, spread=0.5)
        with mpmath.workdps(50):
            least = float(min(mpmath.eigsy(in_extended_precision(problem.matrix), eigvals_only=True)))
        assert 0.9 * least <= KernelizedProof(problem).least <= least


def test_a_factor_whose_rounding_is_found_costs_less():
    problem = programme(n=80, nu=2.5, strength=1e-2, spread=0.3)
    sharp = replace(problem, sharp=True)
    assert sharp.lift < problem.lift / 20
    solved = solve(problem)
    proof = KernelizedProof(problem)
    assert proof.working(solved.coordinates).sharp
    plain = proof.upper(solved.multipliers, problem).upper - solved.certificate.lower
    assert solved.certificate.upper - solved.certificate.lower < plain / 5
