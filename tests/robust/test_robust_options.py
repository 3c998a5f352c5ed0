"""Every parameter of a robust regression does something or is refused; callbacks see the history."""

import numpy as np
import pytest

from mercer import Gaussian, RobustKernelRidge, verify
from mercer.solvers.solution import Iteration, Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
y = np.sin(X[:, 0])


def ridge(**options):
    return RobustKernelRidge(**{"support": 8, "random_state": 0, **options}).fit(X, y)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"relaxation": "rkhs", "keep_sample": False}, r"^keep_sample has no effect with relaxation='rkhs'"),
        ({"relaxation": "rkhs", "truncation": 1e-3}, r"^truncation has no effect with relaxation='rkhs'"),
        ({"callback": "stop"}, r"^callback='stop' must be a function"),
        ({"tol": -1}, r"^tol"),
        ({"max_iter": 0}, r"^max_iter"),
        ({"truncation": 2.0}, r"^truncation"),
        ({"radius": 1e-200}, r"^radius=1e-200 is no ball in double precision: take radius=0\.$"),
        ({"target_sigma": 1e200}, r"^target_sigma=1e\+200 is beyond all measure for y of size"),
        ({"kernel": Gaussian(1e-200)}, r"^Gaussian\(sigma=1e-200\) has a width whose square leaves double precision"),
    ],
)
def test_options_of_a_robust_regression(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ridge(**options)


@pytest.mark.parametrize("options", [{"radius": 0.0}, {"relaxation": "rkhs"}, {"radius": 0.1}], ids=str)
def test_a_callback_of_a_robust_regression_sees_the_history_and_stops_without_a_warning(options):
    seen = []
    model = ridge(**options, callback=seen.append)
    assert tuple(seen) == model.history_
    assert all(isinstance(line, Iteration) for line in seen)
    model = ridge(**options, callback=lambda line: True)
    assert model.status_ is Status.STOPPED
    assert len(model.history_) == 1


def test_a_ball_that_holds_everything_is_one_ball():
    one, other = ridge(radius=2.0), ridge(radius=1e300)
    assert one.certificate_.upper == other.certificate_.upper
    assert verify(other, X, y).holds(1e-5)
