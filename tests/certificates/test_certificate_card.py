"""The card of a certificate: a headline, sentences and figures, in a notebook."""

import numpy as np
import pytest

from mercer import Gaussian, SDPEmbedding
from mercer.certificates import Certificate
from mercer.certificates.card import card_of
from mercer.datasets import three_clusters


def proof(lower, upper, **more):
    values = {"failure_probability": 0.0, "method": "by hand", "n_products": 7} | more
    return Certificate(lower, upper, **values)


@pytest.mark.parametrize(
    ("lower", "upper", "verdict", "words"),
    [
        (2.0, 2.000002, "proved", "at most one part in 1,000,000 of its value"),
        (1.0, 1.5, "far", "at most 50.0% of its value"),
        (0.0, 1.0, "open", "nothing is known of how good it is"),
        (3.0, 3.0, "proved", "at most nothing of its value"),
    ],
)
def test_the_words_are_those_of_the_gap(lower, upper, verdict, words):
    card = card_of(proof(lower, upper))
    assert card.verdict == verdict
    assert words in card.sentences[0]
    assert "involves no chance" in card.sentences[1]


def test_a_minimum_is_bounded_from_below_and_chance_is_told():
    card = card_of(proof(0.9, 1.0, minimised=True, failure_probability=1e-9))
    assert "no other can be below 0.9" in card.sentences[0]
    assert "wrong with a probability of at most 1e-09" in card.sentences[1]


def test_the_share_is_never_understated():
    for gap in np.geomspace(2e-9, 9e-4, 50):
        sentence = card_of(proof(1.0, 1.0 + gap)).sentences[0]
        parts = int(sentence.split("one part in ")[1].split(" of")[0].replace(",", ""))
        assert 1 / parts >= (1.0 + gap) - 1.0
        assert 1 / parts < 1.2 * gap


def test_a_notebook_shows_a_card():
    card = proof(2.0, 2.000002)._repr_html_()
    assert card.startswith("<div")
    assert "Certified optimal" in card
    assert "<table" in card
    assert "<script" not in card


def test_texts_of_a_card_are_escaped():
    assert "<img" not in proof(1.0, 1.0, method="<img src=x onerror=alert(1)>")._repr_html_()


def test_every_kind_of_certificate_has_the_card():
    kinds = [Certificate]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 3
    assert {kind._repr_html_ for kind in kinds} == {Certificate._repr_html_}


def test_the_certificate_of_a_fit_is_shown_with_its_eigenvalues():
    X, _ = three_clusters()
    shown = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X).certificate_._repr_html_()
    assert "✓ Certified optimal to within" in shown
    assert "least eigenvalues of the slack" in shown
