"""Runs that can be killed: a journal in a file, from which the same call goes on to the same answer."""

from mercer.journal.file import JournalError
from mercer.journal.journal import Entry, Journal, JournalWarning
from mercer.journal.runs import adopted, entry, identify, journalled, remembered, resumable, without_journal

__all__ = [
    "Entry",
    "Journal",
    "JournalError",
    "JournalWarning",
    "adopted",
    "entry",
    "identify",
    "journalled",
    "remembered",
    "resumable",
    "without_journal",
]
