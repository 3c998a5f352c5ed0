"""Products of four rows of a tile with the columns that a matrix is applied to, from either side.

Eight sums at a time stay in registers; the order of the summands may change (``reassoc``), their number may not.
"""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def add_rows(e, w, vt, i, total):  # type: ignore[no-untyped-def]
    """total[i + b, c] += Σ_j e[b, j] vt[c, j], two columns a pass."""
    zero = type(e[0, 0])(0)
    r = vt.shape[0]
    c = 0
    while c + 1 < r:
        s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = zero
        for j in range(w):
            u, v = vt[c, j], vt[c + 1, j]
            e0, e1, e2, e3 = e[0, j], e[1, j], e[2, j], e[3, j]
            s00 += e0 * u
            s01 += e0 * v
            s10 += e1 * u
            s11 += e1 * v
            s20 += e2 * u
            s21 += e2 * v
            s30 += e3 * u
            s31 += e3 * v
        total[i, c] += s00
        total[i, c + 1] += s01
        total[i + 1, c] += s10
        total[i + 1, c + 1] += s11
        total[i + 2, c] += s20
        total[i + 2, c + 1] += s21
        total[i + 3, c] += s30
        total[i + 3, c + 1] += s31
        c += 2
    if c < r:
        s0 = s1 = s2 = s3 = zero
        for j in range(w):
            u = vt[c, j]
            s0 += e[0, j] * u
            s1 += e[1, j] * u
            s2 += e[2, j] * u
            s3 += e[3, j] * u
        total[i, c] += s0
        total[i + 1, c] += s1
        total[i + 2, c] += s2
        total[i + 3, c] += s3


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_columns(e, w, v, i, total):  # type: ignore[no-untyped-def]
    """total[c, j] += Σ_b v[i + b, c] e[b, j]."""
    for c in range(v.shape[1]):
        p, q, r, s = v[i, c], v[i + 1, c], v[i + 2, c], v[i + 3, c]
        for j in range(w):
            total[c, j] += (e[0, j] * p + e[1, j] * q) + (e[2, j] * r + e[3, j] * s)
