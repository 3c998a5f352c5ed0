"""An integral operator with known eigenfunctions beside matrices of samples (RKHS Lemmas 10, 11, 12 and 16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from mercer.backends.arrays import Array
from mercer.embedding import KernelPCA
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Laplacian, Polynomial
from mercer.linalg import leading_eigenpairs
from mercer.operators import GramOperator
from mercer.plots import new_figure
from mercer.plots.scatter import COLOURS


@dataclass(frozen=True)
class ExponentialOperator:
    """(Kf)(x) = ½ ∫ exp(-‖x-y‖/σ) f(y) dy over [-1, 1]: the kernel exp(-‖x-y‖/σ) under the uniform law.

    Its eigenfunctions are cos ωx with ω tan ω = 1/σ and sin ωx with ω cot ω = -1/σ in turn, its eigenvalues
    (1/σ) / (ω² + 1/σ²).
    """

    sigma: float

    def frequencies(self, count: int) -> Array:
        """The first so many ω, one in each interval of length π/2."""
        c = 1 / self.sigma

        def crossing(k: int) -> float:
            if k % 2 == 0:
                value = brentq(lambda w: w * np.sin(w) - c * np.cos(w), k * np.pi / 2, (k + 1) * np.pi / 2)
            else:
                value = brentq(lambda w: w * np.cos(w) + c * np.sin(w), k * np.pi / 2, (k + 1) * np.pi / 2)
            return float(value)

        return np.array([crossing(k) for k in range(count)])

    def eigenvalues(self, count: int) -> Array:
        """The largest so many."""
        c = 1 / self.sigma
        return np.asarray(c / (self.frequencies(count) ** 2 + c**2))

    def eigenfunctions(self, x: Array, count: int) -> Array:
        """Their values at x, of length one under the uniform law; shape (len(x), count)."""
        w = self.frequencies(count)
        even = np.arange(count) % 2 == 0
        values = np.where(even, np.cos(np.outer(x, w)), np.sin(np.outer(x, w)))
        return np.asarray(values / np.sqrt((1 + np.where(even, 1, -1) * np.sin(2 * w) / (2 * w)) / 2))


@dataclass(frozen=True)
class IntervalOperator(Experiment):
    """Eigenvalues of kernel matrices of random points over their number, and of the integral operator they sample."""

    operator: ExponentialOperator
    errors: dict[int, Array]  #: by number of points, (draws, count): (δ/n - λ)/λ
    x: Array  #: a grid of the interval
    nystrom: Array  #: (129) on the grid, from one sample of the smallest size
    sample: Array  #: that sample
    residual: float  #: how far (129) is from an eigenfunction of the sample's own operator, off the sample
    covariance: float  #: the largest relative difference of δ and nη (Lemma 11)

    @property
    def spread(self) -> dict[int, float]:
        """By number of points: the root mean square of the relative errors of all eigenvalues."""
        return {n: float(np.sqrt(np.mean(errors**2))) for n, errors in self.errors.items()}

    @property
    def slope(self) -> float:
        """The power of n with which the error falls."""
        sizes = np.array(sorted(self.errors))
        return float(np.polyfit(np.log(sizes), np.log([self.spread[n] for n in sizes]), 1)[0])

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """δ = nλ of the sample's operator, which is exact, and of the operator itself, which is not."""
        largest = max(self.errors)
        count = self.nystrom.shape[1]
        exact = self.operator.eigenfunctions(self.x, count)
        away = float(np.sqrt(np.mean((self.nystrom - exact) ** 2)))
        return (
            claim(
                "δ = nλ, λ of the operator (1/n) Σ k(x, xᵢ) f(xᵢ) of the sample (90)",
                "equal",
                f"Kf - λf off the sample {self.residual:.0e}",
                self.residual < 1e-10,
            ),
            claim(
                f"δ = nλ, λ of the integral operator, n = {largest} (Lemma 10)",
                "equal",
                f"relative error {self.spread[largest]:.1%}, falling as n^{self.slope:.2f}",
                self.spread[largest] < 1e-10,
                "the proof takes the operator of the sample for that of its law; the eigenvalues of a sample come near "
                "those of its law at the pace of a mean, n^-0.5",
            ),
            claim(
                "δ = nη, η of the covariance of centred features (Lemma 11)",
                "equal",
                f"relative difference {self.covariance:.0e}",
                self.covariance < 1e-10,
                "a polynomial kernel, whose features can be written down",
            ),
            claim(
                f"first {count} eigenfunctions from {len(self.sample)} points (129)",
                "approximate",
                f"root mean square error {away:.3f}",
                away < 0.5,
                "",
            ),
        )

    def figure(self) -> Any:
        """The eigenfunctions with their Nyström approximations, and the error of eigenvalues over the sample's size."""
        figure, (left, right) = new_figure(2, panel_inches=4.8)
        count = self.nystrom.shape[1]
        for k, exact in enumerate(self.operator.eigenfunctions(self.x, count).T):
            left.plot(self.x, exact, color=COLOURS[k], linewidth=3, alpha=0.4)
            left.plot(self.x, self.nystrom[:, k], color=COLOURS[k], linewidth=1.2, label=f"$f_{k + 1}$")
        left.plot(self.sample, np.full(len(self.sample), -2.2), "k|", markersize=7)
        left.set(title=f"Eigenfunctions: exact (broad), from {len(self.sample)} points", xlabel="x")
        left.legend(fontsize=8, ncols=count, loc="upper center")
        left.set_ylim(-2.4, 2.4)
        sizes = sorted(self.errors)
        for k in range(next(iter(self.errors.values())).shape[1]):
            spread = [np.sqrt(np.mean(self.errors[n][:, k] ** 2)) for n in sizes]
            right.loglog(
                sizes, spread, "o-", markersize=4, color=COLOURS[k % len(COLOURS)], label=f"$\\lambda_{k + 1}$"
            )
        start = self.spread[sizes[0]]
        line = start * (np.array(sizes) / sizes[0]) ** -0.5
        right.loglog(sizes, line, "k--", linewidth=0.8, label="$n^{-1/2}$")
        right.set(title="Relative error of δ/n as λ", xlabel="points n")
        right.set_xticks(sizes, [str(n) for n in sizes])
        right.minorticks_off()
        right.legend(fontsize=8)
        return figure


