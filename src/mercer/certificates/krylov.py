"""A bound on the largest eigenvalue of a positive semi-definite map by products alone.

Lanczos with k steps from a random start underestimates λmax of a psd matrix of order n by more than the factor 1 - ε
with probability at most 1.648 √n exp(-√ε (2k - 1)) (Kuczyński, Woźniakowski 1992). Used bluntly that takes 10⁴ products
for six digits. So the space Q where the eigenvalue is near its largest is taken out first: with a = λmax(QᵀMQ), c = ‖(I
- QQᵀ)MQ‖ and b ≥ λmax of M on the complement,

    λmax(M) ≤ ½ (a + b + √((a - b)² + 4c²)),

accurate to c²/(a - b) as soon as b < a. The cost depends on the gap a - b, not on the accuracy asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from mercer.linalg.lanczos import largest_ritz_value

Array = np.ndarray[Any, np.dtype[Any]]

_DIRECTION = 1e-3  # directions that hardly occur in the solution are no eigenvectors yet
_ESTIMATE_STEPS = 30
_STAGES = (32, 64, 128, 256)
_WORTH_IT = 0.1  # go on while the complement costs more than this fraction of the bound's distance from its best


@final
class Deflated:
    """A symmetric map together with the space where its largest eigenvalue is expected."""

    def __init__(self, multiply: Callable[[Array], Array], directions: Array) -> None:
        U, sizes, _ = np.linalg.svd(directions, full_matrices=False)
        self.multiply = multiply
        self.Q = U[:, sizes > _DIRECTION * sizes[0]]
        MQ = multiply(self.Q)
        inside = self.Q.T @ MQ
        self.inside_top = float(np.linalg.eigvalsh((inside + inside.T) / 2)[-1])
        self.coupling = float(np.linalg.norm(MQ - self.Q @ inside, 2))

    def combine(self, outside_top: float) -> float:
        """The bound on λmax given one on the complement."""
        if outside_top == -np.inf:
            return self.inside_top
        a, b = self.inside_top, outside_top
        return (a + b + float(np.hypot(a - b, 2 * self.coupling))) / 2

    def estimate(self, rng: np.random.Generator) -> float:
        """About λmax, with no promise: the complement by a few Lanczos steps."""
        return self.combine(largest_ritz_value(self.multiply, self.Q, _ESTIMATE_STEPS, rng)[0])


def bound_by_lanczos(deflated: Deflated, *, lift: float, failure_probability: float, rng: np.random.Generator) -> float:
    """A number that λmax does not exceed but for the stated probability.

    ``lift`` is a number t ≥ 0 with M + tI ≽ 0. The number of steps doubles until the complement no longer matters;
    every stage starts afresh and has its share of the probability.
    """
    n, q = deflated.Q.shape
    share = failure_probability / len(_STAGES)
    best = np.inf
    for steps in _STAGES:
        ritz, k = largest_ritz_value(deflated.multiply, deflated.Q, steps, rng)
        if k == n - q:
            outside = ritz
        else:  # k < steps means that the Krylov space closed: it is also the one of every later step
            root = np.log(1.648 * np.sqrt(n - q) / share) / (2 * steps - 1)
            outside = (ritz + lift) / (1 - root**2) - lift if root < 1 else np.inf
        best = min(best, deflated.combine(outside) if np.isfinite(outside) or outside < 0 else np.inf)
        if best - deflated.inside_top <= 1e-9 + (1 + _WORTH_IT) * _unavoidable(deflated, ritz):
            break
    if not np.isfinite(best):
        raise ArithmeticError("The Lanczos bound needs more steps than it may take.")
    return float(best * (1 + 1e-13) + 1e-15)


def _unavoidable(deflated: Deflated, ritz: float) -> float:
    """What the bound would exceed the inner eigenvalue by if the Ritz value were exact."""
    return deflated.combine(ritz) - deflated.inside_top
