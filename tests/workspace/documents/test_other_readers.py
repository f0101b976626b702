"""Documents as the programs of others read them, in an environment of their own, where SFUMATO_READERS names its Python.

python3 -m venv readers && readers/bin/pip install bagit lxml mlcroissant
SFUMATO_READERS=readers/bin/python SFUMATO_DDI_SCHEMA=codebook.xsd pytest -m study tests/workspace/documents/test_other_readers.py

codebook.xsd is that of DDI-Codebook 2.5, from the DDI Alliance, with the schemas that it includes beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.recipes import shipped_recipes

NAMES = [recipe.name for recipe in shipped_recipes()]
BAG = "import bagit, sys; bagit.Bag(sys.argv[1]).validate()"
DDI = """
import sys
from lxml import etree
schema = etree.XMLSchema(etree.parse(sys.argv[1]))
schema.assertValid(etree.parse(sys.argv[2]))
"""
CROISSANT = """
import csv, json, sys
import mlcroissant
data = mlcroissant.Dataset(jsonld=sys.argv[1])
assert not data.metadata.ctx.issues.errors
print(json.dumps([sum(1 for _ in data.records(record_set=one)) for one in sys.argv[2:]]))
"""
pytestmark = pytest.mark.study


@pytest.fixture
def reader() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a few lines in the environment of the other programs."""
    python = os.environ.get("SFUMATO_READERS")
    if not python:
        pytest.skip("SFUMATO_READERS does not say where the other programs are")

    def run_code(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [python, "-c", code, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    return run_code


@pytest.mark.parametrize("name", NAMES)
def test_bagit_finds_the_bag_valid(
    name: str, shipped: Callable[[str], Path], reader: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    found = reader(BAG, shipped(name) / "internal/crate")
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_codebook_follows_the_schema_of_the_ddi_alliance(
    name: str, shipped: Callable[[str], Path], reader: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    schema = os.environ.get("SFUMATO_DDI_SCHEMA")
    if not schema:
        pytest.skip("SFUMATO_DDI_SCHEMA does not say where codebook.xsd is")
    book = shipped(name) / "public/codebook-ddi.xml"
    found = reader(DDI, schema, book)
    assert found.returncode == 0, found.stderr
    wrong = tmp_path / "wrong.xml"
    wrong.write_text(book.read_text("utf-8").replace("<titl>", "<title>").replace("</titl>", "</title>"), "utf-8")
    assert reader(DDI, schema, wrong).returncode != 0


@pytest.mark.parametrize("name", NAMES)
def test_mlcroissant_loads_every_record(
    name: str, shipped: Callable[[str], Path], reader: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    public = shipped(name) / "public"
    described = json.loads((public / "croissant.json").read_text("utf-8"))
    sets = [one["@id"] for one in described["recordSet"] if one["@id"].startswith("dataset-")]
    found = reader(CROISSANT, public / "croissant.json", *sets)
    assert found.returncode == 0, found.stderr
    records = json.loads((public / "manifest.json").read_text("utf-8"))["records"]
    assert json.loads(found.stdout.splitlines()[-1]) == [records] * len(sets)
