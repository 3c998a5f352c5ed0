"""No call ends in NaN or in another library's words: random estimators and functions on random samples.

The default run takes a few trials of each; ``-m slow`` lets Hypothesis search, which then shrinks what it finds.
"""

from __future__ import annotations

import numpy as np
import pytest
from fuzz_estimators import SPACES
from fuzz_functions import NAMES, run_call
from fuzz_judging import Defect, attempt, finite
from fuzz_trials import run_trial
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

import mercer
from mercer import Gaussian, KernelPCA

QUICK = 3  # trials of each by default
SEARCH = settings(
    max_examples=150, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)  # fmt: skip


def picking(seed):
    rng = np.random.default_rng(seed)
    return lambda options: options[int(rng.integers(len(options)))]


def test_every_public_estimator_is_tried():
    public = {name: getattr(mercer, name) for name in mercer.__all__}
    assert {name for name, kind in public.items() if isinstance(kind, type) and issubclass(kind, BaseEstimator)} == {
        *SPACES
    }


@pytest.mark.parametrize("name", SPACES)
def test_a_few_trials_of_an_estimator(name):
    for seed in range(QUICK):
        run_trial(picking([seed, 7]), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_few_calls_of_a_function(name):
    for seed in range(QUICK):
        run_call(picking([seed, 7]), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_estimators(name):
    @SEARCH
    @given(st.data())
    def search(data):
        run_trial(lambda options: data.draw(st.sampled_from(options)), name)

    search()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    @SEARCH
    @given(st.data())
    def search(data):
        run_call(lambda options: data.draw(st.sampled_from(options)), name)

    search()


# --- the judge sees what it is to see -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.linalg.cholesky(-np.eye(2)),
        lambda: [][0],
        lambda: 1 / 0,
        lambda: np.zeros(3).reshape(2, 2),
        lambda: np.log(np.zeros(2)),
        lambda: KernelPCA().fit(np.eye(3)).transform(None + 1),
    ],
)
def test_an_exception_or_warning_of_another_library_is_a_defect(call):
    with pytest.raises(Defect):
        attempt("a call", call)


def test_a_refusal_is_none():
    assert "at least" in attempt("a call", lambda: KernelPCA(n_components=0).fit(np.eye(3))).sentence


@pytest.mark.parametrize("value", [np.nan, np.array([1.0, np.inf]), {"a": [np.nan]}, (1, [np.array(np.nan)])])
def test_what_is_not_finite_is_found(value):
    with pytest.raises(Defect, match="not finite"):
        finite("an answer", value)
    finite("an answer", Gaussian())
