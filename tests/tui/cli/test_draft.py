"""``sfumato draft``: a recipe that runs, from a file or a project, and what is refused."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
ROWS = "\n".join(
    f"{'north' if i % 3 else 'south'},{20 + i % 37},{(i * 37) % 91},{'yes' if i % 4 else 'no'}" for i in range(120)
)


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of 120 people."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(f'town,age,"pay, net",smoker\n{ROWS}\n')
    return "people.csv"


@pytest.mark.slow
def test_a_draft_goes_to_standard_output_and_what_it_says_beside_it(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("draft", people, "--known", "town, age", "--sensitive", '"pay, net"', "--sensitive", "smoker") == 0
    said = capsys.readouterr()
    found = tomllib.loads(said.out)
    assert {step["target"] for step in found["synthesis"]} == {"pay, net", "smoker", "town"}
    assert "Not measured: membership." in said.err
    assert "town is synthesised: " in said.err
    assert "age is shown in steps of 10: 120 of 120 people would be in classes of fewer than 11 without." in said.err
    assert not Path("workspace").exists()


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
def test_a_draft_as_json_has_the_recipe_and_what_it_covers(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--known", "town", "--sensitive", "smoker")
    assert sfumato("draft", people, *asked, "-o", "new.toml", "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["recipe"] == tomllib.loads(Path("new.toml").read_text("utf-8"))
    assert (found["want"], found["steps"]["measure"]) == ("synthesis", len(found["recipe"]["measure"]))
    assert "Not measured: membership." in found["warnings"]
    assert not said.err


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
def test_the_next_command_after_a_draft_is_that_of_its_goal(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--want", "evaluation", "--known", "town", "--sensitive", "smoker", "-o", "new.toml")
    assert sfumato("draft", people, *asked) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "sfumato run" not in last
    assert f"sfumato evaluate new.toml --original {Path(people).resolve()} --released FILE..." in last
    command = shlex.split(last.partition("then: sfumato ")[2].replace("FILE...", people))
    assert sfumato(*command, "--workspace", "w", "--jobs", "1", "--quiet") in (0, 1)


@pytest.mark.slow
def test_an_audience_is_written_unless_it_is_the_public_and_decides_what_changes(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for audience in ("public", "contract", "enclave"):
        asked = ("--known", "town,age", "--sensitive", "smoker", "--audience", audience)
        assert sfumato("draft", people, *asked) == 0
        found[audience] = tomllib.loads(capsys.readouterr().out)
    assert [found[one]["release"].get("audience") for one in found] == [None, "contract", "enclave"]
    kept = {one: set(found[one]["variables"]) - {step["target"] for step in found[one]["synthesis"]} for one in found}
    assert "pay, net" in kept["enclave"], "nothing that was not asked for is synthesised"
    assert "pay, net" in kept["contract"], "it is no quasi-identifier"
    assert "pay, net" not in kept["public"] or "pay, net" in found["public"]["release"]["recode"]
    assert sfumato("draft", people, "--audience", "everybody") == 2


@pytest.mark.usefixtures("in_process", "read_here")
@pytest.mark.slow
def test_a_drafted_recipe_runs(people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("draft", people, "--known", "town", "--sensitive", "smoker", "-m", "2", "-o", "new.toml") == 0
    assert "sfumato run new.toml" in capsys.readouterr().out
    assert sfumato("run", "new.toml", "--workspace", "w", "--jobs", "1", "--quiet") in (0, 1)


@pytest.mark.usefixtures("in_process", "read_here")
@pytest.mark.slow
def test_tables_are_drafted_and_run(people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        sfumato("draft", people, "--known", "town", "--sensitive", "smoker", "--tables", "-m", "2", "-o", "new.toml")
        == 0
    )
    assert "Rounded counts are no differential privacy" in capsys.readouterr().out
    (step,) = tomllib.loads(Path("new.toml").read_text())["synthesis"]
    assert step["method"] == "margins"
    assert set(step["target"]) == {"town", "age", "pay, net", "smoker"}
    assert sfumato("run", "new.toml", "--workspace", "w", "--jobs", "1", "--quiet") in (0, 1)
    assert sfumato("draft", people, "--known", "town", "--epsilon", "1") == 2


@pytest.mark.slow
def test_a_project_is_drafted_for_by_its_name(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("import", people, "--workspace", "w") == 0
    capsys.readouterr()
    asked = ("--want", "anonymisation", "--known", "town,age", "--sensitive", "smoker", "-k", "4", "-l", "2")
    assert sfumato("draft", "people", "--workspace", "w", *asked) == 0
    (step,) = tomllib.loads(capsys.readouterr().out)["anonymisation"]
    assert (step["k"], step["l"], step["sensitive"]) == (4, 2.0, ["smoker"])


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no variable has a role yet"),
        (("--known", "twon"), 'no column "twon"; did you mean "town"?'),
        (("--known", "town", "--sensitive", "town"), "is given as a quasi-identifier and as sensitive"),
        (("--want", "anonymisation", "--sensitive", "smoker"), "needs quasi-identifiers"),
        (("--want", "anonymisation", "--known", "town", "-k", "500"), "cannot make a class of 500"),
        (("--want", "evaluation", "--known", "town"), "no variable is sensitive"),
    ],
)
def test_what_is_missing_is_said(
    arguments: tuple[str, ...], said: str, people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sfumato("draft", people, *arguments)
    assert status == (2 if said else 0)
    assert said in capsys.readouterr().err


def test_no_file_is_written_over_and_no_unknown_source_is_taken(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.toml").write_text("mine")
    assert sfumato("draft", people, "--known", "town", "--sensitive", "smoker", "-o", "there.toml") == 2
    assert Path("there.toml").read_text() == "mine"
    assert sfumato("draft", "nobody", "--workspace", "none") == 2
    assert 'there is no file "nobody"' in capsys.readouterr().err


def write_uneven_file() -> None:
    """300 people; of 40 on the islands 30 have no school, of the 260 others 2."""
    lines = []
    for i in range(300):
        lacks = i < 30 or i in (100, 200)
        lines.append(
            f"{'islands' if i < 40 else 'coast'},{20 + i % 37},{'' if lacks else 'abc'[i % 3]},{(i * 37) % 91}"
        )
    Path("uneven.csv").write_text("\n".join(["region,age,school,pay", *lines]) + "\n")


@pytest.mark.slow
def test_the_group_of_which_most_are_dropped_is_named(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write_uneven_file()
    given = ("--known", "region,age,school", "--sensitive", "pay", "--want", "anonymisation", "-k", "11")
    assert sfumato("draft", "uneven.csv", *given, "-o", "uneven.toml") == 0
    warning = "Of region = islands 30 of 40 (75 %) are dropped, of all others 2 of 260 (0.77 %)."
    assert warning in " ".join(capsys.readouterr().out.split())
    assert warning in " ".join(Path("uneven.toml").read_text().replace("\n#", "").split()), "the recipe keeps it"


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
def test_import_names_the_group_that_lacks_most_and_a_project_that_drops_it_is_warned(
    people: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write_uneven_file()
    assert sfumato("import", "uneven.csv", "--workspace", "w") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "32 of 300 records lack a value and are kept. Of region = islands 30 of 40 (75 %) lack one" in told
    assert sfumato("import", people, "--workspace", "w") == 0
    assert "lack" not in capsys.readouterr().out, "nobody lacks a value"
    with Workspace.open(Path("w")) as workspace:
        draft = find_draft(workspace, 1)
        assert draft is not None
        save_draft(
            workspace, draft.with_text(draft.toml.replace('missing = "keep"', 'missing = "drop"')), draft.revision
        )
    assert sfumato("draft", "uneven", "--known", "region", "--sensitive", "pay", "--workspace", "w") == 0
    assert "Of region = islands 30 of 40 (75 %) are dropped" in " ".join(capsys.readouterr().err.split())
