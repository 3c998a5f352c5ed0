"""Pages of results: tables between marks, the text around which stays, and exponents of growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_table(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put a table between the marks of its name, at the end of the page where there are none yet."""
    begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    if begin not in text:
        text += f"\n{begin}\n{end}\n"
    head, _, rest = text.partition(begin)
    page.write_text(f"{head}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def exponent(sizes: Sequence[int], values: Sequence[float]) -> str:
    """The slope of log value over log size through the last three sizes, a dash where there are fewer."""
    if len(values) < 3 or min(values[-3:]) <= 0:
        return "–"
    return f"{np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0]:.1f}"
