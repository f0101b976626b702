"""Passes over many values or keys, which are counted range by range and bucket by bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable, measure_in_blocks
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.table_blocks import OneBlock, hash_of_blocks
from sfumato.engine.methods.passes import Finished, NextPass, run_passes
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.run import Progress, Run
from sfumato.engine.risk import uniqueness
from sfumato.engine.utility import ecdf

RECORDS = 3000


def simulated(seed: int, levels: str = "abc", missing: bool = False) -> Microdata:
    rng = np.random.default_rng(seed)
    x = np.round(rng.lognormal(size=RECORDS), 2)
    x[rng.random(RECORDS) < 0.3] = 0.0
    if missing:
        x[rng.random(RECORDS) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "g": pd.Categorical.from_codes(rng.integers(0, 3, RECORDS).astype(np.int8), list(levels)),
            "x": x,
            "y": rng.normal(size=RECORDS),
        }
    )
    return Microdata(schema_of("g: categorical", "x: continuous", "y: continuous"), frame)


def spec_of(key: str, **settings: Any) -> Any:
    method = method_by_key(key)
    assert method is not None
    return method, method.spec.from_table(settings, "measure[0]")


@pytest.mark.parametrize("points", ["pooled", "distinct"])
@pytest.mark.parametrize("most", [100, 1000, 10**7])
@pytest.mark.parametrize("missing", [False, True])
def test_distributions_in_ranges_are_those_of_all_values(
    monkeypatch: pytest.MonkeyPatch, points: str, most: int, missing: bool
) -> None:
    monkeypatch.setattr(ecdf, "FEW_VALUES", 20)
    monkeypatch.setattr(ecdf, "MOST_VALUES", most)
    method, spec = spec_of("utility.ecdf", variables=["x", "y"], points=points)
    ours, theirs = simulated(1, missing=missing), simulated(2)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    found = measure_in_blocks(method, CutTable(ours, 700), CutTable(theirs, 700), spec)
    for one, other in zip(found.estimates, whole.estimates, strict=True):
        assert (one.measure, one.target, one.reason) == (other.measure, other.target, other.reason)
        exact = one.measure == "max_abs_difference"
        assert one.value == other.value if exact else one.value == pytest.approx(other.value, rel=1e-12)
        assert one.baseline == pytest.approx(other.baseline, rel=1e-12)


@pytest.mark.parametrize("keys", [["g"], ["g", "x"], ["x", "y"]])
@pytest.mark.parametrize("most", [10, 500, 10**7])
@pytest.mark.parametrize("missing", [False, True])
def test_unique_keys_in_buckets_are_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch, keys: list[str], most: int, missing: bool
) -> None:
    monkeypatch.setattr(uniqueness, "MOST_KEYS", most)
    method, spec = spec_of("risk.uniqueness", keys=keys, sizes=[1, 3])
    ours, theirs = simulated(1, missing=missing), simulated(2, levels="bca", missing=missing)
    mixed = theirs.frame.assign(x=np.where(np.arange(RECORDS) % 2, ours.frame["x"], theirs.frame["x"]))
    theirs = Microdata(theirs.schema, mixed, "synthetic")
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    found = measure_in_blocks(method, CutTable(ours, 700), CutTable(theirs, 700), spec)
    assert found.estimates == whole.estimates


def test_unique_records_are_counted_as_by_hand() -> None:
    method, spec = spec_of("risk.uniqueness", keys=["g", "x"], sizes=[1, 2])
    ours, theirs = simulated(1), simulated(2)
    own, other = (pd.Series(list(zip(*(t.frame[k] for k in ("g", "x")), strict=True))) for t in (ours, theirs))
    counts, released = own.value_counts(), other.value_counts()
    expected = {
        "sample_uniques": float((released == 1).sum()),
        "population_uniques": float(np.mean([counts.get(key, 0) == 1 for key in other])),
        "replicated_uniques": sum(counts[key] == 1 and released.get(key, 0) == 1 for key in counts.index) / RECORDS,
    }
    found = measure_in_blocks(method, CutTable(ours, 900), CutTable(theirs, 900), spec)
    assert {one.measure: one.value for one in found.estimates if one.measure in expected} == expected


def test_the_hash_of_a_table_does_not_depend_on_its_blocks() -> None:
    for missing in (False, True):
        data = simulated(1, missing=missing)
        assert {hash_of_blocks(CutTable(data, rows)) for rows in (1, 7, 999, 5000)} == {data.sha256}


def test_partials_are_merged_in_the_order_of_the_blocks_and_progress_counts_blocks() -> None:
    def merge(state: int, partials: Any) -> Any:
        seen.append([int(one["first"][0]) for one in partials])
        return Finished("done") if state else NextPass(state + 1, ("x",), "again")

    seen: list[list[int]] = []
    said: list[Progress] = []
    data = simulated(1)
    widths: list[int] = []

    def block(state: int, data: Microdata) -> Any:
        widths.append(len(data.schema.names))
        return {"first": np.array([data.frame.index[0]])}

    assert run_passes(NextPass(0, None, "once"), [CutTable(data, 1000)], block, merge, said.append) == "done"
    assert seen == [[0, 1000, 2000]] * 2
    assert widths == [3, 3, 3, 1, 1, 1]
    assert said == [Progress(i, 3, what) for what in ("once", "again") for i in (1, 2, 3)]
    assert OneBlock(data).n_blocks == 1


@pytest.mark.parametrize(
    "settings",
    [{}, {"ways": "triples"}, {"bins": {"x": "7 equal width", "y": "width 0.5"}}, {"bins": {"x": "at 1, 2"}}],
)
@pytest.mark.parametrize("levels", ["abc", "cab"])
def test_margins_in_blocks_are_those_of_the_table(settings: dict[str, Any], levels: str) -> None:
    method, spec = spec_of("utility.margin_distance", variables=["g", "x", "y"], **settings)
    ours, theirs = simulated(1, missing=True), simulated(2, levels=levels)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    for rows in (300, 2999):
        assert (
            measure_in_blocks(method, CutTable(ours, rows), CutTable(theirs, rows), spec).estimates == whole.estimates
        )
    assert all(one.value is not None for one in whole.estimates)


def test_a_variable_of_too_many_bins_is_not_compared_and_the_others_are() -> None:
    method, spec = spec_of("utility.margin_distance", variables=["g", "x", "y"], bins={"y": "width 1e-6"})
    ours, theirs = simulated(1), simulated(2)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    assert measure_in_blocks(method, CutTable(ours, 500), CutTable(theirs, 500), spec).estimates == whole.estimates
    assert [one.value is None for one in whole.estimates] == [False, True, True, True]


def test_levels_in_another_order_are_the_same_categories() -> None:
    """pandas calls dtypes of the same levels equal, whatever the codes."""
    method, spec = spec_of("utility.margin_distance", variables=["g", "x"])
    ours = simulated(1)
    renamed = ours.frame.assign(g=ours.frame["g"].cat.reorder_categories(["c", "a", "b"]))
    found = method.measure(ours, Microdata(ours.schema, renamed, "synthetic"), spec, Run(np.random.default_rng(1)))
    assert [one.value for one in found.estimates] == [0.0, 0.0]
