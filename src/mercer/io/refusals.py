"""Why a model cannot be saved, or a file not loaded: one sentence each."""

from __future__ import annotations

from typing import NoReturn, final


@final
class ModelFileError(ValueError):
    """A file holds no model that can be loaded: it is damaged, altered, too new, or was never one."""


@final
class UnsavableError(TypeError):
    """A model holds something that a model file cannot."""


def damaged(why: str) -> NoReturn:
    """Refuse what a file says; :func:`mercer.load` adds which file it is."""
    raise ModelFileError(why)
