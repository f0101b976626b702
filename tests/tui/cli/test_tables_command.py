"""``sfumato tables``: the list of protected tables, one of them as it would be released, and revealed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from protected_towns import COUNTS, RECIPE, people_of_towns, run_of_tables

from sfumato.workspace.library import synthesise
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
Command = Callable[..., int]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("towns") / "workspace"
    run_of_tables(found)
    return found


@pytest.fixture
def printed(sfumato: Command, directory: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*words: str) -> tuple[int, str]:
        code = sfumato("tables", *words, "--workspace", str(directory))
        found = capsys.readouterr()
        return code, found.out + found.err

    return run


def test_the_list_counts_cells_by_what_becomes_of_them(printed: Callable[..., tuple[int, str]]) -> None:
    code, text = printed()
    assert code == 0
    assert "run 1: 3 tables, 29 cells, 7 hidden" in text
    lines = {line.split()[1]: line.split() for line in text.splitlines() if line[:1].isdigit()}
    assert lines["people"][-6:] == ["20", "1", "3", "0", "0", "0"]
    assert "not examined" in text


def test_a_table_is_printed_as_it_would_be_released(printed: Callable[..., tuple[int, str]]) -> None:
    code, text = printed("1", "1")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["north"] == ["35", "20", "x", "x"]
    assert rows["south"] == ["34", "14", "x", "x"]
    assert rows["coast"] == ["20", "12", "8", "0"]
    assert "INTERNAL" not in text
    assert printed("last", "people") == (code, text)


def test_reveal_shows_values_letters_and_the_mark(printed: Callable[..., tuple[int, str]]) -> None:
    _, text = printed("1", "1", "--reveal")
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["north"] == ["35", "20", "2", "P", "13", "S"]
    assert "P hidden: unsafe by a rule; S hidden to protect another cell" in text
    assert "INTERNAL: as confidential as the data" in text


def test_json_has_hidden_values_only_where_they_are_revealed(
    printed: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    found = json.loads(printed("1", "1", "--json")[1])
    hidden = [one for one in found["table"]["cells"] if one["status"] == "hidden"]
    assert len(hidden) == 4
    assert {one["value"] for one in hidden} == {None}
    assert not any("letter" in one for one in found["table"]["cells"])
    assert found["tables"][0]["hidden_by_rule"] == 1
    file = tmp_path / "tables.json"
    printed("1", "1", "--reveal", "--json", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    revealed = json.loads(file.read_text())["table"]["cells"]
    iron = next(one for one in revealed if one["labels"] == {"region": "north", "trade": "iron"})
    assert (iron["value"], iron["letter"], iron["status"]) == (2, "P", "hidden")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", "7"), 'N: run 1 has no table "7"; they are numbered from 1 to 3'),
        (("1", "peple"), 'N: run 1 has no table "peple"; did you mean "people"?; they are numbered'),
        (("9",), 'there is no run "9"'),
    ],
)
def test_bad_numbers_give_one_message(
    printed: Callable[..., tuple[int, str]], words: tuple[str, ...], message: str
) -> None:
    code, text = printed(*words)
    assert code == 2
    assert text.count("\n") == 1
    assert message in text


def test_tables_that_do_not_pass_do_not_read_as_if_they_did(
    sfumato: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trades = ("food", "iron", "wool")
    cells = [{"region": region} for region in COUNTS] + [{"trade": trade} for trade in trades]
    cells += [{"region": region, "trade": trade} for region in COUNTS for trade in trades]
    cells.remove({"region": "north", "trade": "iron"})
    fixed = [{"table": "people", "cell": cell, "status": "published"} for cell in cells]
    recipe = {**RECIPE, "table": RECIPE["table"][:1], "tables": {"threshold": 5, "fixed": fixed}}
    synthesise(people_of_towns(), recipe, tmp_path / "w")
    assert sfumato("tables", "1", "1", "--workspace", str(tmp_path / "w")) == 0
    said = capsys.readouterr().out
    assert "x 1 unsafe cell follows exactly: these tables do not pass; sfumato examine 1 says why" in said


def test_a_run_without_tables_says_how_to_have_some(
    sfumato: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from prepared_tables import HOUSEHOLD_PLAN, household_survey
    from prepared_workspaces import enter_recipe

    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.methods.run import PUBLIC
    from sfumato.engine.recipe.recipe import Recipe

    recipe = Recipe.from_table(HOUSEHOLD_PLAN)
    with Workspace.create(tmp_path / "w", PUBLIC) as workspace:
        enter_recipe(workspace, recipe, conform_to_schema(household_survey(), recipe.schema), "survey.csv")
    assert sfumato("tables", "--workspace", str(tmp_path / "w")) == 2
    assert "has no tables; add [[table]] and [tables]" in capsys.readouterr().err
