"""Which records a shadow has, and what an intruder sees of a target in it, counted by loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.adversary.shadow_features import NEAREST_AVERAGED, TargetFeatures
from sfumato.engine.adversary.shadows import ShadowDesign, draw_replacement_pools
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable

SCHEMA = Schema(
    (
        Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("a", "b", "c")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("ill", Kind.BINARY, Role.SENSITIVE, levels=("n", "y")),
    )
)


def table(n: int, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    return conform_to_schema(
        pd.DataFrame(
            {"region": rng.choice(list("abc"), n), "age": rng.integers(20, 60, n), "ill": rng.choice(["n", "y"], n)}
        ),
        SCHEMA,
    )


def test_half_of_the_records_are_in_a_shadow_and_a_target_is_in_half_of_the_shadows() -> None:
    design, rng = ShadowDesign(41, (3, 7, 20), 400, "half", "record"), np.random.default_rng(1)
    shadows = [design.draw_shadow(k, rng) for k in range(design.n_releases)]
    assert {len(set(one.rows.tolist())) for one in shadows} == {20}
    present = np.stack([one.target_present for one in shadows])
    assert present.tolist() == [[int(t in one.rows) for t in (3, 7, 20)] for one in shadows]
    assert np.abs(present.mean(axis=0) - 20 / 41).max() < 0.1


def test_values_of_a_target_are_exchanged_for_those_of_a_record_outside() -> None:
    design, rng, data = ShadowDesign(40, (3, 7), 50, "half", "values"), np.random.default_rng(2), table(40, 3)
    for k in range(50):
        one = design.draw_shadow(k, rng)
        made = one.make_data(data, ("ill", "age"))
        assert {3, 7} <= set(one.rows.tolist())
        for target, there in zip((3, 7), one.target_present, strict=True):
            place = one.rows.tolist().index(target)
            assert (one.value_rows[place] == target) == bool(there)
            assert there or one.value_rows[place] not in one.rows
            assert made.frame["region"].iloc[place] == data.frame["region"].iloc[target]
            assert made.frame["age"].iloc[place] == data.frame["age"].iloc[one.value_rows[place]]


@pytest.mark.parametrize(("question", "removable"), [("record", False), ("values", False), ("record", True)])
def test_all_other_records_are_in_a_shadow_whose_intruder_knows_them(question: str, removable: bool) -> None:
    rng = np.random.default_rng(4)
    pools = draw_replacement_pools(12, np.array([5, 9]), rng)
    design = ShadowDesign(12, (5, 9), 6, "all", question, removable, pools)  # type: ignore[arg-type]
    for k in range(design.n_releases):
        one = design.draw_shadow(k, rng)
        target = (5, 9)[k // 6]
        assert [value for value in one.target_present if value >= 0] == [k % 2]
        if k % 2:
            assert one.rows.tolist() == one.value_rows.tolist() == list(range(12))
        elif removable:
            assert one.rows.tolist() == [i for i in range(12) if i != target]
        else:
            assert one.value_rows[target] in pools[k // 6]
            assert one.rows[target] == (one.value_rows[target] if question == "record" else target)
            assert np.delete(one.value_rows, target).tolist() == [i for i in range(12) if i != target]


def test_coins_decide_which_canaries_are_in_a_shadow() -> None:
    rng, targets = np.random.default_rng(5), np.array([1, 4, 8])
    pools = draw_replacement_pools(12, targets, rng)
    assert not {1, 4, 8} & {row for pool in pools for row in pool}
    seen = []
    for removable in (False, True):
        design = ShadowDesign(12, (1, 4, 8), 40, "canaries", "record", removable, pools)
        for _ in range(40):
            one = design.draw_shadow(0, rng)
            there = [t for t, inside in zip(targets, one.target_present, strict=True) if inside]
            assert {1, 4, 8} & set(one.rows.tolist()) == set(there)
            assert set(range(12)) - {1, 4, 8} <= set(one.rows.tolist())
            assert len(one.rows) == (12 - 3 + len(there) if removable else 12)
            seen.append(one.target_present)
    assert np.abs(np.mean(seen, axis=0) - 0.5).max() < 0.2


def test_features_are_counts_and_distances_by_loops() -> None:
    data, released = table(30, 5), table(25, 6)
    released = replace(released, origin="synthetic")
    targets, names = np.array([2, 11]), ("age", "ill", "region")
    looked = TargetFeatures.from_targets(data, targets, names, ["age", "region"], ["ill"], {}, np.random.default_rng(7))
    found = looked.extract_features([released])
    ages = np.sort(data.numbers("age"))

    def place(age: float) -> float:
        values, counts = np.unique(ages, return_counts=True)
        return float(np.interp(age, values, (np.cumsum(counts) - counts / 2) / 30, left=0, right=1))

    for t, target in enumerate(targets):
        own = data.frame.iloc[target]
        gaps, same = [], []
        for row in released.frame.itertuples():
            apart = abs(place(row.age) - place(own.age))
            part = min(int(place(row.age) * 20), 19) == min(int(place(own.age) * 20), 19)
            gaps.append((apart, float(row.ill != own.ill), float(row.region != own.region)))
            same.append((part, row.ill == own.ill, row.region == own.region))
        each = [np.sqrt(sum(all(np.array(one)[chosen]) for one in same)) for chosen in looked.count_sets]
        each += [min(sum(np.array(one)[chosen]) for one in gaps) for chosen in looked.distance_sets]
        each.append(np.mean(sorted(sum(one) for one in gaps)[:NEAREST_AVERAGED]))
        least = min(one[0] + one[2] for one in gaps)
        near = [one[1] for one, gap in zip(same, gaps, strict=True) if gap[0] + gap[2] <= least + 1e-6]
        each.append(np.mean(near))
        assert found[t] == pytest.approx(each, abs=1e-5)
    assert found.shape[1] == len(looked.feature_names)


def test_datasets_of_one_release_are_one_table() -> None:
    data, released = table(30, 5), replace(table(24, 6), origin="synthetic")
    looked = TargetFeatures.from_targets(
        data, np.array([2, 11]), ("age", "ill", "region"), ["age"], ["ill"], {}, np.random.default_rng(7)
    )
    halves = [released.select_rows(list(range(12))), released.select_rows(list(range(12, 24)))]
    assert looked.extract_features(halves) == pytest.approx(looked.extract_features([released]))


def test_labels_agree_with_the_values_that_they_contain() -> None:
    data = table(30, 8)
    labels = pd.Series(["[20, 40)", "37", "{30, 31}", "*"]), pd.Series(["{a, b}", "c", "*", "a"])
    frame = pd.DataFrame({"age": labels[0].astype("category"), "region": labels[1].astype("category")})
    frame["ill"] = pd.Categorical(["n", "y", "n", "y"], ["n", "y"])
    released = Microdata(SCHEMA, frame, "anonymised", generalised=frozenset({"age", "region"}))
    looked = TargetFeatures.from_targets(data, np.arange(30), ("age", "region"), [], [], {}, np.random.default_rng(9))
    whole = int(np.flatnonzero(looked.count_sets.all(axis=1))[0])
    count = looked.extract_features([released])[:, whole] ** 2
    for row, got in zip(data.frame.itertuples(), count, strict=True):
        want = [20 <= row.age < 40 and row.region in "ab", row.age == 37 and row.region == "c", row.age in (30, 31)]
        assert got == pytest.approx(sum(want) + (row.region == "a"), abs=1e-5)


def test_a_mean_of_levels_agrees_with_the_levels_nearer_than_half_the_way_from_the_first_to_the_last() -> None:
    """Levels a, b and c have the codes 0, 1 and 2."""
    data = table(30, 10)
    numbers = pd.Series([1.0, 0.25, 2.0, 1.5])
    schema = Schema((Variable("region", Kind.CONTINUOUS), *list(SCHEMA)[1:]))
    released = Microdata(schema, data.frame.iloc[:4].reset_index(drop=True).assign(region=numbers), "anonymised")
    looked = TargetFeatures.from_targets(data, np.arange(30), ("region",), [], [], {}, np.random.default_rng(9))
    found = looked._compare_column(released, 0)
    agree, apart = found.compare_rows_at(slice(0, 4))
    code = data.frame["region"].cat.codes.to_numpy()
    away = np.abs(code[:, None] - numbers.to_numpy()) / 2
    assert apart == pytest.approx(away, abs=1e-6)
    assert agree.tolist() == (away < 0.5).tolist()
    assert set(code) == {0, 1, 2}
