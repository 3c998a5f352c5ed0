"""A file that keeps a fit while it runs, its best iterate or its journal, so that Ctrl-C loses nothing."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import final

import click

from mercer.backends import config_context
from mercer.cli.errors import INTERRUPTED
from mercer.cli.saying import Account, beside, called_again

_JOURNAL = ".journal"


@final
class KeptRun:
    """The file that keeps a run: where the person said, or in a temporary folder until it is needed.

    Parameters
    ----------
    given : path or None
        The file that was asked for.
    data : path
        The file of the data, after which the other is named.
    ending : str
        Of its name.
    """

    def __init__(self, given: Path | None, data: Path, ending: str = ".checkpoint.npz") -> None:
        self._given, self._data, self._ending = given, data, ending
        self._folder = None if given is not None else tempfile.mkdtemp(prefix="mercer-")

    @property
    def path(self) -> Path:
        """Where it is written."""
        return Path(self._folder or ".", f"kept{self._ending}") if self._given is None else self._given

    def kept(self) -> Path | None:
        """Bring it to the current folder, if there is one; called where a fit was interrupted."""
        if self._given is not None:
            return self._given if self._given.exists() else None
        if not self.path.exists():
            return None
        target = self._free_name()
        shutil.move(self.path, target)
        return target

    def close(self) -> None:
        """Delete what is temporary."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def discard(self) -> None:
        """Delete it, for what was asked is written."""
        self.path.unlink(missing_ok=True)

    def tell(self, account: Account, what: str) -> None:
        """Bring it to the current folder, and say where it is and how to go on."""
        path = self.kept()
        if path is None:
            account.lines.append(("Kept", "nothing: there was no first iterate yet"))
        else:
            account.lines.append(("Kept", f"{path}, {what}"))
            again = called_again(["--checkpoint", str(path)], without=["--checkpoint"])
            account.lines.append(("Go on", shlex.join(again)))
        account.facts |= {"interrupted": True, "checkpoint": None if path is None else str(path)}

    def _free_name(self) -> Path:
        number, target = 1, beside(self._data, self._ending)
        while target.exists():
            number += 1
            name, _, suffix = self._ending.removeprefix(".").rpartition(".")
            target = beside(self._data, f".{name}{number}.{suffix}" if name else f"{number}.{suffix}")
        return target


@contextmanager
def kept_run(options: dict[str, object], data: Path) -> Iterator[KeptRun]:
    """The journal of a command: named by ``--checkpoint``, or temporary until Ctrl-C makes it worth keeping.

    Ctrl-C where there is no answer yet ends the command, and says how to go on.
    """
    given, every = options.pop("checkpoint"), options.pop("checkpoint_every")
    assert given is None or isinstance(given, Path)
    with closing(KeptRun(given, data, _JOURNAL)) as kept:
        try:
            with config_context(checkpoint=kept.path, checkpoint_every=every):  # type: ignore[arg-type]
                yield kept
        except KeyboardInterrupt:
            account = Account(sentence="Interrupted.")
            kept.tell(account, "the run so far")
            account.say(as_json=bool(options["as_json"]), quiet=bool(options["quiet"]), aside=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
