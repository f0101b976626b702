"""Hostile titles, labels, levels and names: no text file that leaves hides, turns or computes anything."""

from __future__ import annotations

import contextlib
import csv
import json
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.documents.croissant import croissant_dataset
from sfumato.workspace.documents.described import PublishedColumn, PublishedLevel, ReleaseDescription
from sfumato.workspace.documents.written import WrittenFile, json_document
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.release.external import replace_labels_by_codes
from sfumato.workspace.release.tables import codebook_csv, dataset_bytes
from sfumato.workspace.release.verification import find_origin, verify_release
from sfumato.workspace.reporting.document import BulletList, DefinitionList, Document, Paragraph
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

EVIL = '＝1+1;=cmd|x\u202enus\u2066\u200b\u200d\ufe0f\u00ad\u2028\U000e0041\x1b[31m\x07\r\n\t, "=2'
TEXT_FILES = {"csv", "txt", "md", "html", "json", "xml"}


class Words(HTMLParser):
    """The texts and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for _, value in attrs]


def words_of(name: str, text: str) -> Iterator[str]:
    """Every text that a reader of a file may be shown, as its format writes it and behind its escapes."""
    yield text
    match name.rpartition(".")[2]:
        case "json":
            yield from texts(json.loads(text))
        case "xml":
            for one in ET.fromstring(text).iter():
                yield from (one.text or "", *one.attrib.values())
        case "html":
            yield from Words(text).found


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (key, *texts(one))
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


def faults(name: str, content: bytes) -> list[str]:
    """What a text file must not hold: hidden characters, and in tables what a reader by any delimiter computes."""
    text = content.decode()
    hidden = {
        c for one in words_of(name, text) for c in one
        if (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t") or c in "\ufe0f\u3164"
    }  # fmt: skip
    found = [f"hidden {hidden}"] if hidden else []
    if name.endswith(".csv"):
        cells = [
            cell for delimiter in ",;|\t" for row in csv.reader(StringIO(text), delimiter=delimiter) for cell in row
        ]
        cells += [cell for delimiter in ",;|\t" for line in text.splitlines() for cell in line.split(delimiter)]
        found += [f"formula {cell}" for cell in cells if formula(cell)]
        found += ["a tab"] if "\t" in text else []
    return found


def formula(cell: str) -> bool:
    cell = cell.strip(' "')
    first = unicodedata.normalize("NFKC", cell)[:1]
    return first in ("=", "@") or (first in ("+", "-") and any(c.isalpha() and c not in "einf" for c in cell))


def test_the_check_finds_what_it_looks_for() -> None:
    """The control."""
    assert faults("a.csv", EVIL.encode())
    assert [one for one in faults("a.csv", b"a;=1+1") if one.startswith("formula")]
    assert faults("a.json", b'{"a": "\\u202e"}')
    assert faults("a.xml", b"<a>&#8238;</a>")
    assert faults("a.html", b"<p>&#x202e;</p>")
    assert not faults("a.csv", 'area,-1.5\n"[-5, -3)",süden\n'.encode())


HOSTILE = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "Cc", "Cf"]) | st.sampled_from("=+-@＝;,|\t\r\n\u202e\u200b\u2028\ufe0fa1"), max_size=10)  # fmt: skip


@pytest.mark.slow
@given(HOSTILE.filter(bool), HOSTILE, st.lists(HOSTILE.filter(bool), min_size=1, max_size=3, unique=True), HOSTILE)
def test_no_writer_lets_a_hostile_text_through(name: str, title: str, levels: list[str], label: str) -> None:
    variable = Variable(name, Kind.CATEGORICAL, levels=tuple(levels), labels={levels[0]: label}, title=title)
    schema = Schema((variable,))
    column = pa.array(levels, pa.string()).dictionary_encode()
    made = {"codebook.csv": codebook_csv(schema, {name: levels}, ()).encode()}
    with contextlib.suppress(NotReleased):  # levels that would look alike
        made["dataset.csv"] = dataset_bytes(pa.table({name: column}), schema, (), "csv")
    parts = [Paragraph(title), BulletList([label, *levels]), DefinitionList([(name, title)])]
    page = Document(title, label, parts)
    made |= {"guide.html": page.to_html().encode(), "guide.md": page.to_markdown().encode()}
    about = ReleaseDescription(
        title, "SYNTHETIC", label, [title], [label], 1, 1, [WrittenFile("public", "d.csv", 1, "0")],
        [PublishedColumn(name, variable, title, tuple(PublishedLevel(level, label, level) for level in levels))], "1", title, label, title, "",
    )  # fmt: skip
    made["croissant.json"] = json_document(croissant_dataset(about, "csv"))
    assert {file: found for file, content in made.items() if (found := faults(file, content))} == {}


@pytest.mark.slow
@given(st.lists(HOSTILE.filter(bool), min_size=1, max_size=4, unique=True))
def test_listed_levels_of_a_csv_file_are_codes_again(levels: list[str]) -> None:
    variable = Variable("x", Kind.CATEGORICAL, levels=tuple(levels))
    column = pa.array(levels, pa.string()).dictionary_encode()
    try:
        content = dataset_bytes(pa.table({"x": column}), Schema((variable,)), (), "csv")
    except NotReleased:
        return
    cells = [row["x"] for row in csv.DictReader(StringIO(content.decode()))]
    try:
        assert list(replace_labels_by_codes(pd.DataFrame({"x": cells}), Schema((variable,)))["x"]) == levels
    except BadInput:  # a level that is another's text behind an apostrophe
        assert set(cells) & set(levels)


def test_levels_that_would_look_alike_are_not_written_as_one() -> None:
    column = pa.array(["a\u200db", "ab"], pa.string()).dictionary_encode()
    variable = Variable("town", Kind.CATEGORICAL)
    with pytest.raises(NotReleased, match='two levels of "town" differ only by characters'):
        dataset_bytes(pa.table({"town": column}), Schema((variable,)), (), "csv")
    named = Variable("town", Kind.CATEGORICAL, labels={"ab": "another"})
    assert b"another" in dataset_bytes(pa.table({"town": column}), Schema((named,)), (), "csv")


AREA, SEX = f"area{EVIL}", "sex"


def hostile_recipe() -> Recipe:
    gibbs = {"method": "perturbed_gibbs", "target": [SEX, "pay"], "epsilon": 500.0, "bins": {"pay": "width 1000"}}
    table: dict[str, Any] = {
        "title": EVIL,
        "description": EVIL,
        "variables": {
            SEX: {"kind": "categorical", "levels": [f"f{EVIL}", f"={EVIL}"], "labels": {f"f{EVIL}": EVIL}, "title": EVIL},
            "pay": {"kind": "count", "bounds": [0, 5000], "title": f"-{EVIL}"},
        },
        "data": {"missing": "keep"},
        "synthesis": [gibbs],
        "release": {"m": 2, "seed": 1, "records": 60, "title": EVIL},
        "measure": [{"method": "utility.ecdf"}],
    }  # fmt: skip
    return Recipe.from_table(table)


def kept_recipe() -> Recipe:
    table: dict[str, Any] = {
        "title": EVIL,
        "variables": {
            AREA: {"kind": "categorical", "role": "quasi_identifier", "title": EVIL, "labels": {"north": f"@{EVIL}"}},
            f"={EVIL}": {"kind": "continuous", "role": "sensitive", "title": EVIL},
        },
        "release": {"m": 2, "seed": 1, "title": EVIL},
        "synthesis": [{"target": f"={EVIL}", "method": "linear_regression", "predictors": []}],
        "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {f"={EVIL}": "5%"}}],
    }
    return Recipe.from_table(table)


@pytest.mark.slow
@pytest.mark.parametrize("make", [hostile_recipe, kept_recipe])
def test_no_text_file_of_a_hostile_release_hides_turns_or_computes_anything(make: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({
        SEX: rng.choice([f"f{EVIL}", f"={EVIL}"], 60), "pay": rng.integers(0, 5001, 60),
        AREA: rng.choice(["north", f"+south{EVIL}", "x;=1+1"], 60), f"={EVIL}": rng.lognormal(7, 0.4, 60),
    })  # fmt: skip
    recipe = make()
    with Workspace.create(tmp_path / "workspace", bytes(range(32))) as workspace:
        said = json.dumps(EVIL.replace("\U000e0041", ""))
        (workspace.directory / "assessment.toml").write_text(
            f"publisher = {said}\nlicence = {said}\naddress = {said}\n", "utf-8"
        )
        data = conform_to_schema(frame[list(recipe.schema.names)], recipe.schema, recipe.data.missing)
        run_id = run_recipe(workspace, recipe, data)
        write_run_release(workspace, run_id, tmp_path / "out", reason=f"agreed {EVIL}")
        verified = verify_release(tmp_path / "out")
        assert not verified.problems
        assert find_origin(workspace, verified).run is not None, "the commitment binds the manifest as it was written"
    files = sorted((tmp_path / "out" / "public").iterdir())
    assert len(files) >= 7  # without figures of utility, which do not leave by default
    assert {file.suffix[1:] for file in files} <= TEXT_FILES
    assert {file.name: found for file in files if (found := faults(file.name, file.read_bytes()))} == {}
    if make is hostile_recipe:
        assert (tmp_path / "out" / "public" / "privacy.txt").exists()


@pytest.mark.parametrize("sign", ["-", "+", "\u2212", "-0"])
def test_a_variable_that_is_called_by_a_lone_sign_begins_no_formula(sign: str) -> None:
    """A reader by semicolons takes the whole line for one cell."""
    schema = Schema((Variable(sign, Kind.CATEGORICAL, levels=("a",)),))
    assert not faults("codebook.csv", codebook_csv(schema, {sign: ["a"]}, ()).encode())
