"""What a sparsifier was asked for: its parameters read, checked against one another and against the problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, is_sparse_tensor
from mercer.backends.config import require_free_memory
from mercer.kernels import Kernel
from mercer.problems import Discrepancy, TraceProblem
from mercer.validation import (
    at_least,
    declared,
    function_of,
    is_precomputed,
    non_negative,
    one_of,
    optional,
    positive_number,
)

Reduction = Literal["eliminate", "strong", "weak"]

_DEFAULT_NODES = 100
_MORE_NODES = 2.5  # than asked for, before the others are taken out: measured, between 2 and 3 is best
_ELIMINATION_COPIES = 5  # of the matrix of the nodes, that elimination and the active set before it take


def _part_of_trace(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ValueError(f"{name}={value!r} must lie above 0 and not above 1: it is dᵀv / dᵀω.")


CHECKS = declared(
    discrepancy=one_of("squared", "mmd"),
    potential=one_of("auto", "exact", "sampled"),
    solver=one_of("auto", "path", "active-set", "exchange", "exchange-second-order", "exchange-plain"),
    merge=one_of(None, "eliminate", "strong", "weak"),
    trace_fraction=optional(_part_of_trace),
    alpha=optional(non_negative),
    n_nodes=optional(at_least(1)),
    max_increase=optional(non_negative),
    tol=optional(positive_number),
    max_iter=optional(at_least(1)),
    callback=function_of("a line of the history"),
)


@dataclass(frozen=True)
class Choice:
    """What the estimator was asked for, checked.

    ``alpha`` and ``kappa`` name the programme (at most one is given), ``n_nodes`` how many nodes to keep of it.
    """

    alpha: float | None
    kappa: float | None
    n_nodes: int | None
    solver: str
    reduction: Reduction | None
    max_increase: float | None
    reweight: bool
    tol: float | None
    max_iter: int | None
    callback: Any = None
    shown: bool = False
    explicit: bool = False  # whether the reduction was named, so that its sequence is wanted even if it is empty

    @property
    def alone(self) -> bool:
        """Whether a number of nodes is all that was asked for."""
        return self.alpha is None and self.kappa is None

    @property
    def nodes_wanted(self) -> int:
        """The nodes of the solution from which some are taken out, where a number of nodes is all that was asked."""
        assert self.n_nodes is not None
        return math.ceil(_MORE_NODES * self.n_nodes)

    def level_of(self, problem: Discrepancy) -> TraceProblem:
        """The programme that the weights solve; without penalty where they are settled freely."""
        free = self.reweight or self.alone
        return problem.regularised(0.0) if free else problem.at(alpha=self.alpha, kappa=self.kappa)

    def require_weight(self, problem: Discrepancy, nodes: Array, values: Array, reduced: bool) -> None:
        """Refuse a measure without weight, or with less than was asked for."""
        if nodes.shape[0] == 0:
            raise ValueError(
                "No point has any weight in the measure that was found: choose an alpha that lies further below "
                f"α₀ = {problem.largest_alpha:.6g}, or go on for longer."
            )
        kappa = problem.trace(nodes, values)
        if reduced and not self.reweight and self.kappa is not None and kappa < self.kappa * (1 - 1e-9):
            raise ValueError(
                f"max_weight allows {int(nodes.shape[0])} nodes a trace fraction of {kappa / problem.total:.6g}, but "
                f"trace_fraction={self.kappa / problem.total:.6g}: raise max_weight or n_nodes, or lower "
                "trace_fraction."
            )


class Claim(NamedTuple):
    """What a measure is claimed to be optimal for, as :func:`mercer.certificates.certify_measure` takes it."""

    alpha: float | None
    kappa: float | None
    on_nodes: bool

    @classmethod
    def of(cls, choice: Choice, reduced: bool, kappa: float) -> Claim:
        """The programme asked for; on the nodes alone where some were taken out or weights are settled freely."""
        on_nodes = reduced or choice.alone or choice.reweight
        alpha = 0.0 if choice.reweight else choice.alpha
        if reduced and choice.reduction in ("strong", "weak") and not choice.reweight:
            alpha = None  # merging keeps dᵀv
        return cls(alpha, kappa if alpha is None else None, on_nodes)


def choice_of(model: Any, problem: Discrepancy) -> Choice:
    """What was asked for by parameters that keep to :data:`CHECKS`, checked against the problem."""
    alone = model.trace_fraction is None and model.alpha is None
    n_nodes = _DEFAULT_NODES if alone and model.n_nodes is None else model.n_nodes
    choice = Choice(
        alpha=None if model.alpha is None else _checked_alpha(model, problem),
        kappa=None if model.trace_fraction is None else _checked_fraction(model, problem) * problem.total,
        n_nodes=n_nodes,
        solver=model.solver,
        reduction=model.merge,
        max_increase=model.max_increase,
        reweight=alone if model.reweight is None else bool(model.reweight),
        tol=model.tol,
        max_iter=model.max_iter,
        callback=model.callback,
        shown=bool(model.verbose),
        explicit=model.merge is not None,
    )
    if alone and n_nodes is not None and n_nodes >= problem.size and choice.max_increase is None:
        return _whole_sample(choice, problem)
    return _reduced(choice, problem)


def _reduced(choice: Choice, problem: Discrepancy) -> Choice:
    """How nodes are taken out, checked: elimination where only their number or the loss is given."""
    limited = choice.n_nodes is not None or choice.max_increase is not None
    if choice.alone and choice.tol is not None:
        raise ValueError(
            "tol has no effect with n_nodes alone, whose weights are settled exactly on the nodes: leave it out."
        )
    if choice.explicit and not limited:
        raise ValueError(f"merge={choice.reduction!r} needs n_nodes or max_increase to say how far to merge.")
    if choice.alone and choice.reduction in (None, "eliminate"):
        _check_memory(choice, problem.size)
    return replace(choice, reduction="eliminate") if limited and not choice.explicit else choice


def _whole_sample(choice: Choice, problem: Discrepancy) -> Choice:
    """As many nodes as points: the sample is its own best quadrature, unless caps or a ridge forbid."""
    alpha, kappa = (None, problem.total) if is_its_own_best(problem) else (0.0, None)
    n_nodes = problem.size if choice.explicit else None
    return replace(choice, alpha=alpha, kappa=kappa, n_nodes=n_nodes, reweight=False)


def is_its_own_best(problem: Discrepancy) -> bool:
    """Whether v = ω is the solution at ϰ = dᵀω (QUAD Lemma 3.2): it is, unless caps, a ridge or a law forbid."""
    if problem.law is not None:
        return False
    return bool((problem.caps >= problem.weights).all()) and not bool((problem.ridge > 0).any())


def _check_memory(choice: Choice, size: int) -> None:
    """Refuse more nodes than the memory limit has room for, before any is looked for."""
    needed = 8 * _ELIMINATION_COPIES * min(size, choice.nodes_wanted) ** 2
    what, advice = f"n_nodes={choice.n_nodes} needs about", "ask for fewer, take merge='weak'"
    require_free_memory(needed, what, advice, MemoryError)


def refuse_idle(model: Any) -> None:
    """Refuse a parameter that nothing would listen to, and two that say the same."""
    if model.potential == "sampled":
        _refuse_sampling(model)
    if model.trace_fraction is not None and model.alpha is not None:
        raise ValueError("Give trace_fraction or alpha, not both: each fixes the other.")
    if model.solver.startswith("exchange") and model.trace_fraction is None:
        instead = "alpha" if model.alpha is not None else "n_nodes alone"
        raise ValueError(
            f"solver={model.solver!r} solves the constrained programme: give trace_fraction, not {instead}."
        )
    if model.measure is not None and model.penalty is not None:
        raise ValueError("penalty goes with a sample: with measure it is diag K, whose mean under the law is known.")
    if model.solver == "path" and model.tol is not None:
        raise ValueError("tol has no effect with solver='path', whose solutions are exact: leave it out.")
    alone = model.trace_fraction is None and model.alpha is None
    if alone and model.reweight is False and model.merge in (None, "eliminate"):
        raise ValueError(
            "reweight=False has no effect with n_nodes alone, where elimination gives the nodes left their best "
            "weights: leave it out, or choose merge='strong' or 'weak'."
        )


def _refuse_sampling(model: Any) -> None:
    """Refuse what needs Sω at every point, or does not need it at all."""
    if model.trace_fraction is not None or model.alpha is not None or model.solver == "path":
        raise ValueError("potential='sampled' chooses a number of nodes: give n_nodes alone, or potential='exact'.")
    if model.measure is not None:
        raise ValueError("potential='sampled' goes with a sample: with measure the potential is known, leave it out.")
    if is_precomputed(model.kernel) or isinstance(model.ridge, Kernel) or np.ndim(model.ridge) == 2:
        raise ValueError("potential='sampled' needs points, and a ridge that is no matrix: choose potential='exact'.")


def is_plain(model: Any, X: Any) -> bool:
    """Whether a number of nodes among dense points is all that is asked for, to be found in the usual way."""
    options = (model.trace_fraction, model.alpha, model.merge, model.max_increase, model.max_iter, model.callback)
    programme = (model.max_weight, model.ridge, model.measure, model.penalty)
    dense = not is_precomputed(model.kernel) and not hasattr(X, "toarray") and not is_sparse_tensor(X)
    return dense and model.solver == "auto" and all(option is None for option in (*options, *programme))


def nodes_asked(model: Any) -> int:
    """How many nodes a model without another wish is to have."""
    return int(_DEFAULT_NODES if model.n_nodes is None else model.n_nodes)


def _checked_fraction(model: Any, problem: Discrepancy) -> float:
    value: Any = model.trace_fraction
    room = float(problem.caps @ problem.penalty) / problem.total
    if room < float(value):
        raise ValueError(
            f"max_weight allows a trace fraction of {room:.6g} at most, but trace_fraction={value!r}: raise "
            "max_weight or lower trace_fraction."
        )
    return float(value)


def _checked_alpha(model: Any, problem: Discrepancy) -> float:
    alpha = float(model.alpha)
    if alpha >= problem.largest_alpha:
        raise ValueError(
            f"alpha={alpha:.6g} is not below α₀ = {problem.largest_alpha:.6g}: the best measure is the empty one. "
            "Choose a smaller alpha."
        )
    return alpha
