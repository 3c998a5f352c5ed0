"""The measure of the house: sizes of files and functions, and the files that the main jobs pass.

    python benchmarks/house.py                    prints the measure of this tree
    python benchmarks/house.py --largest          names the files, functions and parameter lists that are too long
    python benchmarks/house.py --walks            prints the files that each main job passes
    python benchmarks/house.py --before COMMIT    writes it beside that of a commit: benchmarks/results/house.{md,csv}

A file's size is its lines. A function's is the lines of its body without the docstring, nested functions included. A
long list of parameters has eight or more, ``self`` and ``cls`` left out; the options of an estimator, which are public,
and compiled functions, which take no objects, are not counted. A job passes a file if a function of the file runs
between the call of ``fit`` and its return, on any thread; what runs on import, and compiled code, is not seen.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
PAGES = HERE / "results" / "house.md", HERE / "results" / "house.csv"
LONG_FILE, LONG_FUNCTION, MANY_PARAMETERS = 400, 60, 8

JOBS: dict[str, Callable[[Any], Any]] = {  # the estimator, from the package of the tree that is measured
    "SDPEmbedding(Gaussian()).fit, 300 points": lambda mercer: mercer.SDPEmbedding(mercer.Gaussian(), random_state=0),
    "SDPEmbedding().fit, 300 points": lambda mercer: mercer.SDPEmbedding(random_state=0),
    "QuadratureSparsifier(n_nodes=20).fit, 300 points": lambda mercer: mercer.QuadratureSparsifier(n_nodes=20),
    "SumOfSquaresDensity().fit, 300 points": lambda mercer: mercer.SumOfSquaresDensity(random_state=0),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


# --- sizes --------------------------------------------------------------------------------------------------------


def functions(tree: ast.AST, owner: ast.ClassDef | None = None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Functions and methods with the class they belong to; functions inside functions are part of these."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, owner
        else:
            yield from functions(node, node if isinstance(node, ast.ClassDef) else owner)


def body_lines(function: Function) -> int:
    """Lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def n_parameters(function: Function, owner: ast.ClassDef | None) -> int:
    """How many parameters a caller may give; none of an estimator's options and of compiled code."""
    decorators = " ".join(ast.unparse(one) for one in function.decorator_list)
    is_option = (
        function.name == "__init__"
        and owner is not None
        and any(isinstance(node, Function) and node.name == "fit" for node in owner.body)
    )
    if is_option or "jit" in decorators or "_builtin" in decorators:
        return 0
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def quantile(values: list[int], share: float) -> int:
    """The least value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def sizes(root: Path) -> dict[str, int]:
    """Sizes of the files and functions below ``src/mercer``."""
    texts = [path.read_text() for path in sorted((root / "src" / "mercer").rglob("*.py"))]
    files = [len(text.splitlines()) for text in texts]
    found = [pair for text in texts for pair in functions(ast.parse(text))]
    lengths = [body_lines(function) for function, _ in found]
    return {
        "lines of src": sum(files),
        "files": len(files),
        "lines of a file, median": quantile(files, 0.5),
        "lines of a file, 90 %": quantile(files, 0.9),
        "lines of a file, most": max(files),
        f"files over {LONG_FILE} lines": sum(lines > LONG_FILE for lines in files),
        "functions": len(lengths),
        "lines of a function, median": quantile(lengths, 0.5),
        "lines of a function, 90 %": quantile(lengths, 0.9),
        "lines of a function, most": max(lengths),
        f"functions over {LONG_FUNCTION} lines": sum(lines > LONG_FUNCTION for lines in lengths),
        f"parameter lists of {MANY_PARAMETERS} or more": sum(n_parameters(*pair) >= MANY_PARAMETERS for pair in found),
    }


def largest(root: Path) -> Iterator[str]:
    """What the measure counts as too long, a line for each."""
    for path in sorted((root / "src" / "mercer").rglob("*.py")):
        text, name = path.read_text(), path.relative_to(root)
        if len(text.splitlines()) > LONG_FILE:
            yield f"{name}: {len(text.splitlines())} lines"
        for function, owner in functions(ast.parse(text)):
            place = f"{name}:{function.lineno} {function.name}"
            if body_lines(function) > LONG_FUNCTION:
                yield f"{place}: {body_lines(function)} lines"
            if n_parameters(function, owner) >= MANY_PARAMETERS:
                yield f"{place}: {n_parameters(function, owner)} parameters"


# --- traces -------------------------------------------------------------------------------------------------------


def files_passed(job: Callable[[], Any], package: Path) -> list[str]:
    """Files of the package with a function that the job runs, in the order in which they are first entered."""
    seen: dict[str, None] = {}
    folder = f"{package}{os.sep}"

    def enter(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(folder) and code.co_flags & 1:  # a function's, not a module's or a class body's
            seen.setdefault(code.co_filename.removeprefix(folder))

    earlier = sys.gettrace(), threading.gettrace()
    threading.settrace(enter)
    sys.settrace(enter)
    try:
        job()
    finally:
        sys.settrace(earlier[0])
        threading.settrace(earlier[1])  # type: ignore[arg-type]
    return list(seen)


def main_jobs(n_points: int = 300) -> dict[str, list[str]]:
    """The files that each main job passes, in a second run: what is imported or compiled once is no part of it."""
    import mercer
    from mercer.datasets import two_moons

    package = Path(mercer.__file__).resolve().parent
    X, _ = two_moons(n_points=n_points, random_state=0)
    walks = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in JOBS.items():
            make(mercer).fit(X)
            walks[name] = files_passed(lambda make=make: make(mercer).fit(X), package)
    return walks


def traced(root: Path) -> dict[str, list[str]]:
    """:func:`main_jobs` of another tree, in a process of its own."""
    paths = os.pathsep.join([str(root / "src"), str(HERE)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    code = "import house, json; print(json.dumps(house.main_jobs()))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, check=True)
    return json.loads(done.stdout)


# --- the page -----------------------------------------------------------------------------------------------------


def measure(root: Path) -> dict[str, int]:
    found = sizes(root)
    for name, files in traced(root).items():
        found[f"files passed by {name}"] = len(files)
        outside = [f for f in files if f.split("/")[0] != "backends"]
        found[f"… of them outside backends: {name.split('.')[0]}"] = len(outside)
    return found


def measure_commit(commit: str) -> dict[str, int]:
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=HERE.parent, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        return measure(Path(folder))


def write(commit: str, before: dict[str, int], after: dict[str, int]) -> None:
    rows = [("", f"before ({commit[:7]})", "after")]
    rows += [(name, f"{before[name]}", f"{value}") for name, value in after.items()]
    page, table = PAGES
    lines = ["# The measure of the house", "", *(f"| {' | '.join(row)} |" for row in rows)]
    lines.insert(3, "| --- | ---: | ---: |")
    definition = (__doc__ or "").split("\n\n")[-1].strip()
    page.write_text(
        "\n".join([*lines, "", definition, "", "Made by `python benchmarks/house.py --before COMMIT`.", ""])
    )
    with table.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT", help="compare with this commit and write the page")
    parser.add_argument("--largest", action="store_true", help="name what is counted as too long")
    parser.add_argument("--walks", action="store_true", help="print the files that each main job passes")
    options = parser.parse_args()
    if options.walks:
        for name, files in traced(HERE.parent).items():
            print(name, *files, sep="\n    ")
        return
    if options.largest:
        print(*largest(HERE.parent), sep="\n")
        return
    after = measure(HERE.parent)
    if options.before:
        write(options.before, measure_commit(options.before), after)
    for name, value in after.items():
        print(f"{value:7d}  {name}")


if __name__ == "__main__":
    main()
