"""Four rows of a tile at a time: pairing and profile. What these loops touch stays in the first-level cache.

Each loop over columns writes to one row only, so that LLVM finds it safe to vectorise. Compiled functions take their
arrays one by one, however many: to pack and unpack them would touch reference counters, for which threads queue.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mercer.backends.cpu.exponential import exp_negative
from mercer.backends.cpu.steps import (
    ABSOLUTE,
    CHI2,
    EXPONENTIAL,
    FACTOR,
    FIRST,
    MISMATCHES,
    MOST,
    POWER,
    ROOT_EXPONENTIAL,
    SECOND,
    SQUARED,
    TANH,
    THIRD,
    WEIGHED_ABSOLUTE,
    WEIGHED_SQUARED,
)

BLOCK = 4  # rows at a time; loops get it as a number, or LLVM would write each of them out four times


@njit(nogil=True, cache=True, fastmath={"contract"})
def inner_products(x, i, yt, d, w, count, t):  # type: ignore[no-untyped-def]
    """t[b, j] = Σ_k x[i + b, k] yt[k, j], four coordinates a pass."""
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        k = 0
        while k + 3 < d:
            p, q, r, s = x[i + b, k], x[i + b, k + 1], x[i + b, k + 2], x[i + b, k + 3]
            for j in range(w):
                t[b, j] += (p * yt[k, j] + q * yt[k + 1, j]) + (r * yt[k + 2, j] + s * yt[k + 3, j])
            k += 4
        while k < d:
            p = x[i + b, k]
            for j in range(w):
                t[b, j] += p * yt[k, j]
            k += 1


@njit(nogil=True, cache=True, fastmath={"contract"})
def squared_differences(x, i, yt, d, w, count, factor, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(factor Σ_k (x[i + b, k] - yt[k, j])², most)."""
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        k = 0
        while k + 3 < d:
            p, q, r, s = x[i + b, k], x[i + b, k + 1], x[i + b, k + 2], x[i + b, k + 3]
            for j in range(w):
                u, v, y, z = p - yt[k, j], q - yt[k + 1, j], r - yt[k + 2, j], s - yt[k + 3, j]
                t[b, j] += (u * u + v * v) + (y * y + z * z)
            k += 4
        while k < d:
            p = x[i + b, k]
            for j in range(w):
                u = p - yt[k, j]
                t[b, j] += u * u
            k += 1
        for j in range(w):
            t[b, j] = min(t[b, j] * factor, most)


