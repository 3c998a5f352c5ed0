"""Pages that the tests of the explorer share."""

import numpy as np

from mercer import Gaussian, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.plots import report

NASTY = '</script><img src=x onerror="window.hurt=1"><script>window.hurt=2</script>'


def sample_model():
    X, labels = three_clusters()
    return SDPEmbedding(Gaussian(sigma=1.2), landmarks=80, n_components=3, random_state=0).fit(X), X, labels


def sample_report(**options):
    model, X, labels = sample_model()
    words = np.array(["left", "middle", "right", NASTY])[np.where(labels < 0, 3, labels)]
    names = np.array([f"person {i}" for i in range(len(X))])
    table = {"class": words, f"height {NASTY}": X[:, 0], "name": names}
    return report(model, X, table=table, **({"label": "class", "title": f"A {NASTY} title"} | options))
