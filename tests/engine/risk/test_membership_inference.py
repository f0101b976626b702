"""Membership inference by loops, of copies, of what is drawn without the data, and of what would mislead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from sfumato.engine.adversary.density import NeighbourDistances, log_density_ratio
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.methods.results import Estimate, Measure, WholeReleaseMeasure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.membership_inference import (
    MembershipInferenceSpec,
    _FalsePositives,
    gather_blocks,
    membership_inference,
)
from sfumato.engine.statistics.gower import GowerDistance

SCHEMA = schema_of(Variable("zip", Kind.CATEGORICAL, levels=tuple("abc")), "age: continuous", "pay: continuous")


def table(rows: pd.DataFrame, schema: Schema = SCHEMA) -> Microdata:
    return conform_to_schema(rows, schema, MissingPolicy.KEEP)


def draw_people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    age = rng.normal(50, 10, n)
    pay = np.exp(3 + age / 50 + 0.5 * rng.normal(size=n))
    return pd.DataFrame({"zip": rng.choice(list("abc"), n), "age": age, "pay": pay})


def parts_of(own: Microdata, releases: Sequence[Microdata], seed: int = 0, **settings: Any) -> list[Any]:
    spec = MembershipInferenceSpec(**settings).for_release(own.schema, ())
    rng = [np.random.default_rng(seed) for _ in spec.grid()]
    return [membership_inference(own, releases, lambda data: (), spec, b, Run(r)) for b, r in enumerate(rng)]


def attacked(
    own: Microdata, controls: Microdata, releases: Sequence[Microdata], seed: int = 0, **settings: Any
) -> WholeReleaseMeasure:
    data = own.with_controls(controls)
    spec = MembershipInferenceSpec(**settings).for_release(own.schema, ())
    return gather_blocks(data, releases, spec, parts_of(data, releases, seed, **settings))


def answers(found: Measure) -> dict[str, Estimate]:
    return {e.measure: e for e in found.estimates}


def test_four_scores_by_hand() -> None:
    """Released at 0, 2 and 2, others at 0 and 6: 0 is in both, 2 in the release alone, 6 with the others alone, 3 is 1 away from two of
    the released and 3 from both others.
    """
    gower = GowerDistance(("age",), 5, {}, {})
    places = np.array([[0.0], [2.0], [6.0], [3.0]])
    inside = NeighbourDistances.from_places(gower, places, np.array([[0.0], [2.0], [2.0]]), 1)
    outside = NeighbourDistances.from_places(gower, places, np.array([[0.0], [6.0]]), 1)
    assert inside.kth_distance.tolist() == [0, 0, 4, 1]
    assert inside.n_within.tolist() == [1, 2, 2, 2]
    expected = [
        [0, math.log((1 / 3) / (1 / 2))],
        [1, math.log((2 / 3) / (1 / 2)) + math.log(2)],
        [-1, math.log((2 / 3) / (1 / 2)) - math.log(4)],
        [0, math.log((2 / 3) / (2 / 2)) + math.log(3 / 1)],
    ]
    assert log_density_ratio(inside, outside, 1) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("neighbours", [1, 3])
def test_tables_together_are_one_table(neighbours: int) -> None:
    rng = np.random.default_rng(3)
    gower = GowerDistance(("a", "b"), 20, {}, {})
    places, *some = (rng.integers(0, 6, (n, 2)).astype(float) for n in (40, 30, 20, 10))
    together = NeighbourDistances.from_tables(
        [NeighbourDistances.from_places(gower, places, one, neighbours) for one in some], neighbours
    )
    whole = NeighbourDistances.from_places(gower, places, np.concatenate(some), neighbours)
    assert together.distances.tolist() == whole.distances.tolist()
    assert together.n_within.tolist() == whole.n_within.tolist()
    assert together.n_records == whole.n_records


@pytest.mark.parametrize("neighbours", [1, 2])
def test_scores_and_rates_by_loops(neighbours: int) -> None:
    """Every scored record and control against the release and the reference, which are all others of both; pairs one by one."""
    rng = np.random.default_rng(4)
    tables = [draw_people(n, rng).round({"age": -1, "pay": -1}) for n in (25, 24, 25)]
    own, controls, released = map(table, tables)
    data = own.with_controls(controls)
    spec = MembershipInferenceSpec(neighbours=neighbours, false_positives=0.1).for_release(SCHEMA, ())
    parts = parts_of(data, [released], neighbours=neighbours, false_positives=0.1)
    scored, chosen = (np.concatenate([part.row[part.is_member == side] for part in parts]) for side in (True, False))
    assert (len(scored), len(chosen)) == (13, 12)
    reference = table(pd.concat([tables[0].drop(index=scored), tables[1].drop(index=chosen)], ignore_index=True))
    gower = GowerDistance.from_tables([released, reference], sorted(SCHEMA.names))

    def density(place: Any, others: Any) -> tuple[float, float]:
        apart = sorted(float(gower.pairwise_distances(place[None], other[None])[0, 0]) for other in others)
        reach = apart[neighbours - 1]
        return reach, sum(a <= reach for a in apart) / len(apart)

    def score(place: Any) -> float:
        tiny = 1e-30  # in place of a distance of 0, so that the ratio can be computed
        (r, c), (s, e) = (density(place, gower.record_places(of)) for of in (released, reference))
        return math.log(c / e) + 3 * (math.log(s or tiny) - math.log(r or tiny))

    mine = [score(place) for place in gower.record_places(own)[scored]]
    others = [score(place) for place in gower.record_places(controls)[chosen]]
    pairs = [1.0 if math.isclose(a, b) else 2.0 * (a > b) for a in mine for b in others]
    found = answers(gather_blocks(data, [released], spec, parts).whole)
    assert found["auc"].value == pytest.approx(sum(pairs) / 2 / len(pairs))
    limit = max(others)  # 12 controls, of which 1.2 may be taken for records
    if sum(math.isclose(b, limit) for b in others) > 1:
        told = sum(a > limit and not math.isclose(a, limit) for a in mine)
    else:
        told = sum(a > limit or math.isclose(a, limit) for a in mine)
    assert found["attack_success"].value == pytest.approx(told / 13)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 3])
def test_a_copy_tells_of_everybody(m: int) -> None:
    """Also where it is one of several datasets."""
    rng = np.random.default_rng(5)
    own = table(draw_people(300, rng))
    releases = [own, *(table(draw_people(300, rng)) for _ in range(m - 1))]
    found = attacked(own, table(draw_people(240, rng)), releases)
    got = answers(found.whole)
    assert (got["auc"].value, got["auc"].upper, got["attack_success"].value, got["excess_risk"].value) == (1, 1, 1, 1)
    assert got["auc"].lower > 0.97  # type: ignore[operator]
    above = found.whole.per_record["above_controls"]
    assert np.count_nonzero(np.isnan(above)) == 150  # they are in the reference
    assert (above[~np.isnan(above)] == 1).all()
    assert len(found.datasets) == m
    for alone in found.datasets[1:]:
        assert answers(alone)["auc"].value < 0.6  # type: ignore[operator]


@pytest.mark.slow
def test_a_part_of_the_records_that_is_nearly_copied_is_found() -> None:
    """One record in twenty with its age and pay a little changed: the area hardly moves, the success rate does."""
    rng = np.random.default_rng(6)
    own, fresh = draw_people(1000, rng), draw_people(1000, rng)
    fresh.iloc[:50] = own.iloc[:50]
    fresh.loc[:49, ["age", "pay"]] *= 1 + 1e-5 * rng.normal(size=(50, 2))
    got = answers(attacked(table(own), table(draw_people(1000, rng)), [table(fresh)]).whole)
    assert got["auc"].value < 0.56  # type: ignore[operator]
    assert got["excess_risk"].lower > 0.02  # type: ignore[operator]


@pytest.mark.slow
def test_too_few_controls_are_said() -> None:
    rng = np.random.default_rng(7)
    own, releases = table(draw_people(50, rng)), [table(draw_people(50, rng))]
    got = answers(attacked(own, table(draw_people(38, rng)), releases).whole)
    assert got["auc"].value is not None
    assert got["attack_success"].value is got["excess_risk"].value is got["added_risk"].value is None
    assert got["attack_success"].reason == (
        "0.01 false positives need 100 scored controls or more, and there are 19: hold out 200 records or more"
    )
    one = answers(attacked(own, table(draw_people(120, rng)), releases).whole)
    assert (one["control_success"].value, one["guesses"].value) == (1 / 60, 25)
    assert one["added_risk"].lower <= one["added_risk"].value <= one["added_risk"].upper  # type: ignore[operator]
    assert one["added_risk"].reason.endswith(
        "one control is taken for a record of the data. "
        "0.01 false positives need 100 scored controls or more, and there are 60: hold out 200 records or more"
    )
    enough = answers(attacked(own, table(draw_people(200, rng)), releases).whole)
    assert (enough["control_success"].value, enough["guesses"].value) == (0.01, 25)
    assert enough["added_risk"].reason == "25 records in the data and 100 outside it are compared"
    with pytest.raises(NotComputable, match="one control record"):
        attacked(own, table(draw_people(1, rng)), releases)
    with pytest.raises(NotComputable, match="one record of the data"):
        attacked(table(draw_people(1, rng)), table(draw_people(50, rng)), releases)


@pytest.mark.slow
def test_relatives_whom_no_column_names_tell_nobody_apart() -> None:
    """Families share their home and pay: a reference of controls alone had relatives of controls, and never of the data."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own, controls, released = (
            frame.loc[np.repeat(frame.index, 3)].reset_index(drop=True)
            for frame in (draw_people(count, rng) for count in (120, 60, 120))
        )
        whole = attacked(table(own), table(controls), [table(released)], seed, people=("random",)).whole
        found.append([answers(whole)[name].value for name in ("auc", "family_auc")])
        copied = attacked(table(own), table(controls), [table(own)], seed, people=("random",)).whole
        assert answers(copied)["family_auc"].value > 0.9  # type: ignore[operator]
    assert np.mean(found, axis=0) == pytest.approx([0.5, 0.5], abs=0.03)