@njit(nogil=True, cache=True)
def absolute_differences(x, i, yt, d, w, count, factor, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(factor Σ_k |x[i + b, k] - yt[k, j]|, most)."""
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        k = 0
        while k + 3 < d:
            p, q, r, s = x[i + b, k], x[i + b, k + 1], x[i + b, k + 2], x[i + b, k + 3]
            for j in range(w):
                t[b, j] += (abs(p - yt[k, j]) + abs(q - yt[k + 1, j])) + (abs(r - yt[k + 2, j]) + abs(s - yt[k + 3, j]))
            k += 4
        while k < d:
            p = x[i + b, k]
            for j in range(w):
                t[b, j] += abs(p - yt[k, j])
            k += 1
        for j in range(w):
            t[b, j] = min(t[b, j] * factor, most)


@njit(nogil=True, cache=True)
def chi_squared_differences(x, i, yt, d, w, count, factor, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(factor Σ_k (x - y)² / (x + y), most), a coordinate where both vanish counting zero."""
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        for k in range(d):
            p = x[i + b, k]
            for j in range(w):
                total = p + yt[k, j]
                difference = p - yt[k, j]
                t[b, j] += difference * (difference / total) if total > 0 else type(total)(0)
        for j in range(w):
            t[b, j] = min(t[b, j] * factor, most)


@njit(nogil=True, cache=True, fastmath={"contract"})
def weighed_squares(x, i, yt, d, w, count, a, leaf, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(Σ_k a[leaf, k] (x[i + b, k] - yt[k, j])², most)."""
    real = type(t[0, 0])
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        k = 0
        while k + 3 < d:
            p, q, r, s = x[i + b, k], x[i + b, k + 1], x[i + b, k + 2], x[i + b, k + 3]
            e, f, g, h = real(a[leaf, k]), real(a[leaf, k + 1]), real(a[leaf, k + 2]), real(a[leaf, k + 3])
            for j in range(w):
                u, v, y, z = p - yt[k, j], q - yt[k + 1, j], r - yt[k + 2, j], s - yt[k + 3, j]
                t[b, j] += (e * u * u + f * v * v) + (g * y * y + h * z * z)
            k += 4
        while k < d:
            p, e = x[i + b, k], real(a[leaf, k])
            for j in range(w):
                u = p - yt[k, j]
                t[b, j] += e * u * u
            k += 1
        for j in range(w):
            t[b, j] = min(t[b, j], most)


@njit(nogil=True, cache=True, fastmath={"contract"})
def weighed_absolutes(x, i, yt, d, w, count, a, leaf, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(Σ_k a[leaf, k] |x[i + b, k] - yt[k, j]|, most)."""
    real = type(t[0, 0])
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        k = 0
        while k + 3 < d:
            p, q, r, s = x[i + b, k], x[i + b, k + 1], x[i + b, k + 2], x[i + b, k + 3]
            e, f, g, h = real(a[leaf, k]), real(a[leaf, k + 1]), real(a[leaf, k + 2]), real(a[leaf, k + 3])
            for j in range(w):
                u, v, y, z = p - yt[k, j], q - yt[k + 1, j], r - yt[k + 2, j], s - yt[k + 3, j]
                t[b, j] += (e * abs(u) + f * abs(v)) + (g * abs(y) + h * abs(z))
            k += 4
        while k < d:
            p, e = x[i + b, k], real(a[leaf, k])
            for j in range(w):
                t[b, j] += e * abs(p - yt[k, j])
            k += 1
        for j in range(w):
            t[b, j] = min(t[b, j], most)


@njit(nogil=True, cache=True)
def mismatches(x, i, yt, d, w, count, a, leaf, most, t):  # type: ignore[no-untyped-def]
    """t[b, j] = min(the sum of a[leaf, k] where x[i + b, k] and yt[k, j] differ, most)."""
    real = type(t[0, 0])
    for b in range(count):
        for j in range(w):
            t[b, j] = 0
        for k in range(d):
            p, e = x[i + b, k], real(a[leaf, k])
            for j in range(w):
                t[b, j] += e if p != yt[k, j] else real(0)
        for j in range(w):
            t[b, j] = min(t[b, j], most)


@njit(nogil=True, cache=True, fastmath={"contract"})
def distances_of_products(t, w, count, row_norms, i, col_norms, out):  # type: ignore[no-untyped-def]
    """out = max(0, |x|² + |y|² - 2 t)."""
    zero, two = type(t[0, 0])(0), type(t[0, 0])(2)
    for b in range(count):
        a = row_norms[i + b]
        for j in range(w):
            s = (a + col_norms[j]) - two * t[b, j]
            out[b, j] = s if s > zero else zero


@njit(nogil=True, cache=True, fastmath={"contract"})
def exponential_of_products(t, w, count, row_norms, i, col_norms, out):  # type: ignore[no-untyped-def]
    """out = exp(-max(0, |x|² + |y|² - 2 t)): distance and profile in one pass."""
    zero, two = type(t[0, 0])(0), type(t[0, 0])(2)
    for b in range(count):
        a = row_norms[i + b]
        for j in range(w):
            s = (a + col_norms[j]) - two * t[b, j]
            out[b, j] = exp_negative(type(out[0, 0])(s if s > zero else zero))


@njit(nogil=True, cache=True, fastmath={"contract"})
def exponential(out, w, count, in_log):  # type: ignore[no-untyped-def]
    """Replace out by exp(-out), or by -out."""
    for b in range(count):
        if in_log:
            for j in range(w):
                out[b, j] = -out[b, j]
        else:
            for j in range(w):
                out[b, j] = exp_negative(out[b, j])


@njit(nogil=True, cache=True, fastmath={"contract"})
def _root_exponential(out, w, count, linear, quadratic):  # type: ignore[no-untyped-def]
    one = type(out[0, 0])(1)
    for b in range(count):
        for j in range(w):
            s = np.sqrt(out[b, j])
            out[b, j] = (one + s * (linear + quadratic * s)) * exp_negative(s)


@njit(nogil=True, cache=True)
def _log_root_exponential(out, w, count, linear, quadratic):  # type: ignore[no-untyped-def]
    one = type(out[0, 0])(1)
    for b in range(count):
        for j in range(w):
            s = np.sqrt(out[b, j])
            out[b, j] = np.log(one + s * (linear + quadratic * s)) - s


@njit(nogil=True, cache=True)
def _power(out, w, count, gamma, coef0, degree):  # type: ignore[no-untyped-def]
    """Squares by a product; beyond, a power of the system's library errs by one rounding, repeated products by many."""
    for b in range(count):
        for j in range(w):
            t = out[b, j] * gamma + coef0
            out[b, j] = t * t if degree == 2 else t**degree


@njit(nogil=True, cache=True)
def _tanh(out, w, count, gamma, coef0):  # type: ignore[no-untyped-def]
    for b in range(count):
        for j in range(w):
            out[b, j] = np.tanh(out[b, j] * gamma + coef0)


@njit(nogil=True, cache=True)
def logarithm(out, w, count):  # type: ignore[no-untyped-def]
    """out = log out, minus infinity where out is zero or negative."""
    for b in range(count):
        for j in range(w):
            out[b, j] = np.log(out[b, j]) if out[b, j] > 0 else -np.inf


@njit(nogil=True, cache=True)
def apply_profile(profile, numbers, in_log, w, count, out):  # type: ignore[no-untyped-def]
    """Replace out by the profile of it, or by its logarithm."""
    real = type(out[0, 0])
    if profile == EXPONENTIAL:
        exponential(out, w, count, in_log)
    elif profile == ROOT_EXPONENTIAL:
        if in_log:
            _log_root_exponential(out, w, count, real(numbers[FIRST]), real(numbers[SECOND]))
        else:
            _root_exponential(out, w, count, real(numbers[FIRST]), real(numbers[SECOND]))
    else:
        if profile == POWER:
            _power(out, w, count, real(numbers[FIRST]), real(numbers[SECOND]), real(numbers[THIRD]))
        elif profile == TANH:
            _tanh(out, w, count, real(numbers[FIRST]), real(numbers[SECOND]))
        if in_log:
            logarithm(out, w, count)


@njit(nogil=True, cache=True)
def differences(pairing, x, i, yt, d, w, count, numbers, weights, leaf, t):  # type: ignore[no-untyped-def]
    """Distances by differences of d coordinates."""
    factor, most = type(t[0, 0])(numbers[FACTOR]), type(t[0, 0])(numbers[MOST])
    if pairing == SQUARED:
        squared_differences(x, i, yt, d, w, count, factor, most, t)
    elif pairing == ABSOLUTE:
        absolute_differences(x, i, yt, d, w, count, factor, most, t)
    elif pairing == CHI2:
        chi_squared_differences(x, i, yt, d, w, count, factor, most, t)
    elif pairing == WEIGHED_SQUARED:
        weighed_squares(x, i, yt, d, w, count, weights, leaf, most, t)
    elif pairing == WEIGHED_ABSOLUTE:
        weighed_absolutes(x, i, yt, d, w, count, weights, leaf, most, t)
    elif pairing == MISMATCHES:
        mismatches(x, i, yt, d, w, count, weights, leaf, most, t)


@njit(nogil=True, cache=True)
def copied(t, w, count, out):  # type: ignore[no-untyped-def]
    """out = t, in the precision of out."""
    for b in range(count):
        for j in range(w):
            out[b, j] = t[b, j]


@njit(nogil=True, cache=True)
def add(out, other, w, count, in_log):  # type: ignore[no-untyped-def]
    """out = out + other, or log(exp out + exp other)."""
    for b in range(count):
        for j in range(w):
            if in_log:
                high, low = max(out[b, j], other[b, j]), min(out[b, j], other[b, j])
                out[b, j] = high + np.log1p(np.exp(low - high)) if low > -np.inf else high
            else:
                out[b, j] += other[b, j]


@njit(nogil=True, cache=True)
def multiply(out, other, w, count, in_log):  # type: ignore[no-untyped-def]
    """out = out · other, or the sum of their logarithms."""
    for b in range(count):
        for j in range(w):
            out[b, j] = out[b, j] + other[b, j] if in_log else out[b, j] * other[b, j]


@njit(nogil=True, cache=True)
def scale(out, w, count, factor, in_log):  # type: ignore[no-untyped-def]
    """out = factor · out, or out + log factor."""
    value = type(out[0, 0])(np.log(factor) if in_log else factor)
    for b in range(count):
        for j in range(w):
            out[b, j] = out[b, j] + value if in_log else out[b, j] * value


@njit(nogil=True, cache=True)
def raise_to(out, w, count, exponent, in_log):  # type: ignore[no-untyped-def]
    """out = out^exponent, or exponent · out."""
    value = type(out[0, 0])(exponent)
    if in_log or exponent == 2:
        for b in range(count):
            for j in range(w):
                out[b, j] = out[b, j] * (value if in_log else out[b, j])
    else:
        for b in range(count):
            for j in range(w):
                out[b, j] = out[b, j] ** value


@njit(nogil=True, cache=True)
def normalise(out, w, count, row_scales, i, col_scales, in_log):  # type: ignore[no-untyped-def]
    """Multiply by the product of two scales, which comes first: it keeps the matrix symmetric to the last bit."""
    for b in range(count):
        for j in range(w):
            factor = row_scales[i + b] * col_scales[j]
            if in_log:
                out[b, j] = out[b, j] + np.log(factor) if factor > 0 else -np.inf
            else:
                out[b, j] *= factor
