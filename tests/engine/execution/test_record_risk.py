"""Risk record by record, against the measures' own sums and against matching by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import (
    average_record_risk,
    find_matching_records,
    has_record_risk,
    leave_one_out_candidates,
    matched_variables,
)
from sfumato.engine.execution.tasks import draw_dataset, fit_model, measure_dataset
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

Make = Callable[..., Recipe]
COUNTS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=3, max_size=3)
RISKS = [
    {"method": "risk.identification", "radius": {"income": "20%", "visits": 3}, "known": ["region"]},
    {"method": "risk.attribute", "radius": {"income": "20%", "visits": 3, "age": 4}},
    {"method": "utility.ecdf"},
]


def arrays(pairs: list[tuple[int, bool]]) -> dict[str, Any]:
    return {"candidates": np.array([c for c, _ in pairs]), "hit": np.array([hit and c > 0 for c, hit in pairs])}


@given(st.lists(COUNTS, min_size=1, max_size=4))
def test_averages_are_those_taken_by_hand(datasets: list[list[tuple[int, bool]]]) -> None:
    found = average_record_risk([arrays(pairs) for pairs in datasets])
    for i in range(3):
        own = [pairs[i] for pairs in datasets]
        assert found.probability[i] == pytest.approx(np.mean([1 / c if hit and c else 0 for c, hit in own]))
        assert found.candidates[i] == pytest.approx(np.mean([c for c, _ in own]))
        assert found.unique is not None
        assert found.unique[i] == pytest.approx(np.mean([hit and c == 1 for c, hit in own]))


def test_the_ranking_is_by_probability_then_unique_share_then_few_candidates_then_number() -> None:
    found = average_record_risk([arrays([(2, True), (1, False), (3, False), (1, True), (2, True), (1, False)])])
    assert found.ranking().tolist() == [3, 0, 4, 1, 5, 2]


def _by_all_known(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in arrays.items() if not name.startswith("best_")}


def test_a_record_is_found_by_the_better_of_all_that_is_known_and_the_best_choice() -> None:
    """The first two are found better by the choice, the third by all that is known, the fourth by neither; the fifth is not asked about."""
    both = {
        "candidates": np.array([0.0, 4.0, 1.0, 2.0, np.nan]), "hit": np.array([0.0, 1.0, 1.0, 0.0, np.nan]),
        "best_candidates": np.array([1.0, 2.0, 3.0, 5.0, np.nan]), "best_hit": np.array([1.0, 1.0, 1.0, 0.0, np.nan]),
    }  # fmt: skip
    found = average_record_risk([both])
    assert found.probability[:4].tolist() == [1, 0.5, 1, 0]
    assert found.candidates[:4].tolist() == [1, 2, 1, 2]
    assert found.unique is not None
    assert found.unique[:4].tolist() == [1, 0, 1, 0]
    assert found.is_examined.tolist() == [True] * 4 + [False]
    assert found.ranking().tolist() == [0, 2, 1, 3]
    alone = average_record_risk([both, _by_all_known(both)])
    assert alone.probability[:4].tolist() == [0.5, 0.375, 1, 0]


@pytest.fixture
def releases(small_recipe: Make, small_data: Microdata) -> tuple[Recipe, list[Microdata]]:
    recipe = small_recipe(measure=RISKS, threshold=[])
    fits = [fit_model(recipe, item, small_data, key=PUBLIC) for item in range(2)]
    return recipe, [draw_dataset(recipe, draw, small_data, fits, key=PUBLIC) for draw in (1, 2, 3)]


def test_the_records_probabilities_add_up_to_the_measures_own_numbers(
    releases: tuple[Recipe, list[Microdata]], small_data: Microdata
) -> None:
    recipe, made = releases
    for item, measure in ((0, "expected_match_risk"), (1, "risk")):
        found = [measure_dataset(recipe, item, small_data, released, 1, key=PUBLIC)[0] for released in made]
        totals = [next(e.value for e in one.estimates if e.measure == measure) for one in found]
        risk = average_record_risk([_by_all_known(one.per_record) for one in found])
        assert risk.probability.sum() == pytest.approx(np.mean([total for total in totals if total is not None]))
        assert risk.datasets == 3
    assert risk.unique is None


def test_records_at_risk_are_no_fewer_than_the_best_choice_finds(
    releases: tuple[Recipe, list[Microdata]], small_data: Microdata
) -> None:
    recipe, made = releases
    found = [measure_dataset(recipe, 0, small_data, released, 1, key=PUBLIC)[0] for released in made]
    largest = [next(e.value or 0 for e in one.estimates if e.measure == "largest_expected_match_risk") for one in found]
    assert average_record_risk([one.per_record for one in found]).probability.sum() >= np.mean(largest) - 1e-9


def test_a_measure_without_records_has_no_record_risk() -> None:
    assert has_record_risk(["hit", "candidates", "more"])
    assert not has_record_risk(["hit"])
    with pytest.raises(NotComputable):
        average_record_risk([{"posterior": np.zeros(3)}])
    with pytest.raises(NotComputable):
        average_record_risk([])


def matches(data: Microdata, released: Microdata, i: int, j: int, without: str = "") -> bool:
    """Whether released record j matches record i, by the definition: region, visits +- 3, income +- 20 %."""
    own, other = data.frame.iloc[i], released.frame.iloc[j]
    checks = {
        "region": own["region"] == other["region"],
        "visits": abs(own["visits"] - other["visits"]) <= 3,
        "income": abs(own["income"] - other["income"]) <= 0.2 * own["income"],
    }
    return all(agrees for name, agrees in checks.items() if name != without)


@pytest.mark.slow
def test_candidates_and_drivers_are_those_counted_by_hand(
    releases: tuple[Recipe, list[Microdata]], small_data: Microdata
) -> None:
    recipe, made = releases
    names, radius = matched_variables(recipe, 0)
    assert names == ("region", "visits", "income")
    records = [7, 0, 41]
    found = leave_one_out_candidates(small_data, made, names, radius, records)
    assert found.variables == names
    for r, i in enumerate(records):
        rows = find_matching_records(small_data, made[0], names, radius, i)
        assert rows.tolist() == [j for j in range(80) if matches(small_data, made[0], i, j)]
        counts = {
            name: np.mean([sum(matches(small_data, made_l, i, j, name) for j in range(80)) for made_l in made])
            for name in ("", *names)
        }
        assert found.candidates[r] == pytest.approx(counts[""])
        assert found.without[r] == pytest.approx([counts[name] for name in names])
        driver = found.driver(r)
        assert driver is not None
        assert driver.without == pytest.approx(max(counts.values()))
        assert counts[driver.variable] == pytest.approx(driver.without)


@pytest.mark.slow
def test_candidates_and_drivers_are_the_same_in_blocks_of_released_records(
    releases: tuple[Recipe, list[Microdata]], small_data: Microdata, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, made = releases
    known = matched_variables(recipe, 0)

    def matches_and_candidates() -> tuple[list[list[int]], list[list[float]]]:
        rows = [find_matching_records(small_data, made[1], *known, i).tolist() for i in range(80)]
        return rows, leave_one_out_candidates(small_data, made, *known, range(80)).without.tolist()

    whole = matches_and_candidates()
    monkeypatch.setattr("sfumato.engine.data.blocks.CELLS_PER_BLOCK", 20)
    assert matches_and_candidates() == whole
    assert any(whole[0])


def test_the_driver_is_not_any_variable(releases: tuple[Recipe, list[Microdata]], small_data: Microdata) -> None:
    """The negative control: some record has another driver than some other record."""
    recipe, made = releases
    found = leave_one_out_candidates(small_data, made, *matched_variables(recipe, 0), range(80))
    assert len({driver.variable for r in range(80) if (driver := found.driver(r))}) > 1


def test_no_variable_drives_a_record_that_differs_in_two_from_all_others(
    small_recipe: Make, small_data: Microdata
) -> None:
    frame = small_data.frame.assign(visits=range(0, 800, 10), income=[float(10**i) for i in range(1, 81)])
    lonely = Microdata(small_data.schema, frame)
    recipe = small_recipe(measure=RISKS, threshold=[])
    assert leave_one_out_candidates(lonely, [lonely], *matched_variables(recipe, 0), [5]).driver(0) is None


def test_the_attribute_risk_matches_on_what_is_known_and_utility_on_nothing(small_recipe: Make) -> None:
    recipe = small_recipe(measure=RISKS, threshold=[])
    names, radius = matched_variables(recipe, 1)
    assert (names, list(radius)) == (("region", "age"), ["age"])
    with pytest.raises(NotComputable):
        matched_variables(recipe, 2)


def test_a_record_that_was_not_asked_about_is_last_of_nothing() -> None:
    """It has no place in the ranking, neither as 0 nor first."""
    arrays = {
        "candidates": np.array([1.0, np.nan, 1.0, 2.0]),
        "probability": np.array([0.0, np.nan, 1.0, 1.0]),
        "prior": np.array([0.1, np.nan, 0.9, 0.1]),
    }
    risk = average_record_risk([arrays])
    assert risk.is_examined.tolist() == [True, False, True, True]
    assert risk.ranking().tolist() == [3, 2, 0], "of equals the one of the smaller prior: the release gave it away"
    assert risk.prior is not None
    assert np.isnan(risk.prior[1])
    assert average_record_risk([{name: arrays[name] for name in ("candidates", "probability")}]).prior is None
