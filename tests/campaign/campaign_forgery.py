"""Fitted embeddings with other solutions put into them, so that nothing but the certificates can tell."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mercer.embedding import verify_embedding
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.levels import level_weights, recorded
from mercer.embedding.solve import Solved
from mercer.linalg.tall import first_axis
from mercer.support import Support
from mercer.validation import checked_points


def forged(model, X, turned):
    """Put ``turned(number, directions)`` in the place of every level, where the levels before leave something.

    Lengths, spectra, weights, the extension and the embedding are those of the new coordinates. What a level claims
    stays, unless the level is another problem's by now.
    """
    X = checked_points(model, X, fitting=False)
    support = Support(model.landmarks_, model.sample_weight_)
    points = support.points(X, model.kernel_)
    prescribed = model._extension.prescribed
    first = DiffusionProblem.of(model.kernel_, points, support.scaled, np.random.default_rng(0), prescribed=prescribed)
    found = []
    for number, level in enumerate(model.levels_):
        posed = first.complement(found[-1].complement.basis) if found else first
        if posed is None:
            break
        directions = posed.working.project(np.asarray(level.coordinates, np.float64), first_axis(level.rank, X))
        H = turned(number, directions)
        H = _feasible(posed, H, directions).astype(posed.operator.dtype)
        claimed = None if found else level.certificate
        made = recorded(posed, Solved(H, None, level.status, level.history, level.multipliers, 0), support, found)
        found.append(made._replace(level=replace(made.level, certificate=claimed)))
    weights = level_weights(found)
    found = [each._replace(level=replace(each.level, weight=w)) for each, w in zip(found, weights, strict=True)]
    model._store(X, points, support, found)


def _feasible(posed, H, directions):
    """Rows of unit length; those that may be short at most of that length."""
    if posed.split is None:
        return posed.working.project(H, directions)
    lengths = np.linalg.norm(H, axis=1)
    short = np.zeros(len(H), bool)
    short[posed.split.rows] = True
    H = H / np.where(short, np.maximum(lengths, 1), np.where(lengths > 0, lengths, 1))[:, None]
    H[~short & (lengths == 0)] = directions[~short & (lengths == 0)]
    return posed.working.point_of(H)


class Seen:
    """The bases that levels were posed on, and the certificates that a verification made, in their order."""

    def __init__(self):
        self.bases, self.certificates = [], []


@contextmanager
def watched():
    """Keep what fits and verifications pose and prove inside."""
    seen, pose, prove = Seen(), DiffusionProblem.complement, verify_embedding.certify_elliptope

    def posing(self, basis):
        seen.bases.append(np.array(basis))
        return pose(self, basis)

    def proving(*args, **kwargs):
        seen.certificates.append(prove(*args, **kwargs))
        return seen.certificates[-1]

    DiffusionProblem.complement, verify_embedding.certify_elliptope = posing, proving
    try:
        yield seen
    finally:
        DiffusionProblem.complement, verify_embedding.certify_elliptope = pose, prove
