"""The command ``mercer``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or say in one sentence what it needs."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"The command mercer needs {error.name}, which is not installed: pip install 'mercer[app]'.")
    from mercer.cli.commands import mercer

    mercer()
