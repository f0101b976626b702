"""What a list finds for a text that is typed: every word of it, whatever its case, the likeliest first."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tui.parts.offers import OfferedValue, search_offers

VALUES = [
    OfferedValue(
        "risk.identification.true_match_rate",
        "Identification risk · share · lower is better",
        "share with one candidate that is right",
    ),
    OfferedValue("risk.identification.expected_match_risk", "Identification risk · records · lower is better"),
    OfferedValue("risk.anonymity.k", "Anonymity · records · higher is better", "records in the smallest class"),
    OfferedValue("utility.ecdf.max_abs_difference", "Empirical distribution · lower is better"),
]


def names(sought: str) -> list[str]:
    return [offer.value.rpartition(".")[2] for offer in search_offers(sought, VALUES)]


def test_letters_in_their_order_find_a_value() -> None:
    assert names("tmr") == ["true_match_rate"]


def test_letters_in_their_order_find_a_title() -> None:
    assert [
        offer.value
        for offer in search_offers(
            "globrec", [OfferedValue("a.cart", "Trees"), OfferedValue("b.generalisation", "Global recoding")]
        )
    ] == ["b.generalisation"]


def test_case_does_not_matter_and_all_words_must_be_found() -> None:
    assert names("TRUE rate") == ["true_match_rate"]
    assert names("higher RECORDS") == ["k"]
    assert names("true nothing") == []


def test_what_begins_with_the_text_comes_before_what_contains_it() -> None:
    offers = [OfferedValue("workclass"), OfferedValue("class_of_worker"), OfferedValue("classes"), OfferedValue("lass")]
    assert [offer.value for offer in search_offers("class", offers)] == ["class_of_worker", "classes", "workclass"]


def test_nothing_typed_keeps_all_in_their_order() -> None:
    assert search_offers("  ", VALUES) == VALUES


@pytest.mark.slow
@given(st.lists(st.text(max_size=8), max_size=8), st.text(max_size=4))
def test_what_is_found_is_offered_once_and_holds_the_letters(values: list[str], sought: str) -> None:
    offers = [OfferedValue(value) for value in dict.fromkeys(values)]
    hits = search_offers(sought, offers)
    assert len(set(hits)) == len(hits)
    assert set(hits) <= set(offers)
    for offer in offers:
        if sought.strip() and sought.lower().strip() in offer.value.lower():
            assert offer in hits


def test_five_thousand_columns_are_searched_while_one_types() -> None:
    """And no text takes for ever: every letter of it stands in every column many times."""
    offers = [OfferedValue("a" * 40 + f"_{place}", "count") for place in range(5000)]
    started = time.process_time()
    search_offers("aaaaaaaaaaaab", offers)
    assert time.process_time() - started < 3
