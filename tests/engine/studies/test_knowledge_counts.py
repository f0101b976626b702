"""People found by what an intruder may know: against loops, against the measure, and never fewer with more knowledge."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.adversary.kept_columns import CombinationSizes
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.identification import IdentificationSpec, identification
from sfumato.engine.studies._knowledge_counts import (
    KnowledgeCounts,
    KnownVariables,
    best_window_counts,
    combine_windows,
    count_found_people,
    count_in_windows,
    largest_of_subsets,
    mean_counts,
)

SCHEMA = schema_of(
    "region: categorical quasi_identifier",
    "age: count quasi_identifier",
    "kind: categorical quasi_identifier",
    "pay: continuous sensitive",
)
NAMES = ("region", "age", "kind", "pay")
KEPT = ("region", "age")
RADIUS = {"pay": Radius.parse("5%")}
LIMITS = KeptColumnLimits(smallest_class=3)


def people(records: int, seed: int) -> tuple[Microdata, Microdata]:
    """Confidential records, and a release that keeps region and age and draws the others."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(list("ab"), records),
            "age": rng.integers(20, 26, records),
            "kind": rng.choice(list("xyz"), records),
            "pay": rng.choice([100.0, 104.0, 150.0], records),
        }
    )
    data = conform_to_schema(frame, SCHEMA)
    drawn = {
        "kind": data.column("kind").sample(frac=1, random_state=rng).reset_index(drop=True),
        "pay": data.column("pay").sample(frac=1, random_state=rng).reset_index(drop=True),
    }
    return data, data.with_columns(drawn, "synthetic")


def by_loops(
    data: Microdata, released: Microdata, names: tuple[str, ...], within: dict[str, float], window: float | None = None
) -> list[int]:
    """Candidates of each record, negative where its own record is not among them; pay within 5 % or a ``window``."""
    found = []
    ours, theirs = data.frame.to_dict("records"), released.frame.to_dict("records")
    for i, a in enumerate(ours):
        near = {"age": within.get("age", 0.0), "pay": 5 * a["pay"] / 100 if window is None else window}
        alike = [
            j
            for j, b in enumerate(theirs)
            if all(abs(a[n] - b[n]) <= near[n] + 1e-9 if n in near else a[n] == b[n] for n in names)
        ]
        found.append(len(alike) if i in alike else -len(alike))
    return found


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [one for size in range(len(names) + 1) for one in combinations(names, size)]


def mask(names: tuple[str, ...]) -> int:
    return sum(1 << NAMES.index(name) for name in names)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 14), st.sampled_from([0.0, 1.0, 2.0]))
def test_the_number_of_a_set_is_the_largest_of_its_subsets_by_loops(seed: int, records: int, reach: float) -> None:
    data, released = people(records, seed)
    known, within = KnownVariables(NAMES, (), RADIUS, KEPT, LIMITS), {"age": reach}
    counts = count_found_people(data, released, known, within, by_unit=False)
    told = {one: by_loops(data, released, one, within) for one in subsets(NAMES)}
    for names in subsets(NAMES):
        of_subsets = [told[one] for one in subsets(names)]
        assert counts.expected[mask(names)] == pytest.approx(
            max(sum(1 / c for c in one if c > 0) for one in of_subsets)
        )
        assert counts.certain[mask(names)] == pytest.approx(max(one.count(1) for one in of_subsets))
        kept = told[tuple(name for name in names if name in KEPT)]
        assert counts.few[mask(names)] == sum(c < 3 for c in kept)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30))
def test_more_knowledge_never_finds_fewer_and_less_certainty_never_more(seed: int, records: int) -> None:
    data, released = people(records, seed)
    known = KnownVariables(NAMES, (), RADIUS, KEPT, LIMITS)
    last: KnowledgeCounts | None = None
    for reach in (0.0, 1.0, 2.0, 3.0):
        counts = count_found_people(data, released, known, {"age": reach}, by_unit=False)
        for name in ("expected", "certain", "few"):
            values = getattr(counts, name)
            for names in subsets(NAMES):
                for more in set(NAMES) - set(names):
                    both = tuple(one for one in NAMES if one in (*names, more))
                    assert values[mask(both)] >= values[mask(names)] - 1e-9
            if last is not None:
                assert all(a <= b + 1e-9 for a, b in zip(values, getattr(last, name), strict=True))
        last = counts


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(0, 4))
def test_full_knowledge_is_what_the_measure_finds_however_many_variables_turn(
    seed: int, records: int, turned: int
) -> None:
    data, released = people(records, seed)
    spec = IdentificationSpec(known=KEPT, synthesised=("kind", "pay"), radius=RADIUS)
    rows = {
        one.measure: one.value for one in identification(data, released, spec, Run(np.random.default_rng(0))).estimates
    }
    known = KnownVariables(NAMES[:turned], NAMES[turned:], RADIUS)
    counts = count_found_people(data, released, known, {}, by_unit=False)
    assert counts.expected[-1] == pytest.approx(rows["largest_expected_match_risk"])
    assert counts.certain[-1] / records == pytest.approx(rows["largest_true_match_rate"])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 40),
    st.integers(0, 2),
    st.sampled_from([None, 2, 5]),
    st.sampled_from([None, 0.3]),
)
def test_all_kept_columns_leave_those_unprotected_whom_the_gate_counts(
    seed: int, records: int, turned: int, smallest: int | None, average: float | None
) -> None:
    data, released = people(records, seed)
    limits = KeptColumnLimits(smallest, average)
    known = KnownVariables(KEPT[:turned], KEPT[turned:], RADIUS, KEPT, limits)
    counts = count_found_people(data, released, known, {}, by_unit=False)
    sizes = CombinationSizes.from_cells(cell_keys(data, KEPT), KEPT, len(data), None)
    assert counts.few[-1] == limits.count_unprotected(sizes)