@pytest.mark.parametrize(("reference", "needed"), [(0.2, 125), (0.5, 200), (0.75, 400)])
def test_as_many_held_out_as_it_asks_for_are_enough(reference: float, needed: int) -> None:
    """Of 1 % false positives one needs 100 scored controls: the others are the reference."""
    rng = np.random.default_rng(15)
    own = table(draw_people(20, rng))
    for controls in (needed, needed - 3):
        whole = attacked(own, table(draw_people(controls, rng)), [own], reference=reference, people=("random",)).whole
        reason = answers(whole)["added_risk"].reason
        assert ("hold out" in reason) == (controls < needed)
    assert reason.endswith(f"hold out {needed} records or more")


@pytest.mark.parametrize(
    ("controls", "share", "scored", "of_data"),
    [(2, 0.01, 1, 19), (2, 0.99, 1, 1), (10, 0.01, 9, 19), (10, 0.99, 1, 1), (10, 0.3, 7, 14)],
)
def test_a_share_of_both_is_the_reference_and_at_least_one_of_each_is_on_either_side(
    controls: int, share: float, scored: int, of_data: int
) -> None:
    rng = np.random.default_rng(13)
    own = table(draw_people(20, rng))
    whole = attacked(own, table(draw_people(controls, rng)), [own], reference=share, false_positives=0.5).whole
    assert answers(whole)["auc"].reason == (
        f"{of_data} record{'s' if of_data > 1 else ''} in the data and {scored} outside it are compared"
    )


