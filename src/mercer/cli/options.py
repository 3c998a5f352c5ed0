"""Options that several commands share. Nothing heavy is imported here: they are read whenever help is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, final

import click

from mercer.cli.completion import complete_columns

Command = TypeVar("Command", bound=Callable[..., Any])


@final
class DataPath(click.Path):
    """A file that is there, a folder of Zarr, or standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, if there is such data."""
        found = Path(str(super().convert(value, param, ctx)))
        if found.is_dir() and found.suffix.lower() != ".zarr":
            self.fail(f"{found} is a folder: name a file in it.", param, ctx)
        return found


DATA = DataPath(exists=True, allow_dash=True, path_type=Path)
TARGET = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
SEED = click.IntRange(min=0)


def names(help: str) -> dict[str, Any]:
    """The settings of an option that takes names of columns, once or more often, or with commas between them."""
    return {"multiple": True, "metavar": "COLUMN", "help": help, "shell_complete": complete_columns}


@final
@dataclass(frozen=True)
class Reading:
    """How files are to be read, and which of their columns are meant; the options of :func:`reading_options`."""

    columns: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: str = "refuse"
    header: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None
    array: str | None = None
    longest_line: int | None = None

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Reading:
        """Those among the options of a command, which are taken out of them."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls)})

    def words(self, *, columns: bool = True) -> list[str]:
        """The options that say the same to another command; those that choose columns only if they are wanted."""
        said = ["--missing", self.missing] if self.missing != "refuse" else []
        for name in ("delimiter", "encoding", "array", "longest_line"):
            if getattr(self, name) is not None:
                said += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        if self.header is not None:
            said.append("--header" if self.header else "--no-header")
        for name in ("columns", "without", "categories") if columns else ("categories",):
            for given in getattr(self, name):
                said += [f"--{name}", given]
        return said


def reading_options(command: Command) -> Command:
    """Give a command the options of :class:`Reading`."""
    for option in reversed(
        (
            click.option("--columns", **names("Use these columns only.")),
            click.option("--without", **names("Leave these columns out.")),
            click.option("--categories", **names("Columns of categories that look like numbers, such as codes.")),
            click.option(
                "--missing",
                type=click.Choice(["refuse", "drop"]),
                default="refuse",
                show_default=True,
                help="Rows without a value: refuse them, or leave them out.",
            ),
            click.option(
                "--header/--no-header", default=None, help="Whether the first line names the columns. [default: found]"
            ),
            click.option("--delimiter", metavar="CHARACTER", help="What stands between two values. [default: found]"),
            click.option("--encoding", help="Of text files. [default: UTF-8]"),
            click.option("--array", metavar="NAME", help="Of .npz, .h5, .zarr: this array. Of .h5ad: a layer or obsm."),
            click.option(
                "--longest-line",
                type=click.IntRange(min=1),
                metavar="BYTES",
                help="Refuse text files with longer lines. [default: 100 MB]",
            ),
        )
    ):
        command = option(command)
    return command


def saying_options(command: Command) -> Command:
    """Give a command ``--json`` and ``--quiet``."""
    command = click.option("--quiet", "-q", is_flag=True, help="Print nothing but what is wrong.")(command)
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, for machines.")(command)


def checkpoint_options(command: Command) -> Command:
    """Give a command ``--checkpoint`` and ``--checkpoint-every``."""
    command = click.option(
        "--checkpoint-every", metavar="TIME", help="How often it is written, as 30s or 5min. [default: up to a minute]"
    )(command)
    return click.option(
        "--checkpoint",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Keep the run here while it lasts, and go on from it if it is there.",
    )(command)


estimate_option = click.option(
    "--estimate", is_flag=True, help="Say how many seconds and how much memory it takes, and do nothing."
)


def picture_options(command: Command) -> Command:
    """Give a command ``--picture`` and ``--no-picture``."""
    command = click.option("--no-picture", is_flag=True, help="Save no picture.")(command)
    return click.option(
        "--picture",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Where to save the picture: .png, .svg or .pdf. [default: named after the file; none with --json]",
    )(command)


memory_option = click.option(
    "--memory-limit",
    metavar="BYTES",
    help="Such as 1GB. Larger files .npy, .parquet, .h5 and .zarr are read a block at a time. [default: a quarter of "
    "what is free]",
)
seed_option = click.option("--seed", type=SEED, default=0, show_default=True, help="Of the random numbers.")
