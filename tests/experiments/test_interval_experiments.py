"""PSD22 Figs 2 and 3: the interval at σ = 0.1."""

import numpy as np
import pytest

from mercer.experiments import Verdict, interval_extension, interval_kernels


@pytest.fixture(scope="module")
def kernels():
    return interval_kernels(n_points=301)


@pytest.fixture(scope="module")
def extension():
    return interval_extension()


def test_two_kernels_of_rank_two_with_one_diagonal(kernels):
    assert kernels.sdp.rank_ == 2
    np.testing.assert_allclose(np.diag(kernels.learned_kernel), np.diag(kernels.diffusion_kernel), rtol=1e-8)
    values = np.linalg.eigvalsh(kernels.learned_kernel)
    assert np.sum(values > 1e-8 * values[-1]) == 2
    assert [c.verdict for c in kernels.comparisons] == [Verdict.AGREES]


def test_scale_is_that_of_the_integral_operator(kernels):
    """In the middle of the interval m(x) = σ√π, so ā(x, x) = 1/(σ√π) - σ√π/vol with vol = ∫∫ exp(-(x-y)²/σ²)."""
    sigma = 0.1
    volume = 2 * sigma * np.sqrt(np.pi) - sigma**2
    middle = len(kernels.grid) // 2
    expected = 1 / (sigma * np.sqrt(np.pi)) - sigma * np.sqrt(np.pi) / volume
    assert kernels.diffusion_kernel[middle, middle] == pytest.approx(expected, rel=5e-3)


def test_kernel_panels_and_their_colour_bars(kernels):
    titles = [ax.get_title() for ax in kernels.figure().axes]
    assert titles[0].startswith("Diffusion kernel")
    assert titles[1] == "Learned kernel b(x, y), rank 2"
    assert len(titles) == 4


def test_extension_gives_the_values_the_authors_drew(extension):
    assert len(extension.comparisons) == 7
    assert all(c.verdict is Verdict.AGREES for c in extension.comparisons)


def test_extension_passes_through_the_sample(extension):
    back = extension.sdp.transform(extension.x[:, None])
    np.testing.assert_allclose(back, extension.sdp.embedding_, atol=1e-7)
    mirrored = np.abs(extension.extended[::-1])
    np.testing.assert_allclose(mirrored, np.abs(extension.extended), atol=1e-5)


def test_extension_panels(extension):
    embedding, curves = extension.figure().axes
    assert sum(len(c.get_offsets()) for c in embedding.collections) == 115
    assert sum(len(c.get_offsets()) for c in curves.collections) == 230


def test_other_samples_are_not_compared_with_the_drawn_values():
    assert [c.quantity for c in interval_extension(n_points=20).comparisons] == ["rank of B"]
