"""``sfumato audit-tables``: the answer, exit status, JSON, and the example of the manual."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.manual import page_sections

TABLE = "region,count,status\ntotal,30,published\na,12,published\nb,x,hidden\nc,x,hidden\n"


def test_the_answer_decides_the_exit_status(
    tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(TABLE)
    assert sfumato("audit-tables", str(file)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "May this table leave? YES: none of 2 hidden cells follows"
    file.write_text(TABLE.replace("b,x,hidden", "b,8,published"))
    assert sfumato("audit-tables", str(file), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["may_leave"], found["disclosure"]) == ("no", "internal")
    assert [(one["line"], one["reason"]) for one in found["found"]] == [(5, "outside")]
    assert sfumato("audit-tables", str(file)) == 1
    text = capsys.readouterr().out
    assert "region=c" in text
    assert " 10 " not in text, "values stand in the text only where they are asked for"
    assert sfumato("audit-tables", str(file), "--values") == 1
    assert " 10 " in f"{capsys.readouterr().out} "
    assert sfumato("audit-tables", str(file), "--quiet") == 1
    assert capsys.readouterr().out == ""


def test_bad_input_is_one_message(
    tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(TABLE.replace("b,x,hidden", "b,-,"))
    assert sfumato("audit-tables", str(file)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "a.csv, line 4" in said.err
    assert "--zero-mark - or --hidden-mark -" in said.err
    assert sfumato("audit-tables", str(tmp_path / "none.csv")) == 2
    assert "is no file" in capsys.readouterr().err
    assert sfumato("audit-tables", str(file), "--hierarchy", "region") == 2
    assert "VARIABLE=FILE" in capsys.readouterr().err


def test_the_example_of_the_manual_is_what_the_command_finds(
    tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    body = next(one.body for one in page_sections("tables") if one.heading.startswith("Differencing by geography"))
    prose = " ".join(body.split())
    (table,) = re.findall(r"```\n(area,.*?)```", body, re.DOTALL)
    files = re.findall(r"((?:`\w+;\w+`(?:, | and )?)+) in `(\w+\.csv)`", prose)
    for pairs, name in files:
        (tmp_path / name).write_text("\n".join(re.findall(r"`(\w+;\w+)`", pairs)) + "\n")
    assert len(files) == 2
    (tmp_path / "areas.csv").write_text(table)
    trees = [f"area={tmp_path / name}" for _, name in files]
    given = ("audit-tables", str(tmp_path / "areas.csv"), "--hierarchy", trees[0], "--hierarchy", trees[1])
    assert sfumato(*given, "--values", "--json") == 1
    found = {one["cell"]: one["lowest"] for one in json.loads(capsys.readouterr().out)["found"]}
    assert found == {"area=Skerry": 2, "area=Fjord": 39}
    ((first, second),) = re.findall(r"(\d+) - (\d+) = 2, though", prose)
    assert int(first) - int(second) == 2
    assert f"North,{first}" in table
    assert f"Coast,{second}" in table
    later = table.replace("North,41", "North,43").replace("total,100", "total,102").replace("Coast,39", "Coast,41")
    (tmp_path / "later.csv").write_text(later)
    compared = ("audit-tables", str(tmp_path / "later.csv"), *given[2:], "--changes", str(tmp_path / "areas.csv"))
    assert sfumato(*compared, "--json") == 1
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert ("area=North", "changed", 2) in [(one["cell"], one["kind"], one["difference"]) for one in changes]
    assert "43 - 41 = 2" in prose
