"""Every display looks as its reference: compared by the root mean square over all that is not white, without text.

Fonts differ between machines, so what is compared has none; letters are what the tests of structure look at.
"""

import numpy as np
import pytest
from matplotlib import rc_context
from PIL import Image
from reference_pictures import FOLDER, PICTURES, SPIRAL, pixels

from mercer import plots
from mercer.plots import EmbeddingDisplay

TOLERANCE = (
    15.0  # of 255: edges are smoothed differently from version to version; other colours or places are 35 and more
)
WHITE = 250.0


def difference(one, two):
    """The root mean square over the pixels that are not white in both."""
    ink = (one.min(axis=2) < WHITE) | (two.min(axis=2) < WHITE)
    return float(np.sqrt(((one - two)[ink] ** 2).mean())) if ink.any() else 0.0


@pytest.mark.parametrize("name", PICTURES)
def test_looks_as_its_reference(name):
    reference = np.asarray(Image.open(FOLDER / f"{name}.png"), dtype=np.float64)
    drawn = pixels(PICTURES[name])
    assert drawn.shape == reference.shape
    assert difference(drawn, reference) < TOLERANCE


@pytest.mark.parametrize("name", ["certificate", "density_contours", "rank_path", "embedding_many_classes"])
def test_fonts_do_not_matter(name):
    with rc_context({"font.family": "serif", "font.size": 15, "axes.titlesize": 20}):
        drawn = pixels(PICTURES[name])
    assert difference(drawn, pixels(PICTURES[name])) < 1.0


def test_references_are_those_of_the_displays():
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES)
    drawn = {type(draw(None)).__name__ for draw in PICTURES.values()}
    assert drawn == {name for name in plots.__all__ if name.endswith("Display")} - {"Display"}


@pytest.mark.parametrize(
    "changed",
    [
        {"points": SPIRAL[:, ::-1]},
        {"labels": 2 - np.arange(60) // 20},
        {"points": SPIRAL + 0.05 * np.arange(60)[:, None] ** 0.5},
    ],
)
def test_the_comparison_sees_points_and_colours(changed):
    given = {"points": SPIRAL, "labels": np.arange(60) // 20} | changed

    def draw(ax):
        return EmbeddingDisplay(given["points"], labels=given["labels"], names=("", "")).plot(ax, size=20)

    assert difference(pixels(draw), pixels(PICTURES["embedding_classes"])) > 2 * TOLERANCE
