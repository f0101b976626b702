"""Record linkage by hand, learned and linked again by loops, of copies, of what is independent, and of what would mislead."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from linkage_tables import NEAR, alike, flipped, people
from scipy.stats import norm

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.matching import match_weights
from sfumato.engine.matching.blocks import ComparisonBlocks, order_by_values, take_evenly
from sfumato.engine.matching.comparisons import VariableComparison, compare_variables
from sfumato.engine.matching.linkage import count_compared_pairs, find_best_links
from sfumato.engine.matching.match_weights import (
    PatternCounts,
    _expectation_maximisation,
    learn_weights,
    true_pair_weights,
)
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.record_linkage import RecordLinkageSpec, _linkage_remarks, _share_estimate, record_linkage

RUN = Run(np.random.default_rng(0))
KINDS = {"age": Kind.COUNT, "pay": Kind.CONTINUOUS, "born": Kind.DATE}


def schema_of(rows: pd.DataFrame) -> Schema:
    return Schema(
        tuple(
            Variable(
                str(n), KINDS.get(str(n), Kind.CATEGORICAL), Role.QUASI_IDENTIFIER if n == "zip" else Role.SENSITIVE
            )
            if str(n) in KINDS
            else Variable(
                str(n),
                Kind.CATEGORICAL,
                Role.QUASI_IDENTIFIER if n == "zip" else Role.SENSITIVE,
                levels=tuple(sorted({*rows[n].dropna(), *"xyz"})),
            )
            for n in rows
        )
    )


def tables(rows: pd.DataFrame, released: pd.DataFrame) -> tuple[Microdata, Microdata]:
    schema = schema_of(pd.concat([rows, released]))
    ours, theirs = (conform_to_schema(one, schema, MissingPolicy.KEEP) for one in (rows, released))
    return ours, Microdata(theirs.schema, theirs.frame, "synthetic")


def linked(rows: pd.DataFrame, released: pd.DataFrame | None = None, **spec: Any) -> Measure:
    ours, theirs = tables(rows, rows if released is None else released)
    if released is None:
        theirs = ours
    drawn = tuple(name for name in rows if name != "zip")
    spec["radius"] = {name: Radius.parse(radius) for name, radius in spec.get("radius", {}).items()}
    return record_linkage(ours, theirs, RecordLinkageSpec(**spec).for_release(ours.schema, drawn), RUN)


def values(found: Measure) -> dict[str, float | None]:
    return {f"{e.measure}{e.params.get('probability', '')}": e.value for e in found.estimates}


FOUR = pd.DataFrame({"zip": list("aabb"), "job": list("xyxy"), "pet": list("xyyx")})


def test_four_records_by_hand() -> None:
    """In block a the first record meets itself and one that differs in both; in b record 3 meets two that differ from it in pet alone."""
    released = FOUR.assign(job=list("xyxx"), pet=list("xyxx"))
    found = linked(FOUR, released)
    assert found.per_record["best_links"].tolist() == [1, 1, 2, 2]
    assert found.per_record["linked"].tolist() == [1, 1, 0.5, 0.5]
    by_name = values(found)
    assert (by_name["linked_share"], by_name["uniquely_linked"], by_name["blocked_away"]) == (0.75, 0.5, 0)
    share = next(e for e in found.estimates if e.measure == "linked_share")
    assert share.baseline == 0.5


def test_a_copy_of_four_records_gives_one_and_links_that_are_all_right() -> None:
    found = values(linked(FOUR, FOUR.copy()))
    assert found["linked_share"] == found["linked_share_informed"] == found["uniquely_linked"] == 1
    assert found["precision0.5"] == found["recall0.5"] == 1
    own = linked(FOUR)
    assert values(own)["linked_share"] == 1
    assert next(e for e in own.estimates if e.measure == "linked_share").lower is None


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [150, 40, 1])
def test_a_copy_gives_one_however_small_the_blocks(blocks: int) -> None:
    rows = people(np.random.default_rng(7), 200, blocks)
    assert values(linked(rows, rows.copy(), radius=NEAR))["linked_share"] == 1
    assert values(linked(rows, rows.copy(), radius=NEAR))["linked_share_informed"] == 1


def test_one_variable_alone_links_those_that_agree() -> None:
    """The start says that people look like themselves: no pair can teach it, and a copy must not look safe for it."""
    rows = pd.DataFrame({"job": list("xyyz")})
    found = values(linked(rows, rows.copy()))
    assert found["linked_share"] == 0.75
    assert found["uniquely_linked"] == 0.5


def noisy(rng: np.random.Generator, rows: pd.DataFrame) -> pd.DataFrame:
    other = people(rng, len(rows), 1)
    changed = rng.random(len(rows)) < 0.2
    return rows.assign(
        job=np.where(changed, other.job, rows.job),
        pet=np.where(rng.random(len(rows)) < 0.1, other.pet, rows.pet),
        age=np.maximum(rows.age + rng.integers(-2, 3, len(rows)), 0),
        pay=rows.pay * rng.lognormal(0, 0.04, len(rows)),
    )


def prepared(
    rows: pd.DataFrame, released: pd.DataFrame, radius: dict[str, Any]
) -> tuple[tuple[VariableComparison, ...], ComparisonBlocks, dict[str, Radius]]:
    ours, theirs = tables(rows, released)
    parsed = {name: Radius.parse(one) for name, one in radius.items()}
    names = [name for name in rows if name != "zip"]
    comparisons = compare_variables(ours, theirs, names, parsed, 3.0)
    return (
        comparisons,
        ComparisonBlocks.from_keys(compare_variables(ours, theirs, ["zip"], {}, 3.0), (len(rows), len(released))),
        parsed,
    )


def level_by_hand(ours: Any, theirs: Any, radius: Any) -> int:
    if (pd.isna(ours) and pd.isna(theirs)) or ours == theirs:
        return 0
    if radius is None:
        return 1
    if pd.isna(ours) or pd.isna(theirs):
        return 3
    reach = abs(ours) * float(radius[:-1]) / 100 if isinstance(radius, str) else radius
    return 1 if abs(ours - theirs) <= reach else 2 if abs(ours - theirs) <= 3 * reach else 3


def learned_by_loops(pairs: Sequence[tuple[int, ...]], levels: Sequence[int], true: int) -> list[tuple[Any, Any]]:
    """Fellegi & Sunter's model by expectation and maximisation over single pairs, to the same rule for stopping."""
    related = [
        tuple(at if k == other else 0 for other in range(len(levels)))
        for k, most in enumerate(levels)
        for at in range(most)
    ]
    everyone = [*pairs, *related]
    share = (true + len(related)) / len(everyone)
    model = []
    for k, most in enumerate(levels):
        m = np.array(match_weights.START_PROBABILITIES[most])
        seen = [sum(pair[k] == at for pair in pairs) for at in range(most)]
        left = np.array([count - min(own * true, count / 2) + 0.5 for count, own in zip(seen, m, strict=True)])
        model.append((m, left / left.sum()))
    for _ in range(match_weights.ITERATIONS):
        chance = []
        for pair in everyone:
            one = share * math.prod(m[at] for (m, _), at in zip(model, pair, strict=True))
            two = (1 - share) * math.prod(u[at] for (_, u), at in zip(model, pair, strict=True))
            chance.append(one / (one + two))
        new = []
        for k, most in enumerate(levels):
            m = np.zeros(most)
            for pair, one in zip(everyone, chance, strict=True):
                m[pair[k]] += one
            new.append((m / m.sum(), model[k][1]))
        moved = max(np.abs(new[k][0] - model[k][0]).max() for k in range(len(levels)))
        model = new
        if moved < match_weights.CONVERGED:
            break
    return model


