"""How far a fused product can be from the kernel's: what Triton's kernel rounds beside what tiles of torch round.

**Sums over coordinates** that are made one by one are those of :mod:`mercer.backends.pairings`, with multiply-adds,
which round once where a product and a sum round twice. So its bounds hold as they are. ``tl.dot`` of doubles adds
products of doubles in some order, and the bounds hold for any.

**Exponentials** of single precision are ``ex2.approx(t log₂e)``: the constant and the product are rounded, each by u
relative to t, and the function errs by no more than 2⁻²² = 4u of its value (PTX ISA, ``ex2``). The latter is within the
eight roundings that every exponential is given; the former adds 2u relative to the exponent, which is t, or √t where
an error of t counts half. So 6u relative to t are more than enough for either.

**Matrix units** multiply single precision as three products of parts: x = h + l + e, h the leading 11 bits of x and l
those of the rest, all cut off, so that ``abs(l) ≤ 2⁻¹⁰ abs(x)`` and ``abs(e) ≤ 2⁻²⁰ abs(x)``. From xy they leave out
l l' and what e and e' are multiplied with, together no more than (3 + 2⁻⁸) 2⁻²⁰ ``abs(xy)``. Products of parts are
exact. They are added in single precision; how, the maker does not say. Fasi, Higham, Mikaitis and Pranesh (2021) find
that terms are aligned with the largest one and cut off below its 24th bit or later, some at a time, and so is every
sum: that is no more than 2⁻²² of the sum of sizes for each term that is added, three a product. A sum of p products
errs by

    (4·2⁻²⁰ + γ(3p, 2⁻²²)) Σ ``abs(xᵢyᵢ)``.

The bound on the rounding of matrix units rests on that finding, all others on what is documented.
"""

from __future__ import annotations

from mercer.backends.rounding import gamma

EXPONENT = 6  # roundings relative to a distance, for the argument of an exponential
_LEFT_OUT = 4 * 2.0**-20  # of a product of two numbers, made of three products of their parts
_ADDED = 2.0**-22  # of the sizes of all terms, for each that is added


def matrix_units(count: int) -> float:
    """The error of a sum of so many products of float32 on matrix units, in units of the sum of their sizes."""
    return _LEFT_OUT + gamma(3 * count, _ADDED)
