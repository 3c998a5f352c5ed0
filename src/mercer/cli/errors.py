"""What is wrong, in one sentence, with an exit code: 1 for data that cannot be used, 2 for a wrong call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

import click

NOT_CERTIFIED = 3  # a certificate does not hold
INTERRUPTED = 130  # as shells have it for a command that Ctrl-C ended


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what the library raises into a sentence for the person at the prompt."""
    from mercer.io import UnknownColumnError

    try:
        yield
    except UnknownColumnError as error:
        raise click.UsageError(str(error)) from None
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, MemoryError, ModuleNotFoundError, OSError, ArithmeticError) as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def collected_warnings(notes: list[str]) -> Iterator[None]:
    """Make notes of the library's warnings, each once."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            said = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
            notes += [note for note in dict.fromkeys(said) if note not in notes]


def say(words: str, *, shown: bool = True) -> None:
    """Print for the person at the prompt, on standard error, where results on standard output are not disturbed."""
    if shown:
        with contextlib.suppress(OSError):
            click.echo(words, err=True)
