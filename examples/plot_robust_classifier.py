"""
A classifier that is prepared for the worst
===========================================

A sample has two groups of points, and one of them is rare: nine points in ten belong to the left group. A classifier
with a stiff kernel serves the frequent one. Tomorrow the shares may be others.

:class:`mercer.RobustKernelClassifier` minimises the mean loss under the worst distribution within a distance of the
sample, here over all weights of the same points. The size of the points is the weight that the worst distribution gives
them; the lines are where the two models change their mind.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

import mercer

rng = np.random.default_rng(3)


def draw(n, rare):
    """Points of the plane: the label is above or below a line that rises in the left group and falls in the right."""
    right = rng.random(n) < rare
    along, label = rng.uniform(-1, 1, n), rng.integers(0, 2, n)
    side = np.where(label == 1, 1.0, -1.0)
    across = np.where(right, -0.9, 0.9) * along + side * rng.uniform(0.15, 0.8, n)
    return np.column_stack([along + np.where(right, 1.2, -1.2), across]), label


X, y = draw(150, 0.1)
options = {"kernel": mercer.Gaussian(sigma=4.0), "loss": "logistic", "regularization": 3e-4, "tol": 1e-4}
plain = mercer.RobustKernelClassifier(radius=0.0, **options).fit(X, y)
robust = mercer.RobustKernelClassifier(radius=0.1, **options).fit(X, y)
print(robust.certificate_)

figure, panel = plt.subplots(figsize=(5.5, 4), layout="constrained")
weights = robust.adversary_weights_
panel.scatter(*robust.inputs_.T, s=5 + 1500 * weights, c=robust.candidate_targets_, cmap="coolwarm", alpha=0.7)
grid = np.stack(np.meshgrid(np.linspace(-2.4, 2.4, 80), np.linspace(-1.8, 1.8, 60)), axis=-1)
for model, style in ((plain, "--"), (robust, "-")):
    values = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    panel.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="black", linestyles=style)
panel.set(title="dashed: fitted to the sample; solid: to the worst case", xlabel="x", ylabel="y")
plt.show()

# %%
# Test data with other shares of the rare group: the more it counts, the more preparation pays. A part of that is less
# regularisation, which cross-validation on the sample finds too (dotted). What no plain model has is a promise: no
# weights of these points within the radius have a mean loss above ``robust_risk_``.

print(f"mean loss on the sample {robust.sample_risk_:.3f}, under the worst weights at most {robust.robust_risk_:.3f}")
tuned = GridSearchCV(plain, {"regularization": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]}).fit(X, y)
models = (
    (plain, "--", "fitted to the sample"),
    (tuned, ":", "the same, λ by cross-validation"),
    (robust, "-", "fitted to the worst case"),
)
shares = np.linspace(0.0, 1.0, 11)
tests = [draw(1000, share) for share in shares]
figure, panel = plt.subplots(figsize=(5.5, 4), layout="constrained")
for model, style, name in models:
    wrong = [np.mean(model.predict(inputs) != labels) for inputs, labels in tests]
    panel.plot(shares, wrong, f"k{style}", label=name)
panel.axvline(0.1, color="gray", lw=0.8)
panel.set(title="test data", xlabel="share of the rare group", ylabel="share of wrong labels")
panel.legend()
plt.show()
