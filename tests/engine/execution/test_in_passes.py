"""Passes over many values or keys, which are counted range by range and bucket by bucket."""

from __future__ import annotations

import io
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.contract.passes import CutTable, measure_in_blocks
from sfumato.engine.data.block_sums import arrays_of_summands, summands_of_arrays
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role
from sfumato.engine.data.table_blocks import OneBlock, hash_of_blocks
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.in_passes import whole_table_reason
from sfumato.engine.execution.tasks import TaskKind
from sfumato.engine.matching import match_blocks
from sfumato.engine.methods.passes import Finished, IntoBuckets, NextPass, run_passes
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import Progress, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk import attribute, identification, uniqueness
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


def test_distributions_by_survey_weights_need_the_whole_table() -> None:
    method, spec = spec_of("utility.ecdf", variables=["x"])
    passes, schema = method.measurement.measure_passes, schema_of("x: continuous", "w: continuous")
    weighted = replace(schema, variables=(schema["x"], replace(schema["w"], role=Role.WEIGHT)))
    assert passes is not None
    assert passes.suits(spec, schema)
    assert not passes.suits(spec, weighted)


@pytest.mark.parametrize("keys", [["g"], ["g", "x"], ["x", "y"]])
@pytest.mark.parametrize("most", [10, 500, 10**7])
@pytest.mark.parametrize("missing", [False, True])
def test_unique_keys_in_buckets_are_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch, keys: list[str], most: int, missing: bool
) -> None:
    monkeypatch.setattr(uniqueness, "MOST_KEYS", most)
    monkeypatch.setattr(uniqueness, "BUCKET_ROWS", most)
    method, spec = spec_of("risk.uniqueness", keys=keys, sizes=[1, 3])
    ours, theirs = simulated(1, missing=missing), simulated(2, levels="bca", missing=missing)
    mixed = theirs.frame.assign(x=np.where(np.arange(RECORDS) % 2, ours.frame["x"], theirs.frame["x"]))
    theirs = Microdata(theirs.schema, mixed, "synthetic")
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    found = measure_in_blocks(method, CutTable(ours, 700), CutTable(theirs, 700), spec)
    assert found.estimates == whole.estimates


def linked(seed: int, moved: float = 0.0, missing: bool = False) -> tuple[Microdata, Microdata]:
    """Return people, and a release that keeps g, shares some h with the own record and moves x by ``moved``."""
    ours = simulated(seed, missing=missing)
    rng = np.random.default_rng([seed, 1])
    schema = schema_of("g: categorical", "h: categorical", "v: count", "x: continuous", "y: continuous")
    h, v = rng.integers(0, 40, RECORDS), rng.poisson(2, RECORDS)
    frame = ours.frame.assign(h=pd.Categorical.from_codes(h, [f"h{i}" for i in range(40)]), v=v)[list(schema.names)]
    drawn = np.where(rng.random(RECORDS) < 0.5, h, rng.integers(0, 40, RECORDS))
    made = frame.assign(
        h=pd.Categorical.from_codes(39 - drawn, [f"h{i}" for i in range(39, -1, -1)]),
        v=np.maximum(v + rng.integers(-1, 2, RECORDS), 0),
        x=frame["x"] * np.exp(moved * rng.normal(size=RECORDS)),
        y=rng.normal(size=RECORDS),
    )
    return Microdata(schema, frame), Microdata(schema, made, "synthetic")


KNOWN = [
    {"known": ["g", "h"]},
    {"known": ["g"], "synthesised": ["h", "v"]},
    {"known": ["g"], "synthesised": ["v"], "radius": {"v": 1}},
    {"known": ["g"], "synthesised": ["h", "x"], "radius": {"x": "5%"}},
    {"known": ["g"], "synthesised": ["v", "x", "y"], "radius": {"x": "5%", "v": 1, "y": 0.1}},
    {"known": ["x"], "radius": {"x": "log 10%"}},
]
"""What the intruder knows; of the last two the search also leaves out all exact keys."""


def check_values_of_records(found: Measure, whole: Measure) -> None:
    """Check that the values of single records, block by block, are those of the whole table."""
    assert found.record_blocks is not None
    parts = list(found.record_blocks())
    assert set(parts[0]) == set(whole.per_record)
    for name, values in whole.per_record.items():
        np.testing.assert_array_equal(np.concatenate([one[name] for one in parts]), values)