@pytest.mark.slow
@pytest.mark.parametrize("controls", [40, pytest.param(80, marks=pytest.mark.study), 194])
def test_what_is_added_has_its_level_where_one_control_is_taken_for_a_record(controls: int) -> None:
    """Of fewer than a hundred scored controls one may reach the limit; a release of other people then excludes 0 no more often."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        whole = attacked(
            table(draw_people(300, rng)),
            table(draw_people(controls, rng)),
            [table(draw_people(300, rng))],
            people=("random",),
        ).whole
        found.append(answers(whole)["added_risk"])
    assert all(one.value is not None for one in found)
    assert sum(one.lower > 0 for one in found) <= 5  # type: ignore[operator]


def test_a_copy_is_found_by_one_control() -> None:
    rng = np.random.default_rng(12)
    own = table(draw_people(300, rng))
    added = answers(attacked(own, table(draw_people(194, rng)), [own]).whole)["added_risk"]
    assert added.lower > 0.9  # type: ignore[operator]


@pytest.mark.slow
def test_controls_of_another_population_show_in_the_baseline() -> None:
    rng = np.random.default_rng(8)
    own, others, fresh = draw_people(300, rng), draw_people(300, rng), draw_people(300, rng)
    others["age"], others["pay"] = others["age"] + 15, others["pay"] * 3
    got = answers(attacked(table(own), table(others), [table(fresh)]).whole)
    assert got["auc"].baseline > 0.6  # type: ignore[operator]
    same = answers(attacked(table(own), table(draw_people(300, rng)), [table(fresh)]).whole)
    assert same["auc"].baseline == pytest.approx(0.5, abs=0.08)


def test_levels_alone_tell_no_more_than_their_shares() -> None:
    """Where all are alike in what is looked at, a copy tells of nobody."""
    rng = np.random.default_rng(9)
    own, others = (table(draw_people(300, rng)) for _ in range(2))
    got = answers(attacked(own, others, [own], known=("zip",)).whole)
    assert got["auc"].value == pytest.approx(0.5, abs=0.06)
    assert got["attack_success"].value == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-6, 1e9])
def test_no_column_rules_the_others(unit: float) -> None:
    """A variable of heavy tails and any unit that is drawn anew leaves a copy of the others visible, and its unit changes nothing."""
    rng = np.random.default_rng(10)
    own, others = draw_people(400, rng), draw_people(400, rng)
    schema = Schema((*SCHEMA, Variable("noise", Kind.CONTINUOUS)))
    tables = [one.assign(noise=rng.standard_cauchy(400)) for one in (own, others, own)]
    found = []
    for by in (1.0, unit):
        scaled = [table(one.assign(noise=one["noise"] * by), schema) for one in tables]
        found.append(answers(attacked(scaled[0], scaled[1], scaled[2:]).whole)["auc"])
    assert found[0].value == pytest.approx(found[1].value, abs=2e-3)
    assert found[0].lower > 0.5  # type: ignore[operator]


@pytest.mark.slow
def test_order_of_records_spelling_and_blocks_change_nothing() -> None:
    rng = np.random.default_rng(11)
    tables = [draw_people(150, rng) for _ in range(4)]
    own, others, *releases = map(table, tables)
    before = attacked(own, others, releases, records=60, false_positives=0.05)
    mixed = [one.sample(frac=1, random_state=7).reset_index(drop=True) for one in tables]
    for one in mixed:
        one["age"] = one["age"].map("{:+.17e}".format)
    own, others, *releases = map(table, mixed)
    after = attacked(own, others, releases, records=60, false_positives=0.05, blocks=7)
    assert before.whole.estimates == after.whole.estimates
    assert [one.estimates for one in before.datasets] == [one.estimates for one in after.datasets]
    assert answers(before.whole)["guesses"].value == 60
    assert np.isnan(before.whole.per_record["above_controls"]).sum() == 90


def test_missing_values_are_values() -> None:
    rng = np.random.default_rng(12)
    own, others = draw_people(100, rng), draw_people(100, rng)
    for one in (own, others):
        one.loc[:20, "age"], one.loc[30:40, "zip"] = np.nan, None
    got = answers(attacked(table(own), table(others), [table(own)], false_positives=0.05).whole)
    assert got["auc"].value == 1


def test_what_does_not_suit_is_refused() -> None:
    with pytest.raises(BadInput, match=r'known\[1\]: "zip" is listed twice'):
        MembershipInferenceSpec(known=("zip", "zip")).check_repeats("measure[0]")
    hidden = Schema((Variable("name", Kind.CATEGORICAL, Role.IDENTIFIER),))
    with pytest.raises(BadInput, match="identifiers"):
        MembershipInferenceSpec().check_release(hidden, (), "measure[0]")


@pytest.mark.study
def test_a_release_drawn_without_the_data_tells_of_nobody() -> None:
    """The intervals hold 1/2 and 0 in 95 % of the simulations, and miss them where 15 records in a hundred are given away."""
    covers: dict[str, list[bool]] = {}
    found_out: dict[str, list[bool]] = {}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own, others, fresh = draw_people(1000, rng), draw_people(1000, rng), draw_people(500, rng)
        leaky = fresh.copy()
        leaky.iloc[:150] = own.iloc[:150]
        for released, kept in ((fresh, covers), (leaky, found_out)):
            if kept is found_out and seed >= 40:
                continue
            got = answers(attacked(table(own), table(others), [table(released)], seed).whole)
            for name, nothing in (("auc", 0.5), ("excess_risk", 0.0)):
                one = got[name]
                kept.setdefault(name, []).append(one.lower <= nothing <= one.upper)  # type: ignore[operator]
    for name, held in covers.items():
        print(f"{name}: covers in {np.mean(held):.1%} of {len(held)}; of a leak in {np.mean(found_out[name]):.1%}")
        assert 0.93 <= np.mean(held) <= 0.97
        assert np.mean(found_out[name]) < 0.1


def test_the_score_orders_as_the_true_ratio_of_densities() -> None:
    """A release with half the spread of the population: in it the middle is twice as dense, and the scores fall with the distance from it."""
    rng = np.random.default_rng(13)
    schema = Schema((Variable("age", Kind.CONTINUOUS),))
    reference, released = (table(pd.DataFrame({"age": rng.normal(0, s, 4000)}), schema) for s in (1.0, 0.5))
    asked = np.linspace(0.05, 1.5, 100)  # beyond, the release has too few records
    gower = GowerDistance.from_tables([released, reference], ("age",))
    places = gower.record_places(table(pd.DataFrame({"age": asked}), schema))
    near = [
        NeighbourDistances.from_places(gower, places, gower.record_places(one), 30) for one in (released, reference)
    ]
    found = log_density_ratio(*near, 1)[:, 1]
    truth = norm.logpdf(asked, 0, 0.5) - norm.logpdf(asked, 0, 1)
    assert np.abs(found - truth).mean() < 0.25
    assert np.corrcoef(found, truth)[0, 1] > 0.95


@pytest.mark.parametrize("people", [("random",), ("random", "vulnerable"), ("vulnerable",)])
def test_figures_of_the_best_attacker_say_about_whom_they_are(people: tuple[str, ...]) -> None:
    rng = np.random.default_rng(16)
    own, controls, released = (table(draw_people(60, rng)) for _ in range(3))
    found = attacked(own, controls, [released], people=people).whole
    about = {str(e.params.get("people", "random")) for e in found.estimates if e.measure.startswith("family_")}
    assert about == set(people)


def test_the_rate_of_the_best_attacker_has_wilson_s_interval_for_all_people() -> None:
    rng = np.random.default_rng(14)
    own, fresh = draw_people(80, rng), draw_people(80, rng)
    fresh.iloc[:30] = own.iloc[:30]
    found = attacked(table(own), table(draw_people(120, rng)), [table(fresh)], people=("random",)).whole
    rate = next(e for e in found.estimates if e.measure == "family_tpr")
    assert rate.value is not None
    assert 0.1 < rate.value < 0.9
    ends = proportion_confint(rate.value * 40, 40, method="wilson")
    assert (rate.lower, rate.upper) == pytest.approx(ends)


@pytest.mark.parametrize("controls", [1, 20, 100])
def test_limits_of_the_rate_above_the_highest_and_the_lowest_control_have_a_closed_form(controls: int) -> None:
    """The highest of K uniform scores is above x with probability 1 - x^K; the rate of new people above it is 1 minus it."""
    low, high = _FalsePositives(1, controls).interval
    assert low == pytest.approx(1 - 0.975 ** (1 / controls))
    assert high == pytest.approx(max(1 / controls, 1 - 0.025 ** (1 / controls)))
    low, high = _FalsePositives(controls, controls).interval
    assert (low, high) == (pytest.approx(0.025 ** (1 / controls)), 1.0)
    assert _FalsePositives(0, controls).interval == (0.0, pytest.approx(1 - 0.025 ** (1 / controls)))
