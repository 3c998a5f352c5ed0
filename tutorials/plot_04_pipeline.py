r"""
A pipeline with a grid search
=============================

An embedding is a step like any other of scikit-learn's: it stands in a pipeline, and a grid search reaches the
parameters of its kernel.
"""

# %%
# A file
# ------
# 600 images of digits, 64 columns of pixels, and the digit.

import tempfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

file = Path(tempfile.mkdtemp()) / "digits.csv"
load_digits(as_frame=True).frame.rename(columns={"target": "digit"}).head(600).to_csv(file, index=False)

images = pd.read_csv(file)
digit = images.pop("digit")
train, test, train_digit, test_digit = train_test_split(images, digit, test_size=0.5, random_state=0, stratify=digit)

# %%
# A pipeline
# ----------
# The embedding sees the pixels and not the digits; five nearest neighbours in its coordinates see both. Named steps
# make named parameters.

from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from mercer import SDPEmbedding, SelfTuning

pipeline = Pipeline(
    [
        ("embed", SDPEmbedding(SelfTuning(), random_state=0)),
        ("classify", KNeighborsClassifier(5)),
    ]
)
print(f"as it is: {pipeline.fit(train, train_digit).score(test, test_digit):.3f}")

# %%
# A grid search
# -------------
# ``embed__kernel__n_neighbors`` is the parameter ``n_neighbors`` of the kernel of the step ``embed``. The search fits
# each combination on two thirds of the training rows and scores it on the rest, three times; the test rows take no
# part.

from sklearn.model_selection import GridSearchCV

grid = {"embed__kernel__n_neighbors": [6, 10, 15], "embed__n_levels": [2, 4], "classify__n_neighbors": [1, 5]}
search = GridSearchCV(pipeline, grid, cv=3).fit(train, train_digit)

table = pd.DataFrame(search.cv_results_).sort_values("rank_test_score")
columns = {f"param_{name}": name for name in grid} | {"mean_test_score": "accuracy"}
table[list(columns)].rename(columns=columns).head(5).round(3)

# %%
# The best of them is fitted again on all training rows. Its levels have their certificates as always.

best = search.best_estimator_
print(search.best_params_)
print(f"on the test rows: {best.score(test, test_digit):.3f}")
print(best.named_steps["embed"].certificate_)

# %%
# Was it worth it?
# ----------------
# An honest search has the plain alternatives beside it.

from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

others = {
    "five neighbours in the pixels": KNeighborsClassifier(5),
    "five neighbours in 10 principal components": make_pipeline(PCA(10), KNeighborsClassifier(5)),
    "a support vector machine": SVC(),
}
for name, other in others.items():
    print(f"{name}: {other.fit(train, train_digit).score(test, test_digit):.3f}")

# %%
# On these clean images a classifier of the pixels is hard to beat. The embedding pays where labels are few and rows
# without labels are many: it learns from all of them. Here it sees all 600 images, and the classifier ten labels, one
# of each digit.

import numpy as np

embedded = SDPEmbedding(random_state=0).fit_transform(images)
rng = np.random.default_rng(0)
scores = {"pixels": [], "embedding": []}
for _ in range(50):
    rows = [rng.choice(np.flatnonzero(digit == d)) for d in range(10)]
    rest = np.setdiff1d(np.arange(len(digit)), rows)
    for name, coordinates in (("pixels", images.to_numpy()), ("embedding", embedded)):
        nearest = KNeighborsClassifier(1).fit(coordinates[rows], digit[rows])
        scores[name].append(nearest.score(coordinates[rest], digit[rest]))
print({name: f"{np.mean(values):.3f} ± {np.std(values) / 50**0.5:.3f}" for name, values in scores.items()})

import matplotlib.pyplot as plt

_, panel = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
panel.boxplot(scores.values(), orientation="horizontal", tick_labels=list(scores))
panel.set(title="one label of each digit: accuracy over 50 draws of them", xlabel="accuracy")
plt.show()

# %%
# Other steps
# -----------
# All estimators of Mercer can stand in such a pipeline. :class:`mercer.Kernelized` makes a kernel method of a linear
# one (``Kernelized(Ridge(), kernel=…)``, whose grid has ``kernel__sigma`` and ``estimator__alpha``),
# :class:`mercer.KernelPCA` and the discriminants make features: :doc:`/user_guide/kernelization`.
