"""What is promised of privacy stands in every public document in the same words, and nowhere where nothing is promised."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import fastjsonschema
import numpy as np
import pandas as pd
import pytest
from ddi_structure import SPACE, check_structure
from prepared_workspaces import release_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import account_rows
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace import documents
from sfumato.workspace.documents.disclosure_control import SCHEMA_FILE
from sfumato.workspace.release.report import report_page
from sfumato.workspace.release.users import privacy_promise_of_run, privacy_table
from sfumato.workspace.reporting.privacy_promise import promise_sentences
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

Write = Callable[..., Path]
STEP: dict[str, Any] = {
    "method": "perturbed_gibbs", "target": ["area", "age", "pay"], "epsilon": 0.5, "bins": {"age": "width 20", "pay": "width 1000"},
}  # fmt: skip
VARIABLES: dict[str, Any] = {
    "area": {"kind": "categorical", "levels": ["zoonotown", "village"]},
    "age": {"kind": "count", "bounds": [0, 99]},
    "pay": {"kind": "count", "bounds": [0, 5000]},
}
UNBOUNDED = {**VARIABLES, "area": {"kind": "categorical"}, "age": {"kind": "count"}}
KEY = bytes(range(32))
PUBLIC_KEY = "the random numbers follow from a public key, so anyone can repeat them and subtract the noise"
CLAIMS = re.compile(r"epsilon|differential|privacy|guarantee|anonym", re.IGNORECASE)
pytestmark = pytest.mark.slow


def planned(
    step: dict[str, Any],
    records: int | None = 40,
    variables: dict[str, Any] = VARIABLES,
    gaps: bool = False,
    **data: Any,
) -> tuple[Recipe, Microdata]:
    """A recipe of one step and 90 records, some of which lack an age where there are ``gaps``."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "area": rng.choice(["zoonotown", "village"], 90),
            "age": np.where(rng.random(90) < 0.2 * gaps, np.nan, rng.integers(0, 100, 90)),
            "pay": rng.integers(0, 5001, 90),
        }
    )
    table = {
        "variables": variables, "data": {"missing": "keep" if gaps else "refuse", **data}, "synthesis": [step],
        "release": {"m": 1, "seed": 1} | ({} if records is None else {"records": records}), "measure": [{"method": "utility.ecdf"}],
    }  # fmt: skip
    recipe = Recipe.from_table(table)
    return recipe, conform_to_schema(frame, recipe.schema, recipe.data.missing)


def step_of(**changes: Any) -> dict[str, Any]:
    """The step with other settings; None leaves one out."""
    full = {**STEP, **changes}
    full["bins"] = {name: rule for name, rule in STEP["bins"].items() if name in full["target"]}
    return {name: value for name, value in full.items() if value is not None}


@pytest.fixture
def write_release(workspace: Workspace, tmp_path: Path) -> Write:
    """The folder of a release of such a recipe."""

    def write(step: dict[str, Any], *args: Any, **more: Any) -> Path:
        return release_recipe(workspace, *planned(step, *args, **more), tmp_path)

    return write


def said_in(public: Path) -> dict[str, str]:
    """What each public document says of privacy, as one text."""
    codebook = ET.parse(public / "codebook-ddi.xml").getroot()
    check_structure(codebook)
    croissant = json.loads((public / "croissant.json").read_text("utf-8"))["rai:personalSensitiveInformation"]
    page = html.unescape((public / "using-these-data.html").read_text("utf-8"))
    chapter = re.search(r"What they promise of privacy</h2>\s*<ul>(.*?)</ul>", page, re.DOTALL)
    notes = "".join(note.text or "" for note in codebook.iter(f"{SPACE}notes"))
    text = (public / "privacy.txt").read_text("utf-8") if (public / "privacy.txt").exists() else ""
    return {
        "text": text.strip().replace("\n", " "),
        "page": " ".join(re.findall(r"<li>(.*?)</li>", chapter[1])) if chapter else "",
        "ddi": notes,
        "croissant": " ".join(croissant[1:]) if isinstance(croissant, list) else "",
    }


def crate_says(out: Path) -> str:
    graph = json.loads((out / "internal/crate/data/ro-crate-metadata.json").read_text("utf-8"))["@graph"]
    return "".join(one.get("description", "") for one in graph if one["@type"] == "CreateAction")


def recorded(out: Path) -> Any:
    """What the record of disclosure control has of privacy; it follows its schema."""
    found = json.loads((out / "internal/disclosure-control.json").read_text("utf-8"))
    fastjsonschema.compile(json.loads(files(documents).joinpath(SCHEMA_FILE).read_text("utf-8")))(found)
    return found.get("privacy")


def test_what_is_promised_is_the_same_in_all(write_release: Write) -> None:
    out = write_release(STEP)
    said = said_in(out / "public")
    assert len(set(said.values())) == 1
    text = said["ddi"]
    for words in (
        "differentially private with epsilon 20, all datasets together", "Had a record been another one, epsilon is 40.",
        "Each record was drawn at an epsilon of 0.5", "several records", "other releases of the same people",
    ):  # fmt: skip
        assert words in text, words
    assert crate_says(out) == text
    assert (recorded(out)["epsilon"], recorded(out)["samples"]) == (20.0, [{"epsilon": 0.5, "records": 1}])
    lines = (out / "public/codebook.csv").read_text("utf-8").splitlines()
    assert lines[0] == "variable,title,kind,code,label,format,name_in_datasets"
    assert not CLAIMS.search((out / "public/codebook.csv").read_text("utf-8"))


