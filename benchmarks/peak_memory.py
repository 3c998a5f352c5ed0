"""Memory that a piece of code takes, whoever allocates it."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path


class PeakMemory:
    """Resident memory above the level at the start, sampled every millisecond."""

    def __enter__(self) -> PeakMemory:
        ctypes.CDLL(None).malloc_trim(0)  # freed memory goes back to the system, so that taking it again counts
        self._base = self._now()
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, self._now() - self._base)

    def _watch(self) -> None:
        while not self._stop.wait(0.001):
            self.peak = max(self.peak, self._now() - self._base)

    @staticmethod
    def _now() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
