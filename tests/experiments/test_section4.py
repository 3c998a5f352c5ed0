"""PSD22 section 4 at small size: which of its bounds hold, and the step of a proof that does not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.experiments.psd22.section4 import kernelised_statements, measure_decay
from mercer.experiments.report import Verdict


@pytest.fixture(scope="module")
def statements():
    return kernelised_statements(n_draws=2, largest=48)


def test_every_bound_holds_but_one_step_of_a_proof(statements):
    differing = [line for line in statements.comparisons if line.verdict is Verdict.DIFFERS]
    assert [line.quantity for line in differing] == ["Thm 4.5, (4.4): f(V*B⋆V) ≤ f⋆⋆"]
    found = statements.approximation
    assert found.best <= found.ceiling < 0.87 * found.coarse


def test_constraints_decay_faster_than_proved(statements):
    assert [decay.proved for decay in statements.decays] == [1, 2, 1, 2]
    assert all(decay.measured > decay.proved + 0.8 for decay in statements.decays)
    assert all(np.all(np.diff(decay.errors[-3:]) < 0) for decay in statements.decays)
    assert max(decay.gaps.max() for decay in statements.decays) < 1e-6


def test_the_exponent_on_an_interval_is_the_order_of_the_space():
    assert measure_decay("interval", 1.5, (20, 40, 80)).measured == pytest.approx(2.0, abs=0.1)


def test_the_figure_is_drawn(statements):
    figure = statements.figure()
    assert [ax.get_title() for ax in figure.axes] == ["Constraints between the points", "Objective and covering"]
