"""PSD22 Figs 4 and 6 and Table 1: quick parts of MNIST and HTRU2 always, the whole when asked."""

import numpy as np
import pytest

from mercer.datasets import data_folder
from mercer.experiments import Verdict, digits_one_and_four, pulsar_classification, pulsar_embedding

pytestmark = pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")


def test_part_of_the_digits():
    result = digits_one_and_four(n_total=800)
    assert result.sdp.rank_ == 2
    assert result.sdp.certificate_.holds(1e-6)
    assert result.error < 0.04
    assert len(result.train_labels) == 240
    np.testing.assert_array_equal(np.unique(result.test_labels), [1, 4])
    assert all("800 of 12584" in c.reason for c in result.comparisons)
    assert [ax.get_title().split(":")[0] for ax in result.figure().axes] == ["240 embedded", "560 extended"]


@pytest.mark.slow
def test_all_digits():
    assert all(c.verdict is Verdict.AGREES for c in digits_one_and_four().comparisons)


def test_part_of_the_pulsars():
    result = pulsar_embedding(n_total=900)
    assert len(result.labels) == 630
    assert result.sdp.certificate_.holds(1e-6)
    assert len(result.figure().axes) == 2
    others, pulsars = (result.sdp.embedding_[result.labels == c, 0] for c in (0, 1))
    assert abs(np.median(pulsars) - np.median(others)) > 2 * np.median(np.abs(others - np.median(others)))


@pytest.fixture(scope="module")
def table():
    return pulsar_classification((10.0,), n_splits=2, n_total=900)


def test_table_has_a_row_for_each_method(table):
    assert list(table.scores) == [("SDP embedding", 10.0), ("diffusion maps", 10.0)]
    assert all(scores.shape == (2, 2) for scores in table.scores.values())
    assert all((scores > 0.5).all() and (scores <= 1).all() for scores in table.scores.values())
    *entries, features = table.comparisons
    assert [c.quantity.split(",")[0] for c in entries] == ["precision", "recall"] * 2
    assert all("900 candidates" in c.reason for c in entries)
    assert (features.paper, features.measured, features.verdict) == (9, 8, Verdict.DIFFERS)
    assert [ax.get_title() for ax in table.figure().axes] == ["Precision of the pulsars", "Recall of the pulsars"]


@pytest.mark.slow
def test_all_pulsars():
    figure, table = pulsar_embedding(), pulsar_classification()
    assert figure.comparisons[0].verdict is Verdict.AGREES
    assert sum(c.verdict is Verdict.AGREES for c in table.comparisons) >= 7
