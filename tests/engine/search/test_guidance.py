"""Which levers a missed limit asks for, and that asking them first finds a plan that passes sooner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.search.guidance import guided_moves, relative_miss
from sfumato.engine.search.looks import LookResult, SearchPlan
from sfumato.engine.search.space import LeverOption, SearchLever

OPTIONS = tuple(LeverOption(str(at), lambda _: None) for at in range(6))
M = SearchLever("m", OPTIONS[:4], 0, setting="m", later_is_larger=False)
LEAVES = SearchLever("cart.minbucket", OPTIONS, 0, setting="minbucket", variables=frozenset({"income", "job"}))
METHOD = SearchLever(
    "method of income", OPTIONS[:2], 0, later_protects_more=False, setting="method", variables=frozenset({"income"})
)
KEPT = SearchLever("synthesise besides", OPTIONS[:3], 0, setting="kept", later_is_larger=False)
LEVERS = (KEPT, METHOD, M, LEAVES)


def verdict(value: str, margin: float | None, target: str = "") -> Verdict:
    outcome = "not computed" if margin is None else "met" if margin >= 0 else "not met"
    return Verdict(value, target, None, "max", 0.1, 0.0, margin, outcome)


def test_the_levers_that_the_label_of_a_missed_limit_names_come_first_in_the_way_that_it_says():
    assert guided_moves(LEVERS, [verdict("risk.identification.expected_match_risk", -0.1)]) == (((0, 1), (2, 1)),)
    (copies,) = guided_moves(LEVERS, [verdict("utility.ecdf.max_abs_difference", -0.1)])
    assert copies == ((3, -1), (1, 0), (0, -1)), "a more flexible model, then fewer variables synthesised"


def test_limits_on_what_single_records_give_away_ask_for_less_influence_of_those_at_risk():
    levers = (*LEVERS, SearchLever("weights of records at risk", OPTIONS[:3], 0, setting="weights"))
    (asked,) = guided_moves(levers, [verdict("risk.attribute_inference.excess_risk", -0.1, "income")])
    assert (4, 1) in asked
    (utility,) = guided_moves(levers, [verdict("utility.ecdf.max_abs_difference", -0.1, "income")])
    assert 4 not in {at for at, _ in utility}


def test_of_a_variable_the_levers_of_the_step_that_makes_it_are_asked_for():
    (income,) = guided_moves(LEVERS, [verdict("utility.ecdf.max_abs_difference", -0.1, "income")])
    assert {at for at, _ in income} == {0, 1, 3}
    (other,) = guided_moves(LEVERS, [verdict("utility.ecdf.max_abs_difference", -0.1, "height")])
    assert {at for at, _ in other} == {0}, "no step makes it: only what concerns the whole release"


def test_the_limit_that_is_missed_by_more_comes_first_and_met_limits_ask_for_nothing():
    risk, utility = "risk.identification.expected_match_risk", "utility.ecdf.max_abs_difference"
    assert guided_moves(LEVERS, [verdict(risk, -0.01), verdict(utility, -0.3)])[0][0] == (3, -1)
    assert guided_moves(LEVERS, [verdict(risk, -0.3), verdict(utility, -0.01)])[0][0] == (0, 1)
    assert guided_moves(LEVERS, [verdict(risk, 0.01)]) == ()


@pytest.mark.parametrize(("margin", "missed"), [(0.1, 0.0), (-0.1, 0.5), (None, 1.0)])
def test_what_is_missed_counts_in_units_of_the_limit(margin, missed):
    assert relative_miss(verdict("risk.x.y", margin)) == pytest.approx(missed)


SIMULATED = 60


def looks_until_one_passes(seed: int, guidance: str) -> int:
    """Of a search among eight settings: three limits of risk need one setting each at its two most protective options, three of utility
    another one each at its two least protective.
    """
    rng = np.random.default_rng(seed)
    risks, utilities = np.split(rng.choice(8, 6, replace=False), 2)
    order = rng.permutation(8) if guidance == "shuffled" else np.arange(8)
    levers = tuple(replace(LEAVES, name=f"l{at}") for at in range(8))
    plan, found, looks = SearchPlan(levers, 120, 20_000, seed), {}, 0
    while due := plan.next_looks(found):
        for look in due:
            missed = {(at, 1): max(0, 4 - look.choice[at]) / 4 for at in risks}
            missed |= {(at, -1): max(0, look.choice[at] - 1) / 4 for at in utilities}
            asked = sorted((move for move in missed if missed[move]), key=lambda move: -missed[move])
            looks += 1
            if not asked:
                return looks
            asks = tuple(((int(order[at]), by),) for at, by in asked) if guidance != "none" else ()
            found[look.number] = LookResult(sum(missed.values()), float(sum(look.choice)), asks)
    return plan.n_looks


@pytest.mark.slow
def test_guided_moves_find_a_plan_that_passes_in_fewer_looks_and_shuffled_guidance_does_not():
    looks = {
        guidance: np.mean([looks_until_one_passes(seed, guidance) for seed in range(SIMULATED)])
        for guidance in ("limits", "none", "shuffled")
    }
    assert looks["limits"] < 0.85 * looks["none"], looks
    assert looks["shuffled"] > 0.92 * looks["none"], f"the control: guidance that knows nothing helps nothing: {looks}"
