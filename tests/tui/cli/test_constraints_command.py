"""``sfumato constraints``: its exit status and its JSON. What it finds: ``tests/workspace/service/test_ruled_files.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.slow
def test_only_strict_minds_records_that_break_a_rule(
    study: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(study.read_text("utf-8") + '\n[constraints]\nfew = "visits <= 3"\n', "utf-8")
    assert sfumato("constraints", str(study), "--strict", "--json", "-") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["disclosure"] == "internal"
    (line,) = found["said"]
    assert (line["name"], line["text"], line["source"]) == ("few", "visits <= 3", "declared")
    assert 0 < line["broken"] < 60
    assert sfumato("constraints", str(study), "--data", "visits.csv") == 0
    assert f"few: {line['broken']}" in capsys.readouterr().out
