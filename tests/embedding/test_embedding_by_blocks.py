"""Embeddings of rows that come a block at a time: those of the same landmarks in memory."""

import numpy as np
import pytest

import mercer
from mercer import DiffusionMaps, Gaussian, KernelPCA, Landmarks, SDPEmbedding, config_context, open_rows
from mercer.datasets import three_clusters

X, _ = three_clusters()
X = np.concatenate([X + 1e-3 * k for k in range(5)])
LANDMARKS = np.arange(0, X.shape[0], 13)


@pytest.fixture
def rows(tmp_path):
    np.save(tmp_path / "points.npy", X)
    with config_context(memory_limit="0.2MB"):
        yield open_rows(tmp_path / "points.npy")


@pytest.mark.parametrize(
    "make",
    [
        lambda: SDPEmbedding(Gaussian("median"), landmarks=LANDMARKS, random_state=0),
        lambda: SDPEmbedding(landmarks=LANDMARKS, random_state=0),
        lambda: DiffusionMaps(Gaussian("median"), landmarks=LANDMARKS, random_state=0),
        lambda: KernelPCA(Gaussian("median"), landmarks=LANDMARKS, random_state=0),
    ],
    ids=["SDPEmbedding", "default", "DiffusionMaps", "KernelPCA"],
)
def test_a_fit_is_that_in_memory(rows, make):
    plain, model = make().fit(X), make().fit(rows)
    assert mercer.io.fingerprint(rows) == mercer.io.fingerprint(X) == model._data_seen.fingerprint
    scale = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-7 * scale)
    new = open_rows(X[::3] + 0.01)
    np.testing.assert_allclose(model.transform(new), plain.transform(X[::3] + 0.01), atol=1e-7 * scale)


def test_landmarks_are_chosen_in_a_part_and_stand_for_all(rows):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, X.shape[0])
    chosen = Landmarks(20, kernel=Gaussian(2.0), strategy="k-means", random_state=0).fit(rows, sample_weight=weights)
    assert chosen.indices_.size == 20
    assert chosen.weights_.sum() == pytest.approx(weights.sum())
    K = Gaussian(2.0)(X)
    cross = K[:, chosen.indices_]
    left = np.diag(K) - np.einsum("ij,ij->i", cross @ np.linalg.inv(K[np.ix_(chosen.indices_, chosen.indices_)]), cross)
    assert chosen.share_left_out_ == pytest.approx(weights @ left / weights.sum(), rel=1e-6)
    near = np.argmax(cross, axis=1)
    np.testing.assert_allclose(chosen.weights_, np.bincount(near, weights, minlength=20))
    model = SDPEmbedding(Gaussian(2.0), landmarks=30, random_state=0).fit(rows)
    assert model.certificate_.holds(1e-6)


def test_coordinates_go_to_a_file_whole_or_not_at_all(rows, tmp_path):
    model = SDPEmbedding(Gaussian("median"), landmarks=LANDMARKS, random_state=0).fit(rows)
    written = mercer.io.write_rows(model.transform, rows, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.transform(rows))
    assert written.shape == model.embedding_.shape
    before = (tmp_path / "out.npy").read_bytes()
    broken = X.copy()
    broken[-1, 0] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    with pytest.raises(ValueError, match=r"broken\.npy has nan in row 1549, column 0"):
        mercer.io.write_rows(model.transform, open_rows(tmp_path / "broken.npy"), tmp_path / "out.npy")
    assert (tmp_path / "out.npy").read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broken.npy", "out.npy", "points.npy"]


def test_what_needs_all_rows_or_too_much_room_says_so(rows):
    for model in (SDPEmbedding(), KernelPCA(), SDPEmbedding(Gaussian("median"))):
        with pytest.raises(ValueError, match=r"points\.npy is read a block at a time.*1550 rows.*landmarks=1000"):
            model.fit(rows)
    with pytest.raises(TypeError, match="needs all 1550 rows at once"):
        mercer.SumOfSquaresDensity().fit(rows)
    with pytest.raises(ValueError, match="X has 3 features, but KernelPCA is expecting 2"):
        KernelPCA(landmarks=LANDMARKS).fit(rows).transform(open_rows(np.ones((5, 3))))
    far = np.concatenate([X, [[1e160, 0.0]]])
    with pytest.raises(ValueError, match="In rows [0-9]+ to 1550, counted from 0 there: Row [0-9]+ of X is so far"):
        SDPEmbedding(Gaussian("median"), landmarks=LANDMARKS, radius="paper").fit(X).transform(open_rows(far))
    with pytest.raises(MemoryError, match="write it to a file by mercer.io.write_rows"), config_context(memory_limit=1):
        SDPEmbedding(Gaussian("median"), landmarks=LANDMARKS).fit(X).transform(open_rows(np.ones((1_500_000, 2))))


@pytest.mark.parametrize("limit", ["0.5MB", "1GB"])
def test_the_extension_is_certified_on_all_rows_of_a_file(tmp_path, limit):
    """The same bounds as in memory, to rounding: by a factorisation, and from products alone where memory is short."""
    np.save(tmp_path / "points.npy", X[:700])
    rows = open_rows(tmp_path / "points.npy")
    model = SDPEmbedding(Gaussian(2.0), landmarks=LANDMARKS[:50], random_state=0).fit(rows)
    with config_context(memory_limit=limit):
        plain = mercer.verify(model, X[:700], extended=True, random_state=0)
        proof = mercer.verify(model, rows, extended=True, random_state=0)
    assert ("factorisation" in proof.method) == (limit == "1GB")
    assert proof.method == plain.method
    assert proof.lower == pytest.approx(plain.lower, rel=1e-9)
    assert proof.upper == pytest.approx(plain.upper, rel=1e-9)
    assert mercer.verify(model, rows).lower == pytest.approx(model.certificate_.lower, rel=1e-9)
    with pytest.raises(ValueError, match="damaged, or of other data"):
        mercer.verify(model, open_rows(X[:700] + 0.5))
