"""The command ``mercer``."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command, or say in one sentence what it needs."""
    missing = [name for name in ("click", "rich", "matplotlib") if find_spec(name) is None]
    if missing:
        sys.exit(f"The command mercer needs {', '.join(missing)}: pip install 'mercer[app]'.")
    from mercer.cli.commands import mercer

    mercer(prog_name="mercer")
