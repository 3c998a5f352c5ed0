"""The pages of benchmarks/results in the documentation: each rendered, with its pictures, and an index of them.

``benchmarks.toml`` names the groups and says of every page, in a line, what its tables show. A page that is not in the
file yet stands in a group of its own at the end, under its title; one that is in the file and has not been measured is
left out. The words ``benchmarks/results/x.md`` become a link to the page wherever a page of the documentation has them.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
TARGET = HERE / "benchmarks"  #: made anew by every build
MENTION = re.compile(r"(?:benchmarks/results/)?(?P<name>\w+)\.md")
_HEAD = """\
==========
Benchmarks
==========

Every page below was written by a script of the folder ``benchmarks`` and is shown as it was written: what was run, on
which machine, and all rows. A line says what the tables show; :doc:`/where_we_lose` collects what speaks against us.
"""


@dataclass(frozen=True)
class Group:
    """Pages about one topic: the name of each, and the line about it."""

    title: str
    pages: dict[str, str]


def measured() -> list[str]:
    """The names of all pages that were written."""
    return sorted(path.stem for path in RESULTS.glob("*.md"))


def title(name: str) -> str:
    """The first heading of a page."""
    lines = (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("# ")).removeprefix("# ").strip()


def groups() -> list[Group]:
    """All pages that were written, in the groups of the file, those that it does not name at the end."""
    told = tomllib.loads((HERE / "benchmarks.toml").read_text(encoding="utf-8"))
    there = measured()
    listed = [
        Group(name, {page: line for page, line in pages.items() if page in there}) for name, pages in told.items()
    ]
    named = {page for group in listed for page in group.pages}
    rest = Group("Others", {page: f"{title(page)}." for page in there if page not in named})
    return [group for group in [*listed, rest] if group.pages]


def index() -> str:
    """The index page, as reStructuredText."""
    parts = [_HEAD]
    for group in groups():
        parts += [group.title, "=" * len(group.title), ""]
        for page, line in group.pages.items():
            parts += [f":doc:`{page}`", f"   {line}", ""]
        parts += [
            ".. toctree::",
            "   :hidden:",
            f"   :caption: {group.title}",
            "",
            *(f"   {p}" for p in group.pages),
            "",
        ]
    return "\n".join(parts)


def _write(path: Path, text: str) -> None:
    """Write what has changed, so that an unchanged page is not read again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def collect(app: Any) -> None:
    """Bring the pages and their pictures to where Sphinx reads them, and write the index."""
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.iterdir():
        if old.name != "index.rst" and not (RESULTS / old.name).is_file():
            old.unlink()
    for name in measured():
        _write(TARGET / f"{name}.md", (RESULTS / f"{name}.md").read_text(encoding="utf-8"))
    for picture in RESULTS.glob("*.png"):
        shutil.copy2(picture, TARGET)
    _write(TARGET / "index.rst", index())


def setup(app: Any) -> dict[str, bool]:
    """Collect before Sphinx looks for its sources, and link what mentions a page."""
    from docutils import nodes
    from sphinx.transforms.post_transforms import SphinxPostTransform
    from sphinx.util.nodes import make_refnode

    class LinkMentions(SphinxPostTransform):
        default_priority = 400

        def run(self, **kwargs: Any) -> None:
            here = self.env.docname
            for literal in list(self.document.findall(nodes.literal)):
                found = MENTION.fullmatch(literal.astext())
                page = f"benchmarks/{found['name']}" if found else ""
                if page not in self.env.found_docs or page == here or isinstance(literal.parent, nodes.reference):
                    continue
                link = make_refnode(self.app.builder, here, page, "", literal.deepcopy())
                literal.replace_self(link)

    app.connect("builder-inited", collect, priority=100)
    app.add_post_transform(LinkMentions)
    return {"parallel_read_safe": True}
