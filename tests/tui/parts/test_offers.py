"""What a list finds for a text that is typed: every word of it, whatever its case, the likeliest first."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from sfumato.tui.parts.offers import Offer, found

VALUES = [
    Offer(
        "risk.identification.true_match_rate",
        "Identification risk · share · lower is better",
        "share with one candidate that is right",
    ),
    Offer("risk.identification.expected_match_risk", "Identification risk · records · lower is better"),
    Offer("risk.anonymity.k", "Anonymity · records · higher is better", "records in the smallest class"),
    Offer("utility.ecdf.max_abs_difference", "Empirical distribution · lower is better"),
]


def names(sought: str) -> list[str]:
    return [offer.value.rpartition(".")[2] for offer in found(sought, VALUES)]


def test_letters_in_their_order_find_a_value() -> None:
    assert names("tmr") == ["true_match_rate"]


def test_letters_in_their_order_find_a_title() -> None:
    assert [
        offer.value
        for offer in found("globrec", [Offer("a.cart", "Trees"), Offer("b.generalisation", "Global recoding")])
    ] == ["b.generalisation"]


def test_case_does_not_matter_and_all_words_must_be_found() -> None:
    assert names("TRUE rate") == ["true_match_rate"]
    assert names("higher RECORDS") == ["k"]
    assert names("true nothing") == []


def test_what_begins_with_the_text_comes_before_what_contains_it() -> None:
    offers = [Offer("workclass"), Offer("class_of_worker"), Offer("classes"), Offer("lass")]
    assert [offer.value for offer in found("class", offers)] == ["class_of_worker", "classes", "workclass"]


def test_nothing_typed_keeps_all_in_their_order() -> None:
    assert found("  ", VALUES) == VALUES


@given(st.lists(st.text(max_size=8), max_size=8), st.text(max_size=4))
def test_what_is_found_is_offered_once_and_holds_the_letters(values: list[str], sought: str) -> None:
    offers = [Offer(value) for value in dict.fromkeys(values)]
    hits = found(sought, offers)
    assert len(set(hits)) == len(hits)
    assert set(hits) <= set(offers)
    for offer in offers:
        if sought.strip() and sought.lower().strip() in offer.value.lower():
            assert offer in hits


def test_five_thousand_columns_are_searched_while_one_types() -> None:
    """And no text takes for ever: every letter of it stands in every column many times."""
    offers = [Offer("a" * 40 + f"_{place}", "count") for place in range(5000)]
    started = time.process_time()
    found("aaaaaaaaaaaab", offers)
    assert time.process_time() - started < 3
