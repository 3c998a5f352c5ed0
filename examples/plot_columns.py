r"""
Columns of several kinds
========================

A table has lengths in centimetres beside widths in micrometres, words beside numbers. One bandwidth for all of them
lets the largest numbers decide, and words have none. A bandwidth for each column, and a kernel for each kind of column,
let all of them count; :class:`~mercer.Mixed` is the line to start from.
"""

# %%
# The table
# ---------
# Iris flowers: the sepals are measured, one of the two in another unit, and the petals are described by words.

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer import Categories, Gaussian, Mixed, SDPEmbedding
from mercer.plots import plot_points

data = load_iris()
table = pandas.DataFrame({"length [cm]": data.data[:, 0], "width [µm]": 1e4 * data.data[:, 1]})
table["petal"] = np.array(["short", "middling", "long"])[np.digitize(data.data[:, 2], [2.5, 4.9])]
table["broad"] = data.data[:, 3] > 1.7
print(table.iloc[::40])

# %%
# Three kernels
# -------------
# With one bandwidth the width decides alone, whose numbers are ten thousand times as large. With one for each column,
# ``Gaussian("columns")``, both measurements count. With the words the species come apart. Titles say how many of the
# flowers have the species of most of their five neighbours.

numbers = ["length [cm]", "width [µm]"]
kernels = {
    "one bandwidth": Gaussian().on(numbers),
    "one for each column": Gaussian("columns").on(numbers),
    "Mixed()": Mixed(),
}
_, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for axis, (title, kernel) in zip(axes, kernels.items(), strict=True):
    model = SDPEmbedding(kernel, random_state=0).fit(table)
    coordinates = np.pad(model.embedding_, ((0, 0), (0, 2)))[:, :2]
    score = cross_val_score(KNeighborsClassifier(5), model.embedding_, data.target, cv=5).mean()
    plot_points(axis, coordinates, data.target, title=f"{title}: {score:.0%}")
plt.show()

# %%
# What :class:`~mercer.Mixed` stands for can be written out, and changed: here the words count more, and the embedding
# has the same certificate as any other.

kernel = Gaussian("columns").on(numbers) * Categories(sigma=0.5).on(["petal", "broad"])
model = SDPEmbedding(kernel, random_state=0).fit(table)
print(model.kernel_)
print(model.certificate_)

# %%
# A flower with a word that no other has: it is equal to none of them, and the numbers place it.

new = table.iloc[:2].assign(petal=["short", "curly"])
print(model.transform(new).round(2))
