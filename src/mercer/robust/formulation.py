"""What fitting and verifying share: the spans of a problem, the coefficients that a model keeps, and their proof."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from mercer.backends.arrays import Array, as_double, namespace
from mercer.certificates.certificate import RegressionCertificate
from mercer.kernels.integrals.squared_loss_enclosures import SquaredLossEnclosures
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.problems.robust_regression_enclosures import PairSample, RegressionEnclosures
from mercer.problems.sample_loss import SampleLoss
from mercer.robust.pairs import Pairs
from mercer.solvers.solution import Solution

# Where the spectra of the mass matrix and of the kernel matrix end. The integrals of the loss are divided by both: that
# costs about ten digits of them. A function that is left out has a norm above 1e4 times its values on the support.
# Without an adversary, at ε = 0, nothing is of the fourth degree in f, and the functions end at rounding.
TRUNCATION = 1e-6
_FUNCTIONS = 1e-9
_ALL_FUNCTIONS = 1e-13


class Terms(NamedTuple):
    """ε and λ, whether the adversary may keep a share of the sample, and where the spectrum of the mass matrix ends."""

    radius: float
    regularization: float
    keep_sample: bool = True
    truncation: float = TRUNCATION


class Effort(NamedTuple):
    """The relative gap to prove, Newton steps at most, who is told of them, and whether they go to the log."""

    tol: float
    max_iter: int
    callbacks: tuple[Callable[[Any], Any], ...] = ()
    shown: bool = False


class Coefficients(NamedTuple):
    """The learner's function, the prices and the adversary, by coefficients on the support, in the units of y."""

    dual: Array
    price: Array
    adversary: Array
    share: float

    def named(self) -> dict[str, Any]:
        """By the names of the fitted attributes."""
        names = ("dual_coef_", "price_coef_", "adversary_coef_", "sample_share_")
        return dict(zip(names, self, strict=True))


class Span(NamedTuple):
    """A subspace of coefficients that belongs to the problem: the leading eigenvectors of a matrix, by a basis."""

    what: str
    attribute: str  # whose coefficients lie in it
    matrix: Array
    basis: Array
    truncation: float


class Formulation(ABC):
    """A regression on given pairs: its problem, its solution, and the proof of the coefficients that are kept of it.

    Parameters
    ----------
    pairs : Pairs
        The sample and the support.
    terms : Terms
        ε, λ and what the adversary may do.
    bases : tuple of arrays, optional
        Those of a model that was fitted to the same pairs; found anew where they are left out.

    Attributes
    ----------
    bases : tuple of arrays
        What a model has to keep of the spans.
    """

    n_bases: ClassVar[int]
    bases: tuple[Array, ...]

    def __init__(self, pairs: Pairs, terms: Terms, bases: tuple[Array, ...] | None = None) -> None:
        self.pairs, self.terms = pairs, terms
        self._function_cut = _FUNCTIONS if terms.radius > 0 else _ALL_FUNCTIONS
        self.functions = self._function_basis() if bases is None else bases[0]
        self.bases = (self.functions,)
        features = as_double(GramOperator(pairs.kernel, pairs.inputs, pairs.support.inputs) @ self.functions)
        self.sample = SampleLoss(features, pairs.targets, pairs.weights)

    def _function_basis(self) -> Array:
        """U with orthonormal functions u = Uᵀk_x, spanning the kernel sections of the support."""
        cut = self._function_cut / self.pairs.support.size
        levels, V = positive_eigenpairs(as_double(self.pairs.kernel(self.pairs.support.inputs)), cut)
        return V / namespace(V).sqrt(levels)

    @cached_property
    def enclosures(self) -> RegressionEnclosures:
        """The numbers of the bounds with proved errors."""
        sample = PairSample(self.pairs.inputs, self.pairs.targets, self.pairs.given)
        losses = SquaredLossEnclosures(self.pairs.support, self.pairs.chosen)
        return RegressionEnclosures(losses, sample, *self.bases)

    def spans(self) -> list[Span]:
        """The subspaces that the coefficients must lie in."""
        gram = self.pairs.kernel(self.pairs.support.inputs)
        return [Span("functions", "dual_coef_", gram, self.functions, self._function_cut)]

    @abstractmethod
    def solve(self, effort: Effort) -> Solution[Any]:
        """A solution, whose certificate is that of the coefficients of its point."""

    @abstractmethod
    def coefficients(self, point: Any) -> Coefficients:
        """What a model keeps of a point."""

    @abstractmethod
    def certify(self, coefficients: Coefficients) -> RegressionCertificate:
        """Bounds on the optimum from coefficients, in the units of y²."""

    @abstractmethod
    def described(self, coefficients: Coefficients) -> dict[str, Any]:
        """The worst distribution's density part and its distances from the sample, by the names of the attributes."""

    @abstractmethod
    def require_distribution(self, coefficients: Coefficients) -> None:
        """Refuse an adversary of a model that is none in this problem."""


def coordinates(basis: Array, coefficients: Array) -> Array:
    """The x with basis @ x nearest to some coefficients, for a basis with orthogonal columns."""
    xp = namespace(basis)
    sizes = xp.reshape(xp.sum(basis**2, axis=0), (-1, *[1] * (coefficients.ndim - 1)))
    return (basis.T @ coefficients) / sizes
