"""How often tests find differences and dependences that are there, beside what others offer.

    python benchmarks/testing_power.py                            # 20 data sets a setting: some minutes
    python benchmarks/testing_power.py --datasets 500 --jobs 16 --minutes 8 --scores scores.json   # another machine
    python benchmarks/testing_power.py --from scores.json         # the page of those scores
    python benchmarks/testing_power.py --settings blobs normals --tests mmd_test energy --datasets 100 --print

Writes benchmarks/results/testing_power.md. All tests see the same data sets, which are those of testing_settings.py and
testing_shapes.py; the peers are in testing_peers.py. MNIST and HTRU2 are read from the folder MERCER_DATA. A peer that
is not installed (goodpoints) is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from testing_peers import INDEPENDENCE_PEERS, SINGLE_KERNEL, TWO_SAMPLE_PEERS, Peer
from testing_power_page import page, table
from testing_runner import gathered, store, stored
from testing_settings import TWO_SAMPLES
from testing_shapes import INDEPENDENCE

import mercer
from mercer import Gaussian

RESULT = Path(__file__).parent / "results" / "testing_power.md"
LEVEL = 0.05


def our(function: str, **options: Any) -> Peer:
    return lambda X, Y, rng: float(getattr(mercer, function)(X, Y, rng=rng, **options).pvalue)


OURS: dict[str, dict[str, Peer]] = {
    "two samples": {
        "mmd_test": our("mmd_test"),
        "mmd_test, median": our("mmd_test", kernel=Gaussian("median")),
        "mmd_test, landmarks": our("mmd_test", compress="landmarks"),
        "mmd_test, thinning": our("mmd_test", compress="thinning"),
    },
    "independence": {
        "hsic_test": our("hsic_test"),
        "hsic_test, medians": our("hsic_test", x_kernel=Gaussian("median"), y_kernel=Gaussian("median")),
        "hsic_test, landmarks": our("hsic_test", compress="landmarks"),
    },
}
PEERS = {"two samples": TWO_SAMPLE_PEERS, "independence": INDEPENDENCE_PEERS}
SETTINGS = {"two samples": TWO_SAMPLES, "independence": INDEPENDENCE}


def tests_of(problem: str, chosen: Sequence[str]) -> dict[str, Peer]:
    """The tests of a problem that are at hand, ours first; some of them by name."""
    tests = {**OURS[problem], **PEERS[problem]}
    try:
        import_module("goodpoints.ctt")
    except ImportError:
        tests.pop("compress then test", None)
    tests = {name: test for name, test in tests.items() if "_test" not in name or hasattr(mercer, name.split(",")[0])}
    return {name: test for name, test in tests.items() if not chosen or name in chosen}


def study(key: str, seeds: Sequence[int], chosen: Sequence[str] = ()) -> list[dict[str, float]]:
    """The p-values of all tests on some data sets of one setting."""
    problem, setting = key.split(": ", 1)
    draw, tests, out = SETTINGS[problem][setting], tests_of(problem, chosen), []
    with mercer.config_context(n_threads=1):
        for seed in seeds:
            X, Y = draw(np.random.default_rng([seed, 1]))
            out.append({name: test(X, Y, np.random.default_rng([seed, 2])) for name, test in tests.items()})
    return out


def computed(options: argparse.Namespace) -> dict[str, dict[str, list[bool]]]:
    """Which data sets each test rejected, by setting."""
    keys = [f"{problem}: {setting}" for problem, settings in SETTINGS.items() for setting in settings]
    keys = [key for key in keys if not options.settings or any(part in key for part in options.settings)]
    study_of = partial(study, chosen=tuple(options.tests))
    rows = gathered(study_of, keys, range(options.datasets), options.jobs, options.minutes, options.block)
    return {
        key: {name: [row[name] <= LEVEL + 1e-12 for row in found] for name in found[0]}
        for key, found in rows.items()
        if found
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=20, help="data sets a setting")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further data sets after so long")
    parser.add_argument("--block", type=int, default=10, help="data sets that a process takes at once")
    parser.add_argument("--settings", nargs="*", default=[], help="parts of the names of settings; all without it")
    parser.add_argument("--tests", nargs="*", default=[], help="names of tests; all without it")
    parser.add_argument("--scores", type=Path, help="write the scores to this file and no page")
    parser.add_argument("--from", dest="source", type=Path, help="scores that an earlier run wrote")
    parser.add_argument("--print", action="store_true", help="print the tables, write nothing")
    options = parser.parse_args()
    began = time.monotonic()
    if options.source:
        rejected, machine = stored(options.source)
    else:
        rejected, machine = computed(options), "this machine"
    if options.print:
        for problem in SETTINGS:
            print("\n".join(table(problem, rejected, SINGLE_KERNEL)))
    elif options.scores:
        store(options.scores, rejected, f"{options.jobs} processes of one thread", time.monotonic() - began)
    else:
        RESULT.write_text(page(rejected, machine, SINGLE_KERNEL), encoding="utf-8")


if __name__ == "__main__":
    main()
