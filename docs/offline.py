"""Pages that need no network: formulas from a copy of MathJax, and a check that no page asks for anything elsewhere.

The copy comes from the package ``sphinx-mathjax-offline``; of its 21 MB, pages need the script that reads TeX, its
fonts and the extensions that it loads by name, 3 MB. After a build every page and style sheet is read: a script, style
sheet, font, picture or frame with an address on another host fails the build, and so does one that is not among the
files.
"""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MATHJAX = "mathjax"  #: the folder below _static
NEEDED = ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions")
_LOADED = {  # what a browser fetches by itself, without a click
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "input": ("src",),
}
_TEMPLATES = {"webpack-macros.html"}  # of the theme, left among its static files: no page
_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest", "apple-touch-icon"}
_URL = re.compile(r"""url\(\s*['"]?([^'")]+)['"]?\s*\)|@import\s+['"]([^'"]+)['"]""")


class _Resources(HTMLParser):
    """The addresses that a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self._style = tag == "style"
        for name in _LOADED.get(tag, ()):
            if name in given:
                listed = given[name].split(",") if name == "srcset" else [given[name]]
                self.found += [entry.split()[0] for entry in listed if entry.strip()]
        if tag == "link" and _RELATIONS & set(given.get("rel", "").split()) and "href" in given:
            self.found.append(given["href"])
        self.found += in_style(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.found += in_style(data)


def in_style(text: str) -> list[str]:
    """The addresses in a style sheet."""
    return [first or second for first, second in _URL.findall(text)]


def in_page(text: str) -> list[str]:
    """The addresses that a page makes a browser fetch."""
    parser = _Resources()
    parser.feed(text)
    return parser.found


def complaint(address: str, file: Path, root: Path) -> str:
    """What is wrong with an address in a file, or nothing."""
    parts = urlsplit(address)
    if parts.scheme == "data" or address.startswith("#"):
        return ""
    if parts.scheme or parts.netloc:
        return "is fetched from elsewhere"
    path = unquote(parts.path)
    target = root / path.lstrip("/") if path.startswith("/") else file.parent / path
    return "" if target.exists() else "is not there"


def complaints(root: Path) -> list[str]:
    """A sentence for each thing that a page or a style sheet below a folder could not show without a network."""
    said = []
    for file in sorted([*root.rglob("*.html"), *root.rglob("*.css")]):
        if file.name in _TEMPLATES:
            continue
        text = file.read_text(encoding="utf-8")
        found = in_page(text) if file.suffix == ".html" else in_style(text)
        for address in dict.fromkeys(found):
            if wrong := complaint(address, file, root):
                said.append(f"{file.relative_to(root)}: {address[:120]} {wrong}.")
    return said


def copy_mathjax(app: Any) -> None:
    """Put the part of MathJax that pages need beside the other static files."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        from sphinx.errors import ExtensionError

        raise ExtensionError("Formulas need the package sphinx-mathjax-offline: pip install -e '.[docs]'.")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / MATHJAX
    for name in NEEDED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            shutil.copy2(source / name, target / name)


def finish(app: Any, exception: Exception | None) -> None:
    """Copy MathJax, then fail the build where a page is not self-contained."""
    if exception is not None or app.builder.format != "html":
        return
    from sphinx.errors import ExtensionError

    copy_mathjax(app)
    if said := complaints(Path(app.outdir)):
        raise ExtensionError("Pages must show without a network:\n  " + "\n  ".join(said))


def setup(app: Any) -> dict[str, bool]:
    """Take MathJax from the copy, and check at the end."""
    app.config.mathjax_path = f"{MATHJAX}/tex-chtml.js"
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True}
