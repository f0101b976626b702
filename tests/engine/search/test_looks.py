"""The order of looks, and that a search is honest about having searched: simulated plans of which none is better than another."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.search.looks import FINALISTS, LookResult, SearchPlan, error_divisor, loss_majority, release_penalty
from sfumato.engine.search.space import LeverOption, SearchLever
from sfumato.engine.statistics.estimated import ValueWithInterval, widen_for_series

LEVERS = tuple(
    SearchLever(f"l{at}", tuple(LeverOption(str(i), lambda _: None) for i in range(5)), 1) for at in range(4)
)
PLAN = SearchPlan(LEVERS, 40, 30_000, 7)


def carried_out(plan: SearchPlan, look_at) -> dict[int, LookResult]:
    found: dict[int, LookResult] = {}
    while due := plan.next_looks(found):
        found |= {look.number: look_at(look) for look in due}
    return found


def test_it_looks_at_no_more_plans_than_it_may_and_ends_with_five():
    found = carried_out(PLAN, lambda look: LookResult(float(4 - sum(look.choice)), float(sum(look.choice))))
    looks = PLAN.all_looks(found)
    assert len(looks) <= PLAN.n_looks
    assert [look.number for look in looks] == list(range(1, len(looks) + 1))
    assert [look.records for look in looks if look.stage == "judge"] == [None] * FINALISTS
    assert {look.records for look in looks if look.stage == "screen"} == {1875}


def test_what_comes_next_depends_on_findings_and_not_on_the_order_in_which_they_came():
    def look_at(look):
        return LookResult(sum(look.choice) % 3 / 3, sum(at * place for place, at in enumerate(look.choice)) / 10)

    whole = carried_out(PLAN, look_at)
    rng = random.Random(1)
    for _ in range(10):
        found: dict[int, LookResult] = {}
        while due := [look for look in PLAN.next_looks(found) if look.number not in found]:
            look = rng.choice(due)
            found[look.number] = look_at(look)
        assert found == whole
        assert PLAN.all_looks(found) == PLAN.all_looks(whole)


def test_the_best_of_the_larger_sample_are_finalists_and_the_most_protective_plan_is_one():
    found = carried_out(PLAN, lambda look: LookResult(0.0, float(sum(look.choice))))
    looks = PLAN.all_looks(found)
    finalists = [look.choice for look in looks if look.stage == "judge"]
    larger = [look for look in looks if look.stage != "screen" and not look.uses_all_records]
    best = min(larger, key=lambda look: (found[look.number].cost, look.number))
    assert finalists[0] == best.choice
    assert max(sum(look.choice) for look in larger) in [sum(choice) for choice in finalists]


def test_finalists_are_judged_in_the_order_that_all_records_give_and_those_not_compared_come_last():
    """On the sample a plan that changes more is better, on all records the other way round; the second finalist could not be compared."""

    def look_at(look):
        total = float(sum(look.choice))
        if look.stage == "compare" and look.number == second:
            return LookResult(None, None)
        return LookResult(0.0, total if look.uses_all_records else -total)

    second = PLAN.n_looks - 2 * FINALISTS + 2
    found = carried_out(PLAN, look_at)
    looks = PLAN.all_looks(found)
    compared = [look for look in looks if look.stage == "compare"]
    judged = [look.choice for look in looks if look.stage == "judge"]
    assert {look.records for look in compared} == {PLAN.records}
    assert {look.choice for look in compared} == set(judged)
    assert judged[-1] == next(look.choice for look in compared if look.number == second)
    assert [sum(choice) for choice in judged[:-1]] == sorted(sum(choice) for choice in judged[:-1])
    assert judged != [look.choice for look in compared]
    assert sum(look.records == PLAN.sample_sizes[1] for look in looks) > 0


@pytest.mark.slow
def test_finalists_of_few_records_are_ordered_by_the_mean_of_two_looks_with_other_random_numbers():
    """Each look errs: by two the first finalist is nearer to the best of the five than by one, and no plan is judged twice."""

    def of(plan: SearchPlan, seed: int) -> int:
        rng = np.random.default_rng(seed)
        found = carried_out(plan, lambda look: LookResult(0.0, sum(look.choice) + rng.standard_normal()))
        judged = [look.choice for look in plan.all_looks(found) if look.stage == "judge"]
        assert len(set(judged)) == FINALISTS
        return sum(judged[0]) - min(map(sum, judged))

    few = SearchPlan(LEVERS, 40, 900, 7)
    once, twice = ([of(replace(few, repeats_differ=repeats), seed) for seed in range(200)] for repeats in (False, True))
    assert np.mean(twice) < np.mean(once) - 3 * np.std(np.subtract(twice, once)) / math.sqrt(200)


@pytest.mark.parametrize(("looks", "records"), [(19, 30_000), (40, 2_900)])
def test_finalists_of_few_records_or_few_looks_are_not_compared_again(looks, records):
    plan = SearchPlan(LEVERS, looks, records, 7)
    found = carried_out(plan, lambda look: LookResult(0.0, float(sum(look.choice))))
    assert "compare" not in {look.stage for look in plan.all_looks(found)}
    assert len(plan.all_looks(found)) == looks


def test_of_equally_useful_plans_the_one_that_protects_least_comes_first_and_the_most_where_limits_are_missed():
    for penalty, best in ((0.0, min), (0.5, max)):
        found = carried_out(PLAN, lambda look, penalty=penalty: LookResult(penalty, 1.0))
        looks = PLAN.all_looks(found)
        finalists = [sum(look.choice) for look in looks if look.stage == "judge"]
        expected = best(sum(look.choice) for look in looks if look.stage != "screen" and not look.uses_all_records)
        own = [sum(PLAN.start_choice)] if not penalty else []
        assert finalists[: len(own) + 1] == [*own, expected], "the plan itself gives way to none that is no better"


@pytest.mark.parametrize("looks", [10, 19, 40])
def test_the_plan_itself_is_judged_and_only_plans_that_are_better_by_more_measures_stand_before_it(looks):
    """Half of the plans gain by one measure of three and lose by two, and are best by the cost; the others the other way round."""
    plan = replace(PLAN, n_looks=looks)

    def look_at(look):
        total, pays = sum(look.choice), look.choice[0] % 2
        if look.choice == plan.start_choice:
            return LookResult(0.0, 9.0, losses=(0.5, 0.5, 0.5))
        losses = (0.4, 0.4, 0.7) if pays else (0.01, 0.7, 0.7)
        return LookResult(0.0, (1.0 if pays else 0.0) + total / 100, losses=losses)

    found = carried_out(plan, look_at)
    judged = [look.choice for look in plan.all_looks(found) if look.stage == "judge"]
    assert plan.start_choice in judged
    before, after = (
        part for part in (judged[: judged.index(plan.start_choice)], judged[judged.index(plan.start_choice) + 1 :])
    )
    assert all(choice[0] % 2 for choice in before)
    assert not any(choice[0] % 2 for choice in after)
    assert after, "and the cost alone would have put these first"


def test_a_plan_that_misses_limits_is_no_finalist_for_its_own_sake():
    found = carried_out(PLAN, lambda look: LookResult(float(look.choice == PLAN.start_choice), float(sum(look.choice))))
    assert PLAN.start_choice not in [look.choice for look in PLAN.all_looks(found) if look.stage != "screen"]


def test_a_plan_that_the_gate_blocks_on_the_larger_sample_gives_way():
    def look_at(look):
        blocked = look.choice == PLAN.start_choice and look.stage != "screen"
        return LookResult(float(blocked), 9.0 if look.choice == PLAN.start_choice else 1.0)

    looks = PLAN.all_looks(carried_out(PLAN, look_at))
    assert PLAN.start_choice in [look.choice for look in looks if look.stage == "enlarge"]
    assert PLAN.start_choice not in [look.choice for look in looks if look.stage == "judge"]


def test_losses_within_a_tenth_and_losses_that_are_not_known_count_for_neither():
    assert loss_majority((0.1, 0.2, None), (0.2, 0.19, 0.0)) == 1
    assert loss_majority((0.1, 0.2, 0.3), (0.2, 0.1, 0.1)) == -1
    assert loss_majority((0.0,), (0.0,)) == loss_majority((0.095,), (0.1,)) == 0


def test_local_moves_go_on_around_other_plans_where_the_best_has_no_neighbours_left():
    plan = SearchPlan(LEVERS[:2], 30, 30_000, 7)
    found = carried_out(plan, lambda look: LookResult(0.0, float(look.choice != (1, 1))))
    refined = [look for look in plan.all_looks(found) if look.stage == "refine"]
    assert len(refined) > 4, "no plan has more than four neighbours"


def test_plans_that_cannot_be_carried_out_are_passed_over():
    found = carried_out(PLAN, lambda look: LookResult(None, None) if look.choice[0] else LookResult(0.0, 1.0))
    assert all(look.choice[0] == 0 for look in PLAN.all_looks(found) if look.stage in ("enlarge", "judge"))
    assert carried_out(PLAN, lambda _: LookResult(None, None))


@pytest.mark.parametrize(
    ("margin", "limit", "missed"), [(0.1, 0.2, 0.0), (-0.2, 0.2, 0.5), (-2e9, 0.2, 1.0), (None, 0.2, 1.0)]
)
def test_a_limit_that_is_missed_by_more_counts_for_more_up_to_1(margin, limit, missed):
    outcome = "not computed" if margin is None else "met" if margin >= 0 else "not met"
    verdict = Verdict("risk.x.y", "", None, "max", limit, 0.0, margin, outcome)
    assert release_penalty([verdict], 0) == pytest.approx(missed)
    assert release_penalty([verdict], 2) == pytest.approx(missed + 2)


def test_the_error_of_all_judgements_together_is_that_of_one():
    shares = [1 - 0.95 ** (1 / error_divisor(place, FINALISTS)) for place in range(FINALISTS)]
    assert shares == sorted(shares, reverse=True)
    assert 1 - math.prod(1 - share for share in shares) <= 0.05 + 1e-12
    assert error_divisor(0, 1) == 1


REPETITIONS, ERROR, LIMIT = 300, 1.0, 0.0


def simulated(rng: np.random.Generator, truth: float) -> tuple[bool, bool, float, float]:
    """Of a search among plans whose risk is ``truth`` and whose utility is 0 each: whether a finalist passes freshly, whether one passes by what
    the search saw, and the fresh and the seen utility of the first finalist.
    """
    seen: dict[tuple[int, ...], tuple[float, float]] = {}

    def look_at(look):
        risk, cost = truth + ERROR * rng.standard_normal(), rng.standard_normal()
        if look.stage != "judge":
            seen[look.choice] = risk, cost
        return LookResult(max(0.0, risk - LIMIT), cost)

    found = carried_out(PLAN, look_at)
    finalists = [look for look in PLAN.all_looks(found) if look.stage == "judge"]
    passes = False
    for place, _ in enumerate(finalists):
        value = truth + ERROR * rng.standard_normal()
        upper = widen_for_series(
            ValueWithInterval(value, value - 1.96 * ERROR, value + 1.96 * ERROR), error_divisor(place, len(finalists))
        ).upper
        passes = passes or (upper is not None and upper <= LIMIT)
    naive = min(risk for risk, _ in seen.values()) + 1.96 * ERROR <= LIMIT
    return passes, naive, rng.standard_normal(), seen[finalists[0].choice][1]


@pytest.mark.slow
def test_a_winner_among_equals_passes_by_chance_in_at_most_5_in_100_and_its_fresh_utility_is_unbiased():
    rng = np.random.default_rng(11)
    found = [simulated(rng, LIMIT + 0.01) for _ in range(REPETITIONS)]
    passed, naive, fresh, seen = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    assert passed.mean() <= 0.05
    assert naive.mean() > 0.3, "the control: by what the search saw, chance passes"
    error = 1 / math.sqrt(len(found))
    assert abs(fresh.mean()) < 4 * error
    assert seen.mean() < -10 * error, "the control: what the search saw of its winner is too good"
