"""How many records were drawn anew for which rule: held against draws that are known, counted by hand and by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.engine.constraints.constraints import read_constraints
from sfumato.engine.constraints.redraw_counts import RedrawCounts, RedrawTally
from sfumato.engine.constraints.rejection_sampling import ConstrainedDataset, plan_constraints
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import ConstraintsUnmet
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

LEVELS = ("p", "q", "r")
VARIABLES = (Variable("x", Kind.COUNT), Variable("y", Kind.CATEGORICAL, levels=LEVELS))
RULES = {"not_p": "y != 'p'", "not_q_of_1": "x = 1 -> y != 'q'"}
PLAN: dict[str, Any] = {
    "variables": {"x": {"kind": "count"}, "y": {"kind": "categorical", "levels": list(LEVELS)}},
    "synthesis": [{"target": "y", "method": "cart"}],
}


def scripted(
    x: Sequence[int], draws: Sequence[Sequence[int]], most: int, unmet: str = "keep"
) -> tuple[RedrawCounts, ...]:
    """What is counted where draw i of y is ``draws[i]``, the last for all further ones."""
    schema = Schema(VARIABLES, read_constraints(RULES, Schema(VARIABLES)))
    data = conform_to_schema(pd.DataFrame({"x": x, "y": ["r"] * len(x)}), schema)
    given_draws = iter([*draws, *[draws[-1]] * (most + 1)])

    def draw(_: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        return {"y": np.asarray(next(given_draws), dtype=np.float64)}

    made = ConstrainedDataset(data, schema, plan_constraints([("y",)], schema), most, unmet, "dataset 1")  # type: ignore[arg-type]
    made.make_columns(0, Recipe.from_table(PLAN).synthesis[0], data, draw, lambda _: np.random.default_rng(0))
    return made.tally.all_counts


def test_each_record_counts_once_a_rule_and_each_draw_of_it_as_a_redraw() -> None:
    # record 0 keeps to all; 1 breaks p, then q as x = 1, then keeps; 2 breaks p in every draw; 3 is q, but its x is 0
    found = scripted([0, 1, 0, 0], [[2, 0, 0, 1], [0, 1, 0, 0], [0, 2, 0, 0]], 2)
    place = ("synthesis[0]", "y")
    assert found == (
        RedrawCounts(*place, "not_p", 4, 2, 3, 1),  # 1 and 2 at first, 2 again: three redraws; 2 is left
        RedrawCounts(*place, "not_q_of_1", 4, 1, 1, 0),
        RedrawCounts(*place, "", 4, 2, 4, 1),
        RedrawCounts("", "", "", 4, 2, 4, 1),
    )


def test_where_nothing_breaks_a_rule_that_is_said_with_zeros() -> None:
    found = scripted([0, 1], [[2, 2]], 5)
    assert [(one.constraint, one.records, one.redraws, one.left) for one in found] == [
        ("not_p", 0, 0, 0), ("not_q_of_1", 0, 0, 0), ("", 0, 0, 0), ("", 0, 0, 0),
    ]  # fmt: skip


def test_without_redraws_what_breaks_a_rule_is_left_and_not_redrawn() -> None:
    whole = scripted([1, 1, 1], [[0, 1, 2]], 0)[-1]
    assert (whole.records, whole.redraws, whole.left) == (0, 0, 2)


def test_a_run_that_fails_says_what_is_left_and_how_often_it_tried() -> None:
    with pytest.raises(ConstraintsUnmet, match="constraint not_p: 1 of 2 records, after 3 redraws") as unmet:
        scripted([0, 0], [[0, 2]], 3, unmet="fail")
    assert unmet.value.left == {"not_p": 1}


@pytest.mark.slow
@given(st.data())
def test_counts_are_those_of_a_loop_over_records(data: st.DataObject) -> None:
    n, most = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    x = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    draws = data.draw(
        st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), min_size=most + 1, max_size=most + 1)
    )
    rules = {"not_p": lambda i, y: y == 0, "not_q_of_1": lambda i, y: x[i] == 1 and y == 1}
    counts = {name: [0, 0, 0] for name in (*rules, "")}
    for i in range(n):
        tried = [draws[0][i]]
        while any(broke(i, tried[-1]) for broke in rules.values()) and len(tried) <= most:
            tried.append(draws[len(tried)][i])
        for name, count in counts.items():
            own = [rules[name]] if name else list(rules.values())
            broken = [any(broke(i, y) for broke in own) for y in tried]
            again = broken[:-1]
            count[0] += any(again)
            count[1] += sum(again)
            count[2] += broken[-1]
    found = scripted(x, draws, most)
    assert {one.constraint: [one.records, one.redraws, one.left] for one in found[:-1]} == counts
    assert [found[-1].records, found[-1].redraws, found[-1].left] == counts[""]


def test_by_chance_so_many_are_redrawn_as_the_model_says() -> None:
    """Of n records that each break a rule with probability p, Binomial(n, p) are redrawn, a mean of p / (1 - p) times each."""
    n, p = 20_000, 0.3
    rng = np.random.default_rng(5)
    draws = [rng.choice(3, n, p=[p, 0.5, 0.2]) for _ in range(40)]
    found = scripted([0] * n, [one.tolist() for one in draws], 39)[-1]
    assert found.left == 0
    assert 1e-3 < stats.binom.cdf(found.records, n, p) < 1 - 1e-3
    redraws = stats.nbinom.cdf(found.redraws, n, 1 - p)  # the failures before n records are accepted
    assert 1e-3 < redraws < 1 - 1e-3
    # negative controls: each number in place of the other is found out
    assert stats.binom.cdf(found.redraws, n, p) > 1 - 1e-9
    assert stats.nbinom.cdf(found.records, n, 1 - p) < 1e-9


def test_a_record_that_two_steps_drew_anew_is_one_record_of_the_dataset() -> None:
    tally = RedrawTally()
    rows = np.arange(3)
    for step in ("synthesis[0]", "synthesis[1]"):
        tally.add_step(
            step, "y", [(rows, {"a": np.array([True, False, False])}), (rows[:1], {"a": np.array([False])})], 3
        )
    assert tally.all_counts[-1] == RedrawCounts("", "", "", 3, 1, 2, 0)


def count_redraws(constraints: Mapping[str, str]) -> list[RedrawCounts]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.integers(0, 2, 300), "y": rng.choice(LEVELS, 300)})
    recipe = Recipe.from_table({**PLAN, "constraints": constraints, "release": {"m": 1}})
    data = conform_to_schema(frame[frame["y"] != "p"] if constraints else frame, recipe.schema)
    fits = [fit_model(recipe, 0, data, key=PUBLIC)]
    noted: list[RedrawCounts] = []
    released = draw_dataset(recipe, 1, data, fits, key=PUBLIC, note=noted.extend)
    assert released.frame.equals(draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame)
    return noted


def test_a_dataset_without_constraints_has_nothing_to_count_and_one_with_them_says_how_many() -> None:
    assert count_redraws({}) == []
    kept = count_redraws({"not_q_of_1": RULES["not_q_of_1"]})
    assert [one.constraint for one in kept] == ["not_q_of_1", "", ""]
    assert 0 < kept[-1].records <= kept[-1].redraws
    assert kept[-1].of == kept[0].of
