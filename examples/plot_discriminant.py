"""
Digits by what tells them apart
===============================

Six projections of the same handwritten digits on two directions. Each was fitted to 600 of them; what is drawn are
others, coloured by the digit that they are. Principal components know nothing of the labels. Supervised components keep
the lengths of the picture and turn it; Fisher's discriminants also shrink what varies within a digit, and a little
of the identity beside the covariance within classes keeps them from shrinking noise. In the space of a Gaussian kernel
the classes of unseen digits come apart.
"""

# %%
# Corners of one family
# ---------------------
#
# ``RoweisDiscriminant(r1, r2)`` goes from PCA at (0, 0) to supervised PCA at (1, 0) and Fisher's discriminants at
# (0, 1).

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from mercer import FisherDiscriminant, Gaussian, RoweisDiscriminant, SupervisedPCA

X, y = load_digits(return_X_y=True)
X, new, y, truth = train_test_split(X / 16, y, train_size=600, random_state=0, stratify=y)

models = {
    "principal components, (0, 0)": RoweisDiscriminant(0, 0, n_components=9),
    "supervised components, (1, 0)": SupervisedPCA(),
    "Fisher's discriminants, (0, 1)": FisherDiscriminant(),
    "between them, (0.9, 0.99)": RoweisDiscriminant(0.9, 0.99),
    "supervised, Gaussian kernel": SupervisedPCA(Gaussian()),
    "Fisher's, Gaussian kernel": FisherDiscriminant(Gaussian(), regularization=1e-4),
}

figure, axes = plt.subplots(2, 3, figsize=(12, 7.5), layout="constrained")
for axis, (title, model) in zip(axes.flat, models.items(), strict=True):
    coordinates = model.fit(X, y).transform(new)
    right = KNeighborsClassifier(5).fit(model.transform(X), y).score(coordinates, truth)
    for digit in range(10):
        mine = truth == digit
        axis.scatter(*coordinates[mine, :2].T, s=9, color=plt.cm.tab10(digit), label=str(digit))
    axis.set(title=f"{title}\n5 neighbours in all 9 directions: {right:.1%}", xticks=[], yticks=[])
axes[0, 2].legend(title="digit", markerscale=2, loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()

# %%
# How many directions count
# -------------------------
#
# Beyond one fewer than there are classes, labels have nothing to say. The eigenvalues tell how much each direction
# does: λ - 1 is the variance of the class means in units of the variance within classes.

for title in ("Fisher's discriminants, (0, 1)", "Fisher's, Gaussian kernel"):
    ratios = models[title].eigenvalues_ - 1
    print(f"{title}: {', '.join(f'{ratio:.1f}' for ratio in ratios)}")
