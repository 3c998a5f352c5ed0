"""The programme of SOS (12)-(13) written down from the paper: the tensor stored, B itself the variable."""

from __future__ import annotations

import numpy as np

from mercer import Gaussian
from mercer.backends.arrays import like
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.integrals.measures import Lebesgue
from mercer.problems import SumOfSquares
from mercer.solvers.run import Goal, solve
from mercer.solvers.spectrahedron.accelerated import AcceleratedGradients
from mercer.solvers.spectrahedron.low_rank import LowRank


class PlainProgramme:
    """W, K̃, the m³ tensor and V of SOS Lemmas 3 and 4 for the Gaussian kernel on R^d, all as arrays."""

    def __init__(self, X, support, sigma, regularization):
        d = support.shape[1]
        squares = np.sum((support[:, None] - support) ** 2, axis=2)
        self.W = (np.pi * sigma**2 / 2) ** (d / 2) * np.exp(-squares / (2 * sigma**2))
        self.K = np.exp(-squares / sigma**2)
        n = np.sum(support**2, axis=1)
        total = support[:, None, None] + support[None, :, None] + support[None, None, :]
        exponent = n[:, None, None] + n[None, :, None] + n[None, None, :] - np.sum(total**2, axis=3) / 3
        self.tensor = (np.pi * sigma**2 / 3) ** (d / 2) * np.exp(-exponent / sigma**2)
        self.target = np.exp(-np.sum((support[:, None] - X) ** 2, axis=2) / sigma**2).mean(axis=1)
        self.regularization = regularization

    def value(self, B):
        """‖P_m(v - w_p)‖² + λ Tr(BK̃)."""
        difference = np.tensordot(self.tensor, B, 2) - self.target
        return difference @ np.linalg.solve(self.K, difference) + self.regularization * np.sum(B * self.K)

    def by_conic_solver(self, cvxpy):
        """The least value over B ≽ 0 with Tr(BW) = 1, in C = LᵀBL with W = LLᵀ."""
        m = self.W.shape[0]
        inverse = np.linalg.inv(np.linalg.cholesky(self.W))
        root = np.linalg.inv(np.linalg.cholesky(self.K))
        map_ = np.einsum("sr,rpq,ip,jq->sij", root, self.tensor, inverse, inverse, optimize=True).reshape(m, m * m)
        penalty = self.regularization * inverse @ self.K @ inverse.T
        C = cvxpy.Variable((m, m), PSD=True)
        misfit = cvxpy.sum_squares(map_ @ cvxpy.vec(C, order="C") - root @ self.target)
        problem = cvxpy.Problem(cvxpy.Minimize(misfit + cvxpy.sum(cvxpy.multiply(penalty, C))), [cvxpy.trace(C) == 1])
        return problem.solve(solver=cvxpy.CLARABEL)


def random_programme(seed, *, most=12):
    """Points, support, σ and λ of a random small problem, whose matrices are well conditioned enough for the oracle."""
    rng = np.random.default_rng(seed)
    while True:
        m, d = int(rng.integers(2, most + 1)), int(rng.integers(1, 4))
        X = rng.standard_normal((30, d)) + 3 * rng.integers(0, 2, (30, 1))
        sigma, regularization = float(10 ** rng.uniform(-0.5, 0.4)), float(rng.choice([0.0, 1e-4, 1e-2]))
        plain = PlainProgramme(X, X[:m], sigma, regularization)
        if max(np.linalg.cond(plain.W), np.linalg.cond(plain.K)) < 1e7:
            return X, X[:m], sigma, regularization


def our_programme(X, support, sigma, regularization, *, reference=None, **options):
    """The same by the library, of arrays like the reference."""
    kernel = Gaussian(sigma)
    X, support = like(X, reference), like(support, reference)
    integrals = kernel_integrals(kernel, support, Lebesgue())
    return SumOfSquares(
        integrals, kernel(support), kernel(support, X).mean(axis=1), regularization=regularization, **options
    )


METHODS = {"low-rank": LowRank, "accelerated": lambda goal: AcceleratedGradients()}


def minimised(problem, method="low-rank", *, tol, max_iter=20_000, start=None, callbacks=()):
    """The solution by the library to an absolute gap."""
    goal = Goal(0.0, absolute=tol, max_iter=max_iter)
    return solve(problem, METHODS[method](goal), start, goal=goal, callbacks=callbacks)
