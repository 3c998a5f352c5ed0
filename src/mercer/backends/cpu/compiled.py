"""Loops compiled by numba: scaled panels of points, distances by differences, and profiles with their sums.

Everything here runs without the interpreter's lock on one thread; :mod:`mercer.backends.threads` supplies the threads.

pip's numba has no vector mathematics library, so ``np.exp`` in a loop is scalar. ``exp(-t)`` is therefore written out:
t = -(n ln 2 + r) with n rounded by adding and subtracting 1.5·2^(mantissa bits), exp(r) by a near-minimax polynomial on
|r| ≤ ln2/2 (Chebyshev fits of (e^r - 1)/r, error 1.1e-8 for float32 and 1.8e-17 for float64), and 2^n by adding n to
the exponent bits. LLVM vectorises the loop. The rounding trick does not survive ``reassoc``, so exp has only
``contract``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload


def _bitcast(source: Any, target: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), codegen

    return cast


_bits32, _float32 = _bitcast(types.float32, types.int32), _bitcast(types.int32, types.float32)
_bits64, _float64 = _bitcast(types.float64, types.int64), _bitcast(types.int64, types.float64)

_A = tuple(
    np.float32(c)
    for c in (
        1.0000000108364156061,
        0.50000000135387298866,
        0.16666504613032610564,
        0.041666464197405692315,
        0.0083692202918036074186,
        0.0013933730715792082502,
    )
)
_A0, _A1, _A2, _A3, _A4, _A5 = _A
_LOG2E32, _LN2_HI32, _LN2_LO32 = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND32, _ONE32, _ZERO32, _CUT32 = np.float32(12582912.0), np.float32(1), np.float32(0), np.float32(87.0)
_SHIFT32 = np.int32(23)

_B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7, _B8, _B9, _B10 = (
    1.0,
    0.50000000000000056734,
    0.1666666666666667103,
    0.041666666666572391458,
    0.0083333333333260831202,
    0.001388888893275100025,
    0.00019841269875002278793,
    0.000024801504014426905068,
    2.7557255170000887438e-6,
    2.7626495546432196255e-7,
    2.5105312729622101787e-8,
)
_LOG2E64, _LN2_HI64, _LN2_LO64 = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND64, _CUT64 = 6755399441055744.0, 708.0


@njit(fastmath={"contract"})
def _exp_negative32(t):  # type: ignore[no-untyped-def]
    z = t * -_LOG2E32 + _ROUND32
    n = z - _ROUND32
    r = (-t - n * _LN2_HI32) - n * _LN2_LO32
    p = _ONE32 + r * (_A0 + r * (_A1 + r * (_A2 + r * (_A3 + r * (_A4 + r * _A5)))))
    value = _float32(np.int32(_bits32(p) + np.int32(_bits32(z) << _SHIFT32)))
    return value if t < _CUT32 else _ZERO32


@njit(fastmath={"contract"})
def _exp_negative64(t):  # type: ignore[no-untyped-def]
    z = t * -_LOG2E64 + _ROUND64
    n = z - _ROUND64
    r = (-t - n * _LN2_HI64) - n * _LN2_LO64
    q = _B5 + r * (_B6 + r * (_B7 + r * (_B8 + r * (_B9 + r * _B10))))
    p = 1.0 + r * (_B0 + r * (_B1 + r * (_B2 + r * (_B3 + r * (_B4 + r * q)))))
    value = _float64(_bits64(p) + (_bits64(z) << 52))
    return value if t < _CUT64 else 0.0


def exp_negative(t: float) -> float:
    """exp(-t) for t ≥ 0 inside compiled loops; exactly 0 beyond 87 (float32) and 708 (float64)."""
    return float(np.exp(-t))


@overload(exp_negative)
def _overload_exp_negative(t):  # type: ignore[no-untyped-def]
    if t == types.float32:
        return lambda t: _exp_negative32(t)
    return lambda t: _exp_negative64(t)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def scale_panel(points, center, length, limit, out, norms):  # type: ignore[no-untyped-def]
    """out = clip((points - center) / length, ±limit), norms = squared row norms of out.

    Centring is exact where it matters (Sterbenz), so an offset common to all points costs no digit; the limit keeps
    squares finite.
    """
    for i in range(points.shape[0]):
        total = 0.0
        for k in range(points.shape[1]):
            value = (np.float64(points[i, k]) - center[k]) / length
            value = min(max(value, -limit), limit)
            out[i, k] = value
            total += np.float64(out[i, k]) * np.float64(out[i, k])
        norms[i] = total


@njit(nogil=True, cache=True)
def direction_panel(points, out):  # type: ignore[no-untyped-def]
    """out = rows of points divided by their length; zero rows stay zero."""
    for i in range(points.shape[0]):
        largest = 0.0
        for k in range(points.shape[1]):
            largest = max(largest, abs(np.float64(points[i, k])))
        total = 0.0
        for k in range(points.shape[1]):
            value = np.float64(points[i, k]) / largest if largest > 0 else 0.0
            total += value * value
        factor = 1.0 / np.sqrt(total) if total > 0 else 0.0
        for k in range(points.shape[1]):
            out[i, k] = np.float64(points[i, k]) / largest * factor if largest > 0 else 0.0


@njit(nogil=True)
def _scale_row(row, factor, most):  # type: ignore[no-untyped-def]
    for j in range(row.shape[0]):
        row[j] = min(row[j] * factor, most)


@njit(nogil=True, cache=True, fastmath={"contract"})
def squared_differences(x, yt, factor, most, out):  # type: ignore[no-untyped-def]
    """out[i, j] = min(factor Σ_k (x[i, k] - yt[k, j])², most), four coordinates a pass."""
    d = x.shape[1]
    for i in range(x.shape[0]):
        row = out[i]
        row[:] = 0
        k = 0
        while k + 3 < d:
            a, b, c, e = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
            ya, yb, yc, ye = yt[k], yt[k + 1], yt[k + 2], yt[k + 3]
            for j in range(row.shape[0]):
                p, q, u, v = a - ya[j], b - yb[j], c - yc[j], e - ye[j]
                row[j] += (p * p + q * q) + (u * u + v * v)
            k += 4
        while k < d:
            a = x[i, k]
            ya = yt[k]
            for j in range(row.shape[0]):
                p = a - ya[j]
                row[j] += p * p
            k += 1
        _scale_row(row, factor, most)


@njit(nogil=True, cache=True)
def absolute_differences(x, yt, factor, most, out):  # type: ignore[no-untyped-def]
    """out[i, j] = min(factor Σ_k |x[i, k] - yt[k, j]|, most), four coordinates a pass."""
    d = x.shape[1]
    for i in range(x.shape[0]):
        row = out[i]
        row[:] = 0
        k = 0
        while k + 3 < d:
            a, b, c, e = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
            ya, yb, yc, ye = yt[k], yt[k + 1], yt[k + 2], yt[k + 3]
            for j in range(row.shape[0]):
                row[j] += (abs(a - ya[j]) + abs(b - yb[j])) + (abs(c - yc[j]) + abs(e - ye[j]))
            k += 4
        while k < d:
            a = x[i, k]
            ya = yt[k]
            for j in range(row.shape[0]):
                row[j] += abs(a - ya[j])
            k += 1
        _scale_row(row, factor, most)


@njit(nogil=True, cache=True)
def chi_squared_differences(x, yt, factor, most, out):  # type: ignore[no-untyped-def]
    """out[i, j] = min(factor Σ_k (x - y)² / (x + y), most), a coordinate where both vanish counting zero."""
    for i in range(x.shape[0]):
        row = out[i]
        row[:] = 0
        for k in range(x.shape[1]):
            a = x[i, k]
            y = yt[k]
            for j in range(row.shape[0]):
                total = a + y[j]
                difference = a - y[j]
                row[j] += difference * (difference / total) if total > 0 else type(total)(0)
        _scale_row(row, factor, most)


@njit(nogil=True, cache=True, fastmath={"contract"})
def squared_distances_from_products(products, row_norms, col_norms, out):  # type: ignore[no-untyped-def]
    """out = max(0, |x|² + |y|² - 2 x·y)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            t = row_norms[i] + col_norms[j] - 2 * products[i, j]
            out[i, j] = t if t > 0 else 0


