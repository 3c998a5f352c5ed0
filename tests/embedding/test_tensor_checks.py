"""What an embedding refuses, it refuses of tensors by the same sentence."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.embedding.degeneracy import RankWarning, check_room, pad_components, refuse_degenerate
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.operators import DiffusionOperator, GramOperator
from mercer.operators.diffusion import DegenerateKernelError

torch = pytest.importorskip("torch")

SPREAD = np.array([[0.0], [1.0], [2.0], [2.0]])
INDEFINITE = np.array([[0.1, 1.0, 1.0], [1.0, 0.1, 1.0], [1.0, 1.0, 3.0]])


def judged(check, kernel, X):
    operator = DiffusionOperator(GramOperator(kernel, X))
    arguments = (operator, kernel, X) if check is refuse_degenerate else (operator, kernel)
    with pytest.raises((DegenerateKernelError, UserWarning)) as caught:
        check(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("check", "kernel", "X"),
    [
        (refuse_degenerate, Gaussian(1.0), np.ones((4, 2))),
        (refuse_degenerate, Gaussian(1e-3), SPREAD),
        (refuse_degenerate, Gaussian(1e9), SPREAD),
        (refuse_degenerate, Gaussian(2e4), SPREAD),
        (refuse_degenerate, Precomputed(), np.eye(3)),
        (check_room, Precomputed(), INDEFINITE),
        (check_room, Precomputed(), np.ones((3, 3)) - 0.9 * np.eye(3)),
    ],
)
def test_the_same_sentences(check, kernel, X):
    assert judged(check, kernel, torch.tensor(X)) == judged(check, kernel, X)


def test_what_is_sound_passes_without_numpy(refuse_numpy):
    X = torch.tensor([[0.1], [1.0], [2.0], [2.0]], dtype=torch.float64)
    for kernel, points in ((Gaussian(1.0), X), (Gaussian(1.0) + Linear(), X), (Precomputed(), torch.eye(4) + 0.5)):
        operator = DiffusionOperator(GramOperator(kernel, points))
        refuse_degenerate(operator, kernel, points)
        check_room(operator, kernel)


def test_components_that_are_not_there_are_zero():
    coordinates = torch.ones(3, 2)
    assert pad_components(coordinates, 1, 2).shape == (3, 1)
    with pytest.warns(RankWarning, match="n_components=4 exceeds the number of dimensions, 2"):
        padded = pad_components(coordinates, 4, 2)
    assert torch.equal(padded, torch.tensor([[1.0, 1.0, 0.0, 0.0]] * 3))
    with pytest.warns(RankWarning):
        assert np.array_equal(pad_components(np.ones((2, 0)), 2, 0), np.zeros((2, 2)))
