"""A fit that a person watches: its progress is shown, its warnings become notes."""

from __future__ import annotations

from typing import Any

from mercer.cli.by_blocks import LargeFile
from mercer.cli.data import FitData
from mercer.cli.errors import collected_warnings
from mercer.cli.progress import residual_bar
from mercer.cli.saying import Account, called_again
from mercer.solvers import Status


def watched_fit(
    model: Any, points: Any, description: str, notes: list[str], *, shown: bool, checkpoint: Any = None
) -> Any:
    """Fit a model, which afterwards has the parameters it had before."""
    able = model.get_params(deep=False)
    target = float(able.get("residual_tol") or able.get("tol") or 1e-6)
    with residual_bar(description, target, shown=shown) as callback, collected_warnings(notes):
        watched = {"callback": callback, "verbose": True, "checkpoint": checkpoint}
        before = {name: able[name] for name in watched if name in able}
        model.set_params(**{name: watched[name] for name in before})
        model.fit(points)
    return model.set_params(**before)


def tell_estimate(options: dict[str, Any], model: Any, data: FitData | LargeFile, account: Account) -> None:
    """Where ``--estimate`` asks for it, say what the fit would take, and end the command."""
    if not options["estimate"]:
        return
    import click

    from mercer.costs import estimate_cost

    cost = estimate_cost(model, data.points)
    account.sentence = f"{data.source}: {data.words()}. {cost}"
    account.facts |= data.told() | {
        "method": type(model).__name__,
        "seconds": cost.seconds,
        "from_seconds": cost.fastest,
        "to_seconds": cost.slowest,
        "bytes": cost.bytes,
        "memory_limit": cost.limit,
        "fits": cost.fits,
    }
    account.next_command = called_again(without_flags=["--estimate"])
    account.say(as_json=options["as_json"], quiet=options["quiet"])
    raise click.exceptions.Exit(0)


def was_interrupted(model: Any) -> bool:
    """Whether Ctrl-C ended the fit."""
    return getattr(model, "status_", None) is Status.INTERRUPTED