@njit(nogil=True, cache=True, fastmath={"contract"})
def exponential_of_products(out, row_norms, col_norms):  # type: ignore[no-untyped-def]
    """out = exp(-t), t = max(0, |x|² + |y|² - 2 out): distance and profile in one sweep over inner products."""
    zero, two = type(out[0, 0])(0), type(out[0, 0])(2)
    for i in range(out.shape[0]):
        row = out[i]
        a = row_norms[i]
        for j in range(row.shape[0]):
            t = (a + col_norms[j]) - two * row[j]
            row[j] = exp_negative(t if t > zero else zero)


@njit(nogil=True, cache=True, fastmath={"contract"})
def exponential(out):  # type: ignore[no-untyped-def]
    """out = exp(-out)."""
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(row.shape[0]):
            row[j] = exp_negative(row[j])


@njit(nogil=True, cache=True, fastmath={"contract"})
def root_exponential_of_products(out, row_norms, col_norms, linear, quadratic):  # type: ignore[no-untyped-def]
    """out = (1 + a s + b s²) exp(-s), s² = max(0, |x|² + |y|² - 2 out)."""
    zero, one, two = type(out[0, 0])(0), type(out[0, 0])(1), type(out[0, 0])(2)
    for i in range(out.shape[0]):
        row = out[i]
        a = row_norms[i]
        for j in range(row.shape[0]):
            t = (a + col_norms[j]) - two * row[j]
            s = np.sqrt(t if t > zero else zero)
            row[j] = (one + s * (linear + quadratic * s)) * exp_negative(s)


@njit(nogil=True, cache=True, fastmath={"contract"})
def root_exponential(out, linear, quadratic):  # type: ignore[no-untyped-def]
    """out = (1 + a s + b s²) exp(-s), s = sqrt(out)."""
    one = type(out[0, 0])(1)
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(row.shape[0]):
            s = np.sqrt(row[j])
            row[j] = (one + s * (linear + quadratic * s)) * exp_negative(s)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def add_sums(tile, row_sums, col_sums, both):  # type: ignore[no-untyped-def]
    """Add the row sums of a tile to row_sums and, if both, its column sums to col_sums, in double precision."""
    part = np.zeros(tile.shape[1], tile.dtype)
    for i in range(tile.shape[0]):
        row = tile[i]
        total = row[0] * 0
        if both:
            for j in range(row.shape[0]):
                total += row[j]
                part[j] += row[j]
        else:
            for j in range(row.shape[0]):
                total += row[j]
        row_sums[i] += total
    if both:
        for j in range(part.shape[0]):
            col_sums[j] += part[j]
