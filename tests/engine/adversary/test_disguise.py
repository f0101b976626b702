"""A column that says another one: at each limit of the module a function on one side is named and on the other is not."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.adversary.disguise import find_disguise


def relation(cells: np.ndarray, secret: np.ndarray, *numbers: np.ndarray) -> str | None:
    found = find_disguise("code", "name", cells.astype(np.uint64), secret.astype(np.uint64), *numbers)
    return None if found is None else found.relation


ONE_TO_ONE, GROUPS, ORDER = (
    "is one-to-one with it",
    "has groups in each of which it has one value",
    "has the same order",
)


@pytest.mark.parametrize(("records", "expected"), [(49, None), (50, ONE_TO_ONE)])
def test_a_function_of_fifty_records_is_no_accident(records: int, expected: str | None) -> None:
    codes = np.arange(records) % 5
    assert relation(codes, codes) == expected
    sizes = np.minimum(
        np.arange(records) % 8, 4
    )  # four codes in a tie count as one each; here they are not alike in size
    assert relation(sizes, sizes == 4) == (expected and GROUPS)


@pytest.mark.parametrize(("others", "expected"), [(0, ONE_TO_ONE), (1, ONE_TO_ONE), (2, None)])
def test_ninety_nine_records_in_a_hundred_follow(others: int, expected: str | None) -> None:
    codes = np.repeat([0, 1], 50)
    secret = codes.copy()
    secret[:others] = 2 + np.arange(others)
    assert relation(codes, secret) == expected


@pytest.mark.parametrize(("others", "is_named"), [(8, True), (12, False)])
def test_of_the_records_without_the_mode_nineteen_in_twenty_follow(others: int, is_named: bool) -> None:
    """Nine tenths have the mode: 8 and 12 of the other 200 are 4 and 6 %."""
    codes = np.repeat([0, 1], (1800, 200))
    secret = codes.copy()
    secret[-others:] = 10 + np.arange(others)
    assert (relation(codes, secret) is not None) is is_named


@pytest.mark.parametrize(("rare", "expected"), [(10, ONE_TO_ONE), (9, None), (0, None)])
def test_ten_records_without_the_mode_are_no_accident(rare: int, expected: str | None) -> None:
    codes = np.repeat([0, 1], (1000 - rare, rare))
    assert relation(codes, codes) == expected


@pytest.mark.parametrize(("alone", "expected"), [(50, GROUPS), (51, None)])
def test_where_most_records_are_unique_any_column_is_a_function(alone: int, expected: str | None) -> None:
    codes = np.append(np.arange(100, 100 + alone), np.arange(100 - alone) % 4)
    assert relation(codes, codes % 2) == expected


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_order_is_named_of_ten_values_and_of_fifty_records_with_both(sign: int) -> None:
    for values, missing, expected in ((10, 0, ORDER), (9, 0, ONE_TO_ONE), (10, 1, ONE_TO_ONE)):
        codes = np.arange(50) % values
        ours, theirs = codes.astype(float), sign * codes.astype(float) ** 3
        theirs[:missing] = np.nan
        assert relation(codes, codes, ours, theirs) == expected
    alone = np.arange(60)
    swapped = alone.astype(float)
    swapped[:30] = swapped[:30][::-1]
    assert relation(alone, alone, alone.astype(float), sign * alone.astype(float)) == ORDER
    assert relation(alone, alone, alone.astype(float), swapped) is None
