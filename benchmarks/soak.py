"""Random estimators and functions on random samples from several processes: what grows, what is left behind.

    python benchmarks/soak.py [minutes] [processes]

writes ``benchmarks/results/soak.md``. The trials are those of ``tests/fuzz``: a fit, its attributes, answers at old and
new points, the proof made again, a model written and read back; each ends in finite numbers or in a refusal.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "fuzz"))
PAGE = HERE / "results" / "soak.md"
WARM_UP = 0.4  # of the time, in which code is compiled and caches fill
LOOKS = 40  # at memory, threads and files, evenly over the time
LARGE = (100, 150)  # rows, besides those of the tests

INTRODUCTION = """# A soak: random calls from several processes

`benchmarks/soak.py` draws estimators, parameters and samples at random (duplicates, constant columns, one row, scales
from 1e-300 to 1e300, float16 to float64, integers, lists, read-only and strided arrays, weights with zeros), fits, asks
for answers at old and new points, proves each certificate again, writes the model and reads it back; and calls the
public functions. A *defect* is a number that is not finite, a warning or an exception in words that are not ours, a
certificate that does not hold when it is made again, or a model that answers differently after it was read back.
*Refused* are inputs declined in a sentence. Memory is the resident set after a collection of garbage, free blocks given
back to the system; the first figure is the median of the looks in the first fifth after warm-up, the second that of the
last fifth; threads and open files are those beyond the ones there were after warm-up.
"""


@dataclass
class Look:
    """What a process holds at one time."""

    seconds: float
    megabytes: float
    threads: int
    files: int


@dataclass
class Diary:
    """What one process did."""

    trials: int = 0
    refused: int = 0
    defects: list[str] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    longest: tuple[float, str] = (0.0, "")  # trial
    left: int = 0  # files in its own folder for temporary ones


def look(began: float) -> Look:
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Look(
        time.monotonic() - began,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
    )


def soak(seed: int, seconds: float) -> Diary:
    """Trials until the time is over."""
    import numpy as np
    from fuzz_estimators import SPACES
    from fuzz_functions import NAMES, run_call
    from fuzz_judging import Defect
    from fuzz_samples import ROWS
    from fuzz_trials import run_trial

    diary, rng, began = Diary(), np.random.default_rng([seed, 2]), time.monotonic()
    names = [*SPACES, *NAMES]
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        while (spent := time.monotonic() - began) < seconds:
            if spent >= len(diary.looks) * seconds / LOOKS:
                diary.looks.append(look(began))
            name = names[int(rng.integers(len(names)))]

            def pick(options):
                return options[int(rng.integers(len(options)))]

            try:
                refused = (run_trial(pick, name, rows=ROWS + LARGE) if name in SPACES else run_call(pick, name))[1]
                diary.refused += refused is not None
            except Defect as defect:
                diary.defects.append(str(defect))
            diary.trials += 1
            diary.longest = max(diary.longest, (time.monotonic() - began - spent, name))
        diary.looks.append(look(began))
        diary.left = len(os.listdir(folder))
    return diary


def _median(values):
    return sorted(values)[len(values) // 2]


def row(number: int, diary: Diary, seconds: float) -> str:
    after = [each for each in diary.looks if each.seconds >= WARM_UP * seconds]
    part = max(len(after) // 5, 1)
    first, last = (_median([each.megabytes for each in some]) for some in (after[:part], after[-part:]))
    return (
        f"| {number} | {diary.trials} | {diary.refused} | {len(diary.defects)} | {diary.looks[0].megabytes:.0f} "
        f"| {first:.0f} | {last:.0f} | {last / first - 1:+.1%} | {after[-1].threads - after[0].threads} "
        f"| {after[-1].files - after[0].files} | {diary.left} |"
    )


def main(minutes: float = 10.0, processes: int = 4) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    seconds = 60 * minutes
    with get_context("spawn").Pool(processes) as pool:
        diaries = pool.starmap(soak, [(seed, seconds) for seed in range(processes)])
    trials, defects = sum(each.trials for each in diaries), [text for each in diaries for text in each.defects]
    lines = [
        INTRODUCTION,
        f"{trials} trials in {minutes:g} minutes from {processes} processes on {os.cpu_count()} cores, other jobs "
        f"beside: **{len(defects)} defects**.\n",
        "| process | trials | refused | defects | MB at first | warm | at last | growth | threads | files | left |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(row(number, diary, seconds) for number, diary in enumerate(diaries)),
    ]
    seconds_of, name = max(each.longest for each in diaries)
    lines.append(f"\nThe longest trial, of `{name}`, took {seconds_of:.0f} s of the clock.")
    if defects:
        lines += ["\n## Defects\n", *(f"- `{' '.join(text.split())}`" for text in defects[:50])]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[1:]), flush=True)


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((float, int), sys.argv[1:], strict=False)))
