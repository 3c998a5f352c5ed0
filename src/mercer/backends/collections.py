"""Dask arrays and data frames where arrays are expected: what needs all rows has them, what goes row by row stays lazy.

Dask is not imported for anything else than its own collections.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ROW_BY_ROW = (  # methods of fitted models whose answer at a row depends on that row alone
    *("transform", "predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"),
    *("density", "novelty", "witness"),
)


def is_dask(value: Any) -> bool:
    """Whether this is a collection of Dask; Dask is not imported to find out."""
    kind: Any = type(value)
    return _is_dask_type(kind)


@cache
def _is_dask_type(kind: type) -> bool:
    own = {base.__module__.partition(".")[0] for base in kind.__mro__}
    return bool(own & {"dask", "dask_expr"}) and hasattr(kind, "__dask_graph__")


def takes_dask(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, which may be given Dask collections: their rows stay on the workers and come here once.

    What is computed from them runs on the cluster that holds them, where there is one.
    """

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        if not any(map(is_dask, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        from mercer.backends.dask.collections import brought_here

        with brought_here(args, kwargs) as (there, named):
            return function(*there, **named)

    return wrapped


def stays_lazy(method: Callable[P, T]) -> Callable[P, T]:
    """The same method of a fitted model, which of a Dask collection makes one whose blocks are computed when asked for.

    Nothing is computed here but the answer to one row, which tells how many columns there are.
    """

    @wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        if len(args) < 2 or not is_dask(args[1]):
            return method(*args, **kwargs)
        from mercer.backends.dask.collections import block_by_block

        lazy: Any = block_by_block(method.__name__, *args, **kwargs)
        return lazy

    return wrapped


def lazy_row_by_row(kind: type) -> None:
    """Let the methods of a class that go row by row stay lazy."""
    for name in ROW_BY_ROW:
        if callable(method := vars(kind).get(name)):
            setattr(kind, name, stays_lazy(method))
