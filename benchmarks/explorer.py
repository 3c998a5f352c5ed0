"""The explorer: size of the page, seconds to make and to open it, and frame times, beside two other renderers.

    python benchmarks/explorer.py --peers FOLDER            # 10 000, 100 000 and a million rows; some ten minutes
    python benchmarks/explorer.py --sizes 10000             # quick

Needs Chromium and playwright (the extra ``test``) and plotly (``bench``). FOLDER is a ``node_modules`` with the npm
packages ``regl-scatterplot``, ``regl`` and ``pub-sub-es``; without it that renderer is left out, and the table says so.
Writes benchmarks/results/explorer.md. A frame is the time between two redraws of a picture that moves, with all rows
drawn, unless the column says that the page may draw a sample of them while it moves.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

from mercer import Gaussian, SDPEmbedding
from mercer.plots import report
from mercer.plots.explorer.page import RENDERER, asset

PAGE = Path(__file__).parent / "results" / "explorer.md"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
HEADS = ("rows", "MB", "s to make", "s with PCA and diffusion maps", "s to open", "2-D, ms a frame", "2-D, moving")
HEADS += ("3-D, ms a frame", "3-D, moving", "ms of the first hover", "ms of a hover", "ms of a lasso")
LIMIT = 60_000  # milliseconds that a renderer gets to start and to draw a few frames
PROGRAM = (Path(__file__).parent / "explorer.js").read_text(encoding="utf-8")
HOST = "<!doctype html><meta charset=utf-8><div id=stage></div><canvas id=canvas width=900 height=560></canvas>"


def run(page: Any, call: str, given: Any = None) -> Any:
    """The value of a function of explorer.js in a page."""
    return page.evaluate(f"(given) => {{ {PROGRAM}\n return {call}; }}", given)


def sample(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, n)
    return 4 * rng.normal(size=(8, 6))[labels] + rng.normal(size=(n, 6)), labels


def our_page(n: int, folder: Path) -> tuple[Path, dict[str, float]]:
    """A page of n rows with their labels and a column of numbers, and what it took."""
    X, labels = sample(n)
    model = SDPEmbedding(Gaussian(sigma=6.0), landmarks=300, n_components=3, random_state=0, certify=False).fit(X)
    began = time.perf_counter()
    page = report(model, X, label=labels, table={"height": X[:, 0].round(2)}, beside=False)
    alone = time.perf_counter() - began
    beside = time.perf_counter()
    if n <= 100_000:
        page = report(model, X, label=labels, table={"height": X[:, 0].round(2)})
    path = page.save(folder / f"rows{n}.html")
    return path, {"made": alone, "beside": time.perf_counter() - beside, "size": path.stat().st_size / 1e6}


def measured(browser: Any, n: int, folder: Path) -> list[str]:
    path, facts = our_page(n, folder)
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.set_default_timeout(10 * LIMIT)
    began = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    opened = time.perf_counter() - began
    cells = [
        f"{n:,}",
        f"{facts['size']:.1f}",
        f"{facts['made']:.1f}",
        f"{facts['beside']:.1f}" if n <= 100_000 else "–",
    ]
    cells.append(f"{opened:.1f}")
    for dims in (2, 3):
        for everything in (True, False):
            milliseconds, part = run(page, "ours(given)", [dims, everything])
            cells.append(f"{milliseconds:.0f}" if everything else f"{milliseconds:.0f} ({part:.0%})")
    cells += [f"{value:.0f}" for value in run(page, "pointer()")]
    page.close()
    print(" | ".join(cells), flush=True)
    return cells


def peer_frames(browser: Any, scripts: list[str], call: str, n: int, dims: int, folder: Path) -> str:
    """The median frame of another renderer, or why there is none."""
    path = folder / "peer.html"
    path.write_text(HOST + "".join(f"<script>{text}</script>" for text in scripts), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.set_default_timeout(2 * LIMIT)
    page.goto(path.as_uri())
    try:
        return f"{run(page, f'Promise.race([{call}(given), late({LIMIT})])', [n, dims]):.0f}"
    except Exception as reason:  # a peer that cannot is a result too
        text = str(reason)
        return f"none in {LIMIT // 1000} s" if "late" in text else f"fails: {text.splitlines()[0][:60]}"
    finally:
        page.close()


def peers(folder: Path | None) -> dict[str, tuple[list[str], str, tuple[int, ...], str]]:
    """Renderers by name: scripts, program, dimensions and licence."""
    import plotly.offline

    found = {"plotly (scattergl, scatter3d)": ([plotly.offline.get_plotlyjs()], "plotly", (2, 3), "MIT")}
    if folder is not None:
        hub = (folder / "pub-sub-es" / "dist" / "index.js").read_text(
            encoding="utf-8"
        )  # a module; scripts want a global
        hub = re.sub(r"export\s*\{[^}]*\};", "", hub).replace("export default ", "window.createPubSub = ")
        files = ("regl/dist/regl.min.js", "regl-scatterplot/dist/regl-scatterplot.min.js")
        texts = [f"(() => {{ {hub} }})();", *((folder / file).read_text(encoding="utf-8") for file in files)]
        found["regl-scatterplot"] = (texts, "regl", (2,), "MIT")
    return found


def compared(
    browser: Any, sizes: list[int], own: dict[int, list[str]], folder: Path, modules: Path | None
) -> list[str]:
    heads = " | ".join(f"{dims}-D, {n:,}" for dims in (2, 3) for n in sizes)
    lines = [f"| renderer | MB in a page | licence | {heads} |", "| --- |" + " ---: |" * (2 + 2 * len(sizes))]
    ours = [own[n][5 if dims == 2 else 7] for dims in (2, 3) for n in sizes]
    lines.append(f"| three.js, this page | {len(asset(RENDERER)) / 1e6:.1f} | MIT | {' | '.join(ours)} |")
    for name, (scripts, call, dims, licence) in peers(modules).items():
        wanted = [(d, n) for d in (2, 3) for n in sizes]
        cells = [peer_frames(browser, scripts, call, n, d, folder) if d in dims else "has none" for d, n in wanted]
        lines.append(f"| {name} | {sum(map(len, scripts)) / 1e6:.1f} | {licence} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if modules is None:
        lines.append("| regl-scatterplot | not measured: no --peers |" + " |" * (1 + 2 * len(sizes)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--only-page", action="store_true", help="leave the table of other renderers as it is")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("MERCER_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        own = {n: measured(browser, n, folder) for n in options.sizes}
        rows = [f"| {' | '.join(row)} |" for row in own.values()]
        write_table(PAGE, "page", [f"| {' | '.join(HEADS)} |", "|" + " ---: |" * len(HEADS), *rows])
        if not options.only_page:
            write_table(PAGE, "renderers", compared(browser, options.sizes, own, folder, options.peers))
        where = f"{os.cpu_count()} cores, {platform.machine()}, load average {os.getloadavg()[1]:.1f}"
        write_table(PAGE, "machine", [f"Chromium {browser.version}, SwiftShader, {where}."])
        browser.close()


if __name__ == "__main__":
    main()
