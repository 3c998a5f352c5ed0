"""The page as text: template, style, scripts and data in one file, with a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from importlib import resources
from typing import Any

RENDERER = "three.min.js"
SCRIPTS = ("data.js", "colours.js", "charts.js", "camera.js", "scene.js", "selection.js", "panels.js", "page.js")


def compose(title: str, description: dict[str, Any], elements: list[str]) -> str:
    """The HTML of a page; ``description`` goes into it as JSON, ``elements`` are packed arrays."""
    style, scripts = asset("page.css"), [asset(RENDERER), "\n".join(asset(name) for name in SCRIPTS)]
    parts = {
        "{{policy}}": _policy(style, scripts),
        "{{title}}": html.escape(title),
        "{{style}}": style,
        "{{description}}": as_json(description),
        "{{data}}": "\n".join(elements),
        "{{renderer}}": scripts[0],
        "{{scripts}}": scripts[1],
    }
    pieces = [asset("page.html")]
    for mark, text in parts.items():  # in the order of the template: a text that is put in is not searched for marks
        head, found, tail = pieces[-1].partition(mark)
        assert found, mark
        pieces[-1:] = [head, text, tail]
    return "".join(pieces)


def as_json(value: Any) -> str:
    """JSON that cannot end the element it stands in, nor open a comment in it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def asset(name: str) -> str:
    """A file of the page, from the package; scripts must not contain what would end their element."""
    text = resources.files("mercer.plots.explorer").joinpath("assets", name).read_text(encoding="utf-8")
    if name.endswith(".js") and "</script" in text.lower():
        raise ValueError(f"{name} contains the end of a script element and cannot stand inside a page.")
    return text


def _policy(style: str, scripts: list[str]) -> str:
    """Only these scripts and this style, by their digests; no request to anywhere."""
    allowed = " ".join(_digest(text) for text in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
