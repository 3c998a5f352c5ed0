"""The game behind a robust regression, from a sample of pairs: bases, integrals, and the problem in its own units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, contiguous, namespace, norm, to_numpy
from mercer.backends.config import require_free_memory
from mercer.density.fitting_problem import Setting, make_programme
from mercer.kernels import Gaussian
from mercer.kernels.integrals.enclosed_loss import PreciseLosses
from mercer.kernels.integrals.measures import Lebesgue
from mercer.kernels.integrals.squared_loss import SquaredLossIntegrals
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.enclosed_regression import PairSample, PreciseRegression
from mercer.problems.enclosed_squares import Sample
from mercer.problems.relaxed_regression import RelaxedRegression
from mercer.problems.robust_regression import Adversary, RobustRegression
from mercer.problems.sum_of_squares import Spans
from mercer.solvers.spectrahedron.minimise import minimise_on_spectrahedron
from mercer.validation import normalised

# Where the spectra of the mass matrix and of the kernel matrix end. The integrals of the loss are divided by both: that
# costs about ten digits of them. A function that is left out has a norm above 1e4 times its values on the support.
# Without a penalty of the fourth degree in f, at ε = 0, the functions end at rounding.
TRUNCATION = 1e-6
_FUNCTIONS = 1e-9
_ALL_FUNCTIONS = 1e-13
_NEAREST = 1e-10
_SLACK = 1e-6
_LEAST_SIZE = 1e-150
_ALWAYS = 20_000_000  # bytes of panels that do not depend on the support
_LARGEST_WIDTH = 1e100


class Pairs(NamedTuple):
    """A weighted sample of pairs and its support, y in units of its own size.

    Attributes
    ----------
    inputs, targets, weights : arrays of shape (n, d), (n,), (n,)
        The sample; weights sum to one.
    support_inputs, support_targets : arrays of shape (m, d), (m,)
        The support.
    sigma, target_sigma : float
        The bandwidths σ and τ.
    size : float
        What y was divided by, the targets' and τ's too.
    given : array of shape (n,) or None
        The weights as they were given, None for equal ones.
    """

    inputs: Array
    targets: Array
    weights: Array
    support_inputs: Array
    support_targets: Array
    sigma: float
    target_sigma: float
    size: float = 1.0
    given: Array | None = None

    @property
    def stretch(self) -> float:
        """σ/τ: (x, y σ/τ) has one bandwidth for all coordinates."""
        return self.sigma / self.target_sigma

    @property
    def joint(self) -> Array:
        """The sample as points of one Gaussian kernel."""
        return beside(self.inputs, self.targets * self.stretch)

    @property
    def joint_support(self) -> Array:
        """The support likewise."""
        return beside(self.support_inputs, self.support_targets * self.stretch)


def beside(X: Array, y: Array) -> Array:
    """The columns of X and y as the last one."""
    return namespace(X).concat([X, y[:, None]], axis=1)


def make_pairs(X: Array, y: Array, given: Array | None, support: Array, sigma: float, target_sigma: float) -> Pairs:
    """A sample with its weights as given and the pairs of its support, y last, in units of the root mean square of y.

    The unit is a power of two, so that no digit of y or of f is lost to it.
    """
    weights = normalised(given, X.shape[0], reference=X)
    largest = float(abs(y[weights > 0]).max())
    size = 1.0
    if largest > 0:
        size = 2.0 ** round(np.log2(largest) + 0.5 * np.log2(float(weights @ (y / largest) ** 2)))
    if not _LEAST_SIZE < size < 1 / _LEAST_SIZE:
        raise ValueError(f"y has entries of size {size:.1e}, whose squares leave double precision: rescale y.")
    if not 1 / _LARGEST_WIDTH < target_sigma / size < _LARGEST_WIDTH:
        raise ValueError(
            f"target_sigma={target_sigma:g} is beyond all measure for y of size {size:.1e}: take one near it, "
            "or a rule."
        )
    inputs = contiguous(support[:, :-1])
    return Pairs(X, y / size, weights, inputs, support[:, -1] / size, sigma, target_sigma / size, size, given)


def function_basis(pairs: Pairs, *, integrated: bool = True) -> tuple[Array, Array]:
    """U with orthonormal functions u = Uᵀk_x, spanning the kernel sections of the support, and u at the sample.

    ``integrated`` says whether integrals of f², or its norm, are needed in this basis.
    """
    kernel = Gaussian(sigma=pairs.sigma)
    m = pairs.support_inputs.shape[0]
    cut = (_FUNCTIONS if integrated else _ALL_FUNCTIONS) / m
    levels, V = positive_eigenpairs(as_double(kernel(pairs.support_inputs)), cut)
    U = V / namespace(V).sqrt(levels)
    return U, as_double(GramOperator(kernel, pairs.inputs, pairs.support_inputs) @ U)


def make_ball(pairs: Pairs, truncation: float = TRUNCATION, spans: Spans | None = None) -> SumOfSquares:
    """Densities of pairs on the support, and their projected distance from the sample."""
    setting = Setting(Gaussian(sigma=pairs.sigma), pairs.joint_support, Lebesgue())
    sample = Sample(pairs.joint, pairs.given)
    return make_programme(setting, sample, regularization=0.0, truncation=truncation, spans=spans)


def make_game(
    pairs: Pairs,
    U: Array,
    features: Array,
    ball: SumOfSquares,
    *,
    radius: float,
    regularization: float,
    sample: bool,
    dtype: Any = np.float64,
) -> RobustRegression:
    """The saddle-point problem; ``sample`` says whether the adversary may keep a share of the sample.

    The integrals of the loss are formed in ``dtype``.
    """
    l, s = U.shape[1], ball.dimension
    needed = 8 * (l**2 + 8 * (l + ball.goal.shape[0])) * s**2 + _ALWAYS
    what = f"The integrals of the loss on {U.shape[0]} support points take"
    require_free_memory(needed, what, "take a smaller support")
    losses = SquaredLossIntegrals(
        pairs.support_inputs, pairs.support_targets, pairs.sigma, pairs.target_sigma, ball.basis, U, dtype
    )
    return RobustRegression(
        ball,
        losses,
        features,
        pairs.targets,
        pairs.weights,
        radius=radius,
        regularization=regularization,
        anchor=None if sample else nearest_density(ball, radius),
    )


def make_precise(pairs: Pairs, U: Array, ball: SumOfSquares | None = None) -> PreciseRegression:
    """The numbers of the game's bounds with proved errors; without a ball, those of a penalised least squares."""
    support = to_numpy(pairs.support_inputs), to_numpy(pairs.support_targets)
    losses = PreciseLosses(*support, pairs.sigma, pairs.target_sigma)
    sample = PairSample(pairs.inputs, pairs.targets, pairs.given)
    return PreciseRegression(losses, U, sample, *(() if ball is None else ball.spans))


def nearest_density(ball: SumOfSquares, radius: float) -> Adversary:
    """The density nearest to the sample, which must lie inside the ball."""
    factor = minimise_on_spectrahedron(ball, tol=_NEAREST * ball.constant).point
    least = norm(ball.residual(factor))
    if radius <= least * (1 + _SLACK):
        raise ValueError(
            f"radius={radius:.6g} is not above {least:.6g}, the distance of the nearest density from the sample: raise "
            "radius, or leave keep_sample=True."
        )
    return Adversary(factor @ factor.T, 0.0)


def make_relaxed(pairs: Pairs, U: Array, features: Array, *, radius: float, regularization: float) -> RelaxedRegression:
    """The penalised least squares of the relaxation; with ε = 0, ridge regression."""
    return RelaxedRegression(
        pairs.support_inputs,
        pairs.sigma,
        U,
        features,
        pairs.targets,
        pairs.weights,
        radius=radius,
        regularization=regularization,
    )
