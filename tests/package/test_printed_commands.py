"""Every command that a page prints runs, in a folder with small files that stand for those it names, and answers as printed."""

from __future__ import annotations

import doctest
import gzip
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from mercer.cli.commands import mercer as command
from mercer.io import write_table

ROOT = Path(__file__).parents[2]
# Lines that no test can run, and why. Each is compared whole, so that a changed line is looked at again.
NOT_RUN = {
    "python3 -m venv .venv": "makes an environment: .ci/run does it",
    '.venv/bin/pip install ".[app]"': "needs a network: .ci/run installs",
    '.venv/bin/pip install -e ".[test,lint,docs]"': "needs a network: .ci/run installs",
    ".venv/bin/pre-commit install      # optional: checks each commit as CI does": "changes the clone",
    'python3 -m venv .venv && .venv/bin/pip install -q -e ".[test]" && .venv/bin/pytest': "is the last stage of .ci/run",
    "embedding-atlas rows.parquet --x projection_x --y projection_y --neighbors neighbors": "is another project's",
    "python -m benchmarks race": "runs for an hour beside peers: by hand",
    "python -m benchmarks race sdp products": "runs for an hour beside peers: by hand",
}


def _printed_module():
    spec = importlib.util.spec_from_file_location("printed", ROOT / "docs" / "printed.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


printed = _printed_module()
BLOCKS = [block for block in printed.all_blocks() if block.language in ("console", "bash", "shell", "sh")]
PAGES = sorted({block.page for block in BLOCKS})


# --- files that stand for those that pages name ---------------------------------------------------------------


def _table(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")


def _before_and_after(folder):
    rng = np.random.default_rng(0)
    for name, n, height in (("before", 150, 170), ("after", 120, 176)):
        tall = rng.normal(height, 8, n).round(1)
        _table(
            folder / f"{name}.csv",
            height=tall,
            weight=(tall - 100 + rng.normal(0, 6, n)).round(1),
            colour=rng.choice(["red", "grey"], n),
        )


def _plants(folder):
    rng = np.random.default_rng(1)
    light = rng.uniform(0, 10, 90).round(2)
    species = np.repeat(["fern", "moss", "oak"], 30)
    growth = (np.sin(light) + rng.normal(0, 0.3, 90)).round(3)
    _table(folder / "plants.csv", species=species, light=light, growth=growth)


def _machines(folder):
    rng = np.random.default_rng(5)
    for name, n, spread in (("old", 150, 0.1), ("new", 120, 0.2)):
        length, width = rng.normal(10, 0.2, n).round(3), rng.normal(5, spread, n).round(3)
        _table(folder / f"{name}.csv", length=length, width=width, colour=rng.choice(["red", "grey"], n, p=[0.3, 0.7]))


def _flowers(folder):
    iris = load_iris()
    columns = dict(zip(("sepal_length", "sepal_width", "petal_length", "petal_width"), iris.data.T, strict=True))
    _table(folder / "flowers.csv", **columns, species=iris.target_names[iris.target])
    (folder / "flowers.csv.gz").write_bytes(gzip.compress((folder / "flowers.csv").read_bytes()))
    _table(folder / "new.csv", **{name: [*values[60:62], 12.0] for name, values in columns.items()})


def _numbers(folder):
    rng = np.random.default_rng(2)
    for name, n in (("data", 1200), ("more", 300)):
        write_table({column: rng.normal(size=n) for column in "xyz"}, folder / f"{name}.parquet")


FILES = {
    "docs/index.rst": (_flowers,),
    "docs/user_guide/command.rst": (_flowers,),
    "docs/user_guide/large_data.rst": (_numbers,),
    "docs/user_guide/testing.rst": (_before_and_after, _plants),
    "tutorials/plot_08_two_samples.py": (_machines,),
}


# --- the tests ------------------------------------------------------------------------------------------------


def _own_part(text):
    """What a line runs of ours: ``.venv/bin/mercer demo`` after whatever installs it is ``mercer demo``."""
    last = text.split("&&")[-1].strip().removeprefix(".venv/bin/")
    return last if re.search(r"(^|\| )mercer ", last) else None


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A folder to work in, and in the shell a command ``mercer`` and an empty home."""
    monkeypatch.chdir(tmp_path)
    tools, home = tmp_path / ".tools", tmp_path / ".home"
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    tools.mkdir()
    (tools / "mercer").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mercer "$@"\n')
    (tools / "mercer").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_and_answer_as_printed(page, shell):
    for make in FILES.get(page, ()):
        make(shell)
    for block in (block for block in BLOCKS if block.page == page):
        for each in block.commands():
            own = _own_part(each.text)
            if own is None:
                assert each.text in NOT_RUN, f"{page}:{block.line}: nobody runs {each.text!r}; see NOT_RUN"
            else:
                _check(own, each.answer, f"{page}:{block.line}: {each.text}")


def _check(text, answer, place):
    code, said, everything = (_in_the_shell if re.search(r"[|<>]", text) else _in_this_process)(text)
    assert code == 0, f"{place}\n{everything}"
    wanted = "\n".join(answer).strip()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    agree = not wanted or doctest.OutputChecker().check_output(wanted + "\n", said.strip() + "\n", flags)
    assert agree, f"{place}\nprinted:\n{wanted}\n\nsaid:\n{said}"


def _in_this_process(text):
    result = CliRunner().invoke(command, shlex.split(text, comments=True)[1:], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.output


def _in_the_shell(text):
    """With pipes: a command that fails in the middle fails the line, but for one whose reader has read enough."""
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {text}"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stdout + done.stderr


def test_reasons_are_of_lines_that_are_there():
    lines = {each.text for block in BLOCKS for each in block.commands()}
    assert NOT_RUN.keys() <= lines


def test_prompts_answers_and_options_are_told_apart(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text(
        "Text:\n\n.. code-block:: console\n   :caption: c\n\n   $ mercer a \\\n   >   b\n   said\n\n   $ mercer c\n\nMore.\n"
    )
    printed.ROOT, kept = tmp_path, printed.ROOT
    try:
        (block,) = printed.blocks(page)
    finally:
        printed.ROOT = kept
    assert [(each.text, each.answer) for each in block.commands()] == [("mercer a b", ("said", "")), ("mercer c", ())]
