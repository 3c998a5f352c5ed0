"""``--dask ADDRESS``: the large products of a command run on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import wraps
from typing import Any

import click

from mercer.cli.errors import one_sentence, say

_TIMEOUT = 20  # seconds until a scheduler that does not answer is given up


def cluster_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--dask``, and run it on that cluster where one is named."""

    @wraps(command)
    def wrapped(**options: Any) -> None:
        address = options.pop("dask")
        if address is None:
            return command(**options)
        with _on_cluster(address, shown=not options.get("quiet", False)):
            return command(**options)

    return click.option(
        "--dask",
        metavar="ADDRESS",
        help="Multiply large matrices on the Dask cluster whose scheduler is at this address, such as tcp://host:8786.",
    )(wrapped)


@contextmanager
def _on_cluster(address: str, *, shown: bool) -> Iterator[None]:
    """The configuration of the cluster; at the end it is told what was moved."""
    from mercer.backends import config_context

    with ExitStack() as opened:
        with one_sentence():
            client = opened.enter_context(closing(_connected(address)))
            config = opened.enter_context(config_context(client=client))
        try:
            yield
        finally:
            say(f"Dask at {address}: {config.cluster.traffic}", shown=shown)


def _connected(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ModuleNotFoundError:
        raise ModuleNotFoundError("A Dask cluster needs distributed: pip install 'mercer[dask]'.") from None
    try:
        resolve_address(address)  # a client of an address that is none would keep the process from its end
        return Client(address, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConnectionError(
            f"No Dask scheduler answers at {address} ({reason}): start one with 'dask scheduler', and give the address "
            "that it prints."
        ) from None
