"""Files written whole or not at all: at any moment a name stands for what it was before, or for all of what is new."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a file that takes the place of ``path`` when the block ends, at once and for good.

    Links are followed, and a file that is replaced keeps its permissions. Where the block fails nothing changes. What a
    killed process left half written stands beside the file, until :func:`sweep` meets it.
    """
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} does not exist: create it, or choose another.")
    temporary = target.parent / f".{target.name}-{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        temporary.open("xb").close()
        mode = stat.S_IMODE((target if target.exists() else temporary).stat().st_mode)  # a writer may set its own
        yield temporary
        os.chmod(temporary, mode)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


@contextmanager
def asked_for(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for what a person asked for: what a killed process left is swept, and what is wrong is one sentence."""
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file in it.")
    try:
        sweep(target)
        with written_whole(target) as temporary:
            yield temporary
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OSError(f"{target} cannot be written ({error.strerror or error}): nothing was changed.") from error


def sweep(path: Path) -> None:
    """Delete what writers of this file left half written that do not live any more."""
    target = path.resolve()
    for left in target.parent.glob(f".{target.name}-*.part"):
        number = left.name.removeprefix(f".{target.name}-").partition("-")[0]
        if number.isdigit() and int(number) != os.getpid() and not _lives(int(number)):
            left.unlink(missing_ok=True)


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where the system can."""
    if os.name != "posix":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
