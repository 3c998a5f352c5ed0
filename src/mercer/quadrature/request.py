"""What a sparsifier was asked for: its parameters read, checked against one another and against the problem."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

from mercer.backends import get_config
from mercer.kernels.checks import positive_number
from mercer.problems import Discrepancy
from mercer.quadrature.selection import MORE_NODES, Choice, Selection
from mercer.validation import whole_number

_SOLVERS = ("auto", "path", "active-set", "exchange", "exchange-second-order", "exchange-plain")
_REDUCTIONS = (None, "eliminate", "strong", "weak")
_DEFAULT_NODES = 100
_ELIMINATION_COPIES = 5  # of the matrix of the nodes, that elimination and the active set before it take


class Programme(NamedTuple):
    """The programme that a measure is optimal for, as :func:`mercer.certificates.certify_measure` takes it."""

    alpha: float | None
    kappa: float | None
    on_nodes: bool

    @classmethod
    def of(cls, choice: Choice, selection: Selection, kappa: float) -> Programme:
        """The one asked for; on the nodes alone where some were taken out, without penalty where weights are free."""
        reduced = selection.reduction is not None and selection.reduction.values.shape[0] > 1
        on_nodes = reduced or choice.alone or choice.reweight
        alpha = 0.0 if choice.reweight else choice.alpha
        if reduced and choice.reduction in ("strong", "weak") and not choice.reweight:
            alpha = None  # merging keeps dᵀv
        return cls(alpha, kappa if alpha is None else None, on_nodes)


def choice_of(model: Any, problem: Discrepancy) -> Choice:
    """What was asked for, checked against the problem."""
    if model.solver not in _SOLVERS:
        raise ValueError(f"solver={model.solver!r} must be one of {', '.join(map(repr, _SOLVERS))}.")
    if model.merge not in _REDUCTIONS:
        raise ValueError(f"merge={model.merge!r} must be None, 'eliminate', 'strong' or 'weak'.")
    if model.trace_fraction is not None and model.alpha is not None:
        raise ValueError("Give trace_fraction or alpha, not both: each fixes the other.")
    alone = model.trace_fraction is None and model.alpha is None
    n_nodes = None if model.n_nodes is None else whole_number(model.n_nodes, "n_nodes", 1)
    if alone and n_nodes is None:
        n_nodes = _DEFAULT_NODES
    increase = None if model.max_increase is None else positive_number(model.max_increase, "max_increase", zero=True)
    tol = None if model.tol is None else positive_number(model.tol, "tol")
    max_iter = None if model.max_iter is None else whole_number(model.max_iter, "max_iter", 1)
    _refuse_idle(model, alone)
    if alone and n_nodes is not None and n_nodes >= problem.size and increase is None:
        return _whole_sample(model, problem, tol, max_iter)
    if alone and tol is not None:
        raise ValueError(
            "tol has no effect with n_nodes alone, whose weights are settled exactly on the nodes: leave it out."
        )
    if model.merge is not None and n_nodes is None and increase is None:
        raise ValueError(f"merge={model.merge!r} needs n_nodes or max_increase to say how far to merge.")
    if alone and n_nodes is not None and model.merge in (None, "eliminate"):
        _check_memory(n_nodes, problem.size)
    reduction = model.merge
    if reduction is None and (n_nodes is not None or increase is not None):
        reduction = "eliminate"
    return Choice(
        alpha=None if model.alpha is None else _checked_alpha(model, problem),
        kappa=None if model.trace_fraction is None else _checked_fraction(model, problem) * problem.total,
        n_nodes=n_nodes,
        solver=model.solver,
        reduction=reduction,
        max_increase=increase,
        reweight=alone if model.reweight is None else bool(model.reweight),
        tol=tol,
        max_iter=max_iter,
        callback=model.callback,
        explicit=model.merge is not None,
    )


def _check_memory(n_nodes: int, size: int) -> None:
    """Refuse more nodes than the memory limit has room for, before any is looked for."""
    start = min(size, math.ceil(MORE_NODES * n_nodes))  # nodes of the solution from which some are taken out
    needed, limit = 8 * _ELIMINATION_COPIES * start**2, get_config().memory_bytes
    if needed > limit:
        raise MemoryError(
            f"n_nodes={n_nodes} needs about {needed / 1e6:.0f} MB for the matrices of its nodes, above the limit of "
            f"{limit / 1e6:.0f} MB: ask for fewer, take merge='weak', or raise memory_limit with mercer.config_context."
        )


def _refuse_idle(model: Any, alone: bool) -> None:
    """Refuse a parameter that nothing would listen to."""
    if model.callback is not None and not callable(model.callback):
        raise TypeError(f"callback={model.callback!r} must be a function of a line of the history, or None.")
    if model.solver.startswith("exchange") and model.trace_fraction is None:
        instead = "alpha" if model.alpha is not None else "n_nodes alone"
        raise ValueError(
            f"solver={model.solver!r} solves the constrained programme: give trace_fraction, not {instead}."
        )
    if model.solver == "path" and model.tol is not None:
        raise ValueError("tol has no effect with solver='path', whose solutions are exact: leave it out.")
    if alone and model.reweight is False and model.merge in (None, "eliminate"):
        raise ValueError(
            "reweight=False has no effect with n_nodes alone, where elimination gives the nodes left their best "
            "weights: leave it out, or choose merge='strong' or 'weak'."
        )


def _whole_sample(model: Any, problem: Discrepancy, tol: float | None, max_iter: int | None) -> Choice:
    """As many nodes as points: the sample is its own best quadrature, unless caps or a ridge forbid."""
    free = bool((problem.caps >= problem.weights).all()) and not bool((problem.ridge > 0).any())
    alpha, kappa = (None, problem.total) if free else (0.0, None)
    named = model.merge is not None
    return Choice(
        alpha=alpha,
        kappa=kappa,
        n_nodes=problem.size if named else None,
        solver=model.solver,
        reduction=model.merge,
        max_increase=None,
        reweight=False,
        tol=tol,
        max_iter=max_iter,
        callback=model.callback,
        explicit=named,
    )


def _checked_fraction(model: Any, problem: Discrepancy) -> float:
    value: Any = model.trace_fraction
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ValueError(f"trace_fraction={value!r} must lie above 0 and not above 1: it is dᵀv / dᵀω.")
    room = float(problem.caps @ problem.penalty) / problem.total
    if room < float(value):
        raise ValueError(
            f"max_weight allows a trace fraction of {room:.6g} at most, but trace_fraction={value!r}: raise "
            "max_weight or lower trace_fraction."
        )
    return float(value)


def _checked_alpha(model: Any, problem: Discrepancy) -> float:
    alpha = positive_number(model.alpha, "alpha", zero=True)
    if alpha >= problem.largest_alpha:
        raise ValueError(
            f"alpha={alpha:.6g} is not below α₀ = {problem.largest_alpha:.6g}: the best measure is the empty one. "
            "Choose a smaller alpha."
        )
    return alpha
