"""What can go wrong with a cluster, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAIT = 60.0  # seconds without any worker
_MATTER = ("mercer", "numpy", "scipy", "numba", "distributed")


def require_client(client: Any) -> Any:
    """A client that waits for its answers."""
    from distributed import Client

    if not isinstance(client, Client):
        raise TypeError(f"client={client!r} must be a distributed.Client, such as Client('tcp://host:8786').")
    if client.asynchronous:
        raise TypeError("client is asynchronous: pass a Client that was made without asynchronous=True.")
    if client.status != "running":
        raise ConnectionError(f"client is {client.status}: connect a new Client to the scheduler.")
    return client


def require_alike(client: Any) -> None:
    """Refuse workers whose libraries are not this process's: what is pickled here may mean something else there."""
    require_workers(client)
    with as_one_sentence(client):
        found = client.run(_versions, _MATTER)
    own = _versions(_MATTER)
    for worker, versions in found.items():
        for name, version in own.items():
            if versions[name] != version:
                theirs = "no " + name if versions[name] is None else f"{name} {versions[name]}"
                raise RuntimeError(
                    f"The worker at {worker} has {theirs}, this process {version}: install the same version of {name} "
                    "on both."
                )


def require_workers(client: Any) -> None:
    """Wait for a worker, as one that is started again is soon there, and say so where none comes."""
    with as_one_sentence(client):
        if client.scheduler_info(**_few_workers())["workers"]:
            return
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError as error:
        raise ConnectionError(
            f"The cluster at {_address(client)} has had no workers for {WAIT:.0f} seconds: start some, such as with "
            "'dask worker ADDRESS', and run this again."
        ) from error


def _few_workers() -> dict[str, int]:
    """What asks a scheduler for some of its workers alone, where Dask knows that."""
    from inspect import signature

    from distributed import Client

    return {"n_workers": 1} if "n_workers" in signature(Client.scheduler_info).parameters else {}


def _versions(names: tuple[str, ...]) -> dict[str, str | None]:
    """The versions of packages here; None for those that are not there."""
    from importlib import import_module

    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = str(import_module(name).__version__)
        except ImportError:
            found[name] = None
    return found


@contextmanager
def as_one_sentence(client: Any) -> Iterator[None]:
    """Say of a cluster that cannot answer what happened and what to do."""
    from concurrent.futures import CancelledError as Cancelled

    from distributed import KilledWorker
    from distributed.client import CancelledError  # type: ignore[attr-defined]
    from distributed.comm import CommClosedError  # type: ignore[attr-defined]

    if client.status in ("closing", "closed"):
        raise ConnectionError(
            f"client is {client.status}, by a call or because its scheduler left: start the cluster again if it is "
            "gone, connect a new Client and run this again."
        )
    try:
        yield
    except KilledWorker as error:
        raise MemoryError(
            f"Workers of the cluster at {_address(client)} died one after the other on one task ({error.task}), as "
            "they do where memory is short: give each more of it, or start more workers."
        ) from error
    except (CancelledError, Cancelled, CommClosedError, TimeoutError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, (CommClosedError, TimeoutError, ConnectionError)):
            raise
        raise ConnectionError(
            f"The scheduler at {_address(client)} no longer answers: start the cluster again, connect a new Client and "
            "run this again."
        ) from error


def _address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", "") or "an address that is lost")
