"""The Matérn profile of any real order on tensors, which know no Bessel function K of real order.

With g_ν(s) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), the recurrence K_{ν+1} = K_{ν-1} + (2ν/s) K_ν reads

    g_{ν+1} = g_ν + s²/(4ν(ν-1)) g_{ν-1}:

all terms are positive, so it is stable upwards, and g never exceeds one. Only two orders, μ in (0, 1] and μ + 1, have
to be found otherwise, and e^s g is what is carried, so that logarithms stay finite:

* s < 10⁻¹⁰: the first term of the series at zero, 1 - Γ(1-ν)/Γ(1+ν) (s/2)^(2ν) for ν < 0.9, and one beyond;
* s ≤ 40: e^s K_α(s) = ∫₀^∞ exp(-s(cosh u - 1)) cosh(αu) du by the trapezoidal rule. The integrand is analytic in a
  strip of half-width π/2 and falls doubly exponentially, so with steps of 0.2 (s ≤ 2) and 0.1 (beyond) the rule is
  exact to 10⁻¹⁷. Its nodes are the same for every entry;
* s ≤ 1000: Hankel's expansion in 1/s, whose terms fall below 10⁻¹⁷ before they grow;
* beyond, and for ν > 200: Debye's uniform expansion, without a recurrence.

Everything is computed in double precision; log g is good to about 10⁻¹³ relative to g.
"""

from __future__ import annotations

import math
from typing import Any

import torch

Tensor = Any

_ZERO_BELOW, _TRAPEZOID_TO, _HANKEL_TO, _DEBYE_FROM = 1e-10, 40.0, 1e3, 200.0
_ANALYTIC_FROM = 0.9  # of the order: beyond, g is one to all digits where s < 10⁻¹⁰
_GRIDS = ((_ZERO_BELOW, 2.0, 0.2), (2.0, _TRAPEZOID_TO, 0.1))  # from, to, step
_NEGLIGIBLE = 45.0  # e⁻⁴⁵ is below rounding
_HANKEL_TERMS = 16


def log_matern(s: Tensor, order: float) -> Tensor:
    """log g_ν(s) for s ≥ 0 in double precision, at most zero."""
    if order > _DEBYE_FROM:
        return _debye(s, order).clamp_(max=0.0)
    value = torch.empty_like(s)
    tiny, far = s < _ZERO_BELOW, s > _HANKEL_TO
    between = ~(tiny | far)
    value[tiny] = _near_zero(s[tiny], order)
    value[far] = _debye(s[far], order)
    value[between] = torch.log(_recurrence(s[between], order)) - s[between]
    return value.clamp_(max=0.0)


def _near_zero(s: Tensor, order: float) -> Tensor:
    if order >= _ANALYTIC_FROM:
        return torch.zeros_like(s)
    c = math.exp(math.lgamma(1 - order) - math.lgamma(1 + order))
    return torch.log1p(-c * (s / 2) ** (2 * order))


def _recurrence(s: Tensor, order: float) -> Tensor:
    """e^s g_ν(s)."""
    steps = math.ceil(order) - 1
    first = order - steps
    older, old = _two_orders(s, first)
    if steps == 0:
        return older
    quarter = s * s / 4
    for i in range(1, steps):
        nu = first + i
        older, old = old, old + quarter / (nu * (nu - 1)) * older
    return old


def _two_orders(s: Tensor, first: float) -> tuple[Tensor, Tensor]:
    """e^s g of the orders μ and μ + 1."""
    orders = (first, first + 1)
    bessel = [torch.empty_like(s) for _ in orders]
    for low, high, step in _GRIDS:
        part = (s >= low) & (s <= high) if low == _ZERO_BELOW else (s > low) & (s <= high)
        for out, values in zip(bessel, _trapezoid(s[part], orders, low, step), strict=True):
            out[part] = values
    part = s > _TRAPEZOID_TO
    for out, alpha in zip(bessel, orders, strict=True):
        out[part] = _hankel(s[part], alpha)
    scale = [2 ** (1 - alpha) / math.gamma(alpha) for alpha in orders]
    g = [c * s**alpha * K for c, alpha, K in zip(scale, orders, bessel, strict=True)]
    return g[0], g[1]


def _trapezoid(s: Tensor, orders: tuple[float, float], low: float, step: float) -> list[Tensor]:
    """e^s K_α(s) of two orders where s ≥ low: one exponential a node serves both."""
    sums = [torch.full_like(s, 0.5) for _ in orders]
    k = 1
    while True:
        u = k * step
        fall = 2 * math.sinh(u / 2) ** 2  # cosh u - 1
        if low * fall > _NEGLIGIBLE + orders[1] * u:
            return [step * total for total in sums]
        term = torch.exp(-fall * s)
        for total, alpha in zip(sums, orders, strict=True):
            total.add_(term, alpha=math.cosh(alpha * u))
        k += 1


def _hankel(s: Tensor, alpha: float) -> Tensor:
    """e^s K_α(s) for large s, DLMF 10.40.2."""
    total, term = torch.ones_like(s), torch.ones_like(s)
    for k in range(1, _HANKEL_TERMS):
        term = term * ((4 * alpha**2 - (2 * k - 1) ** 2) / (8 * k)) / s
        total += term
    return torch.sqrt(math.pi / (2 * s)) * total


def _debye(s: Tensor, order: float) -> Tensor:
    """log g_ν(s) by four terms of DLMF 10.41.4; for large s they are those of the expansion in 1/s.

    With w = √(1 + (s/ν)²) - 1 the powers and factorials cancel on paper and leave ν (log(1 + w/2) - w) - ½ log(1 + w),
    the expansion, and what Stirling's formula lacks of log Γ(ν): nothing cancels in floating point, s = 0 included.
    """
    z2 = (s / order) ** 2
    w = z2 / (1 + torch.sqrt(1 + z2))
    tail = torch.log1p(_expansion(1 / (1 + w), order))
    return order * (torch.log1p(w / 2) - w) - 0.5 * torch.log1p(w) + (tail - _beyond_stirling(order))


def _expansion(p: Any, order: float) -> Any:
    """Σ_k (-1)^k u_k(p)/ν^k, k = 1, ..., 4, DLMF 10.41.10."""
    p2 = p * p
    terms = (
        -p * (3 - 5 * p2) / 24,
        p2 * (81 - 462 * p2 + 385 * p2**2) / 1152,
        -p * p2 * (30375 - 369603 * p2 + 765765 * p2**2 - 425425 * p2**3) / 414720,
        p2**2 * (4465125 - 94121676 * p2 + 349922430 * p2**2 - 446185740 * p2**3 + 185910725 * p2**4) / 39813120,
    )
    return sum(term / order ** (k + 1) for k, term in enumerate(terms))


def _beyond_stirling(order: float) -> float:
    """log Γ(ν) - (ν - ½) log ν + ν - ½ log 2π; for large ν the expansion itself at s = 0, so that g(0) is one."""
    if order > _DEBYE_FROM:
        return math.log1p(_expansion(1.0, order))
    return math.lgamma(order) - (order - 0.5) * math.log(order) + order - 0.5 * math.log(2 * math.pi)
