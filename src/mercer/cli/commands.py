"""The commands. Heavy imports happen inside them, so that ``mercer --help`` answers at once."""

from __future__ import annotations

from typing import Any

import click

import mercer as package
from mercer.cli.completion import completion
from mercer.cli.demo import demo
from mercer.cli.density import density
from mercer.cli.embed import embed
from mercer.cli.errors import INTERRUPTED
from mercer.cli.experiment import experiment
from mercer.cli.landmarks import landmarks
from mercer.cli.report import report
from mercer.cli.test import test
from mercer.cli.using import info, novelty, transform, verify


class MercerGroup(click.Group):
    """The command, which remembers how it was called and ends quietly on Ctrl-C."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        called = list(args)
        context = super().make_context(info_name, args, *more, **extra)
        context.meta["mercer.called"] = called
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a person needs them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted: nothing was written.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=MercerGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package.__version__, prog_name="mercer")
def mercer() -> None:
    """Learn positive semi-definite kernels from data, with a proof that what was learned is optimal."""


for command in (
    demo,
    embed,
    transform,
    verify,
    landmarks,
    density,
    test,
    novelty,
    report,
    info,
    experiment,
    completion,
):
    mercer.add_command(command)
