"""What the pages print for a reader to type: blocks of code with their place, and the commands and answers in them.

Tests run every command and see that every block of Python is run somewhere. Pages are those of this folder that are
written by hand, the tutorials and examples, whose text is in comments, and the README.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MADE = {"_build", "benchmarks", "gallery", "generated", "tutorials"}  #: folders of docs that a build writes
_DIRECTIVE = re.compile(r"(?P<indent>\s*)\.\. (?:code-block|sourcecode|code):: ?(?P<language>\w*)\s*$")
_FENCE = re.compile(r"(?P<indent>\s*)```(?P<language>\w*)\s*$")


@dataclass(frozen=True)
class Block:
    """A block of code: the page, the line at which it begins, its language, and its lines without the indent."""

    page: str
    line: int
    language: str
    lines: tuple[str, ...]

    def commands(self) -> list[Command]:
        """The commands after a prompt, each with the lines that are printed under it; without prompts, every line."""
        if not any(line.startswith("$ ") for line in self.lines):
            return [Command(self, line, ()) for line in self.lines if line.strip()]
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (found[-1][0][:-1] + line.removeprefix(">").strip(), found[-1][1])
            elif found:
                found[-1][1].append(line)
        return [Command(self, text, tuple(answer)) for text, answer in found]


@dataclass(frozen=True)
class Command:
    """A command as it is printed, and the answer printed under it."""

    block: Block
    text: str
    answer: tuple[str, ...]


def pages() -> list[Path]:
    """All pages that are written by hand."""
    found = [path for path in (ROOT / "docs").rglob("*.rst") if path.relative_to(ROOT / "docs").parts[0] not in MADE]
    scripts = [*(ROOT / "tutorials").glob("*.py"), *(ROOT / "examples").glob("*.py")]
    return sorted([*found, *scripts, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of code of a page."""
    name, lines = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".py":
        lines = [re.sub(r"^# ?", "", line) for line in lines]
    fenced = path.suffix == ".md"
    place = 0
    while place < len(lines):
        begun = (_FENCE if fenced else _DIRECTIVE).match(lines[place])
        if begun is None:
            place += 1
            continue
        read = _until_fence if fenced else _indented
        end, body = read(lines, place + 1, len(begun["indent"]))
        yield Block(name, place + 1, begun["language"] or "text", tuple(body))
        place = end


def _until_fence(lines: list[str], start: int, indent: int) -> tuple[int, list[str]]:
    end = next(place for place in range(start, len(lines)) if lines[place].strip() == "```")
    return end + 1, [line[indent:] for line in lines[start:end]]


def _indented(lines: list[str], start: int, indent: int) -> tuple[int, list[str]]:
    """The lines of a directive: all that are empty or further in than it, less its options."""
    end = start
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    body = [line for line in lines[start:end] if not re.match(r"\s*:\w[\w-]*:", line)]
    depth = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    return end, "\n".join(line[depth:] for line in body).strip("\n").split("\n")


def all_blocks() -> list[Block]:
    """The blocks of code of all pages."""
    return [block for path in pages() for block in blocks(path)]