def test_a_release_without_the_order_of_the_records_is_not_counted() -> None:
    data, released = people(5, 1)
    shuffled = Microdata(released.schema, released.frame, "synthetic", linked=False)
    with pytest.raises(NotComputable):
        count_found_people(data, shuffled, KnownVariables(NAMES, (), RADIUS), {}, by_unit=False)


def test_means_are_over_the_datasets_and_the_largest_is_over_subsets() -> None:
    assert largest_of_subsets(np.array([0.0, 3.0, 1.0, 2.0])).tolist() == [0, 3, 1, 3]
    one, two = KnowledgeCounts((0.0, 2.0), (0.0, 1.0), (1.0, 3.0)), KnowledgeCounts((0.0, 4.0), (0.0, 0.0), (1.0, 5.0))
    assert mean_counts([one, two]) == KnowledgeCounts((0.0, 3.0), (0.0, 0.5), (1.0, 4.0))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 25), st.integers(1, 3), st.sampled_from([0.0, 1.0]))
def test_the_best_window_is_the_largest_of_the_measure_at_each_tolerance(
    seed: int, records: int, datasets: int, reach: float
) -> None:
    data, _ = people(records, seed)
    radii = [Radius(width) for width in (0.0, 4.0, 50.0)]
    windows = combine_windows(("pay", radii))
    known = KnownVariables(NAMES, (), RADIUS, KEPT, LIMITS)
    releases = [people(records, seed)[1], *(drawn_again(data, seed + i) for i in range(1, datasets))]
    counted = [count_in_windows(data, one, known, {"age": reach}, windows, by_unit=False) for one in releases]
    counts = best_window_counts(counted, windows)
    for name, output, number in (
        ("expected", "largest_expected_match_risk", 1),
        ("certain", "largest_true_match_rate", records),
    ):
        at = np.array([[measured(data, one, radius, reach)[output] * number for radius in radii] for one in releases])
        assert getattr(counts, name)[-1] == pytest.approx(at.max(axis=1).mean())
        best = getattr(counts, f"best_{name}")[-1]
        assert at.mean(axis=0)[best] == pytest.approx(at.mean(axis=0).max()), "of the windows tried"
        of_one = [getattr(one, name) for one in counted[0]]
        plain = count_found_people(data, releases[0], known, {"age": reach}, by_unit=False)
        for chosen in subsets(NAMES):
            if "pay" not in chosen:
                assert {values[mask(chosen)] for values in of_one} == {getattr(plain, name)[mask(chosen)]}
    assert counts.few == mean_counts([one[0] for one in counted]).few
    assert all(one.few == of_dataset[0].few for of_dataset in counted for one in of_dataset)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_the_best_window_by_loops_over_windows_and_subsets(seed: int, records: int) -> None:
    data, released = people(records, seed)
    widths = (0.0, 4.0, 50.0)
    windows = combine_windows(("pay", [Radius(width) for width in widths]))
    known = KnownVariables(NAMES, (), RADIUS)
    counts = best_window_counts([count_in_windows(data, released, known, {}, windows, by_unit=False)], windows)
    for names in subsets(NAMES):
        told = [by_loops(data, released, one, {}, width) for one in subsets(names) for width in widths]
        assert counts.expected[mask(names)] == pytest.approx(max(sum(1 / c for c in one if c > 0) for one in told))
        assert counts.certain[mask(names)] == pytest.approx(max(one.count(1) for one in told))


@pytest.mark.slow
def test_two_drawn_variables_are_tried_in_every_combination_of_windows() -> None:
    assert len(combine_windows(("pay", [Radius(0), Radius(1)]), ("bonus", [Radius(0), Radius(2), Radius(3)]))) == 6


def drawn_again(data: Microdata, seed: int) -> Microdata:
    """Another release of the same records."""
    rng = np.random.default_rng(seed)
    drawn = {
        name: data.column(name).sample(frac=1, random_state=rng).reset_index(drop=True) for name in ("kind", "pay")
    }
    return data.with_columns(drawn, "synthetic")


def measured(data: Microdata, released: Microdata, radius: Radius, reach: float) -> dict[str, float | None]:
    """What risk.identification finds where pay matches within a radius, and age within a half width."""
    near = {"pay": radius, **({"age": Radius(reach)} if reach else {})}
    spec = IdentificationSpec(known=KEPT, synthesised=("kind", "pay"), radius=near)
    found = identification(data, released, spec, Run(np.random.default_rng(0)))
    return {one.measure: one.value for one in found.estimates}
