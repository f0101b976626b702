"""What a release promises of privacy, in words: no number smaller than it is, and no promise where there is none."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.reporting.privacy_promise import PrivacyPromise, SampleCost, promise_sentences, round_up_text


@given(st.floats(1e-6, 1e6))
def test_a_promise_is_never_rounded_down(value: float) -> None:
    said = float(round_up_text(value).replace(",", ""))
    assert value * (1 - 1e-9) <= said <= value * 1.001


@pytest.mark.parametrize(
    ("value", "said"), [(10.0, "10"), (0.1, "0.1"), (1.00001, "1.001"), (99.999, "100"), (12345.6, "12,350")]
)
def test_numbers_as_they_are_said(value: float, said: str) -> None:
    assert round_up_text(value) == said


def test_the_factor_is_told_as_a_number_where_it_is_small() -> None:
    said = promise_sentences(PrivacyPromise(1.0, 2.0, (SampleCost(0.01, 1),)))
    assert f"more than {round_up_text(math.e)} (exp of epsilon) times as likely" in said[0]
    assert "2.719" in said[0]
    assert "exp(100) times" in promise_sentences(PrivacyPromise(100.0, 200.0))[0]


def test_steps_that_cost_the_same_are_told_once() -> None:
    one, block = SampleCost(0.5, 1), SampleCost(1.0, 10)
    said = " ".join(promise_sentences(PrivacyPromise(3.0, 6.0, (one, one, block))))
    assert len(re.findall("Each record was drawn", said)) == 1
    assert "A block of 10 records" in said


def test_without_an_epsilon_there_is_no_promise() -> None:
    said = " ".join(promise_sentences(PrivacyPromise(None, None, (), ("levels were learned", "records were kept"))))
    assert said.startswith("No guarantee of differential privacy is given: levels were learned; records were kept.")
    assert "differentially private" not in said
    assert not re.search(r"\d", said)


def test_whose_records_are_promised_what() -> None:
    alone, several, bounded = (
        " ".join(promise_sentences(PrivacyPromise(1.0, 2.0, unit_records=most, unit_noun=noun)))
        for most, noun in ((1, ""), (5, ""), (5, "households"))
    )
    assert "had any one record not been" in alone
    assert "a person who has several records, each of which costs as much" in alone
    assert "had any one person's records not been" in several
    assert "a person who has more than 5 records, which nothing has looked at" in several
    assert "had all records of any one of the households not been" in bounded
    assert "Of each of the households at most 5 records were counted" in bounded
    assert "and none that does not say whose it is" in bounded
    assert "Had all of them been others, epsilon is 2." in bounded
    assert "a person who has" not in bounded
    one = " ".join(promise_sentences(PrivacyPromise(1.0, 2.0, unit_records=1, unit_noun="households")))
    assert "at most 1 record was counted" in one
    assert "a person who has" not in one
