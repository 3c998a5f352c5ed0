"""Clocks that are set, and machines that sleep: no time left that is wrong, no journal too often or never."""

from __future__ import annotations

from pathlib import Path

import pytest

from mercer import progress
from mercer.journal import Journal
from mercer.journal import journal as journal_module
from mercer.journal.identity import Identity
from mercer.progress import TimeLeft


class Clocks:
    """The time of day, which can be set, and the monotonic clock, which stands still while the machine sleeps."""

    def __init__(self):
        self.day, self.steady = 1.7e9, 50.0

    def work(self, seconds):
        self.day, self.steady = self.day + seconds, self.steady + seconds

    def sleep(self, seconds):
        self.day += seconds

    def set_back(self, seconds):
        self.day -= seconds


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    for module in (progress.time, journal_module.time):
        monkeypatch.setattr(module, "time", lambda: clocks.day)
        monkeypatch.setattr(module, "monotonic", lambda: clocks.steady)
    return clocks


def test_the_time_left_is_that_of_work(clocks):
    left = TimeLeft()
    clocks.work(10)
    assert left.seconds(0.1) == pytest.approx(90)
    clocks.set_back(86400)
    clocks.work(10)
    assert left.seconds(0.2) == pytest.approx(80)
    clocks.sleep(3600)
    clocks.work(10)
    assert left.seconds(0.3) == pytest.approx(70)
    assert left.seconds(1.0) == 0


def test_a_run_that_was_taken_up_has_the_pace_of_its_own(clocks):
    left = TimeLeft()
    clocks.work(1)
    left.seconds(0.8)  # of which an earlier process did all
    clocks.work(10)
    assert left.seconds(0.9) == pytest.approx(10)


def test_what_begins_anew_is_counted_anew(clocks):
    left = TimeLeft()
    clocks.work(100)
    left.seconds(0.9)
    left.seconds(0.0)  # another level
    clocks.work(10)
    assert left.seconds(0.5) == pytest.approx(10)


def opened(every, folder):
    journal = Journal(Path(folder), every)
    journal.identify(Identity("a fit", "data", "parameters", "version"))
    return journal


@pytest.mark.parametrize("jump", ["sleep", "set_back"])
def test_a_journal_is_due_after_seconds_of_work(jump, clocks, tmp_path):
    journal = opened(300.0, tmp_path)
    clocks.work(299)
    getattr(clocks, jump)(7200)
    assert not journal.is_due
    clocks.work(1)
    assert journal.is_due
    journal.flush()
    assert not journal.is_due
    clocks.work(300)
    assert journal.is_due


def test_left_to_itself_a_journal_is_written_ever_less_often(clocks, tmp_path):
    journal, written = opened(None, tmp_path), []
    for second in range(1, 1001):
        clocks.work(1)
        if journal.is_due:
            journal.flush()
            written.append(second)
    waits = [after - before for before, after in zip([0, *written], written, strict=False)]
    assert written[0] <= 2
    assert waits == sorted(waits)
    assert max(waits) == 60


def test_a_journal_that_is_slow_to_write_is_written_less_often(clocks, tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "write", lambda *given: clocks.work(9))
    journal = opened(None, tmp_path)
    clocks.work(1000)
    journal.flush()
    clocks.work(179)
    assert not journal.is_due  # nine seconds are a twentieth of 180
    clocks.work(2)
    assert journal.is_due
