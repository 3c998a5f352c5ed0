"""The page that quadrature_field.py writes: its tables, and the text above them, which is counted from the tables."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from landmark_choices import EVENED, METHODS, OURS, OWN, SAMPLED

Row = dict[str, Any]

# --- tables -----------------------------------------------------------------------------------------------------


def summarised(state: Row) -> dict[tuple[int, str], Row]:
    """Mean and deviation over seeds, by number of nodes and method, in the order of the registry."""
    out: dict[tuple[int, str], Row] = {}
    for m in sorted({row["m"] for row in state["rows"]}):
        for name in METHODS:
            rows = [row for row in state["rows"] if row["m"] == m and row["method"] == name]
            if rows:
                keys = {key for row in rows for key in row} - {"method", "seed", "m"}
                out[m, name] = {key: [row[key] for row in rows if key in row] for key in keys}
    return out


def number(values: list[float]) -> str:
    """A mean, with the deviation as a share of it where there are several."""
    mean = float(np.mean(values))
    shown = f"{mean:.2e}" if mean < 1e-3 else f"{mean:.3g}"
    if len(values) < 2 or mean == 0:
        return shown
    return f"{shown} ± {100 * np.std(values, ddof=1) / mean:.0f} %"


def count(row: Row, kind: str) -> str:
    if f"{kind}99" not in row:
        return ""
    return f"{np.mean(row[f'{kind}99']):.3g} ({np.mean(row[f'{kind}95']):.3g})"


def table(state: Row) -> Iterator[str]:
    yield (
        "| m | method | D_{K²}, own weights | D_{K²}, best weights | canonical, own | canonical, best weights | Ritz | "
        "‖K-K̂‖/‖K‖ | test error | seconds |"
    )
    yield "|" + " --- |" * 10
    for (m, name), row in summarised(state).items():
        got = round(float(np.mean(row["nodes"])))
        shown = f"**{name}**" if name in OWN else name
        label = shown if got == m else f"{shown}, {got} nodes"
        cells = [
            *(number(row[key]) for key in ("own", "optimal")),
            *(count(row, kind) for kind in ("canonical", "reweighted", "ritz")),
            *(number(row[key]) for key in ("frobenius", "test")),
            f"{np.mean(row['seconds']):.2g}",
        ]
        yield f"| {m} | {label} | {' | '.join(cells)} |"


# --- what the tables say ----------------------------------------------------------------------------------------

MEASURES = {
    "own": "D_{K²}, own weights",
    "optimal": "D_{K²}, best weights",
    "canonical99": "directions, canonical, own weights",
    "reweighted99": "directions, canonical, best weights",
    "ritz99": "directions, Ritz",
    "frobenius": "‖K-K̂‖/‖K‖",
    "test": "test error",
    "seconds": "seconds to choose",
}
MORE_IS_BETTER = ("canonical99", "reweighted99", "ritz99")
ALIKE = 0.03  # two figures that differ by less than this share, or by less than the peer's deviation, are called alike


@dataclass(frozen=True)
class Verdict:
    """Ours beside the best peer in one cell: ratio > 1 means that ours is better by that factor."""

    ratio: float
    peer: str
    margin: float  # the share within which the two are alike

    @property
    def word(self) -> str:
        above = 1 + max(self.margin, ALIKE)
        return "ahead" if self.ratio > above else "behind" if self.ratio < 1 / above else "alike"

    def __str__(self) -> str:
        if self.word == "alike":
            return f"alike ({self.peer})"
        factor = max(self.ratio, 1 / self.ratio) if self.ratio > 0 else np.inf
        return f"{self.word} ×{factor:.3g} ({self.peer})" if np.isfinite(factor) else f"{self.word} ({self.peer})"


def verdict(
    summary: dict[tuple[int, str], Row], m: int, key: str, peers: list[str], whose: str = OURS
) -> Verdict | None:
    ours = summary.get((m, whose), {}).get(key)
    theirs = {name: summary[m, name][key] for name in peers if key in summary.get((m, name), {})}
    if not ours or not theirs:
        return None
    sign = -1 if key in MORE_IS_BETTER else 1
    peer = min(theirs, key=lambda name: sign * float(np.mean(theirs[name])))
    mine, best = float(np.mean(ours)), float(np.mean(theirs[peer]))
    deviation = float(np.std(theirs[peer], ddof=1)) if len(theirs[peer]) > 1 else 0.0
    above, below = (mine, best) if key in MORE_IS_BETTER else (best, mine)
    ratio = above / below if below > 0 else (1.0 if above == below else np.inf)
    return Verdict(ratio, peer, deviation / best if best > 0 else 0.0)


def verdicts(states: dict[str, Row], key: str, peers: list[str], whose: str = OURS) -> list[tuple[str, int, Verdict]]:
    found = []
    for name, state in states.items():
        summary = summarised(state)
        for m in sorted({m for m, _ in summary}):
            one = verdict(summary, m, key, peers, whose)
            if one is not None:
                found.append((name, m, one))
    return found


def rivals(key: str) -> list[str]:
    """The peers; drawing uniformly takes no time, so that it is left out where seconds are compared."""
    return [name for name in METHODS if name not in OWN and (key != "seconds" or name != "uniform")]


def standing(state: Row, name: str) -> Iterator[str]:
    """Ours beside the best peer of every cell: a row a measure."""
    counts = sorted({row["m"] for row in state["rows"]})
    yield f"| ours beside the best peer | {' | '.join(f'm = {m}' for m in counts)} |"
    yield "|" + " --- |" * (1 + len(counts))
    for key, title in MEASURES.items():
        cells = {m: str(one) for _, m, one in verdicts({name: state}, key, rivals(key))}
        yield f"| {title} | {' | '.join(cells.get(m, '') for m in counts)} |"


def median_ratio(states: dict[str, Row], key: str, peers: list[str]) -> float:
    """Of ours to the best of the peers in a cell; not a number where nothing was measured."""
    ratios = [one.ratio for *_, one in verdicts(states, key, peers)]
    return float(np.median(ratios)) if ratios else float("nan")


def beside(ratio: float, whom: str) -> str:
    if ratio > 1 + ALIKE:
        return f"better than {whom} by a median factor of {ratio:.3g}"
    if ratio < 1 / (1 + ALIKE):
        return f"worse than {whom} by a median factor of {1 / ratio:.3g}"
    return f"in the median as good as {whom}"


def in_short(states: dict[str, Row]) -> Iterator[str]:
    """Four sentences whose words follow the medians."""
    ratio = {key: median_ratio(states, key, rivals(key)) for key in MEASURES}
    if any(np.isnan(value) for value in ratio.values()):
        return
    best, pivots = "the best peer of a cell", "RPCholesky"
    if ratio["own"] <= 1 + ALIKE:
        owed = "There is no lead in the measure to explain"
    elif ratio["optimal"] > 1 + ALIKE:
        owed = "So the nodes are better, not only their weights"
    else:
        owed = "So the lead in the measure is owed to the weights, not to the nodes"
    yield item(
        f"As a measure, with the weights that come with the methods, ours is {beside(ratio['own'], best)}; with the "
        f"best weights on the nodes of every method, it is {beside(ratio['optimal'], best)}. {owed}."
    )
    yield item(
        f"As a span, ours is {beside(ratio['ritz99'], best)} in Ritz directions and {beside(ratio['frobenius'], best)} "
        f"in the completion of K; it is {beside(median_ratio(states, 'ritz99', [pivots]), pivots)} in the one and "
        f"{beside(median_ratio(states, 'frobenius', [pivots]), pivots)} in the other."
    )
    yield item(
        f"In use, ours is {beside(ratio['canonical99'], best)} in eigendirections without a pass over the sample, "
        f"{beside(ratio['test'], best)} in regression, and {beside(ratio['seconds'], 'the quickest peer')} in time."
    )
    lose = [title for key, title in MEASURES.items() if ratio[key] < 1 / (1 + ALIKE)]
    yield item(f"We lose to {best}, in the median, in: {', '.join(lose)}." if lose else "We lose in no median.")


def of_time(states: dict[str, Row]) -> Iterator[str]:
    """The time beside the one pass Sω and beside peers, counted."""
    words = {"seconds": "A fit takes", "proved": "With its certificate read it takes"}
    for key, said in words.items():
        cells = "; ".join(f"{name} {', '.join(of_pass(state, key))}" for name, state in states.items())
        if any(of_pass(state, key) for state in states.values()):
            yield item(f"{said} so many times the one pass Sω that the certificate needs, by rising m: {cells}.")
    found = [one.ratio for *_, one in slower_of_two(states)]
    if found:
        both = sum(ratio >= 1 for ratio in found)
        yield item(f"No slower than one at least of kernel thinning and k-means in {both} of {len(found)} cells.")
    for peer in ("kernel thinning", "k-means, snapped"):
        found = [one.ratio for *_, one in verdicts(states, "seconds", [peer])]
        if found:
            yield item(f"No slower than {peer} in {sum(ratio >= 1 for ratio in found)} of {len(found)} cells.")
    quick = [one.ratio for *_, one in verdicts(states, "seconds", ["RPCholesky"], SAMPLED)]
    ahead = [one.word for *_, one in verdicts(states, "own", rivals("own"), SAMPLED)]
    if quick and ahead:
        within = sum(ratio >= 1 / 5 for ratio in quick)
        yield item(
            f"Sampled: at most five times as long as RPCholesky in {within} of {len(quick)} cells (the median is "
            f"{1 / np.median(quick):.2g} times), D the lowest of all peers in {ahead.count('ahead')} of {len(ahead)}."
        )


def of_pass(state: Row, key: str) -> list[str]:
    """Seconds of ours by those of the pass beside them, by rising m."""
    rows = sorted((row for row in state["rows"] if row["method"] == OURS and key in row), key=lambda row: row["m"])
    return [f"{row[key] / row['pass']:.2g}" for row in rows if "pass" in row]


def slower_of_two(states: dict[str, Row]) -> list[tuple[str, int, Verdict]]:
    """Ours beside the slower of kernel thinning and k-means in every cell."""
    pairs = zip(*(verdicts(states, "seconds", [peer]) for peer in ("kernel thinning", "k-means, snapped")), strict=True)
    return [max(pair, key=lambda one: one[2].ratio) for pair in pairs]


def of_evened(states: dict[str, Row]) -> Iterator[str]:
    """What nodes in thin places gain in regression and cost in D, counted."""
    error, cost = verdicts(states, "test", rivals("test"), EVENED), verdicts(states, "own", [OURS], EVENED)
    if error and cost:
        words = [one.word for *_, one in error]
        times = 1 / np.median([one.ratio for *_, one in cost])
        yield item(
            f"Evened: in test error ahead of every peer in {words.count('ahead')} of {len(words)} cells, alike in "
            f"{words.count('alike')}, behind in {words.count('behind')}.{lost(error)} Its D is {times:.3g} times that "
            "of ours in the median."
        )


def reading(states: dict[str, Row]) -> Iterator[str]:
    """What the cells say, counted."""
    yield from in_short(states)
    yield ""
    for key, title in MEASURES.items():
        found = verdicts(states, key, rivals(key))
        if found:
            words = [one.word for *_, one in found]
            said = f"{words.count('ahead')} of {len(found)} cells, alike in {words.count('alike')}, behind in "
            yield item(f"**{title}**: ahead of every peer in {said}{words.count('behind')}.{lost(found)}")
    yield from of_time(states)
    yield from of_evened(states)
    yield ""
    for peer in ("uniform", "RPCholesky", "k-means, snapped", "kernel thinning"):
        parts = list(against(peer, states))
        if parts:
            yield item(f"Beside {peer} alone: {'; '.join(parts)}.")


def item(text: str) -> str:
    return textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def lost(found: list[tuple[str, int, Verdict]]) -> str:
    """Where and to whom, the worst first."""
    behind = sorted((one.ratio, name, m, one.peer) for name, m, one in found if one.word == "behind")
    if not behind:
        return ""
    shown = "; ".join(f"{name} m = {m} ×{1 / max(ratio, 1e-12):.3g} ({peer})" for ratio, name, m, peer in behind[:4])
    return f" Behind most: {shown}{'; …' if len(behind) > 4 else ''}."


def against(peer: str, states: dict[str, Row]) -> Iterator[str]:
    """Ours beside one peer: the median factor of every measure over the cells, above one where ours is better."""
    for key, title in MEASURES.items():
        found = [one for *_, one in verdicts(states, key, [peer] if peer in rivals(key) else [])]
        if found:
            ahead, behind = (sum(one.word == word for one in found) for word in ("ahead", "behind"))
            median = np.median([one.ratio for one in found])
            yield f"{title} ×{median:.3g} ({ahead} ahead, {behind} behind of {len(found)})"


HEAD = """Nodes and weights are judged *apart*. The nodes of a method are judged with its own weights and with the best
weights on them (non-negative least squares for D), and their span, where weights do not matter, by the Ritz directions,
the completion of K and the regression. Directions are counted among the first min(m, 100): those with Υ ≥ 0.99, in
parentheses those with Υ ≥ 0.95. Labels take no part in any choice; nodes are chosen among all points, the regression is
fitted on half of them, its ridge chosen on a fifth, the error that of the rest. A figure with ± is a mean over seeds
with the deviation in per cent of it. Two figures are called alike within 3 %, or within the deviation of the peer's;
"×2" is a factor of two.

