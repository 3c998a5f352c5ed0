"""exp(-t) in compiled loops.

pip's numba has no vector mathematics library, so ``np.exp`` in a loop is scalar. ``exp(-t)`` is therefore written out:
t = -(n ln 2 + r) with n rounded by adding and subtracting 1.5·2^(mantissa bits), exp(r) by a near-minimax polynomial on
|r| ≤ ln2/2 (Chebyshev fits of (e^r - 1)/r, error 1.1e-8 for float32 and 1.8e-17 for float64), and 2^n by adding n to
the exponent bits. LLVM vectorises the loop. The rounding trick does not survive ``reassoc``, so exp has only
``contract``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

from mercer.backends.cpu.native import bits32, bits64, float32_of, float64_of

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
    value = float32_of(np.int32(bits32(p) + np.int32(bits32(z) << _SHIFT32)))
    return value if t < _CUT32 else _ZERO32


@njit(fastmath={"contract"})
def _exp_negative64(t):  # type: ignore[no-untyped-def]
    z = t * -_LOG2E64 + _ROUND64
    n = z - _ROUND64
    r = (-t - n * _LN2_HI64) - n * _LN2_LO64
    q = _B5 + r * (_B6 + r * (_B7 + r * (_B8 + r * (_B9 + r * _B10))))
    p = 1.0 + r * (_B0 + r * (_B1 + r * (_B2 + r * (_B3 + r * (_B4 + r * q)))))
    value = float64_of(bits64(p) + (bits64(z) << 52))
    return value if t < _CUT64 else 0.0


def exp_negative(t: float) -> float:
    """exp(-t) for t ≥ 0 inside compiled loops; exactly 0 beyond 87 (float32) and 708 (float64)."""
    return float(np.exp(-t))


@overload(exp_negative)
def _overload_exp_negative(t):  # type: ignore[no-untyped-def]
    if t == types.float32:
        return lambda t: _exp_negative32(t)
    return lambda t: _exp_negative64(t)
