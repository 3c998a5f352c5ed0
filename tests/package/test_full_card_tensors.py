"""A card that is full at any moment of a fit: one sentence, nothing held, and the next fit is right."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import mercer
from mercer import Gaussian, config_context
from mercer.backends.arrays import inverse, to_numpy

torch = pytest.importorskip("torch")

from pretend_card import PretendCard  # noqa: E402

X = np.random.default_rng(1).normal(size=(20, 2)) @ np.diag([2.0, 1.0])
K = Gaussian(1.5)
MOMENTS = 3  # of a fit, evenly spread over the pieces of memory that it asks for, the first and the last among them
FITS = {
    "embedding": lambda: mercer.SDPEmbedding(K, n_levels=1, random_state=0),
    "kernel PCA": lambda: mercer.KernelPCA(K, certify=True, random_state=0),
    "diffusion maps": lambda: mercer.DiffusionMaps(K, random_state=0),
    "quadrature": lambda: mercer.QuadratureSparsifier(K, n_nodes=4),
    "density": lambda: mercer.SumOfSquaresDensity(K, support=4, tol=1e-3, random_state=0),
    "novelty": lambda: mercer.NoveltyDetector(K),
}

WAYS = ("of tensors", "of tensors", "of arrays", "of arrays", "of arrays", "of tensors")  # slow ones go one way


def answer(model, points):
    return to_numpy(getattr(model, "transform" if hasattr(model, "transform") else "score_samples")(points))


@pytest.fixture(autouse=True)
def _by_tiles(monkeypatch):
    monkeypatch.setenv("MERCER_FUSED", "0")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "way"), [*zip(FITS, WAYS, strict=True), ("kernel PCA", "of arrays")])
def test_a_full_card_at_any_moment(name, way):
    with PretendCard() as card, config_context(device="cuda"):
        points = torch.as_tensor(X, device="cuda") if way == "of tensors" else X
        held, before = card.allocated(), card.pieces
        model = FITS[name]().fit(points)
        pieces, expected = card.pieces - before, answer(model, X[:5])
        del model
        for moment in np.unique(np.linspace(0, pieces - 1, MOMENTS).astype(int)):
            card.fails_at = card.pieces + moment
            with pytest.raises(MemoryError, match="The card ran out of memory: .* points") as said:
                FITS[name]().fit(points)
            assert "\n" not in str(said.value)
            assert said.value.__suppress_context__
            assert card.allocated() == held, moment
        found = answer(FITS[name]().fit(points), X[:5])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("moment", [0, 3])
def test_a_full_card_in_a_product_or_an_answer(moment):
    """What is no fit raises torch's own error."""
    with PretendCard() as card, config_context(device="cuda"):
        model = mercer.KernelPCA(K, random_state=0).fit(X)
        expected = model.transform(X[:5])
        card.fails_at = card.pieces + moment
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            model.transform(X[:5])
        torch.cuda.empty_cache()
        np.testing.assert_array_equal(model.transform(X[:5]), expected)


def test_errors_that_came_of_others_hold_nothing(monkeypatch):
    """Some libraries try again where torch has raised: the frames of the first try hold tensors, too."""
    held = []

    def first_try():
        block = torch.zeros(10)
        held.append(weakref.ref(block))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def multiply(self, v, **_):
        try:
            first_try()
        except RuntimeError:
            raise torch.OutOfMemoryError("CUDA out of memory, again.")  # noqa: B904

    monkeypatch.setattr("mercer.backends.torch.matrix.TiledMatrix.multiply", multiply)
    monkeypatch.setattr("mercer.backends.torch.matrix.TiledMatrix.row_sums", lambda self, **_: multiply(self, None))
    with pytest.raises(MemoryError, match="The card ran out of memory") as said:
        mercer.KernelPCA(K, random_state=0).fit(torch.as_tensor(X))
    assert held
    assert all(block() is None for block in held)
    assert said.value.__suppress_context__


def test_a_matrix_without_an_inverse_is_told_from_a_full_card(pretend_card):
    singular = torch.ones((3, 3), device="cuda", dtype=torch.float64)
    with pytest.raises(np.linalg.LinAlgError):
        inverse(singular)
    regular = singular + torch.eye(3, device="cuda", dtype=torch.float64)
    pretend_card.fails_at = pretend_card.pieces
    with pytest.raises(torch.OutOfMemoryError):
        inverse(regular)
