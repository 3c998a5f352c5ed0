"""The page that embedding_defaults.py writes: its tables, and the text above them, which is counted from the rows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from embedding_defaults_pictures import write_pictures
from embedding_peers import METHODS
from embedding_samples import SAMPLES, SHARES
from embedding_verdicts import LEVEL, MEASURES, Measured, Row, Verdict, verdicts

WHOLE, IN_THE_PLANE = ("nmi", "knn"), ("nmi2", "knn2")
UNDER_OUTLIERS = ("nmi", "nmi_inliers", "knn")
TABLES = {  # by whether ten coordinates were asked for
    False: ("nmi", "nmi_inliers", "knn", "knn2", "trust2"),
    True: ("nmi", "nmi_inliers", "knn", "trust"),
}


# --- text -----------------------------------------------------------------------------------------------------------


def item(text: str) -> str:
    return textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def title(method: str) -> str:
    return f"`{METHODS[method].title}`"


def counted(found: list[Verdict]) -> str:
    words = [one.word for one in found]
    return f"ahead in {words.count('ahead')}, level in {words.count('level')}, behind in {words.count('behind')}"


def listed(found: list[Verdict], *, named: bool = False) -> str:
    return ", ".join(f"{one} ({METHODS[one.peer].title})" if named else str(one) for one in found)


def behind(found: list[Verdict]) -> list[Verdict]:
    return sorted((one for one in found if one.word == "behind"), key=lambda one: one.difference)


def clean(measured: Measured) -> list[str]:
    return [name for name in measured.samples if SAMPLES[name].share == 0]


def contaminated(measured: Measured) -> list[str]:
    return [name for name in measured.samples if SAMPLES[name].share > 0]


def beside(measured: Measured, ours: str, peer: str, measures: tuple[str, ...], where: str) -> Iterator[str]:
    """One sentence: ours beside one peer over all samples, with every cell where it is behind."""
    found = verdicts(measured, ours, [peer], measures, measured.samples)
    if not found:
        return
    lost = behind(found)
    said = f"**{title(ours)} beside {title(peer)}, {where}**: {counted(found)} of {len(found)} cells."
    yield item(said + (f" Behind: {listed(lost)}." if lost else ""))


def under_outliers(measured: Measured, ours: str, peers: list[str]) -> Iterator[str]:
    """Ours beside the best of all peers of each cell, and what outliers cost every method."""
    found = verdicts(measured, ours, peers, WHOLE, contaminated(measured))
    if found:
        lost = behind(found)
        said = f"**{title(ours)} beside the best peer of each contaminated cell**: {counted(found)} of {len(found)}."
        yield item(said + (f" Behind: {listed(lost, named=True)}." if lost else ""))


def worst_contamination(measured: Measured, ours: str, peers: list[str]) -> Iterator[str]:
    """Ours beside the best peer on the mean over all samples with the most outliers."""
    families, share = {SAMPLES[name].family for name in contaminated(measured)}, max(SHARES)
    parts = []
    for key in UNDER_OUTLIERS:
        means = {name: measured_family(measured, families, name, key, share) for name in (ours, *peers)}
        means = {name: value for name, value in means.items() if not np.isnan(value)}
        order = sorted(means, key=lambda name: -means[name])
        if ours in means and len(means) > 1:
            best = next(name for name in order if name != ours)
            place = f"place {1 + order.index(ours)} of {len(order)}"
            parts.append(f"{MEASURES[key]}: {means[ours]:.3f}, {place}; best peer {title(best)} {means[best]:.3f}")
    if parts:
        yield item(f"**{title(ours)} with {share} % of outliers, mean over the samples**: {'; '.join(parts)}.")


def standing(measured: Measured, ours: str, peers: list[str]) -> Iterator[str]:
    """Ours beside every peer: cells ahead, level and behind, of clean samples and of contaminated ones."""
    parts = {"clean": clean(measured), "contaminated": contaminated(measured)}
    columns = [(part, key) for part in parts for key in WHOLE]
    heads = [f"{part}: {MEASURES[key].split(',')[0]}" for part, key in columns]
    yield f"| {title(ours)} beside | {' | '.join(heads)} |"
    yield "|" + " --- |" * (1 + len(columns))
    for peer in peers:
        cells = []
        for part, key in columns:
            words = [one.word for one in verdicts(measured, ours, [peer], [key], parts[part])]
            cells.append(" / ".join(str(words.count(word)) for word in ("ahead", "level", "behind")))
        yield f"| {title(peer)} | {' | '.join(cells)} |"


def means_under_outliers(measured: Measured, methods: list[str]) -> Iterator[str]:
    """The mean over the contaminated families by share of outliers: a row a method."""
    families = {SAMPLES[name].family for name in contaminated(measured)}
    if not families:
        return
    heads = [f"{MEASURES[key].split(',')[0]}, {share} %" for key in UNDER_OUTLIERS for share in (0, *SHARES)]
    yield f"| method | {' | '.join(heads)} |"
    yield "|" + " --- |" * (1 + len(heads))
    columns = [
        [measured_family(measured, families, name, key, share) for name in methods]
        for key in UNDER_OUTLIERS
        for share in (0, *SHARES)
    ]
    for i, name in enumerate(methods):
        cells = [shown(column[i], column) for column in columns]
        yield f"| {title(name)} | {' | '.join(cells)} |"


def measured_family(measured: Measured, families: set[str], method: str, measure: str, share: int) -> float:
    """The mean over the families; not a number where one of them is missing."""
    names = [s.name for s in SAMPLES.values() if s.share == share and s.family in families]
    if share == 0:
        names = [family.removesuffix("mixed") for family in families]
    return float(np.mean([measured.mean(name, method, measure) for name in names]))


def where_umap_stays_better(measured: Measured) -> Iterator[str]:
    """Sentences for every way to look at ours: whole, in ten coordinates, in two."""
    pairs = (
        ("sdp", "umap", WHOLE, "on all coordinates of both"),
        ("sdp10", "umap10", WHOLE, "in ten coordinates"),
        ("sdp", "umap", IN_THE_PLANE, "in the first two coordinates"),
        ("plane", "umap", WHOLE, "as a map"),
    )
    for ours, peer, measures, where in pairs:
        found = verdicts(measured, ours, [peer], measures, measured.samples)
        if found:
            lost = behind(found)
            better = (
                f"UMAP is better in {len(lost)} of {len(found)} cells: {listed(lost)}"
                if lost
                else (f"UMAP is better in none of {len(found)} cells")
            )
            yield item(f"{where[0].upper()}{where[1:]} ({title(ours)}, {title(peer)}), {better}.")


def reading(measured: Measured) -> Iterator[str]:
    """What the tables say."""
    yield from beside(measured, "sdp", "spectral", WHOLE, "all coordinates")
    yield from beside(measured, "sdp10", "spectral10", WHOLE, "ten coordinates")
    yield from beside(measured, "maps", "spectral", WHOLE, "two coordinates each")
    yield from beside(measured, "maps10", "spectral10", WHOLE, "ten coordinates")
    yield from beside(measured, "sdp", "umap", WHOLE, "all coordinates")
    yield from beside(measured, "sdp10", "umap10", WHOLE, "ten coordinates")
    yield from beside(measured, "plane", "umap", WHOLE, "two coordinates each")
    yield from beside(measured, "sdp", "papers", WHOLE, "all coordinates")
    for ten in (False, True):
        peers = [name for name in measured.methods(ten=ten) if not METHODS[name].ours]
        yield from under_outliers(measured, "sdp10" if ten else "sdp", peers)
        yield from worst_contamination(measured, "sdp10" if ten else "sdp", peers)


# --- tables ---------------------------------------------------------------------------------------------------------


def shown(value: float, others: list[float], digits: int = 2) -> str:
    if np.isnan(value):
        return ""
    text = f"{value:.{digits}f}"
    best = np.nanmax(others)
    return f"**{text}**" if text == f"{best:.{digits}f}" else text


def score_table(measured: Measured, measure: str, methods: list[str]) -> Iterator[str]:
    """A row a sample, a column a method, the best in bold."""
    yield f"| sample | {' | '.join(map(title, methods))} |"
    yield "|" + " --- |" * (1 + len(methods))
    for sample in contaminated(measured) if measure == "nmi_inliers" else measured.samples:
        means = [
            measured.stability(sample, name) if measure == "stability" else measured.mean(sample, name, measure)
            for name in methods
        ]
        failed = [any("failed" in row for row in measured.cells.get((sample, name), ())) for name in methods]
        cells = [f"failed {shown(m, means)}" if f else shown(m, means) for m, f in zip(means, failed, strict=True)]
        if any(cells):
            yield f"| {sample} | {' | '.join(cells)} |"


def seconds_table(measured: Measured, methods: list[str]) -> Iterator[str]:
    yield f"| sample | points | {' | '.join(map(title, methods))} |"
    yield "|" + " --- |" * (2 + len(methods))
    for sample in clean(measured):
        cells = []
        for name in methods:
            kept = [row["seconds"] for row in measured.cells.get((sample, name), ()) if "failed" not in row]
            cells.append(f"{np.median(kept):.2g}" if kept else "")
        yield f"| {sample} | {SAMPLES[sample].n_points} | {' | '.join(cells)} |"


def proof_table(measured: Measured) -> Iterator[str]:
    """The ranks of the levels and the largest certified gap, of the first seed."""
    methods = [name for name in ("sdp", "sdp10", "papers") if any(of == name for _, of in measured.cells)]
    yield "| sample | " + " | ".join(f"{title(name)}: ranks | gap" for name in methods) + " |"
    yield "|" + " --- |" * (1 + 2 * len(methods))
    for sample in measured.samples:
        cells = []
        for name in methods:
            row = measured.cells.get((sample, name), [{}])[0]
            gaps = row.get("gaps")
            cells += [", ".join(map(str, row["ranks"])), f"{max(gaps):.0e}"] if gaps else ["", ""]
        yield f"| {sample} | {' | '.join(cells)} |"


def failures(measured: Measured) -> Iterator[str]:
    where: dict[tuple[str, str], list[str]] = {}
    for (sample, method), rows in measured.cells.items():
        for reason in sorted({row["failed"].splitlines()[0] for row in rows if "failed" in row}):
            where.setdefault((method, reason), []).append(sample)
    for (method, reason), samples in where.items():
        yield item(f"{title(method)} on {', '.join(samples)}: {reason}")


# --- the page -------------------------------------------------------------------------------------------------------

HEAD = """\
Every method is called without arguments but the seed (PCA must be told how many coordinates), and a second time asked
for ten coordinates where it takes that argument. Nobody tuned anything. `SDPEmbedding()` has as many coordinates as
its levels have, and `plane_map` draws all of them in the plane; the others have two.

