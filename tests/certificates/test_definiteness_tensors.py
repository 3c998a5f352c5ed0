"""Whether S is positive semi-definite, proved on tensors as on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GramOperator, Precomputed
from mercer.certificates.measure_definiteness import prove_square_definite

torch = pytest.importorskip("torch")


def _matrix(n, shift, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.uniform(0.0, 1.0, (n, 3))
    return root @ root.T + shift * np.eye(n)


@pytest.mark.parametrize("points", [None, [4, 0, 9]])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_proof_is_that_of_numpy(shift, points, refuse_numpy, monkeypatch):
    K = _matrix(30, shift)
    chosen = None if points is None else torch.tensor(points)
    theirs = prove_square_definite(GramOperator(Precomputed() ** 2, torch.tensor(K)), chosen)
    monkeypatch.undo()
    ours = prove_square_definite(GramOperator(Precomputed() ** 2, K), None if points is None else np.array(points))
    assert theirs.n_columns == ours.n_columns == (30 if points is None else 3)
    assert 0 <= theirs.defect <= 1e-11
    assert theirs.defect == pytest.approx(ours.defect, abs=1e-12)
    assert theirs.asymmetry <= 1e-14


def test_an_indefinite_matrix_is_refused_by_the_same_sentence():
    K = _matrix(12, 0.0)
    K[0, 1] = K[1, 0] = 5.0
    sentences = []
    for given in (K, torch.tensor(K)):
        with pytest.raises(ValueError, match="has an eigenvalue of -") as raised:
            prove_square_definite(GramOperator(Precomputed() ** 2, given))
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1]
