"""The race: every table in which Mercer stands beside its peers on the same data, in one run.

    python -m benchmarks race                       # all tables, an hour and more
    python -m benchmarks race sdp products          # some of them

They are written to ``benchmarks/results/race_*.md``; the text around the tables stays as it is.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

TABLES = ("sdp", "embedding", "products", "landmarks", "tests")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["race"])
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(TABLES)}; all if none is named")
    given = parser.parse_args()
    unknown = [name for name in given.tables if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {', '.join(unknown)}: name some of {', '.join(TABLES)}")
    sys.path.insert(0, str(Path(__file__).parent))
    for name in given.tables or TABLES:
        print(f"{name}:", flush=True)
        importlib.import_module(f"race_{name}").main()


if __name__ == "__main__":
    main()