@pytest.mark.parametrize("settings", KNOWN)
@pytest.mark.parametrize("rows", [10**7, 700, 90])
@pytest.mark.parametrize("missing", [False, True])
def test_matches_in_buckets_and_ranges_are_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], rows: int, missing: bool
) -> None:
    monkeypatch.setattr(identification, "BUCKET_ROWS", rows)
    monkeypatch.setattr(match_blocks, "MOST_TOGETHER", rows)
    method, spec = spec_of("risk.identification", **settings)
    ours, theirs = linked(1, 0.02, missing)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    assert any(one.value for one in whole.estimates)
    blocks = [measure_in_blocks(method, CutTable(ours, k), CutTable(theirs, k), spec) for k in (700, 1100)]
    for found in blocks:
        for one, other in zip(found.estimates, whole.estimates, strict=True):
            assert (one.measure, one.reason) == (other.measure, other.reason)
            exact = other.value is None or "expected" not in one.measure
            assert one.value == other.value if exact else one.value == pytest.approx(other.value, rel=1e-12)
        check_values_of_records(found, whole)
    assert blocks[0].estimates == blocks[1].estimates


ATTRIBUTE = [
    {"known": ["g"], "sensitive": ["h"]},
    {"known": ["g", "h"], "sensitive": ["v", "x"], "radius": {"x": "5%"}},
    {"known": ["g", "v"], "sensitive": ["x", "y"], "radius": {"v": 1, "x": "5%", "y": 0.1}},
    {"known": ["x"], "sensitive": ["g", "v"], "radius": {"x": "log 10%", "v": 1}},
]


@pytest.mark.parametrize("settings", ATTRIBUTE)
@pytest.mark.parametrize("rows", [10**7, 90])
@pytest.mark.parametrize("itself", [False, True])
def test_what_is_learnt_in_buckets_and_ranges_is_that_of_the_table(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], rows: int, itself: bool
) -> None:
    monkeypatch.setattr(match_blocks, "MOST_TOGETHER", rows)
    monkeypatch.setattr(attribute, "BUCKET_ROWS", rows)
    method, spec = spec_of("risk.attribute", **settings)
    ours, theirs = linked(1, 0.02, missing=True)
    theirs = ours if itself else theirs
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    assert all(one.value for one in whole.estimates)
    blocks = [measure_in_blocks(method, CutTable(ours, k), CutTable(theirs, k), spec) for k in (700, 1100)]
    for found in blocks:
        for one, other in zip(found.estimates, whole.estimates, strict=True):
            assert (one.measure, one.target, one.reason) == (other.measure, other.target, other.reason)
            assert one.value == pytest.approx(other.value, rel=1e-12)
        check_values_of_records(found, whole)
    # From sums of whole numbers, so that not even the last digit depends on blocks.
    assert blocks[0].estimates == blocks[1].estimates


def test_values_of_single_records_stay_out_of_what_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute, "BUCKET_ROWS", 700)
    method, spec = spec_of("risk.attribute", known=["g", "h"], sensitive=["v", "x"], radius={"x": "5%"})
    passes = method.measurement.measure_passes
    assert passes is not None
    ours, theirs = (CutTable(data, 700) for data in linked(1))
    merged: list[int] = []

    def merge(state: Any, partials: Any) -> Any:
        assert len(partials) == 1
        merged.append(max(rows.size for rows in partials[0].values()))
        return passes.merge(state, partials)

    run_passes(passes.start(ours.head, theirs.head, spec, ours.n_blocks), [ours, theirs], passes.block, merge)
    # The records, matches by all known variables, and those by all other subsets together.
    assert len(merged) == 3
    assert max(merged) < 100


@pytest.mark.parametrize(
    ("settings", "suits"),
    [
        ({"known": ["g"], "sensitive": ["x"]}, True),
        ({"known": ["d"], "sensitive": ["x"]}, False),
        ({"known": ["g"], "sensitive": ["d"]}, False),
        ({"known": ["g"], "sensitive": ["d"], "radius": {"d": 5}}, True),
    ],
)
def test_attribute_risk_by_exact_dates_needs_the_table(settings: dict[str, Any], suits: bool) -> None:
    method, spec = spec_of("risk.attribute", **settings)
    passes = method.measurement.measure_passes
    assert passes is not None
    assert passes.suits(spec, schema_of("g: categorical", "x: continuous", "d: date")) == suits


