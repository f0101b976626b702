"""The audit of single records where records come in units: shadows, features and results are of whole units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.adversary.shadow_features import TargetFeatures
from sfumato.engine.adversary.shadows import Background, Question, ShadowDesign, draw_replacement_pools
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.data.units import Units
from sfumato.engine.methods.refits import ShadowRelease
from sfumato.engine.methods.results import Estimate, WholeReleaseMeasure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.record_audit import RecordAuditSpec, gather_blocks, record_audit

SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcd")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("ill", Kind.BINARY, Role.SENSITIVE, levels=("n", "y")),
    )
)


def households(n: int, seed: int, *, alike: bool = False, numbers_from: int = 0, alone: bool = False) -> Microdata:
    """n households of 1 to 4 people of one region; ``alike`` where the people of a household are all the same."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(n), 1 if alone else 1 + np.arange(n) % 4)
    people = np.unique(of, return_index=True)[1][of] if alike else np.arange(len(of))
    frame = pd.DataFrame(
        {
            "household": of + numbers_from,
            "region": np.array(list("abcd"))[rng.integers(4, size=n)][of],
            "age": rng.integers(18, 90, len(of))[people],
            "ill": np.array(["n", "y"])[rng.integers(2, size=len(of))][people],
        }
    )
    return conform_to_schema(frame, SCHEMA)