- *NMI of k-means*: as many centres as classes, five starts, mean over three seeds of k-means.
- *5-NN accuracy*: stratified five-fold cross-validation.
- *trustworthiness*: ten neighbours, on at most 3000 points.
- *stability*: the share of the ten nearest neighbours of 200 points that two seeds have in common. For contaminated
  samples the seeds draw the outliers anew as well. One for a method that draws nothing.
- *seconds*: of the fit, one thread a process, code loaded and compiled before; all cells of a run side by side.

Scores are means over {seeds} seeds; two scores are called *level* within {level}. A name as `wine+10` means that ten
per cent of the points are outliers, uniform on the bounding box made half as large again (`clusters`: on a box, away
from the centres); `mixed` that they are means of two points of different classes. Outliers are embedded with the
other points and k-means sees them, for nobody knows them in advance; all scores count the other points alone. Where
k-means spends a centre on outliers it loses a class: a second NMI, of k-means *without the outliers*, tells that from a
bad embedding. Where a method fails, the score is zero.
"""


def sections(measured: Measured) -> Iterator[str]:
    for ten in (False, True):
        methods = measured.methods(ten=ten)
        yield f"## {'Asked for ten coordinates' if ten else 'Called without arguments'}"
        for key, text in {**{key: MEASURES[key] for key in TABLES[ten]}, "stability": "stability over seeds"}.items():
            yield from ("", f"### {text[0].upper()}{text[1:]}", "", *score_table(measured, key, methods))
        yield from ("", "### Seconds", "", *seconds_table(measured, methods), "")
    yield from (
        "## What was proved",
        "",
        "Rank of every level, and the largest certified relative gap of the levels.",
        "",
    )
    yield from (*proof_table(measured), "")
    failed = list(failures(measured))
    if failed:
        yield from ("## Failures", "", *failed, "")


def document(measured: Measured) -> str:
    seeds = 1 + max(seed for *_, seed in measured.rows)
    machines = ", ".join(sorted({row["machine"] for row in measured.rows.values()}))
    main = measured.methods(ten=False)
    lines = [
        "# Embeddings at their defaults",
        "",
        f"Written by `benchmarks/embedding_defaults.py` from {len(measured.rows)} cells, measured on {machines}.",
        "",
        HEAD.format(seeds=seeds, level=LEVEL),
        "## Samples",
        "",
        *(item(f"{name}: {SAMPLES[name].size} points, {SAMPLES[name].about}.") for name in clean(measured)),
        "",
        "## What the tables say",
        "",
        "Counted from the tables below, on NMI and 5-NN accuracy. A difference above zero means that ours is better.",
        "",
        *reading(measured),
        "",
        "Cells ahead / level / behind:",
        "",
        *standing(measured, "sdp", [name for name in main if name != "sdp"]),
        "",
        *standing(measured, "sdp10", [name for name in measured.methods(ten=True) if name != "sdp10"]),
        "",
        "### Where UMAP stays better",
        "",
        *where_umap_stays_better(measured),
        "",
        "### Outliers: means over the contaminated samples",
        "",
        *means_under_outliers(measured, main),
        "",
        *means_under_outliers(measured, measured.methods(ten=True)),
        "",
        "![embeddings side by side](embedding_defaults.png)",
        "",
        "![scores against the share of outliers](embedding_defaults_outliers.png)",
        "",
        *sections(measured),
    ]
    return "\n".join(lines)


def write(rows: dict[tuple[str, str, int], Row], folder: Path) -> None:
    measured = Measured({cell: row for cell, row in rows.items() if cell[0] in SAMPLES and cell[1] in METHODS})
    (folder / "embedding_defaults.md").write_text(document(measured), encoding="utf-8")
    write_pictures(measured, folder)
    print(f"written to {folder}")
