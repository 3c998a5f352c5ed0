"""The extensions of the documentation: pages need no network, and every page of results is shown."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


offline, benchmark_pages = _module("offline"), _module("benchmark_pages")


@pytest.mark.parametrize(
    "fetched",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<script src="//cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="http://example/a.css">',
        '<link rel="icon preload" href="https://example/a.woff2">',
        '<img src="here.png" srcset="here.png 1x, https://example/large.png 2x">',
        '<iframe src="https://example/"></iframe>',
        '<p style="background: url(https://example/a.png)">',
        "<style>@import 'https://example/a.css';</style>",
        "<style>@font-face {src: url('https://example/a.woff2')}</style>",
    ],
)
def test_a_page_that_fetches_from_elsewhere_is_found(tmp_path, fetched):
    (tmp_path / "here.png").touch()
    (tmp_path / "page.html").write_text(f"<html><body>{fetched}</body></html>")
    (sentence,) = offline.complaints(tmp_path)
    assert sentence.startswith("page.html: ")
    assert sentence.endswith("is fetched from elsewhere.")


def test_a_style_sheet_that_fetches_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.css").write_text(
        "@font-face {src: url(https://example/a.woff2)} p {background: url(data:image/png;base64,AA)}"
    )
    assert offline.complaints(tmp_path) == ["a.css: https://example/a.woff2 is fetched from elsewhere."]


def test_links_data_and_files_that_are_there_are_fine(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a b.png").touch()
    page = '<a href="https://example/">x</a><link rel="canonical" href="https://example/"><img src="_static/a%20b.png?v=1">'
    (tmp_path / "page.html").write_text(
        page + '<img src="data:image/png;base64,AA"><script>"https://example/"</script>'
    )
    assert offline.complaints(tmp_path) == []


def test_a_picture_that_is_not_there_is_found(tmp_path):
    (tmp_path / "page.html").write_text('<img src="gone.png">')
    assert offline.complaints(tmp_path) == ["page.html: gone.png is not there."]


def test_every_page_of_results_stands_once_on_the_index():
    listed = Counter(page for group in benchmark_pages.groups() for page in group.pages)
    assert listed == Counter(benchmark_pages.measured())
    assert all(f":doc:`{page}`" in benchmark_pages.index() for page in benchmark_pages.measured())


def test_a_page_without_a_line_stands_at_the_end_and_one_not_measured_is_left_out(tmp_path, monkeypatch):
    for name in ("known", "unknown"):
        (tmp_path / f"{name}.md").write_text(f"# About the {name}\n\ntext\n")
    (tmp_path / "benchmarks.toml").write_text('["A group"]\nknown = "a line"\nlater = "not measured"\n')
    monkeypatch.setattr(benchmark_pages, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmark_pages, "HERE", tmp_path)
    first, last = benchmark_pages.groups()
    assert (first.title, first.pages) == ("A group", {"known": "a line"})
    assert (last.title, last.pages) == ("Others", {"unknown": "About the unknown."})


@pytest.mark.parametrize(("text", "name"), [("benchmarks/results/kernel_pca.md", "kernel_pca"), ("house.md", "house")])
def test_mentions_of_a_page_are_known(text, name):
    assert benchmark_pages.MENTION.fullmatch(text)["name"] == name
