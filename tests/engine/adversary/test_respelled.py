"""Numbers in other units or from another origin are taken back, and columns under each other's names; what is as it is stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.adversary.cells import number_keys, round_to_40_bits
from sfumato.engine.adversary.coded import JointColumn
from sfumato.engine.adversary.respelled import undo_column_exchange, undo_rescaling

Rng = np.random.Generator


def number(name: str, own: np.ndarray, *made: np.ndarray) -> JointColumn:
    own, made = round_to_40_bits(own), tuple(map(round_to_40_bits, made))
    return JointColumn(name, number_keys(own), list(map(number_keys, made)), own, made)


def level(name: str, own: np.ndarray, made: np.ndarray) -> JointColumn:
    return JointColumn(name, own.astype(np.uint64), [made.astype(np.uint64)])


def incomes(rng: Rng, n: int) -> np.ndarray:
    return np.round(np.exp(rng.normal(8, 0.6, n)), 2)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.floats(-2, 2), st.integers(0, 100))
def test_a_factor_is_found_by_the_people_who_are_copied(logarithm: float, seed: int) -> None:
    rng, factor = np.random.default_rng(seed), float(f"{np.exp(logarithm):.3g}")
    own, others = incomes(rng, 500), incomes(rng, 500)
    copied = np.concatenate([own[:40], others[40:]])
    column = undo_rescaling(number("income", own, np.round(copied * factor, 6)))
    assert column.released_numbers[0][:40] == pytest.approx(own[:40], rel=1e-9)
    assert (column.released[0][:40] == column.own[:40]).all()


@pytest.mark.parametrize("difference", [1.1, -3662.2, 38.4])
def test_a_difference_of_whole_numbers_is_found_by_their_frequencies(difference: float) -> None:
    """Where values are dense many differences give values of the data. Heaps tell them apart; without heaps other people leave a year of doubt."""
    rng = np.random.default_rng(1)
    smooth = [np.round(rng.gamma(3, 12, 900)) for _ in range(2)]
    heaped = [np.where(rng.random(900) < 0.3, 40.0, one) for one in smooth]
    for (own, made), doubt in ((heaped, 0.01), (smooth, 2.01)):
        column = undo_rescaling(number("hours", own, made + difference))
        assert column.released_numbers[0] == pytest.approx(made, abs=doubt)


def test_numbers_in_their_own_unit_and_missing_ones_stay() -> None:
    rng = np.random.default_rng(2)
    own, made = (np.round(rng.gamma(3, 12, 900)) for _ in range(2))
    column = number("age", own, made)
    assert undo_rescaling(column) is column
    with_missing = np.where(rng.random(900) < 0.1, np.nan, made * 2.5)
    back = undo_rescaling(number("age", own, with_missing)).released_numbers[0]
    assert (np.isnan(back) == np.isnan(with_missing)).all()
    constant = number("none", np.full(5, 3.0), np.full(5, np.nan))
    assert undo_rescaling(constant) is constant


def test_all_datasets_are_written_in_one_way() -> None:
    rng = np.random.default_rng(3)
    own, first, second = incomes(rng, 300), incomes(rng, 300), incomes(rng, 300)
    first[:30], second[:3] = own[:30], own[30:33]
    column = undo_rescaling(number("income", own, first * 1.7, second * 1.7))
    assert column.released_numbers[1][:3] == pytest.approx(own[30:33], rel=1e-9)


def test_columns_under_each_others_names_are_taken_back_and_others_stay() -> None:
    rng = np.random.default_rng(4)

    def people() -> dict[str, np.ndarray]:
        return {
            "age": np.round(rng.uniform(18, 90, 800)),
            "income": incomes(rng, 800),
            "visits": rng.poisson(1.0, 800).astype(float),
            "sex": rng.integers(0, 2, 800),
            "job": rng.geometric(0.3, 800) % 9,
        }

    own, made = people(), people()
    numbers = {"age": "income", "income": "visits", "visits": "age"}

    def columns(source: dict[str, str]) -> list[JointColumn]:
        return [
            (number if name in numbers else level)(name, values, made[source.get(name, name)])
            for name, values in own.items()
        ]

    honest = columns({})
    assert undo_column_exchange(honest) is honest
    back = undo_column_exchange(columns({**numbers, "sex": "job", "job": "sex"}))
    for one in back:
        expected = made[one.name]
        assert (
            one.released[0]
            == (number_keys(round_to_40_bits(expected)) if one.name in numbers else expected.astype(np.uint64))
        ).all()


def test_columns_that_are_taken_back_in_other_units_too() -> None:
    rng = np.random.default_rng(5)
    own = {"age": np.round(rng.uniform(18, 90, 800)), "income": incomes(rng, 800)}
    made = {"age": own["income"] * 0.3 + 7, "income": own["age"] * 12}
    back = {
        one.name: undo_rescaling(one)
        for one in undo_column_exchange([number(name, own[name], made[name]) for name in own])
    }
    assert back["age"].released_numbers[0] == pytest.approx(own["age"])