def test_a_block_says_what_it_costs_and_a_sample_whose_promise_it_is(write_release: Write) -> None:
    said = said_in(write_release({**STEP, "reset": True, "block": 8}, sample=90) / "public")
    assert (
        "A block of 8 records, drawn together, costs an epsilon of 0.5, and a single record of it no less"
        in said["text"]
    )
    assert "with epsilon 2.5, all datasets" in said["text"]
    assert "larger file" in said["text"]
    assert len(set(said.values())) == 1


@pytest.mark.parametrize(
    ("step", "more", "why"),
    [
        ({}, {"records": None}, ["how many records are released was not fixed beforehand"]),
        ({"seeds": "confidential"}, {}, ["each record was drawn starting from a record of the confidential data"]),
        ({"inside": "donor"}, {}, ["numbers are those of confidential records"]),
        ({"order": "mutual_information"}, {}, ["which variables are drawn given which others was learned from the"]),
        ({}, {"variables": UNBOUNDED, "gaps": True}, ["which values there can be, or how numbers are grouped, was learned"]),
        ({}, {"gaps": True}, ["whether a value may be missing was not fixed beforehand"]),
        ({"target": ["area", "age"]}, {"records": None}, ["some variables are released unchanged, or were synthesised without an account"]),
        ({"epsilon": None, "privacy": "l_diversity", "l": 1.5}, {}, ["l-diversity is no differential privacy: it has no epsilon"]),
    ],
    ids=["number", "seeds", "donors", "order", "levels", "missing", "kept", "l-diversity"],
)  # fmt: skip
def test_where_there_is_no_epsilon_it_says_why_and_nothing_of_the_data(
    step: dict[str, Any], more: dict[str, Any], why: list[str]
) -> None:
    recipe, data = planned(step_of(**step), **more)
    privacy = privacy_promise_of_run(recipe, data, account_rows(recipe, 0, data, key=KEY), secret=True)
    assert privacy is not None
    text = " ".join(promise_sentences(privacy))
    assert text.startswith("No guarantee of differential privacy is given: ")
    assert all(words in text for words in why)
    assert not re.search(r"differentially private|\d|area|age\b|pay|zoonotown|village", text)


def test_the_documents_of_a_release_without_an_epsilon_say_why_too(write_release: Write) -> None:
    out = write_release(STEP, variables=UNBOUNDED, gaps=True)
    said = said_in(out / "public")
    assert len(set(said.values())) == 1
    assert said["text"].startswith("No guarantee of differential privacy is given: which values there can be")
    assert crate_says(out) == said["text"]
    assert "epsilon" not in recorded(out)
    assert recorded(out)["not_covered"]


def test_with_a_public_key_no_document_promises_an_epsilon(write_release: Write, tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "open", PUBLIC) as workspace:
        out = release_recipe(workspace, *planned(STEP), tmp_path / "open")
        rows = {row.measure: row for row in read_result_rows(workspace, 1) if row.family == "synthesis"}
        page = report_page(workspace, 1)
    assert {name for name, row in rows.items() if row.value is not None} == set()
    assert {row.reason for row in rows.values()} == {PUBLIC_KEY}
    said = said_in(out / "public")
    assert len(set(said.values())) == 1
    assert said["text"].startswith(f"No guarantee of differential privacy is given: {PUBLIC_KEY}.")
    assert crate_says(out) == said["text"]
    assert "epsilon" not in recorded(out)
    assert recorded(out)["not_covered"] == [PUBLIC_KEY]
    shown = [html.unescape(text) for text in (page, (out / "internal/report.html").read_text("utf-8"))]
    assert all(PUBLIC_KEY in text for text in shown)
    assert not any("differentially private with" in text for text in (*shown, *said.values()))
    assert "differentially private with epsilon 20" in said_in(write_release(STEP) / "public")["text"], (
        "with a secret key"
    )


def test_a_run_without_an_account_claims_nothing(write_release: Write) -> None:
    out = write_release({"method": "dirichlet_multinomial", "target": STEP["target"], "bins": STEP["bins"]})
    assert set(said_in(out / "public").values()) == {""}
    assert not (out / "public/privacy.txt").exists()
    for path in (out / "public").iterdir():
        claim = CLAIMS.search(path.read_bytes().decode("utf-8", "ignore"))
        assert claim is None, (path.name, claim)
    assert recorded(out) is None
    assert crate_says(out) == ""


def test_results_without_an_epsilon_promise_none_whatever_is_told_anew() -> None:
    """Rows of a run that were stored without an epsilon are what counts, and a promise is never more than theirs."""
    recipe, data = planned(STEP)
    rows = account_rows(recipe, 0, data, key=KEY)
    found = privacy_promise_of_run(recipe, data, rows, secret=True)
    assert found is not None
    assert (found.epsilon, found.substitution_epsilon) == (20.0, 40.0)
    without = [replace(row, value=None) if row.measure == "epsilon_release" else row for row in rows]
    for fewer in (without, []):
        found = privacy_promise_of_run(recipe, data, fewer, secret=True)
        assert found is not None
        assert found.epsilon is None
        assert privacy_table(found)["said"][0] == "No guarantee of differential privacy is given."
