"""Kernels made of kernels."""

from __future__ import annotations

from typing import final

from mercer.backends import forms
from mercer.kernels import properties as known
from mercer.kernels.base import Kernel
from mercer.kernels.checks import positive_number
from mercer.kernels.properties import Properties


@final
class Sum(Kernel):
    """k₁ + k₂."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _form(self, n_features: int) -> forms.Form:
        return forms.SumOf(self.left.form(n_features), self.right.form(n_features))

    @property
    def properties(self) -> Properties:
        """Properties of the sum."""
        left, right = self.left, self.right
        return known.of_sum_on(left.properties, left.reads, right.properties, right.reads)


@final
class Product(Kernel):
    """k₁ · k₂."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _form(self, n_features: int) -> forms.Form:
        return forms.ProductOf(self.left.form(n_features), self.right.form(n_features))

    @property
    def properties(self) -> Properties:
        """Properties of the product."""
        left, right = self.left, self.right
        return known.of_product_on(left.properties, left.reads, right.properties, right.reads)


@final
class Scaled(Kernel):
    """c · k for a number c > 0; a negative multiple would not be positive semi-definite and is refused."""

    def __init__(self, factor: float, kernel: Kernel) -> None:
        self.factor = factor
        self.kernel = kernel

    def _form(self, n_features: int) -> forms.Form:
        return forms.MultipleOf(positive_number(self.factor, "factor"), self.kernel.form(n_features))

    @property
    def properties(self) -> Properties:
        """Properties of k."""
        return self.kernel.properties


@final
class Power(Kernel):
    """k^p entry by entry: p a positive integer, or any p > 0 where k is known to be non-negative."""

    def __init__(self, kernel: Kernel, exponent: float) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def _form(self, n_features: int) -> forms.Form:
        exponent = positive_number(self.exponent, "exponent")
        if not exponent.is_integer() and not self.kernel.properties.positive:
            raise ValueError(f"exponent={self.exponent!r} must be a whole number: {self.kernel!r} can be negative.")
        return forms.power_of(self.kernel.form(n_features), exponent)

    @property
    def properties(self) -> Properties:
        """Properties of the power."""
        return known.of_power(self.kernel.properties, self.exponent)


@final
class Normalized(Kernel):
    """k(x, y) / sqrt(k(x, x) k(y, y)), zero where k(x, x) = 0."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _form(self, n_features: int) -> forms.Form:
        return forms.NormalizedOf(self.kernel.form(n_features))

    @property
    def properties(self) -> Properties:
        """Properties of the normalised kernel."""
        return known.of_normalized(self.kernel.properties)