@dataclass(frozen=True)
class WholeUnits:
    """Steps that release the data as they are, or as many records of other households."""

    copies: bool
    changed_variables: tuple[str, ...] = SCHEMA.names[1:]
    kept_variables: tuple[str, ...] = ()
    dataset_count: int = 1
    removable: bool = False
    publishes_tables: bool = False
    hierarchies: Mapping[str, Any] = None  # type: ignore[assignment]
    has_models: bool = False

    def noise_guarantee(self, removed: bool) -> None:
        return None

    def make_releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata
    ) -> list[ShadowRelease]:
        return [ShadowRelease((self.release(data, shadow),)) for shadow, data in zip(shadows, tables, strict=True)]

    def release(self, data: Microdata, shadow: int) -> Microdata:
        if self.copies:
            return Microdata(data.schema, data.frame.copy(), "synthetic")
        return Microdata(
            data.schema, households(len(data) // 2, 1000 + shadow).frame[[*data.schema.names]], "synthetic"
        )

    def fit_models(self, data: Microdata, releases: Sequence[Microdata]) -> Any:
        raise AssertionError


class DistinctRows(WholeUnits):
    """Steps that release which rows there are, each once."""

    def release(self, data: Microdata, shadow: int) -> Microdata:
        names = [name for name in data.schema.names if name != "household"]
        rows = data.frame.drop_duplicates(subset=names).sample(frac=1, random_state=shadow)
        return Microdata(data.schema, rows.reset_index(drop=True), "synthetic")


COPIES, FRESH = WholeUnits(True), WholeUnits(False)


def audited(data: Microdata, steps: WholeUnits, **asked: Any) -> WholeReleaseMeasure:
    table = {"targets": 4, "shadows": 50, "people": ["vulnerable"], "blocks": 1, **asked}
    spec = RecordAuditSpec.from_table(table, "step").for_release(data.schema, data.schema.names)
    blocks = [record_audit(data, [data], steps, spec, int(b), Run(np.random.default_rng(1))) for b in spec.grid()]
    return gather_blocks(data, [data], spec, blocks)


def of(found: WholeReleaseMeasure, name: str) -> Estimate:
    return next(one for one in found.whole.estimates if one.measure == name)


def figures(found: WholeReleaseMeasure) -> list[tuple[str, float | None, float | None]]:
    return [(one.measure, one.value, one.lower) for one in found.whole.estimates]


@pytest.mark.slow
@pytest.mark.parametrize("background", ["half", "all", "canaries"])
def test_copied_units_are_given_away_and_fresh_ones_are_not(background: str) -> None:
    data = households(48, 1)
    asked = {"background": background, "targets": 3, "people": ["random"], "shadows": 60}
    copy, fresh = audited(data, COPIES, **asked), audited(data, FRESH, **asked)
    assert of(copy, "auc").value == pytest.approx(1.0, abs=0.03)
    assert of(copy, "given_away").value == 3
    assert of(copy, "given_away").unit == "units"
    assert of(copy, "auc").params == {"by": "unit"}
    assert of(fresh, "given_away").value == 0
    low, high = of(fresh, "auc").lower, of(fresh, "auc").upper
    assert low is not None
    assert high is not None
    assert low < 0.5 < high


@pytest.mark.slow
def test_whoever_leaves_one_record_out_takes_a_leak_of_households_for_none() -> None:
    """All people of a household are the same, and the release shows which people there are: one less changes nothing."""

    data = households(48, 3, alike=True)
    data = data.select_rows(np.flatnonzero(np.isin(data.frame["household"] % 4, [3])).tolist())
    less = data.schema.select_variables(SCHEMA.names[1:])
    by_record = Microdata(less, data.frame.drop(columns="household"))
    asked = {"people": ["random"], "targets": 2, "shadows": 80, "background": "all"}
    maker = DistinctRows(True)
    of_units, of_records = audited(data, maker, **asked), audited(by_record, maker, **asked)
    print(f"AUC of an audit by unit {of(of_units, 'auc').value:.2f}, by record {of(of_records, 'auc').value:.2f}")
    assert of(of_units, "auc").value == pytest.approx(1.0, abs=0.03)
    assert of(of_records, "auc").value == pytest.approx(0.5, abs=0.1)


def test_all_records_of_a_unit_have_its_result_and_no_others() -> None:
    data = households(48, 1)
    found = audited(data, COPIES, targets=3, people=["random"])
    area = found.whole.per_record["audited_auc"]
    home = data.frame["household"].to_numpy()
    examined = np.unique(home[~np.isnan(area)])
    assert len(examined) == 3
    for one in examined:
        assert len(set(area[home == one])) == 1
    assert sorted(home[found.guesses["record"]]) == sorted(examined)
    assert sorted(found.guesses["members"]) == sorted(np.flatnonzero(np.isin(home, examined)))
    assert found.guesses["sizes"].tolist() == [int((home == h).sum()) for h in home[found.guesses["record"]]]


def test_numbers_of_units_and_the_order_of_the_file_change_nothing() -> None:
    data, rng = households(48, 1), np.random.default_rng(5)
    numbers = rng.permutation(1000)
    order = np.argsort(rng.permutation(48)[data.frame["household"].to_numpy()], kind="stable")
    frame = data.frame.assign(household=numbers[data.frame["household"].to_numpy()]).iloc[order].reset_index(drop=True)
    moved = replace(data, frame=frame)
    asked = {"targets": 3, "people": ["random", "vulnerable"]}
    assert figures(audited(moved, COPIES, **asked)) == figures(audited(data, COPIES, **asked))


@pytest.mark.parametrize("question", ["record", "values"])
def test_one_record_a_unit_is_the_audit_of_a_table_without_units(question: str) -> None:
    data = households(40, 2, alone=True)
    less = Microdata(data.schema.select_variables(SCHEMA.names[1:]), data.frame.drop(columns="household"))
    asked = {"question": question, "targets": 3}
    with_units, without = (audited(one, DistinctRows(True), **asked) for one in (data, less))
    assert figures(with_units) == figures(without)
    assert [one.params for one in with_units.whole.estimates] == [one.params for one in without.whole.estimates]


def composition(frame: pd.DataFrame) -> Counter[tuple[object, ...]]:
    """How often each household, the sorted list of its people, occurs."""
    return Counter(tuple(sorted(map(tuple, own.drop(columns="household").to_numpy().tolist()))) for _, own in frame.groupby("household"))  # fmt: skip


@pytest.mark.parametrize("background", ["half", "all", "canaries"])
@pytest.mark.parametrize("removable", [False, True])
@settings(max_examples=8)
@given(seed=st.integers(0, 30))
def test_a_shadow_has_whole_units_and_every_unit_a_number_of_its_own(
    background: Background, removable: bool, seed: int
) -> None:
    data = households(24, seed)
    units = data.units
    assert units is not None
    targets, rng = (2, 7, 11), np.random.default_rng(seed)
    pools = draw_replacement_pools(24, np.array(targets), rng, units.sizes)
    design = ShadowDesign(24, targets, 2, background, "record", removable, pools, units)
    own = composition(data.frame)
    for number in range(design.n_releases):
        sample = design.draw_shadow(number, rng)
        shadow = sample.make_data(data, SCHEMA.names[1:])
        assert set(composition(shadow.frame)) <= set(own)
        drawn = data.frame["household"].to_numpy()[sample.rows]
        for place, target in enumerate(targets):
            if sample.target_present[place] >= 0:
                size = int(units.sizes[target])
                assert np.count_nonzero(drawn == target) == size * sample.target_present[place]
        if background != "half" and not removable:
            # replaced by a household of the same size, so that the number of records says nothing
            assert len(shadow) == len(data)
            assert shadow.frame["household"].nunique() == 24
            assert sorted(shadow.units.sizes) == sorted(units.sizes)


@pytest.mark.parametrize("background", ["half", "all", "canaries"])
@settings(max_examples=8)
@given(seed=st.integers(0, 30))
def test_without_values_a_unit_keeps_its_place_and_has_those_of_another(background: Background, seed: int) -> None:
    data = households(40, seed)
    units = data.units
    assert units is not None
    targets, rng = (2, 7, 11), np.random.default_rng(seed)
    pools = draw_replacement_pools(40, np.array(targets), rng, units.sizes)
    question: Question = "values"
    design = ShadowDesign(40, targets, 2, background, question, False, pools, units)
    for number in range(design.n_releases):
        sample = design.draw_shadow(number, rng)
        shadow = sample.make_data(data, ("age", "ill"))
        for place, target in enumerate(targets):
            there = sample.target_present[place]
            if there < 0:
                continue
            rows = np.flatnonzero(shadow.frame["household"].to_numpy() == target)
            own = data.frame[data.frame["household"] == target].reset_index(drop=True)
            assert len(rows) == len(own)
            donors = data.frame["household"].to_numpy()[sample.value_rows[rows]]
            assert set(donors) == {target} if there else len(set(donors)) == 1
            # the other half may have no unit of the size left
            assert there or background == "half" or units.sizes[donors[0]] == units.sizes[target]
            assert (shadow.frame["region"].iloc[rows].to_numpy() == own["region"].to_numpy()).all()


@given(seed=st.integers(0, 200))
def test_equal_units_are_counted_as_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, released = (households(12, int(rng.integers(2**31))) for _ in range(2))
    few = {"age": 30}
    data, released = (replace(one, frame=one.frame.assign(**few)) for one in (data, released))
    units = data.units
    assert units is not None
    targets = np.array([1, 2, 5])
    members = Units.from_codes(np.repeat(np.arange(3), units.sizes[targets]))
    looked = TargetFeatures.from_targets(
        data, units.records_of(targets), ("age", "ill", "region"), ["region"], ["ill"], {}, rng, members
    )
    found = looked.extract_features([released])
    assert found.shape == (3, len(looked.feature_names))
    at = looked.feature_names.index("units whose records agree on all variables")
    theirs = composition(released.frame)
    for place, target in enumerate(targets):
        own = composition(data.frame[data.frame["household"] == target])
        assert found[place, at] == pytest.approx(np.sqrt(theirs[next(iter(own))]))
        one = looked.select_target(place).extract_features([released])
        np.testing.assert_array_equal(one[0], found[place])
