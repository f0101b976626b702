"""The commands report and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from sfumato.tui.cli.charts import figure_text, parse_bin_widths
from sfumato.tui.cli.main import main
from sfumato.tui.cli.outputs import report
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]


@pytest.fixture
def workspace_with_runs(home: Path, workspace: Workspace, enter: Callable[..., int]) -> str:
    """A workspace with one run that is done; returns its directory."""
    enter()
    run_worker(workspace.directory, idle=0)
    return str(workspace.directory)


@pytest.mark.slow
def test_a_report_is_written_once_and_replaced_only_when_asked(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("report", "last", "--workspace", workspace_with_runs, "-o", "report.html") == 0
    assert "report written to report.html" in capsys.readouterr().out
    page = Path("report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    Path("report.html").write_text("mine")
    assert sfumato("report", "1", "--workspace", workspace_with_runs, "-o", "report.html") == 2
    assert (
        capsys.readouterr().err
        == 'sfumato: -o: "report.html" exists; name another file, or add --force to replace it\n'
    )
    assert Path("report.html").read_text() == "mine"
    assert sfumato("report", "1", "--workspace", workspace_with_runs, "-o", "report.html", "--force") == 0
    assert Path("report.html").read_text("utf-8") == page


@pytest.mark.slow
@pytest.mark.parametrize("path", ["nowhere/report.html", "."])
def test_a_report_needs_a_place(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    assert sfumato("report", "--workspace", workspace_with_runs, "-o", path) == 2
    assert "not a file in a directory that exists" in capsys.readouterr().err


@pytest.mark.slow
def test_a_report_of_no_such_run_or_without_a_file_is_refused(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("report", "17", "--workspace", workspace_with_runs, "-o", "r.html") == 2
    assert 'no run "17"' in capsys.readouterr().err
    assert not Path("r.html").exists()
    assert CliRunner().invoke(report, []).exit_code == 2


@pytest.mark.slow
def test_figures_are_drawn_in_the_width_that_is_asked_for(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("figures", "--workspace", workspace_with_runs, "--width", "60", "--height", "10") == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 60 for line in out.splitlines())
    for words in ("Histogram of visits", "Density of income", "confidential", "dataset 3", "fewer than 3"):
        assert words in " ".join(out.split())
    assert "\x1b" not in out


@pytest.mark.slow
def test_figures_take_the_number_of_datasets_and_the_width_of_bins(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("figures", "--workspace", workspace_with_runs, "--datasets", "1", "--bin-width", "income=500") == 0
    out = capsys.readouterr().out
    assert "Histogram of income" in out
    assert "Bins are 500 wide" in out
    assert "dataset 2" not in out
    assert sfumato("figures", "--workspace", workspace_with_runs, "--bin-width", "incme=500") == 2
    assert 'did you mean "income"' in capsys.readouterr().err
    assert sfumato("figures", "--workspace", workspace_with_runs, "--bin-width", "income") == 2
    assert "write variable=width" in capsys.readouterr().err


@pytest.mark.slow
def test_figures_are_written_as_svg_files(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("figures", "--workspace", workspace_with_runs, "--svg", "drawn/here") == 0
    assert "3 figures written to drawn/here" in capsys.readouterr().out
    files = sorted(Path("drawn/here").iterdir())
    assert [file.name for file in files] == ["figure-01.svg", "figure-02.svg", "figure-03.svg"]
    assert all(ET.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg" for file in files)


def test_a_bin_width_is_a_variable_and_a_number() -> None:
    assert parse_bin_widths(["a=25", " b c = 0.5", "x=y=2"]) == {"a": 25.0, "b c": 0.5, "x=y": 2.0}


@pytest.mark.parametrize("colours", [None, "standard", "256", "truecolor"])
def test_no_control_character_of_a_name_reaches_the_terminal(colours: str | None) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J"
    series = (Series(hostile, [0, 1], [1.0, 2.0]), Series("plain", [0, 1], [2.0, 1.0]))
    for kind in ("histogram", "density", "intervals"):
        figure = Figure(
            hostile, kind, (Panel(hostile, series, hostile, hostile, (hostile, "b"), note=hostile),), hostile
        )  # type: ignore[arg-type]
        text = figure_text(figure, 70, 12, colours)
        assert "\x1b]0" not in text
        assert "\x07" not in text
        assert "\x1b[2J" not in text


def test_an_interval_without_ends_is_a_point() -> None:
    series = (Series("confidential", [0], [5.0], [4.0], [6.0]), Series("release", [1], [5.5]))
    figure = Figure("Mean", "intervals", (Panel("days", series, x_names=("confidential", "release")),))
    assert figure_text(figure, 60, 12).count("○") == 3, "in the legend too"


def test_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "figures" in out
    assert "report" in out
