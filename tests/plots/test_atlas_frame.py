"""The data frame for Embedding Atlas has the columns and types that its documentation states."""

import numpy as np
import pandas as pd
import pytest

from mercer import Gaussian, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.plots import atlas_frame


@pytest.fixture(scope="module")
def fitted():
    X, labels = three_clusters()
    return SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X), X, labels


def test_columns_are_named_and_typed_as_documented(fitted, tmp_path):
    model, X, labels = fitted
    table = pd.DataFrame({"name": [f"row {i}" for i in range(len(X))], "neighbors": X[:, 0]})
    frame = atlas_frame(model, X, table=table, label=labels, n_neighbors=4)
    frame.to_parquet(tmp_path / "rows.parquet")
    back = pd.read_parquet(tmp_path / "rows.parquet")
    assert list(back.columns[:2]) == ["projection_x", "projection_y"]
    assert back["projection_x"].dtype == back["projection_y"].dtype == np.float64
    np.testing.assert_array_equal(back[["projection_x", "projection_y"]], model.embedding_)
    np.testing.assert_array_equal(back["neighbors_"], X[:, 0])  # the user's column gives way
    assert set(back["label"]) == {str(label) for label in np.unique(labels)}
    np.testing.assert_array_equal(back["novelty"], model.novelty(X))
    first = back["neighbors"][0]
    assert set(first) == {"ids", "distances"}
    far = np.linalg.norm(model.embedding_ - model.embedding_[0], axis=1)
    np.testing.assert_allclose(np.sort(far)[1:5], first["distances"], atol=1e-12)
    np.testing.assert_allclose(far[np.asarray(first["ids"])], first["distances"], atol=1e-12)
    assert 0 not in first["ids"]


def test_one_coordinate_gets_a_second_of_zero_and_neighbours_can_be_left_out(fitted):
    _, X, _ = fitted
    model = SDPEmbedding(Gaussian(sigma=1.2), n_components=1, random_state=0).fit(X)
    frame = atlas_frame(model, X, n_neighbors=0)
    assert not frame["projection_y"].any()
    assert "neighbors" not in frame
