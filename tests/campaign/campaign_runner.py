"""What every part of the campaign shares: a certificate against its truth, counts, and lines that reproduce.

A part is a module with ``NAME`` and ``run(seed)``, which draws a problem from the seed, asks the library for some
certificates and yields a :class:`Verdict` for each. From a shell, one of them again:

    python tests/campaign/campaign_runner.py embeddings 1234
"""

from __future__ import annotations

import importlib
import sys
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np

WHOLE = {
    "embeddings": range(1250),
    "levels": range(600),
    "diagonals": range(600),
    "kernelized": range(900),
    "unfoldings": range(900),
    "measures": range(1050),
    "densities": range(450),
    "regressions": range(600),
    "adversaries": range(800),
    "whole_densities": range(300),
    "likelihoods": range(300),
    "mixtures": range(200),
    "streams": range(600),
    "levels_by_draws": range(400),
    "blocks": range(300),
}


@dataclass(frozen=True)
class Verdict:
    """One certificate: where it came from, and what is wrong with it; None if nothing is."""

    part: str
    seed: int
    precision: str
    kind: str
    wrong: str | None = None
    gap: float = float("nan")

    def __str__(self):
        return f"{self.part} {self.precision} {self.kind}: {self.wrong}  [campaign_runner.py {self.part} {self.seed}]"


@dataclass
class Count:
    """Certificates by part, precision and kind; refusals; and those that are wrong."""

    certificates: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    gaps: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)

    def add(self, verdict):
        key = verdict.part, verdict.precision, verdict.kind
        if verdict.wrong is None and np.isnan(verdict.gap):
            self.refused[key] += 1
            return
        self.certificates[key] += 1
        self.gaps.setdefault(key, []).append(verdict.gap)
        if verdict.wrong is not None:
            self.wrong.append(verdict)

    @property
    def total(self):
        return sum(self.certificates.values())

    def table(self):
        """Lines of: part, precision, kind, certificates, false, refused, median relative gap."""
        bad = Counter((v.part, v.precision, v.kind) for v in self.wrong)
        for key in sorted(set(self.certificates) | set(self.refused)):
            gaps = [gap for gap in self.gaps.get(key, []) if not np.isnan(gap)]
            yield (*key, self.certificates[key], bad[key], self.refused[key], np.median(gaps) if gaps else np.nan)

    def report(self, most=40):
        lines = [f"{self.total} certificates, {len(self.wrong)} false"]
        lines += [f"{p:12s} {t:8s} {k:34s} {n:6d} {b:5d} {r:5d} {g:9.1e}" for p, t, k, n, b, r, g in self.table()]
        return "\n".join(lines + [str(verdict) for verdict in self.wrong[:most]])


class Trial:
    """Collects the verdicts of one seed."""

    def __init__(self, part, seed, precision):
        self.part, self.seed, self.precision, self.verdicts = part, seed, precision, []

    def ask(self, kind, make):
        """The certificate that ``make`` returns, or None: a refusal in a sentence is fine, any other exception is not."""
        try:
            with quiet():
                return make()
        except (ValueError, MemoryError, NotImplementedError) as error:
            if isinstance(error, np.linalg.LinAlgError) or _from_outside(error):
                self._raised(kind, error)
            else:
                self.verdicts.append(Verdict(self.part, self.seed, self.precision, f"{kind}"))
        except Exception as error:
            self._raised(kind, error)
        return None

    def _raised(self, kind, error):
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"raised {type(error).__name__}: {str(error)[:120]} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
        self.verdicts.append(Verdict(self.part, self.seed, self.precision, kind, text, np.inf))

    def judge(self, kind, certificate, *brackets, minimised=False, attained=None):
        """False if an optimum lies outside its bounds, for any of the brackets (t_lo, t_hi).

        ``attained`` is (value, error) of the solution that the certificate is about.
        """
        wrong = judged(certificate, brackets, minimised, attained)
        gap = certificate.upper - certificate.lower
        size = max(abs(certificate.upper), abs(certificate.lower))
        gap = float(gap / size) if np.isfinite(gap) and size > 0 else (0.0 if gap == 0 else np.inf)
        self.verdicts.append(Verdict(self.part, self.seed, self.precision, kind, wrong, gap))


def judged(certificate, brackets, minimised, attained):
    """What is wrong with a certificate, or None."""
    lower, upper = np.longdouble(certificate.lower), np.longdouble(certificate.upper)
    if np.isnan(lower) or np.isnan(upper) or lower > upper:
        return f"bounds [{lower:.17g}, {upper:.17g}] are crossed or no numbers"
    for name, (low, high) in brackets:
        size = max(abs(low), abs(high), np.longdouble(1e-4000))
        if upper < low:
            return f"upper {upper:.17g} below the optimum {low:.17g} of {name} by {float((low - upper) / size):.1e}"
        if lower > high:
            return f"lower {lower:.17g} above the optimum {high:.17g} of {name} by {float((lower - high) / size):.1e}"
    if attained is not None:
        name, value, error = attained
        if not minimised and lower > value + error:
            return f"lower {lower:.17g} above {value:.17g}, what the {name} solution attains"
        if minimised and upper < value - error:
            return f"upper {upper:.17g} below {value:.17g}, what the {name} solution attains"
    return None


def _from_outside(error):
    """Whether a ValueError was raised by NumPy or SciPy and not by a sentence of the library's or scikit-learn's."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    return "/mercer/" not in where and "/sklearn/" not in where and "tests/campaign" not in where


@contextmanager
def quiet():
    """Without the library's warnings, of which there are many by design; those of NumPy are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def run_part(part, seeds):
    """The verdicts of a part for some seeds."""
    module = importlib.import_module(f"campaign_{part}")
    return [verdict for seed in seeds for verdict in module.run(seed)]


def run_all(seeds, workers=1):
    """Count the verdicts of ``{part: seeds}``, on so many processes."""
    jobs = [(part, chunk) for part, every in seeds.items() for chunk in _chunks(list(every))]
    count = Count()
    if workers == 1:
        results = (run_part(*job) for job in jobs)
        for verdicts in results:
            for verdict in verdicts:
                count.add(verdict)
        return count
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for verdicts in pool.map(run_part, *zip(*jobs, strict=True)):
            for verdict in verdicts:
                count.add(verdict)
    return count


def _chunks(seeds, size=25):
    return [seeds[lo : lo + size] for lo in range(0, len(seeds), size)]


if __name__ == "__main__":
    first, last = int(sys.argv[2]), int(sys.argv[-1])
    found = run_all({sys.argv[1]: range(first, last + 1)})
    print(found.report())  # noqa: T201
