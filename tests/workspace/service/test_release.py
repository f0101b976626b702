"""A release: what goes out, that it is whole or not there, that it is the same again, and that the reason is kept."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from prepared_workspaces import run_recipe

import sfumato.workspace.service.release as releasing
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace import outgoing
from sfumato.workspace.audit import AuditAct, audit_rows, chain_problem, read_head
from sfumato.workspace.errors import ExchangedFiles, NotFound, NotReady, NotReleased, UnsafeFolder
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import SourceFile, read_frame
from sfumato.workspace.jobs.runs import result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.release.decision import decision_from_dossier
from sfumato.workspace.release.dossier import read_dossier
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.release import past_releases, write_run_release
from sfumato.workspace.store.workspace import Workspace

Enter = Callable[..., int]
UNMEASURED = "no risk is measured: this is a test of files"
STRICT = [
    {"value": "risk.identification.true_match_rate", "max": 0.9},
    {"value": "utility.ecdf.max_abs_difference", "max": 1e-9, "target": "income"},
]

DOCUMENTS = (
    "internal/structure-check.html",
    "public/codebook-ddi.xml",
    "public/croissant.json",
    "internal/risk-assessment.html",
    "internal/risk-assessment.md",
    "internal/disclosure-control.json",
    "internal/disclosure-control.schema.json",
)


ENCLAVE = {"m": 3, "seed": 7, "audience": "enclave"}


@pytest.fixture
def done_run(finished: Enter) -> int:
    """A run whose only threshold is met; into an enclave, where its few people may be found by the columns that it keeps."""
    return finished(release=ENCLAVE)


@pytest.fixture
def unmet(finished: Enter) -> int:
    """A run that fails one of its two thresholds."""
    return finished(threshold=STRICT)


def acts(workspace: Workspace) -> list[dict[str, Any]]:
    rows = audit_rows(workspace.connection)
    assert chain_problem(rows, read_head(workspace.connection)) == ""
    return [json.loads(row.details) for row in rows if row.act == AuditAct.RUN_RELEASED]


@pytest.mark.slow
def test_everything_goes_out_and_the_manifest_has_the_hash_of_every_file(
    workspace: Workspace, done_run: int, tmp_path: Path
) -> None:
    found = write_run_release(workspace, done_run, tmp_path / "out")
    written = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    folders = [name for name in written if name.startswith(("internal/acro/", "internal/crate/"))]
    assert {name.split("/")[1] for name in folders} == {"acro", "crate"}
    assert written == sorted(found.files) == sorted(
        ["public/dataset-SYNTHETIC-01.csv", "public/dataset-SYNTHETIC-02.csv", "public/dataset-SYNTHETIC-03.csv",
         "public/codebook.csv", "public/manifest.json", "public/using-these-data.html",
         "internal/report.html", "internal/recipe.toml",
         "internal/results.json", "internal/examination.json", "internal/commitments.json",
         "internal/manifest.json", *DOCUMENTS, *folders]
    )  # fmt: skip
    public, internal = (manifest_of(tmp_path / "out" / package) for package in ("public", "internal"))
    assert internal["public_manifest_sha256"] == sha256_of(tmp_path / "out/public/manifest.json")
    assert (public["datasets"], public["records"], public["replaced"]) == (3, 80, ["visits", "income"])
    inside = tmp_path / "out/internal"
    plan, policy = plan_release(workspace, done_run), read_policy_of_workspace(workspace.directory)
    decision = decision_from_dossier(
        read_dossier(workspace, plan, policy, examine_release(workspace, plan, policy), "csv", "")
    )
    assert {state for state, _, _ in decision.findings} == {"to be judged", "not checked"}
    assert (inside / "report.html").read_text("utf-8") == report_page(workspace, done_run, decision=decision)
    assert Recipe.from_toml((inside / "recipe.toml").read_text("utf-8")).sha256 == internal["recipe_sha256"]
    results = json.loads((inside / "results.json").read_text("utf-8"))
    assert results == json.loads(json.dumps(result_object(workspace, done_run)))


def manifest_of(package: Path) -> dict[str, Any]:
    """Its manifest, which must have the hash of every other file of the package."""
    manifest: dict[str, Any] = json.loads((package / "manifest.json").read_text("utf-8"))
    for file in manifest["files"]:
        content = (package / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
    found = {str(path.relative_to(package)) for path in package.rglob("*.*")}
    assert {file["name"] for file in manifest["files"]} == found - {"manifest.json"}
    return manifest


@pytest.mark.slow
def test_the_csv_files_read_back_to_the_datasets_of_the_run(
    workspace: Workspace, enter: Enter, tmp_path: Path, small_recipe: Callable[..., Recipe]
) -> None:
    done = enter(release={**ENCLAVE, "order": "original"})
    run_worker(workspace.directory, idle=0)
    write_run_release(workspace, done, tmp_path / "out")
    schema = small_recipe().schema
    stored = stored_datasets(workspace, done, schema)
    for place, expected in enumerate(stored, start=1):
        path = tmp_path / "out/public" / f"dataset-SYNTHETIC-{place:02}.csv"
        found = conform_to_schema(read_frame(SourceFile(path.name, path.read_bytes()), schema), schema)
        pd.testing.assert_frame_equal(found.frame, expected.frame)
    assert not stored[0].frame.equals(stored[1].frame)


def stored_datasets(workspace: Workspace, run_id: int, schema: Any) -> list[Microdata]:
    rows = workspace.connection.execute(
        "SELECT sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%' ORDER BY name", (run_id,)
    )
    return [workspace.tables.read_microdata(row[0], schema, "synthetic") for row in rows]


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(workspace: Workspace, done_run: int, tmp_path: Path) -> None:
    first, again = (write_run_release(workspace, done_run, tmp_path / name) for name in ("one", "two"))
    assert first.manifest_sha256 == again.manifest_sha256
    for name in first.files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (
        write_run_release(workspace, done_run, tmp_path / "three", "parquet").manifest_sha256 != first.manifest_sha256
    )


LABELLED: dict[str, Any] = {
    "title": "Labels",
    "variables": {
        "person": {"kind": "categorical", "role": "identifier"},
        "sex": {
            "kind": "binary",
            "role": "quasi_identifier",
            "labels": {"1": "male", "2": "female"},
            "title": "Sex at birth",
        },
        "area": {"kind": "categorical", "role": "quasi_identifier", "labels": {"1": "north", "2": "north"}},
        "day": {"kind": "date", "role": "other"},
        "income": {"kind": "continuous", "role": "sensitive", "title": "Income, a year"},
    },
    "release": {"m": 2, "seed": 1, "order": "original"},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["sex"]}],
    "measure": [{"method": "utility.ecdf"}],
}


@pytest.fixture
def labelled(workspace: Workspace) -> int:
    """A run on variables with labels, a date and an identifier."""
    recipe = Recipe.from_table(LABELLED)
    frame = pd.DataFrame(
        {
            "person": [f"id-{i:03}" for i in range(40)],
            "sex": ["1", "2"] * 20,
            "area": ["1", "2", "3", "3"] * 10,
            "day": ["2020-02-29"] * 40,
            "income": [100.0 + i * i for i in range(40)],
        }
    )
    return run_recipe(workspace, recipe, frame, "people.csv")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_labels_come_back_and_identifiers_stay(workspace: Workspace, labelled: int, tmp_path: Path, form: Any) -> None:
    plan = plan_release(workspace, labelled)
    assert (plan.replaced, plan.kept, plan.left_out) == (("income",), ("sex", "area", "day"), ("person",))
    write_run_release(workspace, labelled, tmp_path / "out", form, reason=UNMEASURED)
    path = tmp_path / "out/public" / f"dataset-SYNTHETIC-02.{form}"
    found = pd.read_csv(path) if form == "csv" else pq.read_table(path).to_pandas()
    assert list(found.columns) == ["sex", "area", "day", "income"]
    assert list(found["sex"][:2]) == ["male", "female"]
    assert list(found["area"][:3]) == ["north (1)", "north (2)", "3"]
    assert str(found["day"][0])[:10] == "2020-02-29"
    for file in (tmp_path / "out").rglob("*.*"):
        assert b"id-007" not in file.read_bytes()
    if form == "parquet":
        assert pq.read_schema(path).field("income").metadata == {b"label": b"Income, a year"}


@pytest.mark.slow
def test_the_codebook_says_what_the_labels_stand_for(workspace: Workspace, labelled: int, tmp_path: Path) -> None:
    write_run_release(workspace, labelled, tmp_path / "out", reason=UNMEASURED)
    lines = list(csv.DictReader(StringIO((tmp_path / "out/public/codebook.csv").read_text("utf-8"))))
    told = {(line["variable"], line["code"]): line["label"] for line in lines}
    assert told == {
        ("sex", "1"): "male", ("sex", "2"): "female", ("area", "1"): "north (1)", ("area", "2"): "north (2)",
        ("day", ""): "", ("income", ""): "",
    }  # fmt: skip
    assert lines[0]["title"] == "Sex at birth"


@pytest.mark.slow
def test_a_threshold_that_is_not_met_needs_a_reason_which_is_kept(
    workspace: Workspace, unmet: int, tmp_path: Path
) -> None:
    for reason in ("", "  \n"):
        with pytest.raises(
            NotReleased,
            match=r"1 of 2 thresholds is not met \(Largest gap between distributions \(income\): not met\).*--reason",
        ):
            write_run_release(workspace, unmet, tmp_path / "out", reason=reason)
    assert not (tmp_path / "out").exists()
    assert acts(workspace) == []
    found = write_run_release(workspace, unmet, tmp_path / "out", reason=" For teaching only. ")
    (act,) = acts(workspace)
    assert (act["reason"], act["unmet"], act["form"]) == ("For teaching only.", 1, "csv")
    assert act["manifest_sha256"] == found.manifest_sha256 == sha256_of(tmp_path / "out/internal/manifest.json")
    (past,) = past_releases(workspace, unmet)
    assert (past.reason, past.manifest_sha256) == (act["reason"], found.manifest_sha256)
    assert past_releases(workspace, unmet + 1) == []


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_value_that_was_not_computed_needs_a_reason_too(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 1, "level": 0.5}])
    run_worker(workspace.directory, idle=0)
    assert [verdict.outcome for verdict in plan_release(workspace, run_id).unmet_verdicts] == ["not computed"]
    with pytest.raises(NotReleased, match="not computed"):
        write_run_release(workspace, run_id, tmp_path / "out")
    assert write_run_release(workspace, run_id, tmp_path / "out", reason="no sweep was planned").n_unmet == 1


@pytest.mark.slow
def test_a_directory_with_something_in_it_stays_as_it_is(workspace: Workspace, done_run: int, tmp_path: Path) -> None:
    full, file = tmp_path / "full", tmp_path / "file"
    full.mkdir()
    (full / ".mine").write_text("kept")
    file.write_text("kept")
    for path in (full, file):
        with pytest.raises(NotReleased, match="is not an empty directory"):
            write_run_release(workspace, done_run, path)
    with pytest.raises(NotReleased, match="there is no directory"):
        write_run_release(workspace, done_run, tmp_path / "nowhere/out")
    assert ((full / ".mine").read_text(), file.read_text(), acts(workspace)) == ("kept", "kept", [])
    (full / ".mine").unlink()
    write_run_release(workspace, done_run, full)
    with pytest.raises(NotReleased):
        write_run_release(workspace, done_run, full)
    assert len(acts(workspace)) == 1


@pytest.mark.slow
def test_what_fails_on_the_way_leaves_neither_files_nor_a_row(
    workspace: Workspace, done_run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> bytes:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(releasing, "make_report", full_disk)
        with pytest.raises(OSError, match="No space"):
            write_run_release(workspace, done_run, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(outgoing, "rename_new", full_disk)
        with pytest.raises(NotReleased, match="cannot be written"):
            write_run_release(workspace, done_run, tmp_path / "out")
    assert leftovers(tmp_path) == set()
    assert acts(workspace) == []


def leftovers(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - {"workspace"}


@pytest.mark.slow
def test_a_folder_that_is_exchanged_before_it_gets_its_name_is_never_signed(
    workspace: Workspace, done_run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = outgoing.rename_new

    def rename_other(name: str, new_name: str, folder: int) -> None:
        shutil.move(tmp_path / name, tmp_path / "taken")
        shutil.copytree(tmp_path / "taken", tmp_path / name)
        (tmp_path / name / "public/dataset-SYNTHETIC-01.csv").write_text("age\n1\n")
        rename(name, new_name, folder)

    monkeypatch.setattr(outgoing, "rename_new", rename_other)
    with pytest.raises(ExchangedFiles, match="another process exchanged"):
        write_run_release(workspace, done_run, tmp_path / "out")
    assert acts(workspace) == []
    assert [row.act for row in audit_rows(workspace.connection)][-1] == AuditAct.RELEASE_UNDONE
    assert list((tmp_path / "taken").iterdir()) == [], "what was written is removed, wherever it lies"
    assert (tmp_path / "out/public/dataset-SYNTHETIC-01.csv").read_text() == "age\n1\n", "what is not ours stays"


@pytest.mark.slow
def test_a_release_is_refused_where_others_may_write_and_nothing_is_entered(
    workspace: Workspace, done_run: int, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    shared.chmod(0o777)
    before = len(audit_rows(workspace.connection))
    with pytest.raises(UnsafeFolder, match=r'shared" can be written by everybody .*chmod o-w'):
        write_run_release(workspace, done_run, shared / "mine/out")
    assert len(audit_rows(workspace.connection)) == before
    assert list((shared / "mine").iterdir()) == []
    shared.chmod(0o1777)
    out = shared / "mine/out"
    assert write_run_release(workspace, done_run, out).files
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (out, *out.rglob("*"))}
    assert modes == {0o700, 0o600}


@pytest.mark.slow
def test_a_row_that_cannot_be_written_takes_the_files_back(workspace: Workspace, done_run: int, tmp_path: Path) -> None:
    workspace.connection.execute(
        """CREATE TEMP TRIGGER refuse BEFORE UPDATE ON main.audit_head
           BEGIN SELECT RAISE(ABORT, 'refused'); END"""
    )
    with pytest.raises(sqlite3.IntegrityError, match="refused"):
        write_run_release(workspace, done_run, tmp_path / "out")
    workspace.connection.execute("DROP TRIGGER refuse")
    assert leftovers(tmp_path) == set()
    assert acts(workspace) == []


@pytest.mark.slow
def test_a_commit_that_fails_takes_the_files_back(
    workspace: Workspace, done_run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, failed = Workspace.write_transaction, []

    @contextlib.contextmanager
    def writing(self: Workspace) -> Iterator[sqlite3.Connection]:
        with whole(self) as connection:
            yield connection
            if (tmp_path / "out").is_dir():
                failed.append(True)
                raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "write_transaction", writing)
        with pytest.raises(sqlite3.OperationalError):
            write_run_release(workspace, done_run, tmp_path / "out")
    assert failed
    assert leftovers(tmp_path) == set()
    assert acts(workspace) == []


def test_runs_that_are_not_done_or_not_there_are_refused(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    with pytest.raises(NotReady):
        write_run_release(workspace, enter(), tmp_path / "out")
    with pytest.raises(NotFound):
        write_run_release(workspace, 99, tmp_path / "out")
    assert leftovers(tmp_path) == set()


INCOME_ONLY = [{"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]}]


@pytest.mark.slow
def test_a_sensitive_variable_that_nothing_replaces_needs_a_reason(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    run_id = enter(release=ENCLAVE, synthesis=INCOME_ONLY, measure=[{"method": "utility.ecdf"}], threshold=[])
    run_worker(workspace.directory, idle=0)
    plan = plan_release(workspace, run_id)
    assert (plan.unmet_verdicts, plan.exposed_variables) == ((), ("visits",))
    with pytest.raises(
        NotReleased, match=r"sensitive variables would be released unchanged .*\(visits\)\..*add --reason"
    ):
        write_run_release(workspace, run_id, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert acts(workspace) == []
    write_run_release(workspace, run_id, tmp_path / "out", reason="visits are public")
    assert (acts(workspace)[0]["exposed"], acts(workspace)[0]["reason"]) == ("visits", "visits are public")


@pytest.mark.slow
def test_an_anonymised_table_keeps_its_sensitive_variables(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    by_mondrian = [{"method": "mondrian", "k": 3}]
    run_id = enter(
        synthesis=[], anonymisation=by_mondrian, release={"seed": 7, "audience": "enclave"}, measure=[], threshold=[]
    )
    run_worker(workspace.directory, idle=0)
    assert write_run_release(workspace, run_id, tmp_path / "out", waive={"risk_measured": "k is enough"}).n_unmet == 0
