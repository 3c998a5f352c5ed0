"""Drift of a stream: the stated rate of false alarms, what is found how soon, and the state between calls."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import DriftDetector, Gaussian, Landmarks, Mixed, Precomputed, mmd
from mercer.dependence import drift_threshold
from mercer.dependence.sliding import largest_scores

QUICK = {"window": (8, 20), "false_alarms": 0.01, "landmarks": 20, "random_state": 0}
REFERENCE = np.random.default_rng(1).normal(size=(300, 2))
STREAM = np.random.default_rng(2).normal(size=(150, 2))


@pytest.fixture
def detector():
    return DriftDetector(**QUICK).fit(REFERENCE)


def run_lengths(references, streams, size, **options):
    """Rows up to the first alarm, where nothing changes."""
    found = []
    for seed in range(references):
        rng = np.random.default_rng(seed)
        detector = DriftDetector(**{**QUICK, **options, "random_state": seed}).fit(rng.exponential(size=(size, 2)))
        for _ in range(streams):
            detector.reset()
            while detector.alarm_at_ is None:
                detector.update(rng.exponential(size=(250, 2)))
            found.append(detector.alarm_at_)
    return np.array(found)


# --- the rate of false alarms -----------------------------------------------------------------------------------------


def test_the_mean_run_to_a_false_alarm_is_the_stated_one(monkeypatch):
    """In 160 runs of mean 100, standard error 9; without the chance in the reference they are far shorter."""
    assert 70 < run_lengths(8, 20, 400).mean() < 135
    lengths = run_lengths(8, 15, 45).mean()
    monkeypatch.setattr(drift_threshold, "_reference_mean", lambda features, chance: np.zeros(features.shape[1]))
    assert run_lengths(8, 15, 45).mean() < 0.75 * lengths


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "window"), [(1e-3, None), (2e-3, 50), (5e-3, (5, 30))])
def test_the_mean_run_holds_for_long_runs_too(rate, window):
    assert 0.8 / rate < run_lengths(40, 8, 1000, false_alarms=rate, window=window).mean() < 1.3 / rate


# --- scores -----------------------------------------------------------------------------------------------------------


def test_scores_are_scaled_discrepancies_of_the_windows():
    rng = np.random.default_rng(0)
    rows, o = rng.normal(size=(60, 3)), rng.normal(size=3)
    found = largest_scores(rows, np.arange(60), (5, 20), 100, o)
    assert (found[:4] == -np.inf).all()
    for t in (4, 18, 19, 59):
        full = [w for w in (5, 20) if w <= t + 1]
        expected = max(np.sum((rows[t + 1 - w : t + 1].mean(0) - o) ** 2) / (1 / w + 1 / 100) for w in full)
        assert found[t] == pytest.approx(expected, rel=1e-10)


def test_with_every_row_a_landmark_the_statistic_is_the_discrepancy():
    reference = REFERENCE[:40]
    detector = DriftDetector(Gaussian(0.5), **{**QUICK, "window": 15, "landmarks": 40}).fit(reference)
    detector.update(reference[:15])
    expected = mmd(reference[:15], reference, Gaussian(0.5)) / (1 / 15 + 1 / 40)
    assert detector.statistic_ == pytest.approx(expected, rel=1e-4)


def test_rows_one_by_one_or_in_any_batches_give_the_same(detector):
    _, whole = detector.update(STREAM, return_scores=True)
    for sizes in ([*[1] * 60, 90], [30, 1, 99, 20]):
        detector.reset()
        parts = [detector.update(part, return_scores=True)[1] for part in np.split(STREAM, np.cumsum(sizes)[:-1])]
        assert np.concatenate(parts)[7:] == pytest.approx(whole[7:], rel=1e-9)
        assert (np.concatenate(parts)[:7] == -np.inf).all()
    assert detector.n_seen_ == 150
    assert detector.update(STREAM[0]) in (True, False)
    assert detector.n_seen_ == 151


@pytest.mark.parametrize("moved", [lambda Z: Z + 1.0, lambda Z: 2.5 * Z, lambda Z: Z[:, [0, 0]]])
def test_a_change_is_found_within_a_window_or_two(detector, moved):
    rng = np.random.default_rng(3)
    assert not detector.update(rng.normal(size=(15, 2)))
    assert detector.update(moved(rng.normal(size=(60, 2))))
    assert 15 < detector.alarm_at_ <= 60


def test_the_witness_shows_where_the_stream_has_gone(detector):
    detector.update(np.random.default_rng(0).normal(size=(20, 2)) + np.array([3.0, 0.0]))
    values = detector.witness(np.array([[3.0, 0.0], [0.0, 0.0]]))
    assert values[0] > 0 > values[1]


# --- interface --------------------------------------------------------------------------------------------------------


def test_a_pickled_detector_goes_on_where_it_was(detector):
    detector.update(STREAM[:50])
    copy = pickle.loads(pickle.dumps(detector))
    assert copy.update(STREAM[50:], return_scores=True)[1] == pytest.approx(
        detector.update(STREAM[50:], return_scores=True)[1], rel=1e-12
    )
    assert copy.alarm_at_ == detector.alarm_at_
    assert copy.threshold_ == clone(detector).fit(REFERENCE).threshold_


def test_a_failed_fit_leaves_the_detector_as_it_was(detector):
    before = detector.threshold_
    with pytest.raises(ValueError, match="twice as many rows"):
        detector.fit(REFERENCE[:10])
    assert detector.threshold_ == before


def test_frames_of_numbers_and_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)

    def frame(n, chance):
        return pd.DataFrame({"size": rng.normal(size=n), "kind": rng.choice(["a", "b"], n, p=[1 - chance, chance])})

    detector = DriftDetector(Mixed(), **{**QUICK, "window": 40}).fit(frame(300, 0.2))
    assert not detector.update(frame(60, 0.2))
    assert detector.update(frame(60, 0.9))
    detector.reset()
    assert not detector.update(frame(60, 0.2).iloc[0])  # a row of a data frame
    assert detector.n_seen_ == 1


def test_tensors_give_what_arrays_give(detector):
    torch = pytest.importorskip("torch")
    other = DriftDetector(**QUICK).fit(torch.as_tensor(REFERENCE))
    assert other.threshold_ == pytest.approx(detector.threshold_, rel=1e-6)
    assert other.update(torch.as_tensor(STREAM), return_scores=True)[1][30:] == pytest.approx(
        detector.update(STREAM, return_scores=True)[1][30:], rel=1e-6
    )


def test_windows_follow_the_reference():
    quick = {"false_alarms": 0.02, "landmarks": 5, "n_simulated_alarms": 10, "random_state": 0}
    assert DriftDetector(**quick).fit(np.random.default_rng(0).normal(size=(900, 1))).window_ == (25, 100, 400)
    assert DriftDetector(**quick).fit(REFERENCE[:80]).window_ == (2, 10, 40)
    assert DriftDetector(window=[9, 3, 9], **quick).fit(REFERENCE).window_ == (3, 9)
    assert DriftDetector(window=np.int64(7), **{**quick, "landmarks": Landmarks(5)}).fit(REFERENCE).window_ == (7,)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": 1}, "window=1 must be a whole number of at least 2"),
        ({"window": []}, "window is empty"),
        ({"window": "long"}, "window='long' must be a whole number"),
        ({"window": 200}, "window=200 needs a reference of twice as many rows, and it has 300"),
        ({"false_alarms": 0}, "false_alarms=0 must lie strictly between 0 and 1"),
        ({"landmarks": 1}, "landmarks=1 must be a whole number of at least 2"),
        ({"n_simulated_alarms": 1}, "n_simulated_alarms=1 must be a whole number of at least 10"),
        ({"kernel": Precomputed()}, "pass points, not Precomputed"),
    ],
)
def test_bad_parameters_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        DriftDetector(**{**QUICK, **options}).fit(REFERENCE)


def test_nothing_is_said_before_there_is_something_to_say(detector):
    with pytest.raises(NotFittedError):
        DriftDetector().update(REFERENCE)
    with pytest.raises(ValueError, match="has seen no rows"):
        detector.witness(REFERENCE)
    with pytest.raises(ValueError, match="features"):
        detector.update(np.zeros((3, 5)))