@experiment("rkhs-lemma10", place=7, seconds=3)
def interval_operator(
    sigma: float = 1.0,
    *,
    sizes: Sequence[int] = (50, 100, 200, 400, 800),
    draws: int = 20,
    count: int = 4,
    random_state: Any = 0,
) -> IntervalOperator:
    """Eigenvalues and eigenfunctions of an integral operator from samples of an interval (RKHS Lemma 10).

    The kernel is exp(-‖x-y‖/σ) on [-1, 1] with uniform points, whose eigenfunctions are known. Cost: ``draws`` dense
    matrices of every size.

    Parameters
    ----------
    sizes : sequence of int, default=(50, 100, 200, 400, 800)
        Numbers of points.
    draws : int, default=20
        Samples of every size.
    count : int, default=4
        Eigenpairs that are looked at, six at most.
    """
    operator, rng = ExponentialOperator(sigma), np.random.default_rng(random_state)
    exact, errors = operator.eigenvalues(count), {}
    for n in sizes:
        values = [_eigenpairs(rng.uniform(-1, 1, n), sigma, count, rng)[0] / n for _ in range(draws)]
        errors[int(n)] = np.array(values) / exact - 1
    sample = np.sort(rng.uniform(-1, 1, min(sizes)))
    values, vectors = _eigenpairs(sample, sigma, count, rng)
    x = np.linspace(-1, 1, 401)
    functions, again = _extended(sample, values, vectors, sigma, x)
    same = np.sign(np.sum(functions * operator.eigenfunctions(x, count), axis=0))
    return IntervalOperator(operator, errors, x, functions * same, sample, again, _covariance_difference(rng))


def _eigenpairs(points: Array, sigma: float, count: int, rng: Any) -> tuple[Array, Array]:
    """δ and v of the kernel matrix, the latter scaled to f(xᵢ) = √n vᵢ (100)."""
    values, vectors = leading_eigenpairs(GramOperator(Laplacian(sigma), points[:, None]), count, rng=rng)
    return values, np.sqrt(len(points)) * vectors


def _extended(sample: Array, values: Array, at_sample: Array, sigma: float, x: Array) -> tuple[Array, float]:
    """(129) at x, and the largest residual of its eigenvalue equation there."""
    n, block = len(sample), Laplacian(sigma)(x[:, None], sample[:, None])
    functions = block @ at_sample / values
    on_sample = Laplacian(sigma)(sample[:, None]) @ at_sample / values
    return functions, float(np.abs(block @ on_sample / n - values / n * functions).max())


def _covariance_difference(rng: Any) -> float:
    """How far the eigenvalues of the centred kernel matrix of (xy + 1)² are from n times those of the covariance."""
    x = rng.uniform(-1, 1, 60)
    features = np.column_stack([np.ones_like(x), np.sqrt(2) * x, x**2])
    eta = np.linalg.eigvalsh(np.cov(features.T, bias=True))[::-1][:2]
    delta = KernelPCA(Polynomial(2, 1.0, 1.0), random_state=0).fit(x[:, None]).eigenvalues_
    return float(np.abs(delta / (60 * eta) - 1).max())