@pytest.mark.slow
def test_the_search_among_many_variables_is_that_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identification, "BUCKET_ROWS", 300)
    rng = np.random.default_rng(3)
    names = [f"v{i}" for i in range(14)]
    codes = rng.integers(0, 4, (400, 14))
    schema = schema_of(*(f"{name}: categorical" for name in names))

    def table(values: Any, origin: Any) -> Microdata:
        columns = {name: pd.Categorical.from_codes(values[:, i], list("abcd")) for i, name in enumerate(names)}
        return Microdata(schema, pd.DataFrame(columns), origin)

    drawn = np.where(rng.random(codes.shape) < 0.8, codes, rng.integers(0, 4, codes.shape))
    ours, theirs = table(codes, "confidential"), table(drawn, "synthetic")
    method, spec = spec_of("risk.identification", synthesised=names)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    found = measure_in_blocks(method, CutTable(ours, 150), CutTable(theirs, 150), spec)
    assert "not all subsets are tried" in "".join(one.reason for one in found.estimates)
    for one, other in zip(found.estimates, whole.estimates, strict=True):
        assert (one.measure, one.reason) == (other.measure, other.reason)
        assert other.value is not None
        assert one.value == pytest.approx(other.value, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "suits"),
    [
        ({"known": ["g"]}, True),
        ({"known": ["g"], "targets": 5}, False),
        ({"known": ["g"], "among": {"g": ["a"]}}, False),
        ({"known": ["g"], "coverage": 0.5}, False),
        ({"known": ["d"]}, False),
        ({"known": ["d"], "radius": {"d": 5}}, True),
    ],
)
def test_identification_of_some_or_from_a_file_or_by_exact_dates_needs_the_table(
    settings: dict[str, Any], suits: bool
) -> None:
    _, spec = spec_of("risk.identification", **settings)
    passes = identification.IdentificationPasses()
    assert passes.suits(spec, schema_of("g: categorical", "d: date")) == suits


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


def test_a_table_that_is_both_is_read_once() -> None:
    class CountedTable(CutTable):
        def iterate_blocks(
            self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
        ) -> Iterator[Microdata]:
            read.append(1)
            return super().iterate_blocks(names, numbers)

    read: list[int] = []
    table = CountedTable(simulated(1), 700)

    def block(_: Any, ours: Microdata, theirs: Microdata) -> dict[str, Any]:
        assert ours is theirs
        return {}

    assert run_passes(NextPass(0), [table, table], block, lambda *_: Finished(1)) == 1
    assert len(read) == 1


def test_a_block_is_gone_when_the_next_is_read() -> None:
    class WatchedTable(CutTable):
        def iterate_blocks(self, names: Sequence[str] | None = None) -> Iterator[Microdata]:
            for first in range(0, RECORDS, self.rows):
                assert not [one for one in held if one() is not None]
                yield self._block(first)

        def _block(self, first: int) -> Microdata:
            block = self.data.select_rows(slice(first, first + self.rows))
            held.append(weakref.ref(block))
            return block

    held: list[weakref.ref[Any]] = []
    data = simulated(1)

    def block(is_by_key: bool, data: Microdata) -> Any:
        found = np.zeros((len(data), 3))
        held.append(weakref.ref(found))
        return {"rows": found} if is_by_key else {}

    for by_key in (IntoBuckets(2, lambda state, rows: {}), None):
        first = NextPass(by_key is not None, buckets=by_key)
        assert run_passes(first, [WatchedTable(data, 700)], block, lambda *_: Finished(1)) == 1
    assert len(held) == 2 * 2 * 5


def test_nothing_as_long_as_the_table_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identification, "BUCKET_ROWS", 700)
    method, spec = spec_of("risk.identification", known=["g"], synthesised=["h", "v"])
    passes = method.measurement.measure_passes
    assert passes is not None
    ours, theirs = (CutTable(data, 700) for data in linked(1))
    merged: list[int] = []

    def merge(state: Any, partials: Any) -> Any:
        merged.append(max(len(rows) for one in partials for rows in one.values()))
        assert len(partials) == (5 if state.wanted is None else 1), "counts of buckets are joined as they come"
        return passes.merge(state, partials)

    run_passes(passes.start(ours.head, theirs.head, spec, ours.n_blocks), [ours, theirs], passes.block, merge)
    assert len(merged) > 3
    assert max(merged) < 100


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


