"""DDI-Codebook and Croissant: after their specifications, true to the files, and no more than the files tell."""

from __future__ import annotations

import csv
import hashlib
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from ddi_structure import SPACE, check_structure

from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.documents.croissant import CONFORMS, croissant_file
from sfumato.workspace.documents.ddi_codebook import ddi_codebook
from sfumato.workspace.documents.written import WrittenFile
from sfumato.workspace.recipes import find_recipe, shipped_recipes
from sfumato.workspace.release.dossier import ReleaseDossier, StoredParts
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
NAMES = [recipe.name for recipe in shipped_recipes() if not Recipe.from_table(recipe.table).has_tables_alone]
WRITTEN = (WrittenFile("public", "dataset-SYNTHETIC-01.csv", 3, "a" * 64),)
pytestmark = pytest.mark.slow


def read_released_columns(out: Path) -> dict[str, list[str]]:
    """The values of each column over all datasets."""
    columns: dict[str, list[str]] = {}
    for path in sorted((out / "public").glob("dataset-*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
    return columns


@pytest.mark.parametrize("name", NAMES)
def test_the_ddi_codebook_is_true_to_the_files(name: str, shipped: Callable[[str], Path]) -> None:
    out = shipped(name)
    root = ET.parse(out / "public/codebook-ddi.xml").getroot()
    check_structure(root)
    assert root.attrib == {"version": "2.5"}
    kind = "ANONYMISED" if "anonymisation" in find_recipe(name).table else "SYNTHETIC"
    title = root.findtext(f".//{SPACE}titl") or ""
    assert title.startswith(kind)
    ids = [element.attrib["ID"] for element in root.iter() if "ID" in element.attrib]
    assert len(ids) == len(set(ids))
    files = [element.text for element in root.iter(f"{SPACE}fileName")]
    assert files == sorted(path.name for path in (out / "public").glob("dataset-*.csv"))
    columns = read_released_columns(out)
    variables = {one.attrib["name"]: one for one in root.iter(f"{SPACE}var")}
    assert list(variables) == list(columns)
    for column, variable in variables.items():
        assert set(variable.attrib["files"].split()) <= set(ids)
        told = {element.text or "" for element in variable.iter(f"{SPACE}catValu")}
        assert not told or told == levels(columns[column]), column
    assert any(list(variable.iter(f"{SPACE}catValu")) for variable in variables.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_croissant_description_is_true_to_the_files(name: str, shipped: Callable[[str], Path]) -> None:
    public = shipped(name) / "public"
    found = json.loads((public / "croissant.json").read_text("utf-8"))
    assert (found["@type"], found["conformsTo"]) == ("sc:Dataset", CONFORMS)
    assert found["name"].startswith("ANONYMISED" if "anonymisation" in find_recipe(name).table else "SYNTHETIC")
    for file in found["distribution"]:
        content = (public / file["contentUrl"]).read_bytes()
        assert (file["sha256"], file["contentSize"]) == (hashlib.sha256(content).hexdigest(), f"{len(content)} B")
    columns = read_released_columns(public.parent)
    files = {file["@id"] for file in found["distribution"]}
    records = [one for one in found["recordSet"] if one.get("dataType") != "sc:Enumeration"]
    assert len(records) == len(files)
    for one in records:
        assert [field["source"]["extract"]["column"] for field in one["field"]] == list(columns)
        assert {field["source"]["fileObject"]["@id"] for field in one["field"]} <= files
    for one in found["recordSet"]:
        if one.get("dataType") == "sc:Enumeration":
            column = unquote(one["@id"].removeprefix("levels/"))
            assert {next(iter(level.values())) for level in one["data"]} == levels(columns[column])
    identifiers = [one["@id"] for one in walk(found) if "@type" in one and "@id" in one]
    assert len(identifiers) == len(set(identifiers))
    assert {key for key in found if key.startswith("rai:")} >= {"rai:dataCollection", "rai:dataLimitations"}


def levels(cells: Sequence[str]) -> set[str]:
    """The levels that a column has; an empty cell, where a plan keeps missing values, is none."""
    return set(cells) - {""}


def walk(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(inside for one in value.values() for inside in walk(one))]
    return [inside for one in value for inside in walk(one)] if isinstance(value, list) else []


def test_a_level_that_no_released_record_has_is_not_named(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)

    class WithoutSouth(StoredParts):
        def iterate_all_released(self) -> Iterator[pa.Table]:
            for table in super().iterate_all_released():
                yield table.filter(pa.compute.not_equal(table["region"].cast(pa.string()), "south"))

    parts = dossier.stored_parts
    without = WithoutSouth(parts.tables, parts.hashes, parts.confidential)

    for name, document in (("codebook-ddi.xml", ddi_codebook), ("croissant.json", croissant_file)):
        assert b"south" in document(dossier, WRITTEN)[name]
        text = document(replace(dossier, stored_parts=without), WRITTEN)[name]
        assert b"south" not in text
        assert b"north" in text


def test_neither_seed_nor_path_title_nor_bound_is_told(
    workspace: Workspace, enter: Callable[..., int], dossier_for: Read
) -> None:
    from sfumato.workspace.jobs.worker import run_worker

    kinds: dict[str, Any] = {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "age": {"kind": "count", "role": "quasi_identifier", "bounds": [0, 7_351_917]},
        "visits": {"kind": "count", "role": "sensitive"},
        "income": {"kind": "continuous", "role": "sensitive", "title": "Income, a year"},
    }
    run_id = enter(title="A secret title", variables=kinds, release={"m": 3, "seed": 918_273_645})
    run_worker(workspace.directory, idle=0)
    dossier = dossier_for(run_id)
    for document in (ddi_codebook, croissant_file):
        for content in document(dossier, WRITTEN).values():
            for secret in (
                b"918273645",
                b"A secret title",
                b"7351917",
                b"simulated.csv",
                str(workspace.directory).encode(),
            ):
                assert secret not in content
            assert b"Income, a year" in content


def test_a_publisher_is_named_where_somebody_has_said_it(done_run: int, dossier_for: Read) -> None:
    said = {
        "publisher": "An office",
        "licence": "https://creativecommons.org/licenses/by/4.0/",
        "address": "https://x.example/d",
    }
    dossier = dossier_for(done_run)
    silent = json.loads(croissant_file(dossier, WRITTEN)["croissant.json"])
    assert not {"license", "creator", "url", "datePublished"} & set(silent)
    named = replace(dossier, judgements={**said, "published": "2027-01-31", "linkability": "judged inside"})
    found = json.loads(croissant_file(named, WRITTEN)["croissant.json"])
    assert (found["license"], found["datePublished"]) == (said["licence"], "2027-01-31")
    assert found["creator"]["name"] == "An office"
    text = ddi_codebook(named, WRITTEN)["codebook-ddi.xml"].decode()
    check_structure(ET.fromstring(text))
    assert "An office" in text
    assert "judged inside" not in text + json.dumps(found)


def test_hostile_words_are_words_in_both(workspace: Workspace, hostile: int, tmp_path: Path) -> None:
    write_run_release(workspace, hostile, tmp_path / "out")
    text = (tmp_path / "out/public/codebook-ddi.xml").read_text("utf-8")
    root = ET.fromstring(text)
    check_structure(root)
    assert [one.attrib["name"] for one in root.iter(f"{SPACE}var")] == ["sex", "area <b>", "income"]
    croissant_text = (tmp_path / "out/public/croissant.json").read_text("utf-8")
    for content in (text, croissant_text):
        assert not [char for char in content if char != "\n" and not char.isprintable()]
    for one in walk(json.loads(croissant_text)["recordSet"]):
        assert not set(one.get("@id", "")) & set('<>" {}|\\^`')


def test_the_structure_check_finds_what_is_wrong(done_run: int, dossier_for: Read) -> None:
    text = ddi_codebook(dossier_for(done_run), WRITTEN)["codebook-ddi.xml"].decode()
    check_structure(ET.fromstring(text))
    for wrong in (
        text.replace("ddi:codebook:2_5", "ddi:codebook:2_6"),
        text.replace("<labl>", "<sumStat>").replace("</labl>", "</sumStat>"),
        text.replace("<fileDscr", "<dataDscr></dataDscr><fileDscr", 1),
    ):
        with pytest.raises((AssertionError, ValueError)):
            check_structure(ET.fromstring(wrong))
