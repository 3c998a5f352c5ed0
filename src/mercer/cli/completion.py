"""What a shell offers when the tab key is pressed, and the script that makes it ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_HEAD = 65536  # bytes of a file in which the names of its columns stand
_WHERE = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/mercer.fish",
}


def complete_columns(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names in the first line of the text file that the call names already."""
    given = [context.params.get(name) for name in ("data", "files")]
    known = [one for value in given if value for one in (value if isinstance(value, tuple) else (value,))]
    files = [Path(str(one)) for one in (*known, *context.args)]  # an option without its value leaves files among these
    before, _, begun = incomplete.rpartition(",")
    found = [name for file in files for name in _header(file) if name.startswith(begun)]
    return [f"{before},{name}" if before else name for name in dict.fromkeys(found)]


def complete_experiments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of the experiments."""
    from mercer.experiments import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def _header(file: Path) -> list[str]:
    """The values of the first line, where they can be read at once; nothing may go wrong at a prompt."""
    try:
        with file.open("rb") as opened:
            line = opened.read(_HEAD).decode("utf-8-sig").splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        return []
    delimiter = max("\t;|,", key=line.count)
    return [name.strip().strip('"') for name in line.split(delimiter)]


@click.command(short_help="What makes the tab key complete, for your shell.")
@click.argument("shell", type=click.Choice(sorted(_WHERE)))
def completion(shell: str) -> None:
    """Print what makes a SHELL complete commands, options, files and columns at the tab key.

    \b
      mercer completion bash >> ~/.bashrc
      mercer completion zsh  >> ~/.zshrc
      mercer completion fish >  ~/.config/fish/completions/mercer.fish
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from click.shell_completion import get_completion_class

    group: Any = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # all three are click's own
    click.echo(kind(group, {}, "mercer", "_MERCER_COMPLETE").source())
