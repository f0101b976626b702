"""Releases of printed tables: marks in public, reasons and certificates inside, and a folder that verify covers."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from printed_table_runs import COUNTS, examine, finding, hidden_cell, people, run
from run_tables import RunTables, list_run_tables

from sfumato.engine.errors import BadInput
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.library import synthesise
from sfumato.workspace.release.verification import verify_release
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
WAIVED = "checked by two people of the methods unit"


def release(directory: Path, number: int, target: Path) -> set[str]:
    with Workspace.open(directory) as opened:
        return set(write_run_release(opened, number, target).files)


def tables_of(directory: Path, number: int) -> RunTables:
    with Workspace.open(directory, read_only=True) as opened:
        found = list_run_tables(opened, number)
        assert found is not None
        return found


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, Path, set[str]]:
    directory = tmp_path_factory.mktemp("tables")
    number = run(directory / "w", people(), COUNTS)
    return directory / "w", number, directory / "out", release(directory / "w", number, directory / "out")


def test_public_files_have_marks_and_no_reason(released: tuple[Path, int, Path, set[str]]) -> None:
    directory, number, out, files = released
    assert {name for name in files if name.startswith("public/")} == {
        "public/printed-tables/01-people.csv", "public/what-the-tables-hide.html", "public/manifest.json",
    }  # fmt: skip
    tables = tables_of(directory, number)
    own = lines(out / "public/printed-tables/01-people.csv")
    assert set(own[0]) == {"region", "sex", "count", "status"}
    assert {line["status"] for line in own} == {"published", "hidden"}
    assert all((line["count"] == "x") == (line["status"] == "hidden") for line in own)
    assert sum(line["status"] == "hidden" for line in own) == tables.tables[0].hidden_count
    public = "".join(path.read_text("utf-8") for path in (out / "public").rglob("*") if path.is_file())
    for word in ("primary", "secondary", "threshold", "certificate"):
        assert word not in public
    assert json.loads((out / "public/manifest.json").read_text("utf-8"))["kind"] == "tables"


def test_the_internal_package_says_why_and_shows_another_table(released: tuple[Path, int, Path, set[str]]) -> None:
    _, _, out, files = released
    internal = {name.removeprefix("internal/printed-tables/") for name in files if name.startswith("internal/printed")}
    assert internal == {"01-people.csv", "argus/01-people.tab", "argus/01-people.rda", "certificates.csv"}
    assert {"internal/acro/01-people.csv", "internal/disclosure-control.json", "internal/report.html"} <= files
    own = lines(out / "internal/printed-tables/01-people.csv")
    unsafe = [line for line in own if line["rules"] == "threshold"]
    assert unsafe
    assert all((line["status"], line["safe"]) == ("primary", "yes") for line in unsafe)
    for line in lines(out / "internal/printed-tables/certificates.csv"):
        assert line[line["certificate"]] != line["value"]
    queue = json.loads((out / "internal/acro/results.json").read_text("utf-8"))["results"]
    entry = next(one for one in queue.values() if one["files"][0]["name"] == "01-people.csv")
    assert (entry["status"], entry["fair"]["statbarn"]) == ("review", "Frequencies")


def test_verify_refuses_a_public_table_that_was_changed(
    released: tuple[Path, int, Path, set[str]], tmp_path: Path
) -> None:
    import shutil

    assert verify_release(released[2]).problems == ()
    shutil.copytree(released[2], tmp_path / "copy")
    file = tmp_path / "copy/public/printed-tables/01-people.csv"
    file.write_text(file.read_text("utf-8").replace(",x,hidden", ",9,published", 1), "utf-8")
    assert verify_release(tmp_path / "copy").problems == (
        "public/printed-tables/01-people.csv: changed since it was released",
    )


def test_what_the_gate_blocks_needs_a_reason(tmp_path: Path) -> None:
    cell = hidden_cell(tmp_path / "w", run(tmp_path / "w", people(), COUNTS))
    fixed = [{"table": "people", "cell": cell, "status": "published"}]
    number = run(tmp_path / "w", people(), {**COUNTS, "tables": {"threshold": 10, "fixed": fixed}})
    with pytest.raises(NotReleased, match="hidden cells that readers of the tables work out"):
        release(tmp_path / "w", number, tmp_path / "out")
    with Workspace.open(tmp_path / "w") as opened:
        made = write_run_release(opened, number, tmp_path / "out", waive={"kept_tables": WAIVED})
        assert "public/printed-tables/01-people.csv" in made.files


def test_a_second_release_hides_what_would_follow_from_the_first(tmp_path: Path) -> None:
    first, later = people(), people()
    # Two people move; who they are, and that they moved, must not follow from the two tables.
    at = later.index[(later["region"] == "a") & (later["sex"] == "f")][:2]
    later.loc[at, "region"] = "b"
    one = run(tmp_path / "w", first, COUNTS)
    release(tmp_path / "w", one, tmp_path / "out")
    apart: dict[str, Any] = {**COUNTS, "tables": {"threshold": 10, "changes": False}}
    loose = finding(tmp_path / "w", run(tmp_path / "w", later, apart), "table_changes")
    assert loose.status == "block"
    assert loose.people == 2
    assert "since run 1" in loose.message
    # Another name, and another order of the variables, are no other table.
    renamed = {**apart, "table": [{"name": "persons", "by": ["sex", "region"]}]}
    assert finding(tmp_path / "w", run(tmp_path / "w", later, renamed), "table_changes").status == "block"
    joint = run(tmp_path / "w", later, COUNTS)
    assert finding(tmp_path / "w", joint, "table_changes").status == "pass"
    assert finding(tmp_path / "w", joint, "kept_tables").status == "pass"
    assert [one.release for one in tables_of(tmp_path / "w", joint).stored.system.tables] == ["", "run 1"]


def test_tables_go_with_datasets(tmp_path: Path) -> None:
    both = {
        **COUNTS,
        "variables": {name: own for name, own in COUNTS["variables"].items() if name != "pay"},
        "synthesis": [{"target": name, "method": "cart", "predictors": before} for name, before in (("sex", []), ("region", ["sex"]))],
        "release": {"m": 1},
    }  # fmt: skip
    number = synthesise(people(), both, tmp_path / "w")
    with Workspace.open(tmp_path / "w") as opened:
        made = write_run_release(opened, number, tmp_path / "out", reason=WAIVED)
    assert {"public/printed-tables/01-people.csv", "public/dataset-SYNTHETIC-01.csv"} <= set(made.files)
    assert verify_release(tmp_path / "out").problems == ()


def test_tables_alone_have_an_assessment_to_sign_and_a_public_page_without_limits_of_rules(tmp_path: Path) -> None:
    pay = {**COUNTS, "table": [{"name": "pay", "by": ["region"], "value": "pay"}]}
    pay["tables"] = {"threshold": 7, "p_percent": 13}
    number = run(tmp_path / "w", people(), pay)
    with Workspace.open(tmp_path / "w") as opened:
        write_run_release(opened, number, tmp_path / "out", reason=WAIVED)
    internal = (tmp_path / "out" / "internal" / "risk-assessment.md").read_text("utf-8")
    for words in (
        "outside reader", "reader of zeros", "contributor", "holder of earlier releases", "Assessed by",
        "A row or column all of whose people lie in one cell tells that of each of them", "13", "Owner of the risk",
        "hidden cells", WAIVED,
    ):  # fmt: skip
        assert words in internal, words
    public = (tmp_path / "out" / "public" / "what-the-tables-hide.html").read_text("utf-8")
    assert "how much the largest ones do" in public
    assert "13" not in re.sub(r"<style.*?</style>", "", public, flags=re.DOTALL)


def test_a_table_without_a_rule_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no rule says when a cell is unsafe"):
        run(tmp_path / "w", people(), {**COUNTS, "tables": {}})


def test_what_a_deleted_run_printed_is_not_known(tmp_path: Path) -> None:
    # What a dataset shows unchanged counts whether its run was deleted or not: this one shows nothing of the tables.
    steps = [{"target": name, "method": "cart", "predictors": []} for name in ("region", "sex")]
    drawn = {"variables": COUNTS["variables"], "synthesis": steps}
    for recipe, status in ((drawn, "pass"), (COUNTS, "not checked")):
        first = run(tmp_path / "w", people(), recipe)
        with Workspace.open(tmp_path / "w") as opened:
            write_run_release(opened, first, tmp_path / f"out{first}", reason=WAIVED)
            delete_run(opened, first)
        found = finding(tmp_path / "w", run(tmp_path / "w", people(), COUNTS), "kept_tables")
        assert found.status == status, found.message
    assert "what tables it printed is not known" in found.message


def test_datasets_after_tables_are_compared_with_no_dataset_of_theirs(tmp_path: Path) -> None:
    release(tmp_path / "w", run(tmp_path / "w", people(), COUNTS), tmp_path / "out")
    drawn = {
        "variables": COUNTS["variables"],
        "synthesis": [{"target": "sex", "method": "cart", "predictors": ["region"]}],
        "release": {"m": 1},
    }
    number = run(tmp_path / "w", people().iloc[2:], drawn)
    found = {one.check: one for one in examine(tmp_path / "w", number).findings}
    assert found["differencing"].status != "block"
    assert found["released_before"].status == "warn"


def test_values_that_add_up_are_not_checked(tmp_path: Path) -> None:
    frame = people().assign(wage=lambda own: (own["pay"] * 0.7).round(2))
    frame["rest"] = (frame["pay"] - frame["wage"]).round(2)
    variables = {**COUNTS["variables"], "wage": {"kind": "continuous"}, "rest": {"kind": "continuous"}}
    for names, status in ((("pay", "wage", "rest"), "not checked"), (("pay", "wage"), "pass")):
        frame["wage"] = frame["wage"] if len(names) == 3 else frame["wage"].sample(frac=1, random_state=1).to_numpy()
        tables = [{"name": name, "by": ["region"], "value": name} for name in names]
        number = run(tmp_path / "w", frame, {**COUNTS, "variables": variables, "table": tables})
        found = finding(tmp_path / "w", number, "kept_tables")
        assert found.status == status, found.message
        assert ("related record by record (pay, rest and wage)" in found.message) == (status == "not checked")
