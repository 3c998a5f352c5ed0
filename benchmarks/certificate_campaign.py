"""The campaign of certificates in full: every one judged by a truth in higher precision.

    python benchmarks/certificate_campaign.py [workers]

writes ``benchmarks/results/certificate_campaign.md``. The problems and their truth are those of ``tests/campaign``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "campaign"))

from campaign_runner import WHOLE, run_all  # noqa: E402

PAGE = HERE / "results" / "certificate_campaign.md"

INTRODUCTION = """# Certificates against a truth in higher precision

Problems of 2 to 8 points (some of 40), drawn to be hostile: weights over twelve decades and more, bandwidths from far
too small to far too large, repeated and nearly repeated points, extreme units, matrices that are indefinite, nearly
singular or not quite symmetric, in float32 and float64; solutions that were stopped after a step, disturbed by hand, or
never solved for. Every certificate is compared with the optimum of the exact kernel at the points as given, and, for
embeddings and measures, of the entries that floating point gives with everything after them exact. A further level of
an embedding is compared with the programme that the coordinates before it leave as they are stored, P = I - QQᵀ for the
very numbers of Q; its neighbour graph is the one that the kernel stores, with exact scales and distances. The optimum
is bracketed by a feasible point and a dual bound: kernel values and integrals to 70 digits and more; embeddings by an
interior-point method, densities and games by barrier methods in 64 bits of mantissa with their rounding counted;
measures by active sets at 110 digits; ridge regressions and relaxations by Newton's method at 70 digits, likelihoods by
one at 50. Streams are compared with the distance of their nodes from all rows, in blocks of a few; embeddings extended
to rows that are read a few at a time with the programme of these rows. Levels by draws may be false once in 10⁶.

A certificate is false if the optimum lies outside [lower, upper], if the bounds cross or are no numbers, or if its
objective is better than what the solution at hand attains. An exception other than a refusal in a sentence counts as
false too. *Refused* are inputs that the library declined by name. The gap is (upper - lower)/max(|lower|, |upper|).
"""


def main(workers=2):
    start = time.perf_counter()
    count = run_all(WHOLE, workers=workers)
    seconds = time.perf_counter() - start
    lines = [INTRODUCTION]
    parts = Counter((part, precision) for part, precision, _ in count.certificates.elements())
    wrong = Counter((verdict.part, verdict.precision) for verdict in count.wrong)
    lines += [f"**{count.total} certificates, {len(count.wrong)} false** ({seconds:.0f} s, {workers} processes).\n"]
    lines += ["| estimator | precision | certificates | false |", "| --- | --- | ---: | ---: |"]
    lines += [f"| {p} | {t} | {n} | {wrong[p, t]} |" for (p, t), n in sorted(parts.items())]
    lines += ["\n## By kind\n", "| estimator | precision | kind | certificates | false | refused | median gap |"]
    lines += ["| --- | --- | --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {p} | {t} | {k} | {n} | {b} | {r} | {g:.0e} |" for p, t, k, n, b, r, g in count.table()]
    if count.wrong:
        lines += ["\n## False\n", *(f"- {verdict}" for verdict in count.wrong[:200])]
    PAGE.write_text("\n".join(lines) + "\n")
    print(count.report())


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
