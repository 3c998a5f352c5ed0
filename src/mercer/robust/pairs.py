"""A weighted sample of pairs with its support, y in units of its own size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, contiguous, like, namespace, to_numpy
from mercer.backends.rounding import TINY
from mercer.kernels import Gaussian
from mercer.kernels.bandwidth import check_rule
from mercer.kernels.integrals.squared_loss import PairSupport
from mercer.linalg.pivoted_cholesky import rp_cholesky
from mercer.operators import GramOperator
from mercer.validation import normalised, positive_number, resolved_kernel

_LEAST_SIZE = 1e-140
_LARGEST_WIDTH = 1e100
_APART = 64  # powers of two: the largest target is no more than so many units


class Pairs(NamedTuple):
    """The data of a robust regression.

    Attributes
    ----------
    inputs, targets, weights : arrays of shape (n, d), (n,), (n,)
        The sample; weights sum to one.
    support : PairSupport
        The support and the bandwidths, η and τ in the units of the targets.
    size : float
        What y was divided by, a power of two.
    given : array of shape (n,) or None
        The weights as they were given, None for equal ones.
    chosen : array of int of shape (r,) or None
        The points of the support that densities are made of, in rising order; None for all of them.
    """

    inputs: Array
    targets: Array
    weights: Array
    support: PairSupport
    size: float = 1.0
    given: Array | None = None
    chosen: Array | None = None

    @property
    def kernel(self) -> Gaussian:
        """That of the inputs, and of the stretched pairs."""
        return Gaussian(sigma=self.support.sigma)

    @property
    def joint(self) -> Array:
        """The sample as points of one Gaussian kernel."""
        return beside(self.inputs, self.targets * self.support.stretch)

    @property
    def joint_support(self) -> Array:
        """The support likewise."""
        return beside(self.support.inputs, self.support.targets * self.support.stretch)

    @property
    def density_support(self) -> Array:
        """The points of it that densities are made of."""
        return self.joint_support if self.chosen is None else self.joint_support[self.chosen]

    @property
    def chosen_rows(self) -> Array:
        """Their numbers in the support."""
        xp, m = namespace(self.support.inputs), self.support.size
        return xp.arange(m, device=self.support.inputs.device) if self.chosen is None else self.chosen

    @property
    def density_size(self) -> int:
        """How many they are."""
        return self.support.size if self.chosen is None else int(self.chosen.shape[0])

    def thinned(self, most: int, rng: np.random.Generator) -> Pairs:
        """The same with densities on ``most`` points of the support.

        They are the pivots of a randomly pivoted Cholesky factorisation of the mass matrix: a point is drawn with a
        chance in proportion to what the sections of those before leave unexplained of its own. Fewer come back where
        the matrix is exhausted.
        """
        if most >= self.support.size:
            return self
        pivots = rp_cholesky(GramOperator(self._mass, self.joint_support), most, random_state=rng).landmarks
        return self._replace(chosen=like(np.sort(to_numpy(pivots)), self.support.inputs))

    @property
    def unexplained(self) -> float:
        """The largest part of a section's square that the sections of these points leave unexplained."""
        points, mass = to_numpy(self.joint_support), self._mass
        towards = np.asarray(mass(to_numpy(self.density_support), points))
        among = np.asarray(mass(to_numpy(self.density_support)))
        explained = np.sum(towards * np.linalg.lstsq(among, towards, rcond=None)[0], axis=0)
        return float(np.max(1.0 - explained))

    @property
    def _mass(self) -> Gaussian:
        """The kernel of the mass matrix: ∫ k(·, z) k(·, z') over ∫ k(·, z)²."""
        return Gaussian(sigma=float(np.sqrt(2) * self.support.sigma))


def make_pairs(X: Array, y: Array, given: Array | None, support: Array, sigma: float, target_sigma: float) -> Pairs:
    """A sample with its weights as given and the pairs of its support, y last, in units of the root mean square of y.

    The unit is a power of two, so that no digit of y or of f is lost to it.
    """
    weights = normalised(given, X.shape[0], reference=X)
    size = target_unit(y, weights)
    if not 1 / _LARGEST_WIDTH < target_sigma / size < _LARGEST_WIDTH:
        raise ValueError(
            f"target_sigma={target_sigma:g} is beyond all measure for y of size {size:.1e}: take one near it, "
            "or a rule."
        )
    chosen = PairSupport(contiguous(support[:, :-1]), support[:, -1] / size, sigma, target_sigma / size)
    return Pairs(X, y / size, weights, chosen, size, given)


def target_unit(y: Array, weights: Array) -> float:
    """The power of two nearest to the root mean square of targets; one where all of them are zero.

    Where the largest, of hardly any weight, is far from it, a larger one, in which powers of the largest are numbers.
    """
    largest = float(abs(y[weights > 0]).max())
    size = 1.0
    if largest > 0:
        below = 0.5 * np.log2(max(float(weights @ (y / largest) ** 2), TINY))
        size = 2.0 ** round(np.log2(largest) + max(below, -_APART))
    if not _LEAST_SIZE < size < 1 / _LEAST_SIZE:
        raise ValueError(f"y has entries of size {size:.1e}, whose squares leave double precision: rescale y.")
    return size


def target_width(rule: Any, y: Array, weights: Array) -> float:
    """τ, the bandwidth of targets: a number, or what a rule finds; 1 where all targets are equal."""
    check_rule(rule, "target_sigma")
    if not isinstance(rule, str):
        return positive_number(rule, "target_sigma")
    present = y[weights > 0]
    if bool((present == present[0]).all()):
        return 1.0
    return float(resolved_kernel(Gaussian(sigma=rule), y[:, None], weights).sigma)  # type: ignore[attr-defined]


def beside(X: Array, y: Array) -> Array:
    """The columns of X and y as the last one."""
    return namespace(X).concat([X, y[:, None]], axis=1)
