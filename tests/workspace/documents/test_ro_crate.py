"""The crate of a release: a whole bag, the entities that the Five Safes profile asks for, and nothing said to be done that is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.workspace.documents.ro_crate import bagit_files, ro_crate
from sfumato.workspace.documents.written import WrittenFile
from sfumato.workspace.gate.gate import WHOLE_RELEASE, Approval, Examination, Finding, Waiver
from sfumato.workspace.recipes import shipped_recipes
from sfumato.workspace.release.dossier import ReleaseDossier

Read = Callable[..., ReleaseDossier]
WRITTEN = (
    WrittenFile("public", "dataset-SYNTHETIC-01.csv", 3, "a" * 64),
    WrittenFile("public", "manifest.json", 5, "b" * 64),
    WrittenFile("internal", "report.html", 7, "c" * 64),
)
pytestmark = pytest.mark.slow


def check_bag(folder: Path) -> None:
    """What RFC 8493 asks of a complete and valid bag, by SHA-512."""
    assert (folder / "bagit.txt").read_text("utf-8") == "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    payload = {str(path.relative_to(folder)) for path in (folder / "data").rglob("*") if path.is_file()}
    assert sums(folder, "manifest-sha512.txt") == payload
    tags = {path.name for path in folder.iterdir() if path.is_file()}
    assert sums(folder, "tagmanifest-sha512.txt") == tags - {"tagmanifest-sha512.txt"}
    told = dict(line.split(": ", 1) for line in (folder / "bag-info.txt").read_text("utf-8").splitlines())
    size = sum((folder / name).stat().st_size for name in payload)
    assert told["Payload-Oxum"] == f"{size}.{len(payload)}"
    assert told["External-Identifier"].startswith("urn:uuid:")


def sums(folder: Path, manifest: str) -> set[str]:
    found = set()
    for line in (folder / manifest).read_text("utf-8").splitlines():
        expected, name = line.split("  ", 1)
        assert hashlib.sha512((folder / name).read_bytes()).hexdigest() == expected, name
        found.add(name)
    return found


def entities(metadata: bytes) -> dict[str, dict[str, Any]]:
    graph = json.loads(metadata)["@graph"]
    found = {one["@id"]: one for one in graph}
    assert len(found) == len(graph)
    return found


def check_profile(found: dict[str, dict[str, Any]]) -> None:
    """What the Five Safes profile 0.4 asks of the metadata with MUST, and what holds of every crate."""
    assert found["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    root = found["./"]
    assert root["conformsTo"] == {"@id": "https://w3id.org/5s-crate/0.4"}
    workflow = found[root["mainEntity"]["@id"]]
    assert workflow["conformsTo"] == {"@id": "https://w3id.org/workflowhub/workflow-ro-crate/1.0"}
    mentioned = [found[one["@id"]] for one in root["mentions"]]
    (run,) = [one for one in mentioned if one["@type"] == "CreateAction"]
    assert run["instrument"] == {"@id": workflow["@id"]}
    assert found[run["agent"]["@id"]]["@type"] == "Person"
    assert found[root["sourceOrganization"]["@id"]]["@type"] == "Project"
    kinds = {one["additionalType"]["@id"] for one in mentioned if one["@type"] == "AssessAction"}
    assert kinds == {"https://w3id.org/shp#DisclosureCheck", "https://w3id.org/shp#SignOff"}
    for one in mentioned:
        assert one["name"]
        assert one["actionStatus"].removeprefix("http://schema.org/") in (
            "PotentialActionStatus", "ActiveActionStatus", "CompletedActionStatus", "FailedActionStatus"
        )  # fmt: skip
        agent = found[one["agent"]["@id"]]
        assert agent["@type"] != "SoftwareApplication" or found[agent["provider"]["@id"]]["@type"] == "Organization"
    for one in found.values():
        for name in references(one):
            assert name in found or name.startswith("http"), name
            assert ".." not in name


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            return [value["@id"]]
        return [name for one in value.values() for name in references(one)]
    return [name for one in value for name in references(one)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", [recipe.name for recipe in shipped_recipes()])
def test_the_release_of_every_shipped_recipe_has_a_whole_bag_after_the_profile(
    name: str, shipped: Callable[[str], Path]
) -> None:
    out = shipped(name)
    crate = out / "internal/crate"
    check_bag(crate)
    found = entities((crate / "data/ro-crate-metadata.json").read_bytes())
    check_profile(found)
    files = [path for path in (out / "public").rglob("*") if path.is_file()]
    public = {
        path.relative_to(out / "public").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    (run,) = [one for one in found.values() if one["@type"] == "CreateAction"]
    results = [found[one["@id"]] for one in run["result"]]
    assert {one["name"]: one["sha256"] for one in results} == public
    assert not {path.name for path in crate.rglob("*")} & set(public)
    inner = entities((crate / "data/workflow/ro-crate-metadata.json").read_bytes())
    assert "ComputationalWorkflow" in inner[inner["./"]["mainEntity"]["@id"]]["@type"]
    assert (crate / "data/workflow/recipe.toml").read_bytes() == (out / "internal/recipe.toml").read_bytes()
    control = (crate / "data/disclosure-control.json").read_bytes()
    assert control == (out / "internal/disclosure-control.json").read_bytes()


def action(dossier: ReleaseDossier, kind: str) -> dict[str, Any]:
    found = entities(ro_crate(dossier, WRITTEN)["crate/data/ro-crate-metadata.json"])
    check_profile(found)
    return next(one for one in found.values() if one.get("additionalType", {}).get("@id", "").endswith(kind))


def test_a_check_that_blocks_has_failed_until_it_is_waived(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    block = Finding("equal_rows", "block", "rows", "3 of 80")
    for findings, waivers, status in (
        ((), (), "Completed"),
        ((replace(block, status="warn"),), (), "Completed"),
        ((block,), (), "Failed"),
        ((block,), (Waiver(WHOLE_RELEASE, "the board asked", "paul"),), "Completed"),
        ((replace(block, waivable=False),), (Waiver(WHOLE_RELEASE, "the board asked", "paul"),), "Failed"),
    ):
        changed = replace(dossier, examination=Examination(done_run, "0" * 64, findings, waivers))
        found = action(changed, "DisclosureCheck")
        assert found["actionStatus"] == f"http://schema.org/{status}ActionStatus"
        assert ("paul" in found["name"]) == bool(waivers)


def test_a_sign_off_is_pending_and_names_nobody_who_was_not_named(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    assert action(dossier, "SignOff")["actionStatus"].endswith("PotentialActionStatus")
    found = entities(ro_crate(dossier, WRITTEN)["crate/data/ro-crate-metadata.json"])
    assert found["#owner"]["name"] == "To be completed by a person"
    named = replace(dossier, judgements={"owner": "Maria Rossi"})
    found = entities(ro_crate(named, WRITTEN)["crate/data/ro-crate-metadata.json"])
    assert found["#owner"]["name"] == "Maria Rossi"


def test_what_a_second_person_approved_is_signed_off_by_that_account_at_that_time(
    done_run: int, dossier_for: Read
) -> None:
    dossier = dossier_for(done_run)
    time = "2026-09-21T14:14:20+00:00"
    approval = Approval("jo", "2026-09-21T14:13:20+00:00", "for teaching", "0" * 64, "maria", time, "looked at it")
    approved = replace(dossier, examination=replace(dossier.examination, approval=approval))
    signed = action(approved, "SignOff")
    assert signed["actionStatus"].endswith("CompletedActionStatus")
    assert (signed["endTime"], signed["description"]) == (time, "looked at it")
    found = entities(ro_crate(approved, WRITTEN)["crate/data/ro-crate-metadata.json"])
    assert found[signed["agent"]["@id"]]["name"] == "maria"
    assert action(approved, "DisclosureCheck")["endTime"] == time
    for kind in ("SignOff", "DisclosureCheck"):
        assert "endTime" not in action(dossier, kind)


def test_the_same_dossier_gives_the_same_bag_and_another_release_another_identifier(
    done_run: int, dossier_for: Read
) -> None:
    dossier = dossier_for(done_run)
    first = ro_crate(dossier, WRITTEN)
    assert first == ro_crate(dossier_for(done_run), WRITTEN)
    other = ro_crate(dossier, (*WRITTEN[:1], replace(WRITTEN[1], sha256="d" * 64)))
    assert first["crate/bag-info.txt"] != other["crate/bag-info.txt"]


def test_a_bag_that_was_touched_is_not_valid(done_run: int, dossier_for: Read, tmp_path: Path) -> None:
    for name, content in ro_crate(dossier_for(done_run), WRITTEN).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    check_bag(tmp_path / "crate")
    with (tmp_path / "crate/data/workflow/recipe.toml").open("a", encoding="utf-8") as file:
        file.write("#")
    with pytest.raises(AssertionError):
        check_bag(tmp_path / "crate")


def test_words_of_others_make_no_line_of_a_bag() -> None:
    made = bagit_files({"a.txt": b"a"}, {"External-Description": "one\nPayload-Oxum: 9.9\u202e\x07"})
    lines = made["bag-info.txt"].decode().splitlines()
    assert lines == ["External-Description: one Payload-Oxum: 9.9\ufffd\ufffd", "Payload-Oxum: 1.1"]


def test_hostile_words_are_words_in_the_crate(hostile: int, dossier_for: Read) -> None:
    files = ro_crate(dossier_for(hostile, "\u202ereason"), WRITTEN)
    for name, content in files.items():
        if name.endswith((".json", ".txt")):
            assert not [char for char in content.decode() if char != "\n" and not char.isprintable()]
    check_profile(entities(files["crate/data/ro-crate-metadata.json"]))
