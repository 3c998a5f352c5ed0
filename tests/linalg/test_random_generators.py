"""Whatever the caller holds becomes a generator, and nothing global is touched."""

import numpy as np
import pytest

from mercer.kernels.checks import as_generator


def test_a_seed_repeats():
    assert as_generator(3).uniform() == as_generator(3).uniform() == as_generator(np.int64(3)).uniform()
    assert as_generator(3).uniform() != as_generator(4).uniform()


def test_a_generator_is_itself():
    source = np.random.default_rng(0)
    assert as_generator(source) is source


def test_nothing_given_is_a_fresh_generator():
    assert as_generator(None).uniform() != as_generator(None).uniform()


def test_a_legacy_generator_gives_a_seed():
    one, two = (as_generator(np.random.RandomState(3)).uniform() for _ in range(2))
    assert one == two
    legacy = np.random.RandomState(3)
    assert as_generator(legacy).uniform() != as_generator(legacy).uniform()


@pytest.mark.parametrize("bad", [-1, "seed", 1.5, {}])
def test_anything_else_is_refused_in_one_sentence(bad):
    with pytest.raises(ValueError, match=r"^random_state=.* must be None, a whole number ≥ 0 or a random generator\.$"):
        as_generator(bad)


def test_the_global_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    as_generator(None).uniform()
    as_generator(5).uniform()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