@pytest.mark.slow
def test_weights_are_those_that_loops_over_pairs_learn_and_links_those_that_loops_find() -> None:
    rng = np.random.default_rng(1)
    rows = people(rng, 60, 3)
    released = noisy(rng, rows)
    rows.loc[3, "pet"] = released.loc[3, "pet"] = released.loc[5, "pet"] = None
    comparisons, blocks, _ = prepared(rows, released, NEAR)
    names, n = [one.name for one in comparisons], len(rows)
    level = {
        (i, j): tuple(level_by_hand(rows[name][i], released[name][j], NEAR.get(name)) for name in names)
        for i, j in itertools.product(range(n), range(n))
        if rows.zip[i] == released.zip[j]
    }
    assert all(
        level[i, j] == tuple(int(one.agreement_levels(np.array([i]), np.array([j]))[0]) for one in comparisons)
        for i, j in level
    )
    model = learned_by_loops(list(level.values()), [one.level_count for one in comparisons], n)
    weights = learn_weights(comparisons, blocks, PatternCounts.from_records(comparisons, blocks, np.arange(n)))
    for (m, u), found in zip(model, weights, strict=True):
        plain = np.log2(np.maximum(m, 0.5 / n) / u)
        assert found == pytest.approx([max(plain[at:]) for at in range(len(plain))], abs=1e-4)
    (links,) = find_best_links(comparisons, blocks, np.arange(n), [weights])
    for i in range(n):
        own = {j: sum(w[at] for w, at in zip(weights, level[i, j], strict=True)) for j in range(n) if (i, j) in level}
        best = max(own.values())
        ties = [j for j, weight in own.items() if weight == best]
        assert (links.ties[i], links.hit[i], links.candidates[i]) == (len(ties), i in ties, len(own))
        assert links.probability[i] == pytest.approx(1 / sum(2 ** (w - best) for w in own.values()))


