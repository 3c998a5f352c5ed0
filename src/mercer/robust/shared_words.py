"""Words that the docstrings of both robust machines have: what the game is, and how its solver ends."""

from __future__ import annotations

from string import Template
from typing import TypeVar

Machine = TypeVar("Machine", bound=type)

_WORDS = {
    "KERNEL": """kernel : Kernel, default=None
        Any positive semi-definite one; None means ``Gaussian(sigma="median")``.""",
    "RADIUS": """radius : float, default=0.1
        ε: 0 is the sample itself. Of kernels with k(x, x) = 1, √2 or more admits every distribution.""",
    "SOLVER": """tol : float, default=1e-6
        The certified relative gap to reach.
    max_iter : int, default=300
        Newton steps at most; 20 to 30 are usual.
    callback : callable, default=None
        Called with the lines of ``history_`` as they come; a true value stops.
    verbose : bool, default=False
        Log the phases, the certified gap and the time to the logger ``mercer``.""",
    "FUNCTION": """dual_coef_, inputs_ : arrays of shape (M,) and (M, d)
        f = Σ dual_coef_ₐ k(·, inputs_ₐ), on the distinct inputs of the candidates.""",
    "GAME": """robust_risk_, sample_risk_ : float
        No admissible distribution has a larger mean loss than the first: proved. The second is the sample's.
    certificate_ : RegressionCertificate
        Bounds on the optimum; ``upper`` is ``robust_risk_`` + λ‖f‖².
    price_coef_, level_, slopes_ : array of shape (N,), float and array of shape (N,)
        What proves the bounds: a function g of pairs, the largest loss less g of a candidate, slopes of the losses.
    distance_ : float
        The MMD of the worst distribution from the sample.""",
    "RUN": """history_, status_, n_iter_ : tuple of Iteration, Status and int
        How the solver went.""",
}


def with_shared_words(machine: Machine) -> Machine:
    """Put the words where the docstring of a class names them; under ``-OO`` it has none."""
    if machine.__doc__ is not None:
        machine.__doc__ = Template(machine.__doc__).substitute(_WORDS)
    return machine
