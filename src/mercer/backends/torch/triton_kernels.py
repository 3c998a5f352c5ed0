"""Products with a kernel matrix in one pass over its entries, in Triton: no entry is ever written to memory.

A program makes a block of BM rows of ``K V``: it goes along the columns of K, BN of them at a time, pairs the points,
applies the profile, and adds what the columns of V make of the tile to sums in double precision. So a term of float32
goes through roundings of single precision inside its tile alone, whatever the number of points.

The points are paired in one of two ways:

* coordinate by coordinate, with multiply-adds of the processor (IEEE): differences, absolute differences, and inner
  products of a few coordinates. Points lie with a coordinate of all of them in a row;
* by ``tl.dot``, on the matrix units of a card, for inner products of many coordinates, in chunks of BD of them. Points
  lie row by row, padded with zeros.

Up to four columns of V have a sum each, more are multiplied by ``tl.dot``. What the constants mean stands in
:mod:`mercer.backends.torch.triton_plan`. Imported only where a product is to run: Triton is optional, and decides on
import whether kernels are compiled or interpreted.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _profile(t: tl.tensor, P: tl.tensor, PROFILE: tl.constexpr, DEGREE: tl.constexpr) -> tl.tensor:
    """f(t): 0 exp(-t), 1 (1 + a s + b s²) exp(-s) with s = √t, 2 t, 3 (γ t + c)^DEGREE."""
    if PROFILE == 0:
        return tl.exp(-t)
    elif PROFILE == 1:
        s = tl.sqrt(t) if t.dtype == tl.float64 else tl.sqrt_rn(t)  # the plain one of single precision is approximate
        linear, quadratic = tl.load(P + 2).to(t.dtype), tl.load(P + 3).to(t.dtype)
        return ((s * quadratic + linear) * s + 1.0) * tl.exp(-s)
    elif PROFILE == 3:
        u = t * tl.load(P + 2).to(t.dtype) + tl.load(P + 3).to(t.dtype)
        k = u
        for _ in tl.static_range(DEGREE - 1):
            k = k * u
        return k
    else:
        return t


@triton.jit
def _by_coordinates(
    X: tl.tensor,
    Y: tl.tensor,
    G: tl.tensor,
    n: tl.tensor,
    m: tl.tensor,
    d: tl.tensor,
    rm: tl.tensor,
    rn: tl.tensor,
    PAIR: tl.constexpr,
    WEIGHED: tl.constexpr,
) -> tl.tensor:
    """Σ over coordinates: 0 squares of differences, 1 absolute differences, 2 products; of each with its weight."""
    t = tl.zeros([rm.shape[0], rn.shape[0]], X.dtype.element_ty)
    at_x, at_y = X + rm, Y + rn  # moved on by a coordinate at a time, as c·n may be too large for 32 bits
    for c in range(d):
        x = tl.load(at_x, mask=rm < n, other=0.0)[:, None]
        y = tl.load(at_y, mask=rn < m, other=0.0)[None, :]
        at_x += n
        at_y += m
        if PAIR == 0:
            term = (x - y) * (x - y)
        elif PAIR == 1:
            term = tl.abs(x - y)
        else:
            term = x * y
        if WEIGHED:
            term = term * tl.load(G + c).to(t.dtype)
        t += term
    return t


@triton.jit
def _by_dot(
    X: tl.tensor,
    Y: tl.tensor,
    n: tl.tensor,
    m: tl.tensor,
    rm: tl.tensor,
    rn: tl.tensor,
    D: tl.constexpr,
    BD: tl.constexpr,
    PRECISION: tl.constexpr,
) -> tl.tensor:
    """Inner products of rows, D coordinates of which the last may be zeros."""
    t = tl.zeros([rm.shape[0], rn.shape[0]], X.dtype.element_ty)
    for start in range(0, D, BD):
        c = start + tl.arange(0, BD)
        x = tl.load(X + rm[:, None] * D + c[None, :], mask=rm[:, None] < n, other=0.0)
        y = tl.load(Y + rn[None, :] * D + c[:, None], mask=rn[None, :] < m, other=0.0)
        t = tl.dot(x, y, t, input_precision=PRECISION, out_dtype=t.dtype)
    return t


@triton.jit
def product(
    X: tl.tensor,
    Y: tl.tensor,
    NX: tl.tensor,
    NY: tl.tensor,
    G: tl.tensor,
    P: tl.tensor,
    DIAGONAL: tl.tensor,
    W: tl.tensor,
    OUT: tl.tensor,
    n: tl.tensor,
    m: tl.tensor,
    d: tl.tensor,
    span: tl.tensor,
    PAIR: tl.constexpr,
    NORMS: tl.constexpr,
    WEIGHED: tl.constexpr,
    BY_DOT: tl.constexpr,
    D: tl.constexpr,
    PROFILE: tl.constexpr,
    DEGREE: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    R: tl.constexpr,
    RP: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
) -> None:
    """OUT[s, c, i] = Σⱼ k(xᵢ, yⱼ) W[c, j] over the s-th run of ``span`` columns; R = 0 means W = 1.

    P holds, in double precision, the factor and the limit of t and the numbers of the profile.
    """
    rm = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    run = tl.program_id(1).to(tl.int64)
    rows = rm < n
    KT: tl.constexpr = OUT.dtype.element_ty
    a0 = tl.zeros([BM], KT)
    a1 = tl.zeros([BM], KT)
    a2 = tl.zeros([BM], KT)
    a3 = tl.zeros([BM], KT)
    many = tl.zeros([BM, RP], KT)
    rc = tl.arange(0, RP)
    first = run * span
    for start in range(first, tl.minimum(first + span, m), BN):
        rn = (start + tl.arange(0, BN)).to(tl.int64)
        cols = rn < m
        if BY_DOT:
            t = _by_dot(X, Y, n, m, rm, rn, D, BD, PRECISION)
        else:
            t = _by_coordinates(X, Y, G, n, m, d, rm, rn, PAIR, WEIGHED)
        if NORMS:
            x2 = tl.load(NX + rm, mask=rows, other=0.0)
            y2 = tl.load(NY + rn, mask=cols, other=0.0)
            t = tl.maximum(x2[:, None] + y2[None, :] - 2 * t, 0.0)
        elif PAIR != 2:
            t = tl.minimum(t * tl.load(P).to(t.dtype), tl.load(P + 1).to(t.dtype))
        k = _profile(t.to(DIAGONAL.dtype.element_ty), P, PROFILE, DEGREE)
        if SYMMETRIC:
            k = tl.where(rm[:, None] == rn[None, :], tl.load(DIAGONAL + rm, mask=rows, other=0.0)[:, None], k)
        k = tl.where(cols[None, :], k, 0.0)
        if R == 0:
            a0 += tl.sum(k, axis=1).to(KT)
        elif R <= 4:
            a0 += tl.sum(k * tl.load(W + rn, mask=cols, other=0.0)[None, :], axis=1).to(KT)
            if R > 1:
                a1 += tl.sum(k * tl.load(W + m + rn, mask=cols, other=0.0)[None, :], axis=1).to(KT)
            if R > 2:
                a2 += tl.sum(k * tl.load(W + 2 * m + rn, mask=cols, other=0.0)[None, :], axis=1).to(KT)
            if R > 3:
                a3 += tl.sum(k * tl.load(W + 3 * m + rn, mask=cols, other=0.0)[None, :], axis=1).to(KT)
        else:
            at = W + rc[None, :].to(tl.int64) * m + rn[:, None]
            w = tl.load(at, mask=cols[:, None] & (rc[None, :] < R), other=0.0)
            many += tl.dot(k, w, input_precision=PRECISION, out_dtype=k.dtype).to(KT)
    to = OUT + run * tl.maximum(R, 1) * n + rm
    if R <= 4:
        tl.store(to, a0, mask=rows)
        if R > 1:
            tl.store(to + n, a1, mask=rows)
        if R > 2:
            tl.store(to + 2 * n, a2, mask=rows)
        if R > 3:
            tl.store(to + 3 * n, a3, mask=rows)
    else:
        tl.store(to[:, None] + rc[None, :].to(tl.int64) * n, many, mask=rows[:, None] & (rc[None, :] < R))
