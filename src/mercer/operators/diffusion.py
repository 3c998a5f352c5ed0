"""The diffusion operator of PSD22: a Gram matrix normalised to a Markov chain, its stationary part removed."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, dtype_name, namespace
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.journal import remembered
from mercer.kernels.checks import positive_number, scale_free
from mercer.operators.base import Index, LinearMap, MapRounding, inner_by_runs, inner_depth, part_of
from mercer.operators.gram import GramOperator

_NOISE = 64.0  # in units of rounding: what row sums over many tiles leave of a difference that is zero
_SMALL = 1e-30  # share, below which the product of a weight and a degree may vanish in single precision
_ENTRY = 12  # roundings of an entry beside that of the kernel: roots, quotients, products, the stationary part


class DegenerateKernelError(ValueError):
    """The kernel gives the diffusion nothing to work with: too wide, too narrow, or not positive."""


@final
class DiffusionOperator(LinearMap):
    """W^½ Ā W^½ with Ā = A - v₀v₀ᵀ, A = Diag(m)^-½ K Diag(m)^-½, m = K w, v₀ = sqrt(m / wᵀm).

    With unit weights this is the papers' Ā (PSD22 (1.2), whose v₀ = √m/(1ᵀm) is a slip for √(m/1ᵀm)); its spectrum lies
    in [0, 1) for a positive semi-definite kernel. Its diagonal is not negative (PSD22 Lemma 3.3, which says positive).

    Parameters
    ----------
    gram : GramOperator
        A symmetric Gram operator; its weights become the weights of the points.
    alpha : float, default=0
        Density correction of diffusion maps: the kernel is first divided by q(x)^α q(y)^α, q = K w.
    deflate : bool, default=True
        Subtract the stationary part v₀v₀ᵀ.

    Attributes
    ----------
    degrees : array of shape (n,)
        m, the (density-corrected) row sums.
    volume : float
        wᵀm.
    stationary : array of shape (n,)
        W^½ v₀, the eigenvector of eigenvalue one that is removed; a unit vector.
    scale : array of shape (n,)
        q^-α, the density correction of every point.
    below_zero : float or None
        How far below zero the spectrum reaches at most, where a matrix that is given was proved positive semi-definite
        up to rounding: :meth:`rounding` counts it among the errors of entries. None where nothing was proved.

    Notes
    -----
    Building it costs one pass of row sums (two with α > 0), a product the same as one of the Gram operator.
    """

    def __init__(self, gram: GramOperator, *, alpha: float = 0.0, deflate: bool = True) -> None:
        if gram.shape[0] != gram.shape[1] or not gram.unweighted().symmetric:
            raise ValueError("A diffusion operator needs the symmetric Gram operator of one set of points.")
        super().__init__(gram.shape, gram.dtype, symmetric=True, reference=gram.reference)
        xp = namespace(self.reference)
        self.gram = gram.unweighted()
        self.alpha = positive_number(alpha, "alpha", zero=True)
        self.weights = self.ones(gram.shape[0]) if gram.weights is None else gram.weights
        self.scale = self.ones(gram.shape[0])
        self.degrees = _positive(remembered("row sums", self._sums, gram=self.gram))
        self._refuse_noise()
        if self.alpha:
            self.scale = _corrections(self.degrees, self.alpha)
            self.degrees = _positive(self.scale * remembered("row sums", self._sums, gram=self.gram))
        with np.errstate(over="ignore"):
            self.volume = float(xp.sum(self.weights * self.degrees, dtype=xp.float64))
        weights, degrees = scale_free(self.weights), scale_free(self.degrees)  # of any unit: their sums are finite
        shares = weights * degrees
        total = float(xp.sum(shares, dtype=xp.float64))
        small = xp.sqrt(weights) * xp.sqrt(degrees) / math.sqrt(total)  # where the product of the squares vanishes
        self.stationary = xp.where(shares > _SMALL, xp.sqrt(shares / total), small)
        self._outer = self.scale * xp.sqrt(self.weights / self.degrees)
        self._deflate = deflate
        self.below_zero: float | None = None

    def undeflated(self) -> DiffusionOperator:
        """The same map with its stationary part, W^½ A W^½; no row sums are computed again."""
        twin = object.__new__(DiffusionOperator)
        twin.__dict__.update(self.__dict__, _deflate=False)
        return twin

    def _refuse_noise(self) -> None:
        """Refuse row sums in which terms as large as k(x, x) cancel to rounding, as of a kernel that is centred."""
        if self.gram.nonnegative:
            return
        xp, unit = namespace(self.degrees), unit_of(self.dtype)
        lost = self.degrees < _NOISE * unit * self.weights * xp.abs(self.gram.diagonal())
        if bool(lost.any()):
            row = int(xp.argmax(xp.astype(lost, xp.int8)))
            raise DegenerateKernelError(
                f"Row {row} of the kernel matrix sums to {float(self.degrees[row]):.3g}, which is rounding beside its "
                "diagonal: diffusion needs positive row sums, as Gaussian, Laplacian and Matern have them."
            )

    def _sums(self) -> Array:
        weights = self.weights * self.scale
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are named by the caller
            return self.gram.row_sums() if bool((weights == 1).all()) else self.gram @ weights

    def _multiply(self, v: Array) -> Array:
        product = self._outer[:, None] * (self.gram @ (self._outer[:, None] * v))
        if self._deflate:
            product -= self.stationary[:, None] * inner_by_runs(self.stationary, v)
        return product

    def diagonal(self) -> Array:
        """wᵢ (k(xᵢ, xᵢ)/mᵢ - mᵢ/vol), zero where rounding or an indefinite kernel would make it negative."""
        difference = self.signed_diagonal()
        if not self._deflate:
            return difference
        noise = 2 * _NOISE * unit_of(self.dtype) * self._outer**2 * self.gram.diagonal()
        return namespace(difference).where(difference > noise, difference, 0.0)

    def signed_diagonal(self) -> Array:
        """The same as the matrix has it: of an indefinite kernel it may be negative."""
        values = self._outer**2 * self.gram.diagonal()
        return values - self.stationary**2 if self._deflate else values

    def rounding(self) -> MapRounding:
        """What the errors of entries, of row sums and of the arithmetic amount to.

        With q the largest ratio of Σⱼ wⱼ ``abs(k(xᵢ, xⱼ))`` to mᵢ (one for a kernel without negative values), the
        absolute values of A have the norm q at most: that is what Collatz and Wielandt's quotient of the vector √(w m)
        says. Entries that err by a part of themselves change A by no more than that part of q, those that err by ρᵢρⱼ
        by no more than Σ wᵢρᵢ²/mᵢ, and degrees that err by a part r of themselves by r·q. The diagonal k/m - m/vol is a
        difference: its error is that of its two terms, not of itself. Two evaluations share their degrees. Where points
        in single precision are multiplied in double, entries may err as they would in single, so that what is proved
        holds of the matrix in either precision.
        """
        if self.alpha:
            raise ValueError("The rounding of a density-corrected diffusion is not stated: nothing is proved of it.")
        xp, unit, m = namespace(self.reference), unit_of(self.dtype), as_double(self.degrees)
        weights = as_double(self.weights)
        lost_weights = unit if dtype_name(self.dtype) == "float32" else 0.0
        error, ratio = self.gram.entry_error.doubled(), self._absolute_ratio()
        kernel_diagonal = xp.abs(as_double(self.gram.diagonal()))
        product = summing = gamma(self.gram.product_depth + _ENTRY, unit)
        sums = (error.relative + summing + 2 * lost_weights) * ratio
        own = (error.relative + error.scaled) * kernel_diagonal + error.absolute
        rounded = gamma(_ENTRY, unit) + lost_weights
        rho = xp.sqrt(error.scaled * kernel_diagonal) + math.sqrt(error.absolute)
        norm = float(xp.max(ratio)) if self.shape[0] else 0.0
        apart = (error.relative + 2 * rounded) * (norm + 1) + float(xp.sum(weights * rho**2 / m))
        narrow = self.gram.narrow_error(self.weights)
        if narrow is not None:
            sums, own = sums + narrow.rows / m, own + narrow.diagonal
            error = error.beside(narrow.entries)
        rho = xp.sqrt(error.scaled * kernel_diagonal) + math.sqrt(error.absolute)
        degrees = sums + rho * float(weights @ rho) / m
        worst = float(xp.max(degrees)) if self.shape[0] else 0.0
        volume = float(weights @ (m * degrees)) / self.volume + lost_weights + gamma(self.shape[0], UNIT)
        entries = (error.relative + worst + rounded) * norm + float(xp.sum(weights * rho**2 / m))
        staying = weights * kernel_diagonal / m
        stationary = as_double(self.stationary) ** 2
        diagonal = staying * (degrees + rounded) + weights * own / m
        entries += self.below_zero or 0.0  # a positive semi-definite matrix lies within so much of this one
        if self._deflate:
            entries += worst + volume + rounded
            product = (summing * norm + gamma(inner_depth(self.shape[0], self.reference) + _ENTRY, unit)) / (norm + 1)
            norm += 1.0
            diagonal = diagonal + stationary * (degrees + volume + rounded)
            above = xp.clip(as_double(self.signed_diagonal()) + 1.01 * diagonal, 0.0, None)  # zero, of a row surely cut
            diagonal = xp.where(self.diagonal() == 0, above, diagonal)
        definite = bool(self.gram.kernel.properties.positive_definite) or self.below_zero is not None
        return MapRounding(
            1.01 * norm, product, 1.01 * entries, 1.01 * diagonal, self.gram.nonnegative, definite, 1.01 * apart
        )

    def _absolute_ratio(self) -> Array:
        """Σⱼ wⱼ |k(xᵢ, xⱼ)| / mᵢ: one where no value is negative."""
        if self.gram.nonnegative:
            return as_double(self.ones(self.shape[0]))
        return self.gram.absolute_product(self.weights) / as_double(self.degrees)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = part_of(self._outer, rows)[:, None] * part_of(self._outer, cols) * self.gram.block(rows, cols)
        if self._deflate:
            values -= part_of(self.stationary, rows)[:, None] * part_of(self.stationary, cols)
        return values


def _corrections(degrees: Array, alpha: float) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        scale = degrees**-alpha
    finite = namespace(degrees).isfinite(scale)
    if not bool((finite & (scale > 0)).all()):
        least, most = float(degrees.min()), float(degrees.max())
        raise DegenerateKernelError(
            f"alpha={alpha:g} takes row sums between {least:.3g} and {most:.3g} out of the range of "
            f"{dtype_name(degrees.dtype)}: choose a smaller alpha."
        )
    return scale


def _positive(degrees: Array) -> Array:
    xp = namespace(degrees)
    finite = xp.isfinite(degrees)
    if not bool(finite.all()):
        row = int(xp.argmax(xp.astype(~finite, xp.int8)))
        raise DegenerateKernelError(
            f"Row {row} of the kernel matrix sums to {float(degrees[row]):.3g} in {dtype_name(degrees.dtype)}: bring "
            "the kernel, its points or their weights to a size near one."
        )
    if not bool((degrees > 0).all()):
        row = int(xp.argmin(degrees))
        raise DegenerateKernelError(
            f"Row {row} of the kernel matrix sums to {float(degrees[row]):.3g}: diffusion needs positive row sums, "
            f"as Gaussian, Laplacian and Matern have them unless they are too small for {dtype_name(degrees.dtype)}."
        )
    return degrees
