"""What is known of a kernel: every property is True, False or None for unknown."""

from __future__ import annotations

from dataclasses import dataclass

Known = bool | None


@dataclass(frozen=True)
class Properties:
    """Declared properties of a kernel on its domain.

    Attributes
    ----------
    bounded : bool or None
        sup k(x, x) is finite.
    stationary : bool or None
        k(x, y) depends on x - y alone.
    positive : bool or None
        k(x, y) ≥ 0 everywhere.
    universal : bool or None
        Its functions are dense in the continuous functions on every compact set.
    characteristic : bool or None
        The mean embedding tells any two probability measures apart.
    positive_definite : bool or None
        Every Gram matrix is positive semi-definite.
    """

    bounded: Known = None
    stationary: Known = None
    positive: Known = None
    universal: Known = None
    characteristic: Known = None
    positive_definite: Known = None


def all_of(a: Known, b: Known) -> Known:
    """True if both are, unknown unless both are known to be True."""
    return True if a is True and b is True else None


def any_of(a: Known, b: Known) -> Known:
    """True if one is, False if neither is."""
    if a is True or b is True:
        return True
    return False if a is False and b is False else None


def of_sum(a: Properties, b: Properties) -> Properties:
    """Properties of k₁ + k₂."""
    psd = all_of(a.positive_definite, b.positive_definite)
    return Properties(
        bounded=all_of(a.bounded, b.bounded) or (False if psd and False in (a.bounded, b.bounded) else None),
        stationary=all_of(a.stationary, b.stationary),
        positive=all_of(a.positive, b.positive),
        universal=any_of(a.universal, b.universal) if psd else None,
        characteristic=any_of(a.characteristic, b.characteristic) or None if psd else None,
        positive_definite=psd,
    )


def of_product(a: Properties, b: Properties) -> Properties:
    """Properties of k₁ · k₂ (Schur's product theorem keeps it positive semi-definite)."""
    return Properties(
        bounded=all_of(a.bounded, b.bounded),
        stationary=all_of(a.stationary, b.stationary),
        positive=all_of(a.positive, b.positive),
        positive_definite=all_of(a.positive_definite, b.positive_definite),
    )


def of_power(a: Properties, exponent: float) -> Properties:
    """Properties of k^p: an integer power is a product; of another power little is known."""
    whole = float(exponent).is_integer()
    return Properties(
        bounded=a.bounded,
        stationary=a.stationary,
        positive=True if a.positive or (whole and exponent % 2 == 0) else None,
        positive_definite=a.positive_definite if whole else None,
    )


def of_normalized(a: Properties) -> Properties:
    """Properties of k(x, y) / sqrt(k(x, x) k(y, y))."""
    return Properties(
        bounded=True if a.positive_definite else None,
        stationary=a.stationary,
        positive=a.positive,
        universal=a.universal,
        characteristic=a.characteristic if a.stationary else None,
        positive_definite=a.positive_definite,
    )
