"""Products of matrices of balls: sliced so that double-precision BLAS makes no error (Ozaki, Ogita, Oishi, Rump 2012).

A row of A is cut into slices of ρ bits each, counted from the leading bit of its largest entry; a column of B likewise.
A product of two slices is a sum of n integers below 2²ρ, in units of one power of two: with n 2²ρ ≤ 2⁵³ every partial
sum is a double, in whatever order BLAS adds, and nothing is rounded. With k slices the products of pairs p + q ≤ k + 1
leave out at most n (k + 1) 2⁻ᵏρ of the largest entries' product.
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, up

_BITS = 106
_SUMMING = 2.0**-100  # of up to 30 terms of twice the double precision
_ENTRIES = 2**18  # of the larger matrix at a time
_NOTHING = -900


def product(A: Ball, B: Ball) -> Ball:
    """A B, of shapes (a, n) and (n, b): the radii of A and B and the rounding are in the result's."""
    n = A.shape[1]
    if n == 0:
        return Ball(np.zeros((A.shape[0], B.shape[1])))
    if n > 256 and n * max(A.shape[0], B.shape[1]) > _ENTRIES:
        half = n // 2
        return product(A[:, :half], B[:half]) + product(A[:, half:], B[half:])
    width = (53 - int(np.ceil(np.log2(max(n, 2))))) // 2
    count = -(-_BITS // width)
    of_A, e = _slices(A, width, count, 1)
    of_B, f = _slices(B, width, count, 0)
    total = Ball(np.zeros((A.shape[0], B.shape[1])))
    for order in range(count - 1, -1, -1):  # the smallest first
        for p in range(order + 1):
            one, other = of_A[p], of_B[order - p]
            if one is not None and other is not None:
                total = total + Ball(one @ other)
    left_out = n * (count + 1) * (2.0 ** (-count * width) + _SUMMING)
    with np.errstate(over="ignore"):
        size = np.ldexp(1.0, e) * np.ldexp(1.0, f)
    spread = np.zeros(total.shape)
    for left, right in ((A.radius, B.magnitude()), (A.magnitude(), B.radius)):
        if np.any(left) and np.any(right):
            spread = spread + left @ right
    return Ball(total.hi, total.lo, up(spread * (1 + 2.0**-30) + left_out * size + n * 1e-300))


def _slices(A: Ball, width: int, count: int, axis: int) -> tuple[list[Array | None], Array]:
    """The slices of the midpoints, None for those that vanish, and the exponents of the largest entries."""
    hi, lo = A.hi, A.lo
    largest = np.max(np.abs(hi), axis=axis, keepdims=True)
    exponents = np.where(largest > 0, np.frexp(largest)[1], _NOTHING)  # entries are below 2^e
    exponents = exponents + 1  # hi + lo may reach 2^e itself
    out: list[Array | None] = []
    for number in range(count):
        anchor = np.ldexp(1.0, exponents - number * width + 53 - width)
        part = (hi + anchor) - anchor
        rest = hi - part
        hi = rest + lo
        lo = lo - (hi - rest) if np.any(lo) else lo
        out.append(part if np.any(part) else None)
    return out, exponents
