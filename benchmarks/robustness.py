"""What outliers do to embeddings: clusters and neighbours of the other points, beside the peers.

    python benchmarks/robustness.py --jobs 16  # the whole table and its picture, samples and shares side by side
    python benchmarks/robustness.py --quick    # two seeds, two shares of outliers, no UMAP and no t-SNE
    python benchmarks/robustness.py --jobs 16 --scores-only scores.json   # on another machine, then here
    python benchmarks/robustness.py --from scores.json

Writes robustness.md and robustness.png to benchmarks/results, or to --output. UMAP needs the extra
``bench`` (umap-learn).
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.experiments.psd22.outlier_robustness import MEASURES, OutlierRobustness, outlier_robustness
from mercer.plots import save_figure

RESULTS = Path(__file__).parent / "results"
HEAD = """# Outliers and embeddings

One run of `benchmarks/robustness.py`: {seeds} seeds, mean ± standard deviation over them. Every method embeds the
sample with its outliers. The scores count the points that are no outliers.

- *NMI of k-means*: k-means with as many centres as there are classes, ten starts, is run on **all** points, outliers
  included, for nobody knows them in advance: it may spend a centre on them, and then loses a class.
- *Accuracy of 5-NN*: five nearest neighbours among the other points, five-fold cross-validation.
- *default setting*: Gaussian kernel, σ = the median distance of the contaminated sample; t-SNE with a perplexity of 30,
  UMAP with 15 neighbours.
- *tuned*: the best of {factors} times the median (t-SNE: of the perplexities 5, 30, 50; UMAP: of 5, 15,
  50 neighbours) on the mean over the seeds, by the labels, for every share of outliers and measure by itself. Nobody
  can tune like this without labels; it flatters all methods alike.
- *mean over settings*: the mean of the scores at all these settings, for one who cannot tune at all.

Diffusion maps come in two conventions: λu, with the eigenvectors u of the symmetric matrix, is what PSD22 calls a
diffusion embedding and small where the data are sparse; λψ, ψ = u/√(stationary probability), is the usual one and large
there. "SDP, directions" divides every coordinate vector by its length, as PSD22 section 5.2 does; "diffusion maps,
directions" the same, which makes both conventions one. Spectral embedding is scikit-learn's with the same Gaussian
kernel. It drops the affinity of a point to itself before it normalises; diffusion maps keep it, so that a point without
neighbours has an eigenvalue near one there. Its coordinates are not multiplied by the eigenvalues either.

Three clusters: 3 × 100 points, deviation 0.5, outliers uniform on a box and away from the centres. Two moons: 300
points, noise 0.05; wine: 178 standardised rows of 13 features; outliers of both uniform on the bounding box made 1.5
times as large. In 13 dimensions such outliers are far from everything. The rows of wine are the same for every seed.
"""
READING = """## What the tables say

Of the run that is stored beside this script. "SDP" is the one with two components.

- *At the median bandwidth the SDP embedding is no more robust than diffusion maps.* NMI with 20 % outliers: 0.997 for
  both on clusters, 0.18 for both on moons (where that bandwidth is too large for either), and on wine 0.48 beside 0.79
  by λu and 0.59 by λψ. t-SNE and UMAP find the moons (0.90 and 0.93) with their defaults; scikit-learn's spectral
  embedding (0.81), t-SNE (0.80) and UMAP (0.79) are far better on wine. We lose there.
- *At a bandwidth chosen for it, it is, on moons*: 1.00 up to 10 % outliers and 0.87 ± 0.26 at 20 %, at an eighth of
  the median, where diffusion maps have 0.99 to 1.00 without outliers and 0.35 at most with them, in either convention,
  and spectral embedding falls from 0.88 to 0.3. t-SNE (1.00 and 0.90) is level, UMAP with 50 neighbours better still,
  1.00 to 0.99. On wine it is 0.76 to 0.81 up to 10 %, level with diffusion maps, t-SNE and UMAP (0.77 to 0.85, 0.79 to
  0.82, 0.79 to 0.80) and below spectral embedding (0.93); at 20 % it falls to 0.55, below all others, for k-means
  spends a centre on outliers (looked up: one centre has all 44 of them and 7 other points). Its directions, which have
  no length, stay at 0.81.
- *The convention of diffusion maps matters on wine alone.* λu draws sparse points to the middle, so that k-means spends
  no centre on them: 0.79 at 20 % where λψ has 0.59 at the median and 0.73 when tuned. It pays in neighbours at small
  bandwidths, where most vectors all but vanish: 5-NN 0.78 where λψ has 0.90, averaged over the settings.
- *Its strength is that the bandwidth matters less.* Averaged over the settings, NMI with 20 % outliers is 0.996 beside
  0.917 for diffusion maps on clusters, 0.35 beside 0.18 (λu) and 0.13 (λψ) on moons, 0.50 beside 0.31 and 0.26 on wine:
  small bandwidths, at which diffusion maps show single outliers, still show the classes. That is what PSD22 says of
  wine. Spectral embedding has 0.96, 0.09 and 0.43; t-SNE has 0.99, 0.56 and 0.79 and UMAP 0.98, 0.79 and 0.79: on moons
  and wine they are better still.