@pytest.mark.parametrize(
    "settings",
    [
        {"variables": ["g", "h", "v", "x", "y"]},
        {"variables": ["g", "v", "x"], "model": "logit_interactions"},
        {"variables": ["g", "x", "twice", "late"]},
        {"variables": ["twice", "x", "late", "g", "v"]},
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_propensity_in_blocks_is_that_of_the_table(settings: dict[str, Any], missing: bool) -> None:
    """With a column that others determine, one in another order, and one without any value in the first block."""
    method, spec = spec_of("utility.propensity", **settings)
    ours, theirs = linked(1, 0.02, missing)
    order = np.random.default_rng(2).permutation(RECORDS)

    def with_more(data: Microdata, origin: Any) -> Microdata:
        late = np.where(np.arange(RECORDS) < 800, np.nan, ours.frame["y"])
        own = ours.frame["v"].to_numpy() if origin == "confidential" else ours.frame["v"].to_numpy()[order]
        frame = data.frame.assign(twice=2.0 * data.frame["x"], late=late, v=own)
        schema = schema_of(
            *(f"{v.name}: {v.kind.value}" for v in data.schema.variables), "twice: continuous", "late: continuous"
        )
        return Microdata(schema, frame, origin)

    ours, theirs = with_more(ours, "confidential"), with_more(theirs, "synthetic")
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    found = [measure_in_blocks(method, CutTable(ours, k), CutTable(theirs, k), spec) for k in (700, 1100)]
    for each in (whole, found[0]):
        for one, other in zip(found[1].estimates, each.estimates, strict=True):
            assert (one.measure, one.reason) == (other.measure, other.reason)
            assert one.value == pytest.approx(other.value, rel=1e-9 if each is whole else 1e-11)
    assert whole.estimates[1].value == pytest.approx(found[0].estimates[1].value, rel=1e-14), "the same degrees"


def test_a_table_that_is_a_copy_or_does_not_vary_is_measured_alike_in_blocks() -> None:
    method, spec = spec_of("utility.propensity", variables=["g", "x"])
    ours, _ = linked(1)
    copy = measure_in_blocks(method, CutTable(ours, 700), CutTable(ours, 700), spec)
    assert copy.estimates[0].value == pytest.approx(0, abs=1e-20)
    constant = Microdata(ours.schema, ours.frame.assign(x=1.0))
    _, alone = spec_of("utility.propensity", variables=["x"])
    with pytest.raises(NotComputable, match="no variable varies"):
        measure_in_blocks(method, CutTable(constant, 700), CutTable(constant, 700), alone)


def test_sums_in_another_order_of_the_blocks_have_other_bytes() -> None:
    """Control: that merging in the order of the blocks matters."""
    method, spec = spec_of("utility.propensity", variables=["g", "h", "x", "y"])
    passes = method.measurement.measure_passes
    assert passes is not None
    ours, theirs = (CutTable(data, 300) for data in linked(1, 0.02))
    first = passes.start(ours.head, theirs.head, spec, ours.n_blocks)

    def merge_backwards(state: Any, partials: Any) -> Any:
        found = passes.merge(state, partials[::-1])
        return found if isinstance(found, Finished) else replace(found, fold=None)

    there = run_passes(first, [ours, theirs], passes.block, passes.merge).estimates
    again = run_passes(first, [ours, theirs], passes.block, passes.merge).estimates
    back = run_passes(replace(first, fold=None), [ours, theirs], passes.block, merge_backwards).estimates
    assert there == again != back
    assert [one.value for one in back] == pytest.approx([one.value for one in there], rel=1e-10)


MODELS = ["y ~ x + g", "log1p(x) ~ y + g + v", "logit: v > 2 ~ x + g", "logit: y > 0 ~ x"]
ANALYSES = [
    ("utility.interval_overlap", {"means": ["x", "v"], "quantiles": ["x", "y", "v"], "models": MODELS}),
    ("utility.interval_overlap", {"quantiles": ["x"], "probabilities": [0, 0.001, 0.999, 1]}),
    ("utility.regression_distance", {"models": MODELS}),
]


@pytest.mark.parametrize(("key", "settings"), ANALYSES)
@pytest.mark.parametrize("missing", [False, True])
def test_analyses_in_blocks_are_those_of_the_table(key: str, settings: dict[str, Any], missing: bool) -> None:
    method, spec = spec_of(key, **settings)
    ours, theirs = linked(1, 0.3, missing)
    for released in (ours, theirs) if key == "utility.interval_overlap" else (theirs,):
        whole = method.measure(ours, released, spec, Run(np.random.default_rng(1)))
        found = [measure_in_blocks(method, CutTable(ours, k), CutTable(released, k), spec) for k in (700, 1100)]
        errors = {
            (one.target, one.params.get("term"), one.params.get("model")): one.value
            for one in whole.estimates
            if one.measure == "standard_error"
        }
        for other, near in ((found[1], 1e-12), (whole, 1e-11)):
            for one, two in zip(found[0].estimates, other.estimates, strict=True):
                assert (one.measure, one.target, one.params, one.reason) == (
                    two.measure,
                    two.target,
                    two.params,
                    two.reason,
                )
                # A coefficient near 0 is known to a share of its error.
                size = errors.get((one.target, one.params.get("term"), one.params.get("model"))) or 1.0
                exact = one.params.get("estimand") == "quantile"
                for a, b in zip((one.value, one.lower, one.upper), (two.value, two.lower, two.upper), strict=True):
                    assert a == b if exact or b is None else a == pytest.approx(b, rel=near, abs=near * size)


def test_values_outside_a_domain_are_counted_in_all_blocks() -> None:
    method, spec = spec_of("utility.regression_distance", models=["y ~ log(x)", "logit: v > 99 ~ y"])
    ours, theirs = linked(1, 0.3, missing=True)
    whole = method.measure(ours, theirs, spec, Run(np.random.default_rng(1)))
    zeros = int((ours.frame["x"] == 0).sum())
    assert f"log(x) is undefined for {zeros:,} records" in whole.estimates[0].reason
    blocks = measure_in_blocks(method, CutTable(ours, 700), CutTable(theirs, 700), spec)
    assert [one.reason for one in blocks.estimates] == [one.reason for one in whole.estimates]


def test_a_sum_is_asked_for_once_and_few_passes_answer_all_questions() -> None:
    method, spec = spec_of("utility.interval_overlap", means=["x", "v"], quantiles=["x", "y"], models=MODELS[:2])
    passes = method.measurement.measure_passes
    assert passes is not None
    ours, theirs = (CutTable(data, 700) for data in linked(1))
    said: list[Progress] = []
    run_passes(
        passes.start(ours.head, theirs.head, spec, ours.n_blocks),
        [ours, theirs],
        passes.block,
        passes.merge,
        said.append,
    )
    assert [one.what for one in said if one.done == one.total] == ["estimates, sum 1", "estimates, sum 2"]


def test_summands_come_back_from_named_arrays() -> None:
    given = ({("model", "y ~ x"): (3, np.arange(3.0), [np.eye(2)]), 7: (0.1, np.empty((0, 2))), ("x",): ()},)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays_of_summands(given))
    file.seek(0)
    (found,) = summands_of_arrays(dict(np.load(file, allow_pickle=False)))
    assert list(found) == list(given[0])
    assert (found[7][0], found[("x",)], found["model", "y ~ x"][0]) == (0.1, (), 3)
    np.testing.assert_array_equal(found["model", "y ~ x"][2][0], np.eye(2))
    assert found[7][1].shape == (0, 2)


def test_a_step_that_needs_the_table_says_which_settings_do_not() -> None:
    variables = {"g": {"kind": "categorical"}, "x": {"kind": "continuous"}, "y": {"kind": "continuous"}}
    for settings, works in (({}, True), ({"strata": "g"}, False), ({"proper": True}, False)):
        step = {"target": "y", "method": "cart", "predictors": ["x"], **settings}
        recipe = Recipe.from_table({"variables": variables, "release": {"m": 1, "seed": 1}, "synthesis": [step]})
        fit, draw = (whole_table_reason(recipe, kind, 0) for kind in (TaskKind.FIT, TaskKind.DRAW))
        assert (fit == "", draw == "") == (works, works)
        if not works:
            assert fit.endswith("; it needs one tree for all datasets, no strata and no effect of units")
            # Such a fit does not say what a draw needs of other records.
            assert draw == "draws of synthesis.cart need it"