@pytest.mark.slow
def test_counted_patterns_are_those_that_loops_over_pairs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of one kind, blocks in several parts, and more variables than one table of patterns has room for."""
    rng = np.random.default_rng(8)
    rows = people(rng, 90, 3).assign(**{f"v{k}": rng.choice([*"uv"], 90) for k in range(9)})
    rows = pd.concat([rows, rows.iloc[:30]], ignore_index=True)
    released = noisy(rng, rows)
    comparisons, blocks, _ = prepared(rows, released, NEAR)
    among = rng.permutation(120)[:50]
    names = [one.name for one in comparisons]
    by_hand = Counter(
        tuple(level_by_hand(rows[name][i], released[name][j], NEAR.get(name)) for name in names)
        for i, j in itertools.product(among, range(120))
        if rows.zip[i] == released.zip[j]
    )
    for at_once in (1 << 20, 100):
        monkeypatch.setattr("sfumato.engine.matching.blocks.AT_ONCE", at_once)
        found = PatternCounts.from_records(comparisons, blocks, among)
        assert dict(zip(map(tuple, found.levels.tolist()), found.pair_counts.tolist(), strict=True)) == by_hand
        assert len(found.levels) == len(by_hand)


@pytest.mark.slow
def test_chance_and_its_variance_are_those_of_all_orders_of_the_blocks() -> None:
    """Every way to deal the released records of two blocks anew: what is linked by the same weights, averaged."""
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"zip": list("aaaabbb"), "job": list("xxyzxyy"), "age": [1, 1, 5, 9, 2, 2, 7]})
    released = rows.assign(job=list("xyyxxxy"), age=[1, 2, 5, 5, 2, 2, 6])
    weights = (np.array([2.0, -1.0]), np.array([1.5, 1.0, 0.5, -2.0]))
    found = []
    for first, second in itertools.product(itertools.permutations(range(4)), itertools.permutations(range(4, 7))):
        dealt = released.iloc[[*first, *second]].reset_index(drop=True)
        comparisons, blocks, _ = prepared(rows, dealt, {"age": 1})
        (links,) = find_best_links(comparisons, blocks, rng.permutation(7), [weights])
        found.append((float(links.link_chance.sum()), float(links.random_link_chance.sum()), links.variance))
    sums, chance, variance = (np.array(column) for column in zip(*found, strict=True))
    assert np.ptp(chance) == pytest.approx(0)
    assert np.ptp(variance) == pytest.approx(0)
    assert sums.mean() == pytest.approx(chance[0])
    assert sums.var() == pytest.approx(variance[0])
    assert sums.std() > 0.5


@pytest.mark.slow
def test_noise_is_linked_less_than_a_copy_and_more_than_by_chance_and_links_are_as_sure_as_they_are_right() -> None:
    rng = np.random.default_rng(3)
    rows = people(rng, 400, 20)
    copy, noise = linked(rows, rows.copy(), radius=NEAR), linked(rows, noisy(rng, rows), radius=NEAR)
    assert values(copy)["linked_share"] == 1
    share = next(e for e in noise.estimates if e.measure == "linked_share")
    assert share.baseline is not None
    assert share.lower is not None
    assert 5 * share.baseline < (share.value or 0) < 0.98
    assert share.lower > share.baseline
    assert values(noise)["linked_share_informed"] == pytest.approx(share.value, abs=0.03)
    assert (values(noise)["precision0.9"] or 0) > 0.9
    assert (values(noise)["recall0.5"] or 0) <= (share.value or 0)


@pytest.mark.slow
def test_a_release_without_anybody_of_the_data_makes_no_sure_links_and_one_of_flipped_values_makes_right_ones() -> None:
    rng = np.random.default_rng(12)
    rows = alike(rng, 300)
    independent, some = linked(rows, alike(rng, 300)), linked(rows, flipped(rng, rows, 0.2))
    assert values(independent)["precision0.5"] is None
    assert values(independent)["recall0.5"] == 0
    assert (values(some)["precision0.5"] or 0) >= 0.5
    assert (values(some)["recall0.5"] or 0) > 0.1


@pytest.mark.slow
def test_one_column_does_not_rule_and_one_leaking_column_is_enough() -> None:
    """All but one column drawn anew: a copied continuous one links all for who knows which it is, one of three levels few.

    Pairs do not teach which it is, since it agrees alone: the share learned from them is no sign of safety.
    """
    rng = np.random.default_rng(4)
    rows, other = people(rng, 300, 10), people(rng, 300, 10)
    told = linked(rows, other.assign(zip=rows.zip, pay=rows.pay), radius=NEAR)
    few = linked(rows, other.assign(zip=rows.zip, pet=rows.pet), radius=NEAR)
    assert values(told)["linked_share_informed"] == 1
    assert told.per_record["linked"].min() == 1
    assert (values(few)["linked_share_informed"] or 0) < 0.2


@pytest.mark.slow
def test_order_of_rows_and_spelling_of_numbers_change_nothing() -> None:
    rng = np.random.default_rng(5)
    rows = people(rng, 150, 5)
    released = noisy(rng, rows)
    first = linked(rows, released, radius=NEAR)
    order = rng.permutation(len(rows))
    again = linked(
        rows.iloc[order].reset_index(drop=True).assign(age=lambda t: t.age.map("{:.1f}".format)),
        released.iloc[order].reset_index(drop=True),
        radius=NEAR,
    )
    assert values(first) == values(again)
    assert np.array_equal(first.per_record["linked"][order], again.per_record["linked"])


def test_a_sample_of_targets_and_a_table_without_a_kept_variable_are_remarked_and_no_others() -> None:
    rng = np.random.default_rng(7)
    rows, other = people(rng, 40, 3), people(rng, 40, 3)
    whole, drawn = tables(rows, other)
    assert list(_linkage_remarks(whole, whole, 40)) == []
    assert list(_linkage_remarks(whole, whole, 39)) == ["39 of 40 records are targets"]
    assert [one[:19] for one in _linkage_remarks(whole, drawn, 40)] == ["no variable is kept"]


@pytest.mark.slow
def test_past_the_limit_targets_are_a_sample_that_the_row_names_and_others_are_not_asked_about() -> None:
    rng = np.random.default_rng(6)
    rows = people(rng, 300, 1)
    released = noisy(rng, rows)
    whole, part = linked(rows, released, radius=NEAR), linked(rows, released, radius=NEAR, pairs=30_000)
    asked = ~np.isnan(part.per_record["linked"])
    assert 90 <= asked.sum() <= 110
    share = next(e for e in part.estimates if e.measure == "linked_share")
    assert share.reason == f"{asked.sum()} of 300 records are targets"
    assert np.array_equal(part.per_record["linked"][asked], whole.per_record["linked"][asked])
    assert values(part)["linked_share_informed"] == pytest.approx(whole.per_record["linked"][asked].mean())
    assert share.lower is not None
    assert share.lower < (values(whole)["linked_share"] or 0) < (share.upper or 0)


def test_records_that_are_alike_are_counted_once_and_targets_lie_evenly_in_the_order_of_their_values() -> None:
    rows = pd.DataFrame({"zip": ["a"] * 6, "job": list("zzxxyy")})
    comparisons, blocks, _ = prepared(rows, rows, {})
    assert count_compared_pairs(comparisons, blocks) == 9
    assert rows.job[take_evenly(order_by_values(blocks, comparisons), 3)].tolist() == [*"xyz"]


def test_weights_of_true_pairs_say_how_often_they_agree_beyond_others() -> None:
    rows = pd.DataFrame({"zip": ["a"] * 40, "job": [*"xy"] * 20})
    released = rows.assign(job=["x", "y"] * 15 + ["y", "x"] * 5)
    comparisons, blocks, _ = prepared(rows, released, {})
    everyone = np.arange(40)
    (weights,) = true_pair_weights(
        comparisons, blocks, everyone, PatternCounts.from_records(comparisons, blocks, everyone)
    )
    m = np.array([30.5, 10.5]) / 41
    others = 800 - m * 40 + 0.5
    assert weights == pytest.approx(np.log2(m / (others / others.sum())), abs=1e-5)


def test_pairs_that_a_block_parts_are_counted_and_are_no_hits() -> None:
    rows = FOUR.assign(age=[1, 2, 3, 4])
    released = rows.assign(job=list("yyxy"))
    found = linked(rows, released, blocks=("job",), keys=("job", "age"), radius={"age": 0})
    assert values(found)["blocked_away"] == 0.25
    assert found.per_record["linked"].tolist() == [0, 1, 1, 1]


def test_where_nothing_is_kept_or_nobody_knows_whose_a_record_is_it_says_so() -> None:
    rows = pd.DataFrame({"job": list("xyzx"), "pet": list("xxyz")})
    drawn = linked(rows, pd.DataFrame({"job": list("zzyx"), "pet": list("yzxx")}))
    assert all("no variable is kept" in e.reason for e in drawn.estimates if e.value is not None)
    ours, theirs = tables(rows, rows)
    loose = Microdata(theirs.schema, theirs.frame, "synthetic", linked=False)
    spec = RecordLinkageSpec().for_release(ours.schema, ("job", "pet"))
    with pytest.raises(NotComputable, match="whose"):
        record_linkage(ours, loose, spec, RUN)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"keys": ("job", "job")}, "keys[1]"),
        ({"blocks": ("zip",), "keys": ("job",)}, "blocks"),
        ({"blocks": ("age",), "radius": {"age": Radius(1)}}, "blocks"),
        ({"radius": {}}, "radius"),
        ({"keys": ("zip", "pay"), "radius": {"pay": Radius(1), "age": Radius(1)}}, "radius.age"),
        ({"radius": {"pay": Radius(1)}, "probabilities": (0.5, 0.5)}, "probabilities[1]"),
    ],
)
def test_what_cannot_be_linked_is_refused_with_its_place(given: dict[str, Any], place: str) -> None:
    schema = schema_of(people(np.random.default_rng(0), 20, 2))
    spec = RecordLinkageSpec(**given)

    def check() -> None:
        spec.check_repeats("measure[0]")
        spec.check_release(schema, ("job", "pet", "age", "pay"), "measure[0]")

    with pytest.raises(BadInput) as refused:
        check()
    assert refused.value.place == f"measure[0].{place}"


def test_dates_are_compared_in_days_and_a_missing_number_equals_a_missing_one_alone() -> None:
    rows = pd.DataFrame({"born": ["2001-01-01", "2001-02-01", None, "2003-01-01"], "age": [None, 1, 2, 3]})
    released = rows.assign(born=["2001-01-03", None, None, "2003-01-09"], age=[None, 0, None, 3])
    comparisons, _, _ = prepared(rows.assign(zip="a"), released.assign(zip="a"), {"born": 3, "age": 1})
    own = np.arange(4)
    assert comparisons[0].agreement_levels(own, own).tolist() == [1, 3, 0, 2]
    assert comparisons[1].agreement_levels(own, own).tolist() == [0, 1, 3, 0]


@pytest.mark.slow
def test_linking_records_loads_no_database() -> None:
    script = """