- *Neighbours survive outliers.* The best 5-NN accuracy on wine is that of the SDP embedding when tuned, 0.98 to 0.99,
  before spectral embedding, 0.97 to 0.98, and t-SNE, 0.96 to 0.97; at the median all lie between 0.89 and 0.98. On
  moons the SDP embedding, t-SNE and UMAP have 1.00 at the median, diffusion maps 0.93 to 0.97. Directions lose
  neighbours there, with outliers and without.
- All dimensions in place of two change no NMI by more than 0.002 and no accuracy by more than 0.02.

One choice was made after a look at these scores. At first the setting was tuned for each seed on the other seeds; where
several settings are perfect on most seeds, ties decided (UMAP on moons with 10 %: 1.00 or 0.90; spectral embedding on
clusters with 20 %: 1.00 or 0.80 ± 0.45). One setting serves all seeds instead.

![scores against the share of outliers](robustness.png)
"""


def cell(values: np.ndarray) -> str:
    return f"{np.nanmean(values):.3f} ± {np.nanstd(values, ddof=1):.3f}"


def tables(result: OutlierRobustness) -> list[str]:
    lines = []
    for i, sample in enumerate(result.samples):
        for k, measure in enumerate(MEASURES):
            for view, scores in result.views.items():
                lines += ["", f"## {sample}: {measure}, {view}", "", *table(result, scores, i, k)]
    return lines


def table(result: OutlierRobustness, scores, sample: int, measure: int) -> list[str]:
    head = " | ".join(f"{100 * fraction:g} %" for fraction in result.fractions)
    lines = [f"| method | {head} |", "|---|" + "---|" * len(result.fractions)]
    for method in result.scores:
        values = scores(method)[sample, :, :, measure]
        lines.append(f"| {method} | {' | '.join(map(cell, values))} |")
    return lines


def chosen(result: OutlierRobustness) -> list[str]:
    """The settings that are best over all seeds: where each method has to be to work."""
    lines = ["", "## Settings that are best on the mean over all seeds", ""]
    lines += ["σ over the median distance; the perplexity of t-SNE, the neighbours of UMAP.", ""]
    head = " | ".join(f"{100 * fraction:g} %" for fraction in result.fractions)
    lines += [f"| sample | measure | method | {head} |", "|---|---|---|" + "---|" * len(result.fractions)]
    for i, sample in enumerate(result.samples):
        for k, measure in enumerate(MEASURES):
            for method in result.scores:
                best = " | ".join(f"{value:g}" for value in result.best_settings(method)[i, :, k])
                lines.append(f"| {sample} | {measure} | {method} | {best} |")
    return lines


def computed(jobs: int, quick: bool) -> OutlierRobustness:
    """The scores, every sample and share of outliers in a process of its own."""
    samples = ("three clusters", "two moons", "wine")
    fractions = (0.0, 0.1) if quick else (0.0, 0.02, 0.05, 0.1, 0.2)
    options = {"n_seeds": 2, "tsne": False, "umap": False} if quick else {}
    cells = [(sample, fraction) for sample in samples for fraction in fractions]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = list(pool.map(partial(one_cell, options), cells))
    shape = len(samples), len(fractions)
    scores = {
        method: np.reshape([part.scores[method] for part in parts], (*shape, *parts[0].scores[method].shape[2:]))
        for method in parts[0].scores
    }
    return OutlierRobustness(samples, fractions, parts[0].settings, scores, parts[0].missing)


def one_cell(options: dict, cell: tuple[str, float]) -> OutlierRobustness:
    with threadpool_limits(1):
        return outlier_robustness([cell[0]], [cell[1]], progress=lambda line: print(line, flush=True), **options)


def store(result: OutlierRobustness, path: Path) -> None:
    settings = {method: list(values) for method, values in result.settings.items()}
    scores = {method: np.nan_to_num(values, nan=-1.0).tolist() for method, values in result.scores.items()}
    path.write_text(json.dumps([result.samples, result.fractions, settings, scores, result.missing]))


def stored(path: Path) -> OutlierRobustness:
    samples, fractions, settings, scores, missing = json.loads(path.read_text())
    arrays = {method: np.where(np.array(values) < 0, np.nan, values) for method, values in scores.items()}
    settings = {method: tuple(values) for method, values in settings.items()}
    return OutlierRobustness(tuple(samples), tuple(fractions), settings, arrays, missing)


def write_page(result: OutlierRobustness, folder: Path, reading: list[str]) -> None:
    factors = ", ".join(f"1/{round(1 / f)}" if f < 1 else f"{f:g}" for f in result.settings["spectral embedding"])
    seeds = next(iter(result.scores.values())).shape[3]
    claims = ["## What the paper's abstract claims", "", *(f"- {line}" for line in result.comparisons)]
    head = [HEAD.format(seeds=seeds, factors=factors), *([result.missing + ".", ""] if result.missing else [])]
    text = [*head, *reading, *claims, *tables(result), *chosen(result), ""]
    (folder / "robustness.md").write_text("\n".join(text))
    save_figure(result.figure(), folder / "robustness.png")
    print(f"written to {folder}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--output", type=Path, default=RESULTS, help="a folder")
    parser.add_argument("--scores-only", type=Path, help="write the scores to this file and no page")
    parser.add_argument("--from", dest="source", type=Path, help="scores that an earlier run wrote")
    options = parser.parse_args()
    result = stored(options.source) if options.source else computed(options.jobs, options.quick)
    if options.scores_only:
        store(result, options.scores_only)
    else:
        write_page(result, options.output, [] if options.quick else [READING])


if __name__ == "__main__":
    main()
