r"""
Are these two samples different?
================================

442 patients with diabetes: what was measured when they came, and how far the disease had gone a year later. Do the two
sexes differ in what was measured? Does the progress of the disease depend on it? :doc:`/user_guide/testing` explains
the answers to a person without statistics, and has the mistakes to avoid.
"""

# %%
# One column
# ----------
# The sentence says whether the samples differ. The left picture has the statistic among those of 999 random
# relabellings of the patients, the right one says where the difference lies: below 92 there are more patients of the
# first sex, from there to 125 more of the second.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from mercer import Gaussian, hsic_test, mmd_test
from mercer.plots import plot_dependence, plot_null, plot_witness

data = load_diabetes(scaled=False, as_frame=True)
first, second = (data.data[data.data.sex == code].drop(columns="sex") for code in (1, 2))
labels = "sex 1", "sex 2"
X, Y = first[["bp"]].to_numpy(), second[["bp"]].to_numpy()
result = mmd_test(X, Y, rng=0)
print(result)

_, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_null(result, axes[0])
plot_witness(result, X, Y, axes[1], labels=labels, names=["blood pressure"])
plt.show()

# %%
# All columns at once
# -------------------
# Nine columns in units of their own, standardised by all patients together, whichever sex they are: a scale that is
# chosen without looking at the labels leaves the p-value valid. One test of all columns, instead of nine tests of which
# the best is reported. The picture has the two columns that tell most of the difference.

together = data.data.drop(columns="sex")
scale = together.std()
result = mmd_test(first / scale, second / scale, rng=0)
print(result)

figure, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
plot_witness(result, first / scale, second / scale, ax, labels=labels)
plt.show()

# %%
# What a p-value promises
# -----------------------
# The patients of one sex, cut into halves at random 200 times: there is nothing to be found, and every p-value is
# as frequent as any other. One in twenty is below 0.05, and that is the promise. Who looks again and again while rows
# come in, and stops when the p-value is small, breaks it: the second histogram has the smallest of four looks. (One
# kernel does for this, to be quick.)

rng = np.random.default_rng(0)
blood = first[["bp", "bmi"]].to_numpy()
once, peeked = [], []
for _ in range(200):
    rows = rng.permutation(len(blood))
    looks = [
        mmd_test(blood[rows[:n]], blood[rows[40 : 40 + n]], Gaussian(), n_resamples=99, rng=rng).pvalue
        for n in (10, 20, 30, 40)
    ]
    once.append(looks[-1])
    peeked.append(min(looks))

_, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axis, pvalues, title in zip(axes, (once, peeked), ("one look", "the smallest of four looks"), strict=True):
    axis.hist(pvalues, np.linspace(0, 1, 11), color="#4477aa")
    axis.axhline(20, color="#ee6677", linewidth=1)
    axis.set(title=f"{title}: {np.mean(np.array(pvalues) <= 0.05):.0%} below 0.05", xlabel="p-value")
plt.show()

# %%
# Does one column depend on another?
# ----------------------------------
# The progress of the disease and the body mass index: blue pairs are met more often than if the two had nothing to do
# with each other, red ones less often.

bmi, progress = data.data["bmi"].to_numpy(), data.target.to_numpy()
result = hsic_test(bmi, progress, rng=0)
print(result)

_, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_null(result, axes[0])
plot_dependence(result, bmi, progress, axes[1], x_names=["body mass index"], y_names=["progress after a year"])
plt.show()
