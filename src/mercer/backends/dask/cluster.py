"""A Dask cluster as one machine sees it: what lies there, what is sent there and what comes back.

Everything that is sent is the result of a task, and not scattered data: where a worker is lost, Dask makes again what
it held, and only that. So a run goes on with the workers that are left, and its answer does not change.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks
from mercer.backends.dask import tasks
from mercer.backends.dask.failures import as_one_sentence, require_alike, require_client, require_workers
from mercer.backends.fingerprint import fingerprint
from mercer.backends.threads import watcher
from mercer.wording import size_in_words

_log = logging.getLogger("mercer")
_TASKS_A_THREAD = 6  # of a symmetric product: so that workers of other speeds end together
_FEWEST_ROWS = 512  # of a group: shorter ones are less work than a task is to Dask
_MOST_GROUPS = 256  # tens of thousands of tasks a product are as much as a scheduler likes
_KEPT = 4  # data sets that stay on the workers
_PARTS_A_THREAD = 4  # of rows that are shared out
_PATIENCE, _GLANCE = 10.0, 0.2  # seconds between looks whether the cluster is there, and how far a product is


class Traffic(NamedTuple):
    """Bytes that went to the cluster, and that came back.

    Attributes
    ----------
    points : int
        Of points, each of which is sent once.
    sent : int
        Of all else that was sent: columns that are multiplied with, kernels.
    received : int
        Of products.
    products : int
        Passes over a kernel matrix.
    """

    points: int = 0
    sent: int = 0
    received: int = 0
    products: int = 0

    def __str__(self) -> str:
        """In a line."""
        if not self.products:
            return "no product of it was large enough to be sent."
        sent, received = (size_in_words(size / self.products) for size in (self.sent, self.received))
        passes = f"{self.products} product{'s' * (self.products > 1)}"
        return f"{passes}, {size_in_words(self.points)} of points once, {sent} a product sent and {received} received."

    def __sub__(self, other: Any) -> Traffic:
        """What went since another account."""
        return Traffic(*(a - b for a, b in zip(self, other, strict=True)))


class Groups(NamedTuple):
    """Rows of points on the workers.

    Attributes
    ----------
    slices : list of slice
        Which rows each group has.
    futures : list of Future
        Of the groups.
    copies : dict
        Futures of groups that stay on a worker which multiplies with them, by its address and the group's number. What
        a worker fetches for a task Dask lets it forget, and it would fetch it again for each product.
    """

    slices: list[slice]
    futures: list[Any]
    copies: dict[tuple[str, int], Any]


@final
class Cluster:
    """What is known of a cluster by the client that talks to it.

    Parameters
    ----------
    client : distributed.Client
        Connected, and not asynchronous.

    Attributes
    ----------
    traffic : Traffic
        What was moved between this process and the cluster so far.
    """

    def __init__(self, client: Any) -> None:
        self.client = require_client(client)
        self.traffic = Traffic()
        self._rows: OrderedDict[tuple[Any, ...], Groups] = OrderedDict()
        self._forms: OrderedDict[bytes, Any] = OrderedDict()
        require_alike(client)
        self._workers: list[str] = []
        self._see_workers()
        self._most_threads = self._threads()
        self._division: int | None = None

    @property
    def divided_for(self) -> int:
        """Threads for which rows are divided into groups: the most there were, or those of the run that is taken up.

        Sums over groups are rounded as the groups are, so that workers who are lost must not change their number.
        """
        if self._division is None:
            self._most_threads = max(self._most_threads, self._threads())
        return self._division or self._most_threads

    def divide_for(self, threads: int | None) -> None:
        """Divide rows as for so many threads from now on; None means the most there are."""
        if threads is not None and threads != self.divided_for:
            self._rows.clear()
        self._division = threads

    def rows(self, X: Array) -> Groups:
        """The points in groups of rows on the workers; the same points are sent once."""
        key = fingerprint(X), X.shape
        if key not in self._rows:
            slices = row_chunks(X.shape[0], self.group_rows(X.shape[0]))
            futures = self.send([np.ascontiguousarray(X[part]) for part in slices])
            self._count(points=X.nbytes)
            self._keep(key, Groups(slices, futures, {}))
        self._rows.move_to_end(key)
        return self._rows[key]

    def adopt(self, held: Any, X: Array) -> None:
        """Use the blocks of an array of Dask, which the workers hold, wherever these points are asked for."""
        from distributed import futures_of

        ends = np.cumsum((0, *held.chunks[0])).tolist()
        blocks = {future.key: future for future in futures_of(held)}
        futures = [blocks[key] for row in held.__dask_keys__() for key in row]
        self._count(received=X.nbytes)
        self._keep((fingerprint(X), X.shape), Groups([slice(*pair) for pair in pairwise(ends)], futures, {}))

    def _keep(self, key: tuple[Any, ...], groups: Groups) -> None:
        self._rows[key] = groups
        while len(self._rows) > _KEPT:
            self._rows.popitem(last=False)

    def place(self, p: int, q: int) -> str:
        """The worker that multiplies with the block of groups p and q: one of a grid, for some rows and some columns.

        So each of W workers has some 2 / √W of the points.
        """
        across = max(1, round(math.sqrt(len(self._workers))))
        down = len(self._workers) // across
        return self._workers[(p % down) * across + q % across]

    def near(self, groups: Groups, number: int, worker: str) -> Any:
        """The future of a group that stays with a worker."""
        if (worker, number) not in groups.copies:
            wanted = {"workers": [worker], "allow_other_workers": True, "pure": False}
            groups.copies[worker, number] = self.client.submit(tasks.same, groups.futures[number], **wanted)
        return groups.copies[worker, number]

    def begin_product(self) -> None:
        """Count a pass over a kernel matrix, and see which workers there are."""
        self._count(products=1)
        self._see_workers()

    def _see_workers(self) -> None:
        """Where workers went, and others came, blocks of the matrix move to those that there are."""
        with as_one_sentence(self.client):
            self._workers = sorted(self.client.nthreads()) or self._workers
        for groups in self._rows.values():
            for gone in [key for key in groups.copies if key[0] not in self._workers]:
                del groups.copies[gone]

    def form(self, form: Any) -> Any:
        """The future of a form, which is sent once."""
        import cloudpickle

        content = cloudpickle.dumps(form)
        key = blake2b(content, digest_size=16).digest()
        if key not in self._forms:
            self._forms[key] = self._sent(form)
            while len(self._forms) > _KEPT:
                self._forms.popitem(last=False)
        return self._forms[key]

    def _sent(self, value: Any) -> Any:
        """The future of anything that can be pickled."""
        import cloudpickle

        content = cloudpickle.dumps(value)
        self._count(sent=len(content))
        return self.apply(tasks.loaded, [content])[0]

    def columns(self, v: Array, slices: Iterable[slice]) -> list[Any]:
        """Columns in the groups of rows that they are multiplied with."""
        self._count(sent=v.nbytes)
        return self.send([np.ascontiguousarray(v[part]) for part in slices])

    def send(self, values: Sequence[Array]) -> list[Any]:
        """Futures of values of this process, which Dask can make again."""
        return self.apply(tasks.same, values)

    def apply(self, function: tasks.Task, *arguments: Sequence[Any], worker: str | None = None) -> list[Any]:
        """Futures of a function of the first of all arguments, of the second of all, and so on."""
        import dask

        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        with as_one_sentence(self.client), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            futures: list[Any] = self.client.map(function, *arguments, pure=False, **place)
        return futures

    def apply_at(self, places: list[str], function: tasks.Task, *arguments: Sequence[Any]) -> list[Any]:
        """The same, each on its own worker, or on another one where that is lost."""
        made: dict[int, Any] = {}
        for worker in dict.fromkeys(places):
            own = [i for i, place in enumerate(places) if place == worker]
            futures = self.apply(function, *([each[i] for i in own] for each in arguments), worker=worker)
            made.update(zip(own, futures, strict=True))
        return [made[i] for i in range(len(places))]

    def on_all(self, make: tasks.Task, X: Array, *arguments: Any) -> list[Any]:
        """The future of what is made of all points, on every worker its own.

        Memory: all points on each worker, and what is made of them. What a worker that dies had is made by another.
        """
        groups, rest = self.rows(X).futures, [self._sent(argument) for argument in arguments]
        self._see_workers()
        with as_one_sentence(self.client):
            return [
                self.client.submit(
                    tasks.of_all, make, groups, rest, workers=[worker], allow_other_workers=True, pure=False
                )
                for worker in self._workers
            ]

    def shared(self, make: tasks.Task, X: Array, *arguments: Any) -> Callable[..., tuple[Array, ...]]:
        """The same, asked about some rows: each answers for a part of them.

        ``make`` makes a function of rows and of what else is asked, whose answers are arrays with a row for each.
        """
        makers, most = self.on_all(make, X, *arguments), _PARTS_A_THREAD * self.divided_for

        def ask(rows: Array, *further: Any) -> tuple[Array, ...]:
            parts = [part for part in np.array_split(rows, most) if part.size]
            made = [makers[i % len(makers)] for i in range(len(parts))]
            futures = self.apply(tasks.asked, made, parts, *([each] * len(parts) for each in further))
            return tuple(np.concatenate(column) for column in zip(*self.gather(futures), strict=True))

        return ask

    def gather(self, futures: list[Any], steps: Sequence[Any] = ()) -> list[Any]:
        """The values of futures; the part of the steps on their way that are done is reported while one waits."""
        with as_one_sentence(self.client):
            self._wait(futures, steps)
            values: list[Any] = self.client.gather(futures)
        self._count(received=sum(_size(value) for value in values))
        return values

    def _wait(self, futures: list[Any], steps: Sequence[Any]) -> None:
        """Until the futures are there, as long as there are workers."""
        from distributed import wait

        report, looked = watcher() if steps else None, time.monotonic()
        while True:
            try:
                wait(futures, timeout=_PATIENCE if report is None else _GLANCE)
                return
            except TimeoutError:
                if report is not None:
                    report(sum(step.status == "finished" for step in steps) / len(steps))
            if time.monotonic() > looked + _PATIENCE:
                require_workers(self.client)
                looked = time.monotonic()

    def group_rows(self, n: int) -> int:
        """Rows of a group: so that the triangle of pairs of groups is some tasks for every thread."""
        groups = math.ceil(math.sqrt(2 * _TASKS_A_THREAD * self.divided_for))
        return max(_FEWEST_ROWS, math.ceil(n / min(groups, _MOST_GROUPS)))

    def _threads(self) -> int:
        """Threads of all workers together."""
        with as_one_sentence(self.client):
            return sum(self.client.nthreads().values())

    def forget(self) -> None:
        """Let the workers free what lies there, and say in the log what was moved."""
        if self.traffic.products:
            _log.info("Dask: %s", self.traffic)
        self._rows.clear()
        self._forms.clear()

    def _count(self, **more: int) -> None:
        self.traffic = self.traffic._replace(
            **{name: getattr(self.traffic, name) + value for name, value in more.items()}
        )


def _size(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return sum(_size(part) for part in value)
    return int(getattr(value, "nbytes", 0))
