"""Samples whose rows come a block at a time: the discrepancies and tests of the same rows in memory."""

import numpy as np
import pytest

import mercer
from mercer import Gaussian, MeanEmbedding, mmd, mmd_test, open_rows
from mercer.kernels.neighbours import nearest_to

rng = np.random.default_rng(11)
X, Y = rng.normal(size=(620, 5)), rng.normal(size=(450, 5)) + 0.15
KERNEL = Gaussian(2.0)


@pytest.fixture(params=["npy", "parquet"])
def rows(request, tmp_path):
    if request.param == "npy":
        np.save(tmp_path / "x.npy", X)
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.table({str(k): X[:, k] for k in range(5)}), tmp_path / "x.parquet", row_group_size=170)
    return open_rows(tmp_path / f"x.{request.param}")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._SOURCE_BYTES", 15_000)
    monkeypatch.setattr("mercer.backends.cpu.streamed._OUTER_BYTES", 30_000)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_discrepancies(rows, estimator):
    options = {"kernel": KERNEL, "estimator": estimator}
    if estimator == "linear":
        plain, streamed = (mmd(each, Y, return_std=True, block_size=7, **options) for each in (X, rows))
        assert streamed == pytest.approx(plain, rel=1e-9)
    else:
        weights = np.linspace(0.5, 2.0, 620)
        assert mmd(rows, Y, **options) == pytest.approx(mmd(X, Y, **options), rel=1e-9)
        assert mmd(Y, rows, y_weights=weights, **options) == pytest.approx(
            mmd(Y, X, y_weights=weights, **options), rel=1e-9
        )


def test_a_test_in_features_of_landmarks_is_that_in_memory(rows):
    for kernel in (KERNEL, [Gaussian(1.0), Gaussian(3.0)]):
        plain, streamed = (mmd_test(each, Y, kernel, compress=40, n_resamples=99, rng=3) for each in (X, rows))
        assert streamed.statistic == pytest.approx(plain.statistic, rel=1e-6)
        assert streamed.pvalue == plain.pvalue
        np.testing.assert_allclose(streamed.witness(Y[:9]), plain.witness(Y[:9]), rtol=1e-6)
    assert mmd_test(rows, Y, compress="landmarks", rng=0).rejects(0.05)  # with the default collection
    same = mmd_test(rows, open_rows(rng.normal(size=(600, 5))), compress="landmarks", rng=0)
    assert not same.rejects(0.01)
    with pytest.raises(ValueError, match="pass compress='landmarks'"):
        mmd_test(rows, Y, KERNEL)


def test_an_embedding_is_a_function_of_all_rows(rows):
    plain, streamed = MeanEmbedding(KERNEL, X), MeanEmbedding(KERNEL, rows)
    np.testing.assert_allclose(streamed(Y[:50]), plain(Y[:50]), rtol=1e-10)
    assert streamed.norm() == pytest.approx(plain.norm(), rel=1e-10)
    assert streamed @ plain == pytest.approx(plain.norm_squared, rel=1e-10)
    assert MeanEmbedding(None, rows).kernel.sigma == MeanEmbedding(None, X).kernel.sigma


def test_nearest_rows(rows):
    numbers, squares = nearest_to(rows, Y[:30], 12)
    apart = ((Y[:30, None] - X) ** 2).sum(axis=2)
    np.testing.assert_array_equal(numbers, np.argsort(apart, axis=1)[:, :12])
    np.testing.assert_allclose(squares, np.sort(apart, axis=1)[:, :12], rtol=1e-12)


def test_an_embedding_grows_with_a_stream_within_its_bound(tmp_path):
    """At the first rows it is exact; elsewhere it is off by no more than the bound, which cannot be left out."""
    first, further = X[:60], X[60:]
    grown = MeanEmbedding(KERNEL, first).partial_fit(further[:100])
    mercer.save(grown, tmp_path / "grown.mercer")
    grown = mercer.load(tmp_path / "grown.mercer").partial_fit(further[100:])
    whole = MeanEmbedding(KERNEL, X)
    np.testing.assert_allclose(grown(first), whole(first), rtol=1e-6)
    off = (grown - whole).norm()
    assert 0.01 < off <= grown.projection_error < 30 * off
    one = MeanEmbedding(KERNEL, first).partial_fit(X[100:101])
    apart = (one - MeanEmbedding(KERNEL, np.concatenate([first, X[100:101]]))).norm()
    assert apart <= one.projection_error <= 1.02 * apart  # tight for one row: nothing can be left out
    again = MeanEmbedding(KERNEL, first).partial_fit(np.repeat(first, 3, axis=0))
    assert again.projection_error < 1e-4
    assert again.distance(MeanEmbedding(KERNEL, first)) < 1e-4
    with pytest.raises(ValueError, match="rows count alike: give no weights"):
        MeanEmbedding(KERNEL, first, weights=2.0).partial_fit(further)
    with pytest.raises(ValueError, match="X has 2 features"):
        grown.partial_fit(further[:, :2])


def test_a_few_rows_are_tested_with_the_default_collection(tmp_path):
    np.save(tmp_path / "few.npy", X[:200])
    streamed, plain = (
        mmd_test(each, Y[:150], compress=40, n_resamples=99, rng=3)
        for each in (open_rows(tmp_path / "few.npy"), X[:200])
    )
    assert streamed.pvalue == plain.pvalue


def test_what_needs_all_rows_says_so(rows):
    for ask in (
        lambda: mercer.hsic_test(rows, X[:, 0]),
        lambda: mercer.hsic(X[:, 0], rows),
        lambda: mercer.conditional_independence_test(rows, X[:, 0], X[:, 1]),
    ):
        with pytest.raises(TypeError, match="needs all 620 rows at once"):
            ask()
    with pytest.raises(ValueError, match="give candidates, such as"):
        mercer.kernel_herding(rows, 3, kernel=KERNEL)
    chosen = mercer.kernel_herding(rows, 3, candidates=rows[:100], kernel=KERNEL)
    np.testing.assert_array_equal(
        chosen.indices, mercer.kernel_herding(X, 3, candidates=X[:100], kernel=KERNEL).indices
    )
