r"""
Has the stream drifted?
=======================

Rows arrive one after the other, and somewhere their law changes: the means stay where they were, only the dependence
between two columns is another. :class:`mercer.DriftDetector` compares the newest rows with a reference and raises an
alarm at a threshold that a stream without change reaches once in ten thousand rows.
"""

# %%
# The stream
# ----------
# A reference of 800 rows, and 1 500 rows of a stream, of which the last 500 are another law. Each column by itself is
# the same all the time, so that charts of single columns show nothing.

import matplotlib.pyplot as plt
import numpy as np

from mercer import DriftDetector

rng = np.random.default_rng(4)


def rows(count, correlation):
    X = rng.normal(size=(count, 2))
    X[:, 1] = correlation * X[:, 0] + np.sqrt(1 - correlation**2) * X[:, 1]
    return X


reference = rows(800, 0.0)
stream = np.concatenate([rows(1000, 0.0), rows(500, 0.7)])

# %%
# The scores
# ----------
# The score of a row is the largest of its windows' distances to the reference, each in units of its own chance. It
# wanders below the threshold as long as nothing happens.

detector = DriftDetector(false_alarms=1e-4, n_simulated_alarms=50, random_state=0).fit(reference)
_, scores = detector.update(stream, return_scores=True)
print(f"windows {detector.window_}, alarm at row {detector.alarm_at_}")

_, (top, middle) = plt.subplots(2, 1, figsize=(9, 5.2), sharex=True, layout="constrained")
top.plot(stream, ".", markersize=2)
top.set_ylabel("both columns")
middle.plot(scores, color="0.3", linewidth=1)
middle.axhline(detector.threshold_, color="tab:red", linestyle="--", label="threshold")
middle.axvline(1000, color="tab:blue", linestyle=":", label="the law changes")
middle.axvline(detector.alarm_at_, color="tab:red", label=f"alarm, row {detector.alarm_at_}")
middle.set(xlabel="row of the stream", ylabel="score")
middle.legend(loc="upper left")
plt.show()

# %%
# Where it has gone
# -----------------
# The witness is positive where rows have become more frequent, here along the diagonal, and negative where they have
# become rarer.

grid = np.stack(np.meshgrid(np.linspace(-3, 3, 60), np.linspace(-3, 3, 60)), axis=-1)
values = detector.witness(grid.reshape(-1, 2)).reshape(60, 60)
largest = np.abs(values).max()
_, axes = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
shades = axes.contourf(grid[..., 0], grid[..., 1], values, 20, cmap="RdBu_r", vmin=-largest, vmax=largest)
axes.plot(*stream[-400:].T, "k.", markersize=2)
axes.set(title="the newest 400 rows, and the witness", xlabel="first column", ylabel="second column")
plt.colorbar(shades, label="more frequent than in the reference")
plt.show()
