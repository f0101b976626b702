"""A file format is one module: with no other line changed it is listed, recognised, read, filtered, scored and written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.workspace.ingest import formats as folder
from sfumato.workspace.ingest.file_formats import (
    SIGNATURE_BYTES,
    all_formats,
    format_by_name,
    format_of_suffix,
    readable_formats_text,
    recognise_format,
)
from sfumato.workspace.ingest.files import SourceFile, read_table

MODULE = '''
"""Lines of JSON, one object a record."""

import json

import pandas as pd

from sfumato.workspace.ingest.file_formats import FileFormat
from sfumato.workspace.ingest.raw_tables import RawTable


def read(source, asked):
    return RawTable.from_frame(pd.DataFrame([json.loads(line) for line in source.content.splitlines()]))


def write(out):
    return out.frame.astype(object).to_json(orient="records", lines=True).encode()


FORMAT = FileFormat(kind="a JSON lines", suffixes=(".jsonl",), recognises=lambda head: head.startswith(b'{"'), read=read, write=write, manual_sentence="One object a record.")
'''
SITE = "import sfumato.workspace.ingest.formats as folder\nfolder.__path__.append({!r})\n"
"""What each Python process begins with, those that read the file among them."""
COMMAND = "from sfumato.tui.cli.main import main; main()"
HELP = """from sfumato.tui.cli.manual_blocks import formats_block
print(formats_block())
from sfumato.tui.cli.main import main; main()"""


@pytest.fixture
def added(tmp_path: Path) -> Path:
    """A folder with a format of its own."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "json_lines.py").write_text(MODULE, "utf-8")
    return tmp_path / "more"


def test_a_format_is_known_by_its_module_alone(added: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [one.name for one in all_formats()]
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(added)])
    assert [one.name for one in all_formats()] == [*before, "json-lines"]
    content = b'{"town": "A", "age": 41}\n{"town": "B", "age": 52}\n'
    assert recognise_format(content).name == format_of_suffix("people.JSONL").name == "json-lines"
    assert "JSON lines" in readable_formats_text()
    table = read_table(SourceFile("people.jsonl", content))
    assert table.frame.to_dict("list") == {"town": ["A", "B"], "age": [41, 52]}
    with pytest.raises(BadInput, match="is a JSON lines file, which says itself how it is read"):
        read_table(SourceFile("people.jsonl", content), form=TextFormat())


def test_without_its_module_it_is_text(added: Path) -> None:
    assert recognise_format(b'{"town": "A"}').name == format_of_suffix("people.jsonl").name == "csv"
    with pytest.raises(KeyError):
        format_by_name("json-lines")


@pytest.mark.slow
def test_a_format_is_imported_run_released_and_scored_by_its_module_alone(added: Path, tmp_path: Path) -> None:
    lines = [{"town": "ABC"[i % 3], "age": 20 + 7 * i % 50} for i in range(60)]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")

    (tmp_path / "sitecustomize.py").write_text(SITE.format(str(added)), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    def program_output(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    program_output(COMMAND, "import", "people.jsonl", "--workspace", "ws")
    program_output(
        COMMAND, "draft", "people.jsonl", "--known", "age", "--sensitive", "town", "-m", "2", "-o", "people.toml"
    )
    block, _, page = program_output(HELP, "release", "--help").partition("Usage:")
    assert "JSON lines (`.jsonl`), written with `--format json-lines`. One object a record." in block
    assert "json-lines" in page
    program_output(COMMAND, "run", "people.toml", "--workspace", "ws", "--quiet", "--jobs", "1")
    program_output(COMMAND, "release", "1", "--workspace", "ws", "-o", "out", "--reason", "released for a test")
    files = sorted((tmp_path / "out" / "public").glob("dataset-SYNTHETIC-*.jsonl"))
    assert files, "without --format datasets leave in the form of the confidential file"
    assert {*json.loads(files[0].read_text("utf-8").splitlines()[0])} == {"town", "age"}
    options = ("--workspace", "scores", "--quiet", "--jobs", "1", "--json", "scores.json")
    program_output(
        COMMAND, "evaluate", "people.toml", "--original", "people.jsonl", "--released", str(files[0]), *options
    )
    assert json.loads((tmp_path / "scores.json").read_text("utf-8"))["rows"]


@pytest.mark.parametrize("one", all_formats(), ids=lambda one: one.name)
def test_no_two_formats_share_an_ending_or_take_text_for_theirs(one) -> None:
    others = [other for other in all_formats() if other.name != one.name]
    assert not {*one.suffixes} & {suffix for other in others for suffix in other.suffixes}
    assert one.kind.split()[0] in ("a", "an")
    assert one.recognises is None or not one.recognises(b"age,town\n41,A\n"[:SIGNATURE_BYTES])
    assert one.write is not None or one.released_as in {other.name for other in others if other.write is not None}
