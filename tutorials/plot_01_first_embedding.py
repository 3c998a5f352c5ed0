r"""
First embedding
===============

A file with a row for every wine and a column for every measurement becomes a few coordinates for every wine, a proof
that they are the best there are, and a picture.
"""

# %%
# A file
# ------
# Have a CSV file of your own? Read that instead, and skip this cell. It writes the 178 wines that scikit-learn ships.

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

file = Path(tempfile.mkdtemp()) / "wine.csv"
load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"}).to_csv(file, index=False)

# %%
# Columns of numbers, on one scale
# --------------------------------
# One column names the cultivar: it is set aside, to colour the picture with at the end. The others have different
# units, and every method that goes by distances, this one as much as PCA, needs them on one scale.

import pandas as pd
from sklearn.preprocessing import StandardScaler

wines = pd.read_csv(file)
cultivar = wines.pop("cultivar")
X = StandardScaler().set_output(transform="pandas").fit_transform(wines)
X.iloc[:3, :5].round(2)

# %%
# Fit
# ---
# Without arguments there is nothing to choose: every wine is connected to its neighbours, and a semi-definite
# programme gives each a vector whose length is fixed by the data, in the direction in which its neighbours agree
# most. The seed makes the numbers below the same in every run.

from mercer import SDPEmbedding

model = SDPEmbedding(random_state=0).fit(X)
print(model.embedding_.shape)

# %%
# There are several *levels*. The first shows the coarse structure, in as many dimensions as it needs; the next the
# finer structure that the first leaves. Each has a certificate: a bound on what any other embedding could reach,
# computed from the data and the coordinates and not taken from the solver. :doc:`/certificate` reads such a line word
# for word.

for level in model.levels_:
    print(f"{level.rank} coordinates: {level.certificate}")

# %%
# Anyone who has the model and the data can prove it again:

from mercer import verify

print(verify(model, X))

# %%
# Look at it
# ----------
# Eleven coordinates do not fit on paper. :func:`mercer.plane_map` lays them out in the plane and says how much of
# every wine's neighbourhood the plane could keep. The colours are the cultivars, which nothing above has seen.

import matplotlib.pyplot as plt

from mercer import plane_map
from mercer.plots import plot_points

plane = plane_map(model)
print(plane)

_, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_points(panels[0], model.embedding_, cultivar.to_numpy(), title="the first two coordinates")
plot_points(panels[1], plane.coordinates, cultivar.to_numpy(), title="plane_map: all coordinates")
plt.show()

# %%
# Go on with it
# -------------
# The picture is for the eye. Whatever computes takes all the coordinates: k-means, say, asked for three groups.

from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

groups = KMeans(3, n_init=10, random_state=0).fit_predict(model.embedding_)
print(pd.crosstab(cultivar, groups, colnames=["group"]))
print(f"agreement with the cultivars (NMI): {normalized_mutual_info_score(cultivar, groups):.2f}")

# %%
# What was proved is that no other embedding does better *what was asked for*. Whether it was the right thing to ask
# for is another question: :doc:`/user_guide/choosing` says when PCA or UMAP is the better answer, and
# :doc:`/where_we_lose` has the numbers. Next: :doc:`plot_02_bandwidth`, for a kernel of your own, and
# :doc:`plot_03_new_points`.
