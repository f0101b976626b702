"""Tables and plots as files."""

from __future__ import annotations

import builtins
import csv
import stat
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.session.export import (
    ExportError,
    ScreenExport,
    check_export_path,
    save_export,
    table_of_pages,
    table_of_records,
    to_csv,
    to_tab_separated,
)
from sfumato.tui.widgets.pages import ListPages
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import DisplayColumn

VERDICT = Verdict(
    "risk.a.b", "price", None, "max", 0.1, 1 / 3, 0.1 - 1 / 3, "not met", 'says "no", twice\n', {"q": 0.5}
)


def exportable() -> ScreenExport:
    series = (Series("confidential", [0, 1], [0.2, 0.1]), Series("synthetic", [0, 1], [0.1, 0.05]))
    figure = Figure("A sweep", "sweep", (Panel("rate", series, "S"),))
    return ScreenExport("run-1-rate", lambda: table_of_records(Verdict, [VERDICT]), lambda: figure)


def test_a_table_keeps_every_digit_and_quotes_what_has_to_be_quoted(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    save_export(exportable(), path)
    (row,) = list(csv.DictReader(StringIO(path.read_text("utf-8"), newline="")))
    assert float(row["observed"]) == 1 / 3
    assert (row["level"], row["reason"], row["params"]) == ("", VERDICT.reason, '{"q": 0.5}')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_plot_is_written_as_svg_and_as_png(tmp_path: Path) -> None:
    pytest.importorskip("cairosvg")
    save_export(exportable(), tmp_path / "plot.svg")
    save_export(exportable(), tmp_path / "plot.PNG")
    assert ET.parse(tmp_path / "plot.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert (tmp_path / "plot.PNG").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.PNG", "plot.svg"]


def test_without_cairosvg_a_png_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "cairosvg":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ExportError, match="cairosvg, which is not installed"):
        save_export(exportable(), tmp_path / "plot.png")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("mine")
    for refuse in (lambda: check_export_path(exportable(), str(path)), lambda: save_export(exportable(), path)):
        with pytest.raises(ExportError, match="exists"):
            refuse()
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "words"),
    [("x.pdf", "must end in .csv or .svg or .png"), ("nowhere/x.csv", "no directory"), ("", "must end")],
)
def test_what_cannot_be_written_is_refused(text: str, words: str) -> None:
    with pytest.raises(ExportError, match=words):
        check_export_path(exportable(), text)
    with pytest.raises(ExportError, match=r"must end in \.csv$"):
        check_export_path(ScreenExport("t", exportable().table), "x.svg")


def test_a_grid_is_written_whole_without_the_keys_of_its_rows() -> None:
    source = ListPages(
        [DisplayColumn("n", "number", 5), DisplayColumn("mark", "", 1)], [(i, "*", f"key {i}") for i in range(1203)]
    )
    rows = list(csv.reader(StringIO(to_csv(table_of_pages(source)))))
    assert rows[0] == ["number", "mark"]
    assert rows[1:] == [[str(i), "*"] for i in range(1203)]


def test_what_is_pasted_has_no_control_characters() -> None:
    text = to_tab_separated((("a", "b"), [("x\ty\n", "\x1b[2J"), (None, 1.5)]))
    assert text == "a\tb\nx y \t?[2J\n\t1.5\n"
