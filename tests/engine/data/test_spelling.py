"""Which texts write the same value: numbers, whole levels; dates are in test_microdata."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.data.spelling import (
    denote_same_number,
    digits_and_decimals,
    has_decimal_commas,
    level_spellings,
    read_numbers,
    spell_as_whole,
    unround_to_originals,
)
from sfumato.engine.errors import BadInput

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
MANY = st.lists(FINITE.filter(lambda x: x == 0 or abs(x) > 1e-300), min_size=1, max_size=20)


def read(texts: list[str]) -> np.ndarray:
    return read_numbers(pd.Series(texts, dtype="object")).to_numpy()


@given(MANY, st.integers(7, 17))
def test_a_number_written_with_seven_digits_or_more_is_the_same(numbers: list[float], digits: int) -> None:
    original = np.array(numbers)
    written = read([f"{number:.{digits}g}" for number in numbers])
    assert denote_same_number(original, written).all()


@given(MANY)
def test_a_number_in_single_precision_is_the_same(numbers: list[float]) -> None:
    original = np.array([number for number in numbers if 1e-30 < abs(number) < 1e30] or [1.0])
    assert denote_same_number(original, original.astype(np.float32).astype(np.float64)).all()


@pytest.mark.parametrize("digits", range(1, 6))
def test_a_number_rounded_to_fewer_digits_is_another(digits: int) -> None:
    original = np.random.default_rng(1).lognormal(3, 1, 300)
    written = read([f"{number:.{digits}g}" for number in original])
    assert not denote_same_number(original, written).all()


def test_a_number_changed_by_less_than_its_written_digits_show_is_another() -> None:
    """The negative control: 1e-7 of noise was taken for fewer digits, though all seventeen are written."""
    original = np.random.default_rng(1).lognormal(3, 1, 300)
    noisy = original * (1 + 1e-7 * np.random.default_rng(2).choice([-1, 1], 300))
    assert digits_and_decimals(noisy)[0] > 15
    assert not denote_same_number(original, noisy).any()


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_whole_numbers_are_the_same_only_if_equal(one: int, other: int) -> None:
    filling = np.array([1234567891.0, 987654321.0])
    first, second = np.append(filling, float(one)), np.append(filling, float(other))
    assert denote_same_number(first, second)[2] == (one == other)


@given(MANY)
def test_the_digits_of_a_column_are_those_of_its_longest_decimal(numbers: list[float]) -> None:
    digits, decimals = digits_and_decimals(np.array(numbers))
    if digits <= 15:
        shortest = [Decimal(repr(number)).normalize() for number in numbers]
        assert digits == max(len(one.as_tuple().digits) for one in shortest)
        assert decimals == max(-int(one.as_tuple().exponent) for one in shortest)


def test_missing_is_the_same_as_missing_and_nothing_else() -> None:
    gone = math.nan
    assert denote_same_number(np.array([gone, gone, 1.0]), np.array([gone, 1.0, gone])).tolist() == [True, False, False]


def test_zero_is_written_as_zero_only() -> None:
    assert denote_same_number(np.array([0.0, 1e-9, 0.0, 2.5]), np.array([0.0, 0.0, 1e-9, 2.5])).tolist() == [1, 0, 0, 1]


@pytest.mark.slow
@given(MANY, st.integers(7, 15), st.randoms(use_true_random=False))
def test_written_values_without_an_order_find_the_original_they_write_or_say_they_do_not_tell(
    numbers: list[float], digits: int, random: object
) -> None:
    original = np.array(numbers)
    written = read([f"{number:.{digits}g}" for number in numbers])
    found, candidates = unround_to_originals(original, written)
    assert (candidates >= 1).all()
    assert (found[candidates == 1] == original[candidates == 1]).all()


def test_two_originals_that_are_written_alike_are_both_candidates() -> None:
    original = np.array([2.5, 2.5000000001, 7.123456])
    _, candidates = unround_to_originals(original, np.array([2.5, 2.5, 7.123456]))
    assert candidates.tolist() == [2, 2, 1]
    in_full, candidates = unround_to_originals(np.append(original, 0.1 + 0.2), np.append(original, 0.1 + 0.2))
    assert candidates.tolist() == [1, 1, 1, 1]
    assert in_full.tolist() == [*original, 0.1 + 0.2]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["2,5", "3", "-0,25", "1,5e3"], [2.5, 3, -0.25, 1500]),
        ([",5", "2,"], [0.5, 2]),
        (["1,234", "2,5"], [1.234, 2.5]),
        (["0,234", "0,5"], [0.234, 0.5]),
        (["1.5", "1e0", "1.0", " 2 "], [1.5, 1, 1, 2]),
        (["12,0", "7,0"], [12, 7]),
    ],
)
def test_points_commas_and_exponents_are_read(texts: list[str], numbers: list[float]) -> None:
    assert read(texts).tolist() == numbers


@pytest.mark.parametrize(
    "texts", [["2,5", "3.5"], ["1,234", "2,345"], ["1,234,567", "1"], ["1.234,5", "2"], ["2,5", "none"], ["1,2", "x,3"]]
)
def test_commas_that_may_mean_something_else_are_not_read(texts: list[str]) -> None:
    assert not has_decimal_commas(pd.Series(texts, dtype="object"))
    assert np.isnan(read(texts)).any()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_a_column_of_decimal_commas_reads_as_one_of_points(numbers: list[float]) -> None:
    points = [repr(number) for number in [*numbers, 0.5]]
    assert np.array_equal(read(points), read([text.replace(".", ",") for text in points]))


def test_commas_of_thousands_are_refused_with_the_reason() -> None:
    schema = Schema((Variable("pay", Kind.CONTINUOUS),))
    with pytest.raises(BadInput, match="2 records have a comma that may be decimal or one of thousands") as caught:
        conform_to_schema(pd.DataFrame({"pay": ["1,234", "5,678"]}), schema)
    assert "234" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [("1.0", "1"), ("1.", "1"), ("1e0", "1"), ("-3.00", "-3"), ("1.0e+00", "1"), ("10.0", "10"), ("1", "1")]
    + [(text, text) for text in ("01", "01.0", "1.5", "a", "", " 1.0", "1.0 ", "+1.0", "1,0", "1e1", "v1.0", "*")],
)
def test_only_a_whole_number_has_another_spelling(text: str, spelling: str) -> None:
    assert spell_as_whole(text) == spelling


def test_levels_are_spelt_otherwise_only_one_to_one() -> None:
    assert level_spellings(["1.0", "2.0"], ["1", "2", "3"]) == {"1.0": "1", "2.0": "2"}
    assert level_spellings(["1", "2"], ["1.0", "2.0"]) == {"1": "1.0", "2": "2.0"}
    assert level_spellings(["1.0", "1", "2"], ["1", "2"]) == {}
    assert level_spellings(["1.0"], ["1", "1.0"]) == {}
    assert level_spellings(["01", "A", "a "], ["1", "a"]) == {}


def levels(texts: list[str], **variable: object) -> list[str]:
    schema = Schema((Variable("a", Kind.CATEGORICAL, **variable),))  # type: ignore[arg-type]
    return list(conform_to_schema(pd.DataFrame({"a": texts}), schema, MissingPolicy.DROP).column("a"))


def test_whole_levels_are_one_however_a_file_holds_them() -> None:
    """A CSV of 1.0 and 2.0 is what a Parquet file of floats is."""
    assert levels(["1.0", "2.0", "1.0"]) == ["1", "2", "1"]
    assert levels(["1.0", "2.0"], levels=("2", "1")) == ["1", "2"]
    assert levels(["1", "2"], levels=("1.0", "2.0")) == ["1.0", "2.0"]
    assert levels(["99.0", "1.0", "2.0"], missing=(99,)) == ["1", "2"]
    assert levels(["1.0", "b"]) == ["1.0", "b"], "not all are whole numbers"
    assert levels(["1.0", "1"]) == ["1.0", "1"], "two texts of one column are two levels"


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["A", "b"], "but for upper and lower case"), (["a ", "b"], "but for blanks"), (["c", "b"], "such levels)")],
)
def test_levels_that_are_nearly_listed_say_what_differs(texts: list[str], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        levels(texts, levels=("a", "b"))
    assert words in caught.value.message
    assert ("write them alike" in caught.value.message) == words.startswith("but")


def test_a_zero_before_a_level_makes_it_another() -> None:
    with pytest.raises(BadInput, match="but for zeros before them they would be: write them alike"):
        levels(["01", "2"], levels=("1", "2"))
