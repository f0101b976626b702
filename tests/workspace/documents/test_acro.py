"""The folder that SACRO-Viewer opens: what its loader asserts, from reading it, on the release of every shipped recipe."""

from __future__ import annotations

import csv
import hashlib
import json
import struct
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.documents.acro import acro_files, statbarn_of
from sfumato.workspace.gate.gate import Examination, Finding
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plots.png import svg_to_png
from sfumato.workspace.recipes import find_recipe, shipped_recipes
from sfumato.workspace.release.dossier import ReleaseDossier
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
SUPPORTED = "0.4"
"""The least version that SACRO-Viewer opens; it compares the two parts as texts."""
ACRO_STATBARNS = {
    "CalculatedRatios": ["AuxiliaryInformation", "Dominance"],
    "Clusters": [],
    "CorrelationCoefficients": ["LowDOF"],
    "Endpoints": ["ClassDisclosure", "LowCount"],
    "Frequencies": ["ClassDisclosure", "Differencing", "LowCount"],
    "LinearAggregations": ["Dominance", "Differencing", "LowCount"],
    "Position": ["ClassDisclosure", "LowCount"],
    "Shape": ["LowDOF"],
    "StatisticalHypothesisTests": ["LowDOF"],
    "none": [],
}
"""Of ACRO's ``statbarns.json`` those that outputs of ours are of, with their risks; and what is no statistic."""
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here no picture is remembered from another test."""
    monkeypatch.setattr(sys.modules[acro_files.__module__], "svg_to_png", svg_to_png)


def opened(folder: Path) -> dict[str, Any]:
    """What SACRO-Viewer reads of a folder: one JSON file with a version, results, each with files that have a name and a sum."""
    (path,) = folder.glob("*.json")
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    major, minor, *_ = read["version"].split(".")
    assert (major, minor) >= tuple(SUPPORTED.split("."))
    assert int(major) + int(minor) >= 0
    for uid, result in read["results"].items():
        assert result["uid"] == uid
        assert result["status"] in ("pass", "fail", "review")
        assert len(result["files"]) > 0
        for file in result["files"]:
            name = file["name"]
            assert Path(name).name == name
            assert not name.endswith((".svg", ".gph"))
            assert not file.get("sdc", {}).get("cells", {})
            expected = (folder / "checksums" / f"{name}.txt").read_text("utf-8")
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
        assert result["fair"]["context"] == "https://w3id.org/statbarnsdc#"
        assert result["fair"]["statbarn"] in ACRO_STATBARNS
        assert result["fair"]["risks"] == ACRO_STATBARNS[result["fair"]["statbarn"]]
        assert set(result) >= {
            "properties",
            "outcome",
            "command",
            "summary",
            "exception",
            "timestamp",
            "comments",
            "fair",
        }
    return read


def is_picture(content: bytes) -> bool:
    """Whether it is a whole PNG: its signature, the sum of every chunk, pixels that unpack."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, pixels, kinds = 8, b"", []
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        kind, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        assert struct.unpack(">I", content[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + data)
        pixels += data if kind == b"IDAT" else b""
        kinds.append(kind)
        place += size + 12
    return kinds[-1] == b"IEND" and len(set(zlib.decompress(pixels))) > 10


LONG = {"acs", "adult", "adult-attacks", "airbnb", "airbnb-cart", "randhie", "youth-in-custody"}
"""Recipes whose many figures take long to draw: tried among the studies."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(recipe.name, marks=[pytest.mark.study] if recipe.name in LONG else [])
        for recipe in shipped_recipes()
    ],
)
def test_the_viewer_opens_the_release_of_every_shipped_recipe(name: str, shipped: Callable[[str], Path]) -> None:
    folder = shipped(name) / "internal/acro"
    results = opened(folder)["results"]
    names = [file["name"] for one in results.values() for file in one["files"]]
    assert {"gate.csv", "verdicts.csv"} <= set(names)
    pytest.importorskip("cairosvg")
    pictures = [one for one in names if one.endswith(".png")]
    assert bool(pictures) != Recipe.from_table(find_recipe(name).table).has_tables_alone
    assert all(is_picture((folder / one).read_bytes()) for one in pictures)
    assert all(b"INTERNAL: as confidential as the data" in (folder / one).read_bytes() for one in pictures)


def test_status_and_exception_follow_the_gate_and_the_verdicts(
    workspace: Workspace, enter: Callable[..., int], dossier_for: Read, tmp_path: Path
) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 0.9}])
    run_worker(workspace.directory, idle=0)
    finding = Finding("equal_records", "block", "rows", '=HYPERLINK("http://x")')
    dossier = replace(dossier_for(run_id, "the board asked"), examination=Examination(run_id, "0" * 64, (finding,)))
    found = opened(laid_out(acro_files(dossier, ()), tmp_path / "fails"))["results"]
    by_file = {one["files"][0]["name"]: one for one in found.values()}
    assert (by_file["gate.csv"]["status"], by_file["gate.csv"]["exception"]) == ("fail", "the board asked")
    assert (by_file["verdicts.csv"]["status"], by_file["verdicts.csv"]["exception"]) == ("pass", "")
    assert by_file["risk-Frequencies.csv"]["status"] == "review"
    assert by_file["risk-Frequencies.csv"]["summary"].startswith("review; statbarn Frequencies; ")
    assert by_file["gate.csv"]["fair"]["statbarn"] == "Frequencies"
    assert by_file["verdicts.csv"]["fair"]["statbarn"] == "StatisticalHypothesisTests"
    rows = list(csv.DictReader(StringIO((tmp_path / "fails/gate.csv").read_text("utf-8"))))
    assert rows[0]["found"] == '\'=HYPERLINK("http://x")'
    quiet = replace(dossier, examination=Examination(run_id, "0" * 64, ()), plan=replace(dossier.plan, verdicts=()))
    found = opened(laid_out(acro_files(quiet, ()), tmp_path / "none"))["results"]
    assert [one["status"] for one in found.values()][:2] == ["pass", "review"]


def a_row(family: str, method: str, measure: str, **params: Any) -> Row:
    return Row(family, method, measure, "x", "synthetic", None, None, 1.0, params=params)


@pytest.mark.parametrize(
    ("row", "statbarn"),
    [
        (a_row("risk", "identification", "true_match_rate"), "Frequencies"),
        (a_row("utility", "summary", "mean"), "LinearAggregations"),
        (a_row("utility", "summary", "sd"), "Shape"),
        (a_row("utility", "summary", "quantile", q=0.5), "Position"),
        (a_row("utility", "summary", "quantile", q=1.0), "Endpoints"),
        (a_row("quality", "pearson", "rho"), "CorrelationCoefficients"),
        (a_row("utility", "propensity", "s_pmse"), "StatisticalHypothesisTests"),
        (a_row("risk", "special_uniques", "largest_score"), "Endpoints"),
        (a_row("risk", "bayesian_posterior", "risk_ratio"), "CalculatedRatios"),
        (a_row("synthesis", "perturbed_gibbs", "epsilon_release"), "none"),
        (a_row("risk", "of_a_package_that_is_gone", "share"), "LinearAggregations"),
    ],
)
def test_a_number_is_of_the_statbarn_that_its_form_and_risks_are_of(row: Row, statbarn: str) -> None:
    assert statbarn_of(row) == statbarn


def test_every_number_stands_in_one_file_and_every_file_is_of_one_statbarn(
    done_run: int, dossier_for: Read, tmp_path: Path
) -> None:
    dossier = dossier_for(done_run)
    folder = laid_out(acro_files(dossier, ()), tmp_path / "acro")
    results = opened(folder)["results"]
    tables = [
        one for one in results.values() if "-" in one["files"][0]["name"] and one["files"][0]["name"].endswith(".csv")
    ]
    counted = 0
    for one in tables:
        name = one["files"][0]["name"]
        assert name.removesuffix(".csv").partition("-")[2] == one["fair"]["statbarn"]
        counted += len(list(csv.DictReader(StringIO((folder / name).read_text("utf-8")))))
    assert counted == sum(row.draw is None for row in dossier.rows)
    assert len({one["fair"]["statbarn"] for one in tables}) > 1


def laid_out(files: dict[str, bytes], folder: Path) -> Path:
    for name, content in files.items():
        path = folder / name.removeprefix("acro/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def test_the_check_of_the_folder_finds_what_is_wrong(done_run: int, dossier_for: Read, tmp_path: Path) -> None:
    folder = laid_out(acro_files(dossier_for(done_run), ()), tmp_path / "acro")
    opened(folder)
    with (folder / "gate.csv").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    with pytest.raises(AssertionError):
        opened(folder)


def test_without_cairosvg_the_missing_pictures_are_said(
    done_run: int, dossier_for: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    folder = laid_out(acro_files(dossier_for(done_run), ()), tmp_path / "acro")
    results = opened(folder)["results"]
    assert "figures.txt" in [one["files"][0]["name"] for one in results.values()]
    assert "cairosvg is not installed" in (folder / "figures.txt").read_text("utf-8")
    assert not list(folder.glob("*.png"))


def test_the_same_dossier_gives_the_same_bytes(done_run: int, dossier_for: Read) -> None:
    assert acro_files(dossier_for(done_run), ()) == acro_files(dossier_for(done_run), ())