import sys
import numpy as np
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.risk.record_linkage import RecordLinkageSpec, record_linkage
from sfumato.engine.methods.run import Run
from sfumato.engine.data.schema import Kind, Schema, Variable
import pandas as pd
rows = pd.DataFrame({"job": list("xyxyz"), "pet": list("xyyxz")})
table = conform_to_schema(rows, Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in rows)))
record_linkage(table, table, RecordLinkageSpec(keys=("job", "pet")), Run(np.random.default_rng(0)))
sys.exit(" ".join({"duckdb", "sqlite3", "splink"} & set(sys.modules)) or 0)
"""
    found = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_nothing_is_said_aloud_and_no_socket_is_opened(capfd: pytest.CaptureFixture[str]) -> None:
    linked(FOUR, FOUR.copy())
    assert capfd.readouterr() == ("", "")


@pytest.mark.study
def test_an_independent_release_lies_at_the_baseline_and_one_that_leaks_does_not() -> None:
    """Of 200 releases drawn without the records, 93 to 97 % of the intervals hold the baseline; where one record in ten is copied, few do."""
    rng = np.random.default_rng(20)
    covered, leaking = [], []
    for _ in range(200):
        rows = people(rng, 400, 50)
        drawn = people(rng, 400, 1).assign(zip=rows.zip)
        copied = rng.random(400) < 0.1
        for found, released in ((covered, drawn), (leaking, drawn.where(pd.Series(~copied), rows))):
            share = next(e for e in linked(rows, released, radius=NEAR).estimates if e.measure == "linked_share")
            found.append((share.lower or 0) <= (share.baseline or 0) <= (share.upper or 0))
    print(
        f"independent: {np.mean(covered):.1%} of 200 intervals hold the baseline; a tenth copied: {np.mean(leaking):.1%}"
    )
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(leaking) < 0.2


def largest(found: Measure) -> Estimate:
    return next(one for one in found.estimates if one.measure == "largest_linked_share")


@pytest.mark.slow
def test_one_leaking_column_links_everybody_who_compares_it_alone() -> None:
    """What all pairs teach misses it; who compares the copied column alone needs no true pair to find it."""
    rng = np.random.default_rng(4)
    rows, other = people(rng, 300, 10), people(rng, 300, 10)
    found = linked(rows, other.assign(zip=rows.zip, pay=rows.pay), radius=NEAR)
    best = largest(found)
    assert (values(found)["linked_share"] or 0) < 0.9
    assert best.value == 1
    assert (best.lower or 0) > 0.9
    assert best.reason.startswith("the best intruder compares ")
    assert "pay" in best.reason.partition(";")[0]


@pytest.mark.slow
def test_the_best_choice_of_keys_of_records_that_are_dealt_anew_is_no_disclosure() -> None:
    """The interval of the largest share holds what picking at random finds; 1.96 standard deviations of one choice are not enough."""
    held, naive = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = people(rng, 80, 2)
        found = linked(rows, people(rng, 80, 2).assign(zip=rows.zip), radius=NEAR)
        best = largest(found)
        assert best.lower is not None
        assert best.upper is not None
        assert best.baseline is not None
        one = 1.96 / NormalDist().inv_cdf(1 - 0.025 / 16) * (best.upper - (best.value or 0))
        held.append(best.lower <= best.baseline)
        naive.append((best.value or 0) - one <= best.baseline)
    assert np.mean(held) >= 0.95
    assert np.mean(naive) < 0.9


def test_of_pairs_in_the_shares_of_a_mixture_the_levels_of_its_true_pairs_are_learned() -> None:
    """Where the pairs of each pattern are as many as the mixture says, its likelihood is largest at its own probabilities."""
    m = [np.array([0.9, 0.1]), np.array([0.7, 0.2, 0.1]), np.array([0.8, 0.2])]
    u = [np.array([0.2, 0.8]), np.array([0.1, 0.3, 0.6]), np.array([0.05, 0.95])]
    levels = np.array(list(itertools.product(range(2), range(3), range(2))))
    of_true, of_others = (np.prod([shares[levels[:, k]] for k, shares in enumerate(side)], axis=0) for side in (m, u))
    counts = PatternCounts(np.arange(100), levels, 1e5 * (0.03 * of_true + 0.97 * of_others), (2, 3, 2))
    start = [np.array([0.95, 0.05]), np.array([0.85, 0.1, 0.05]), np.array([0.95, 0.05])]
    for begin, apart in ((m, 1e-6), (start, 0.015)):  # it ends where a step is small
        found = _expectation_maximisation(counts, begin, u, 3000 - 7)
        for own, truth in zip(found, m, strict=True):
            assert own == pytest.approx(truth, abs=apart)


@pytest.mark.parametrize("choices", [1, 2, 10])
def test_the_interval_of_the_best_of_several_choices_has_bonferronis_quantile(choices: int) -> None:
    """100 records, 40 linked with certainty; the records that are linked are a quarter of all."""
    chance = np.repeat([1.0, 0.0], [40, 60])
    links: Any = SimpleNamespace(link_chance=chance, random_link_chance=np.full(100, 0.01), variance=9.0)
    found = _share_estimate(links, "", sample=0.25, interval=True, choices=choices)
    half = norm.ppf(1 - 0.05 / (2 * choices)) * math.sqrt(9 / 100**2 + 0.75 * 0.4 * 0.6 / 100)
    assert found.value == pytest.approx(0.4)
    assert (found.lower, found.upper) == pytest.approx((0.4 - half, 0.4 + half), rel=1e-4)
    assert found.baseline == pytest.approx(0.01)


def test_the_largest_share_is_that_of_the_best_choice_learned_anew() -> None:
    """Four records by hand: every choice of the two keys is linked once more, as if the intruder had no other key."""
    released = FOUR.assign(job=list("xyxx"), pet=list("xyxx"))
    found = linked(FOUR, released)
    alone = [linked(FOUR[["zip", *keys]], released[["zip", *keys]]) for keys in (["job", "pet"], ["job"], ["pet"])]
    shares = [values(one)["linked_share"] or 0 for one in alone]
    by_blocks = 0.5
    assert largest(found).value == max(*shares, by_blocks, values(found)["linked_share_informed"] or 0)
