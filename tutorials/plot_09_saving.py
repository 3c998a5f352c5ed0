r"""
Saving, loading, verifying
==========================

A model becomes one file. Whoever has the file and the data can prove again what was claimed of it, without trusting
the file, the program that wrote it, or the person who sent it.
"""

# sphinx_gallery_thumbnail_path = '_static/for_embedding.png'

# %%
# A file of data
# --------------

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import mercer

folder = Path(tempfile.mkdtemp())
wines = load_wine(as_frame=True).data
pd.DataFrame(StandardScaler().fit_transform(wines), columns=wines.columns).to_csv(folder / "wine.csv", index=False)

X = pd.read_csv(folder / "wine.csv")

# %%
# Save
# ----
# The file holds numbers and texts, nothing that can run: unlike a pickle it is safe to open whoever sent it. It is
# written whole or not at all.

model = mercer.SDPEmbedding(random_state=0).fit(X)
mercer.save(model, folder / "wine.mercer")
print(f"{(folder / 'wine.mercer').stat().st_size / 1000:.0f} kB")

# %%
# What a file says of itself can be read without building the model:

for name, value in mercer.io.describe(folder / "wine.mercer").items():
    print(f"{name}: {str(value)[:100]}")

# %%
# Load
# ----
# In another program, on another day. Coordinates of new points are the same to the last bit.

again = mercer.load(folder / "wine.mercer")
print("the same:", np.array_equal(again.transform(X), model.transform(X)))

# %%
# Verify
# ------
# The certificate in the file is a claim. ``verify`` does not look at it: it computes the bounds from the coordinates
# and the data, for every level, and gives those of the weakest; ``certificate_`` is that of the first.

print("claimed: ", again.certificate_)
print("verified:", mercer.verify(again, X))

# %%
# What an altered model says
# --------------------------
# Somebody improves on the coordinates by hand, and saves the result. The file is in order, so it loads; what it is
# worth comes out when it is verified.

again.coordinates_[:20] = again.coordinates_[20:40]
mercer.save(again, folder / "altered.mercer")
altered = mercer.load(folder / "altered.mercer")
try:
    print(mercer.verify(altered, X))
except ValueError as refusal:
    print("refused:", refusal)

# %%
# A file that was damaged on its way is refused by name:

content = bytearray((folder / "wine.mercer").read_bytes())
(folder / "cut.mercer").write_bytes(content[: len(content) // 2])
try:
    mercer.load(folder / "cut.mercer")
except ValueError as refusal:
    print("refused:", str(refusal).replace(str(folder), "…"))

# %%
# And data other than those of the fit:

other = X.sample(frac=1, random_state=0)
try:
    print(mercer.verify(mercer.load(folder / "wine.mercer"), other))
except ValueError as refusal:
    print("refused:", refusal)
