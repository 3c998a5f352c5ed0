"""The rank a paper prints beside the rank of a certified solution, and beside that of its own early stop."""

from __future__ import annotations

from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import spectrum_text
from mercer.experiments.report import Comparison, compare


def compare_rank(
    quantity: str, paper: int, model: SDPEmbedding, *, stopped: SDPEmbedding | None = None, reason: str = ""
) -> Comparison:
    """Compare the rank of a fitted model with the printed one.

    Parameters
    ----------
    quantity : str
        What is compared.
    paper : int
        The printed rank.
    model : SDPEmbedding
        Converged.
    stopped : SDPEmbedding, optional
        The papers' power method on the same data, stopped as theirs; mentioned where it has another rank.
    reason : str, optional
        What else to say.

    Returns
    -------
    Comparison
        Its reason holds the spectrum and the certified gap.
    """
    parts = [reason] if reason else []
    proof = "" if model.certificate_ is None else f", certified to {model.certificate_.relative_gap:.0e}"
    parts.append(f"spectrum {spectrum_text(model.eigenvalues_)}{proof}")
    if stopped is not None and stopped.rank_ != model.rank_:
        left = spectrum_text(stopped.eigenvalues_, 6)
        gap = "" if stopped.certificate_ is None else f" and a gap of {stopped.certificate_.relative_gap:.0e}"
        parts.append(f"the power method stopped after {stopped.n_iter_} steps has rank {stopped.rank_}{gap}: {left}")
    return compare(quantity, paper, model.rank_, within=0, reason="; ".join(parts))
