"""What a person asked ``mercer test`` for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from mercer.cli.options import Reading


@final
@dataclass(frozen=True)
class Request:
    """The options of the command, as they were given; :func:`mercer.cli.test.test` says what they mean."""

    files: tuple[Path, ...]
    by: str | None
    groups: tuple[str, ...]
    depends: tuple[str, ...]
    on: tuple[str, ...]
    reading: Reading
    explain: bool
    time_series: bool
    compress: str | None
    resamples: int
    seed: int
    output: Path | None
    no_picture: bool
    as_json: bool
    quiet: bool

    @property
    def resampling(self) -> dict[str, Any]:
        """The options of a test that are the same whatever is asked."""
        return {"n_resamples": self.resamples, "rng": self.seed, "compress": self.compress}

    @property
    def picture(self) -> Path | None:
        """Where the picture goes; None where there is to be none."""
        if self.output is not None:
            return self.output
        return None if self.no_picture or self.as_json else Path("mercer-test.png")
