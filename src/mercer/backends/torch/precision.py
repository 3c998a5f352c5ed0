"""Whether torch multiplies float32 with all its digits: no bound on rounding holds where it may not."""

from __future__ import annotations

from typing import Any

import torch


def require_full_precision(dtype: Any) -> None:
    """Refuse single precision where torch is allowed to multiply it with fewer digits (TF32, bfloat16)."""
    if dtype == torch.float32 and not _is_full():
        raise ValueError(
            "torch is set to multiply float32 with fewer digits, so that no bound on rounding would hold: call "
            'torch.set_float32_matmul_precision("highest"), or pass float64.'
        )


def _is_full() -> bool:
    try:
        return bool(torch.get_float32_matmul_precision() == "highest")
    except RuntimeError:  # single backends were set, not all of them to full precision
        return False