The settings of ours (how many nodes more, pools, sweeps) were chosen by D and seconds on halton, htru2 and marrow, and
`evenness=0.5` by its test errors on htru2: its cells there flatter it, the others do not."""


def document(states: dict[str, Row], names: list[str], quick: bool) -> str:
    lines = ["# Landmarks beside those of the field", ""]
    if quick:
        lines += ["**A quick run on small samples, to see that everything works: not to be quoted.**", ""]
    lines += [
        f"Written by `benchmarks/quadrature_field.py` on {machine()}.",
        "",
        *HEAD.splitlines(),
        "",
        "Weights:",
        "",
    ]
    lines += [f"- {name}: {method.note}." for name, method in METHODS.items()]
    lines += [
        "",
        "## What the tables say",
        "",
        "Counted from the tables below. A factor above one means that ours is better; medians are over the cells.",
        "",
        *reading(states),
        "",
    ]
    for name in names:
        if name not in states:
            lines += [f"## {name}", "", "Not run.", ""]
            continue
        state = states[name]
        lines += [f"## {state['title']}", "", state["about"], ""]
        lines += [f"Left out: {method}, {reason}." for method, reason in state["left_out"].items()]
        lines += ["", *standing(state, name), "", *table(state), ""]
    return "\n".join(lines)


def machine() -> str:
    return f"{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[1]:.1f} at its end"
