"""The gate's verdicts order releases as an attacker does who knows nothing of the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import order_of_harm
import pandas as pd
import pytest
from honest_attacker import attack, attack_all
from order_of_harm import BORN, RANK, HarmRow, disorders, judge_table, merged, plain_frame

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe

SIZE = (600, 200)


def plain_people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 90, n).astype(float),
            "town": [f"t{i}" for i in rng.integers(0, 8, n)],
            "income": np.round(np.exp(rng.normal(8, 0.7, n)), 2),
        }
    )


@pytest.mark.slow
def test_the_attacker_finds_everybody_in_a_copy_and_nobody_among_other_people() -> None:
    members, others, strangers = (plain_people(300, seed) for seed in (1, 2, 3))
    copy = members.sample(frac=1, random_state=1).reset_index(drop=True)
    found = attack(copy, members, others, ["age", "town"])
    # Three rows may share age and town: nobody is certain of these by the quasi-identifiers, but by all but one column.
    assert found.members > 280
    assert found.least > 270
    assert found.others == 0
    assert attack(strangers, members, others, ["age", "town"]).least == 0
    # Were others released too, what is right of members would be no more than what is right of anybody.
    both = pd.concat([members, others], ignore_index=True)
    assert attack(both, members, others, ["age", "town"]).least == 0


@pytest.mark.slow
def test_the_attacker_finds_the_rows_of_kept_columns_whatever_is_drawn() -> None:
    members, others = plain_people(300, 1), plain_people(300, 2)
    drawn = members.assign(income=members["income"].sample(frac=1, random_state=1).to_numpy())
    alone = int((members.groupby(["age", "town"])["age"].transform("size") == 1).sum())
    found = {one.strategy: one for one in attack_all(drawn, members, others, ["age", "town"], ["age", "town"])}
    assert found["the kept columns, equal row"].members == alone
    assert attack(drawn, members, others, ["age", "town"], ["age", "town"]).members >= alone
    # Wrong incomes lead away: whoever insists on them finds fewer.
    assert found["all but age, equal row"].members < alone / 2


def test_the_attacker_uses_nothing_of_the_engine() -> None:
    source = Path(order_of_harm.__file__).with_name("honest_attacker.py").read_text("utf-8")
    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert {line.split()[1].partition(".")[0] for line in imports} == {
        "__future__", "collections", "dataclasses", "numpy", "pandas",
    }  # fmt: skip


def test_dates_and_levels_reach_the_attacker_as_they_are() -> None:
    recipe = Recipe.from_table(
        {"title": "t", "variables": {"born": {"kind": "date"}, "sex": {"kind": "categorical"}, "pay": {"kind": "continuous"}},
         "synthesis": [{"target": "pay", "method": "cart", "predictors": ["sex"]}], "measure": [{"method": "utility.ecdf"}]}
    )  # fmt: skip
    frame = pd.DataFrame({"born": ["1900-01-02", "1950-05-05"], "sex": ["f", "m"], "pay": ["1.50", "2"]})
    plain = plain_frame(conform_to_schema(frame, recipe.schema))
    assert plain["born"].tolist() == [1.0, 18386.0]
    assert plain["sex"].tolist() == ["f", "m"]
    assert plain["pay"].tolist() == [1.5, 2.0]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[HarmRow]:
    """Return the eight releases of a generated table with dates of birth, the most harmful first."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return judge_table(BORN, SIZE, 1, tmp_path_factory.mktemp("harm"), attacked=True)


@pytest.mark.study
def test_nothing_in_which_an_honest_attacker_finds_more_people_than_in_a_blocked_release_passes(
    rows: list[HarmRow],
) -> None:
    assert [(one.release, other.release) for one, other in disorders(rows)] == []
    # The control: had true keys passed, as they once did, the order would be wrong.
    wrong = [replace(row, verdict="to be judged") if row.release == "true keys" else row for row in rows]
    assert disorders(wrong)
    assert merged(rows[0], {(rows[0].table, rows[0].release): wrong[0]}) == rows[0]


@pytest.mark.study
def test_a_copy_and_true_keys_are_blocked_and_noise_is_not(rows: list[HarmRow]) -> None:
    by = {row.release: row for row in rows}
    for release in ("copy", "true keys and one sensitive", "true keys"):
        assert by[release].verdict == "no"
        assert by[release].found.members == SIZE[0]
        assert (by[release].people or 0) == SIZE[0]
    assert "kept_keys" in by["true keys"].blocks
    assert by["trees, leaves of 1"].verdict == "no"
    assert by["noise"].verdict != "no", by["noise"].blocks
    assert by["noise"].found.least == 0
    # The first release is worse than none after it.
    ranks = [RANK[row.verdict] for row in rows]
    assert ranks[0] == max(ranks)
    assert ranks[-1] == min(ranks)
