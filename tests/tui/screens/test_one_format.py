"""One number reads the same on Findings, in Numbers, in the report, on the command line and in plain mode."""

import pytest

from sfumato.engine.methods.labels import labels_of
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.cli.summary import run_summary_text
from sfumato.tui.parts.explain import number_facts
from sfumato.tui.parts.verdict_board import board_text
from sfumato.workspace.release.report import report_page
from sfumato.workspace.reporting.explanation import ExplainedNumber, describe_measure, verdict_line
from sfumato.workspace.reporting.numbers import line_cells, number_lines
from sfumato.workspace.reporting.release_summary import thresholds_sentence
from sfumato.workspace.reporting.words import observed_text, row_value_text, value_text
from sfumato.workspace.store.runs import count_confidential_records, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import ResultSelection, read_selected_rows, read_verdicts, row_of_verdict


@pytest.mark.slow
def test_a_judged_number_has_the_same_digits_in_all_places(built_data):
    with Workspace.open(built_data, read_only=True) as workspace:
        run = find_run(workspace, 1)
        records, verdicts = count_confidential_records(workspace, run), read_verdicts(workspace, 1)
        rows = read_selected_rows(workspace, ResultSelection(1), 0, -1)
        printed = run_summary_text(workspace, run), run_summary_text(workspace, run, every_setting=True)
        page = report_page(workspace, 1)
        compared = 0
        for verdict, name in zip(verdicts, labels_of(verdicts), strict=True):
            row = row_of_verdict(workspace, 1, verdict)
            if row is None or row.value is None:
                continue
            said = row_value_text(row, records)
            (line,) = (one for one in number_lines(rows, verdicts) if one.release == row)
            assert line_cells(line, records)["release"] == said
            # a sentence says what is counted between the whole and the share
            explained = dict(number_facts(ExplainedNumber(row, (), [verdict], records), describe_measure(row.key)))
            assert said in explained["in words"].replace(" people (", " (")
            for place in (*printed, page):
                assert said in place
            if verdict.bound == "max":
                compared += 1
                assert observed_text(verdict, records) == said
                for place in (
                    board_text(verdicts, 160, records).plain,
                    verdict_line(verdict, name, records),
                    explained["verdict"],
                ):
                    assert said in place
            if verdict.outcome != "met":
                assert observed_text(verdict, records) in thresholds_sentence(verdicts, records)
        assert compared, "no number was compared"


@pytest.mark.slow
def test_every_number_reads_as_its_verdict_would(built_data):
    with Workspace.open(built_data, read_only=True) as workspace:
        rows = [row for row in read_selected_rows(workspace, ResultSelection(1), 0, -1) if row.value is not None]
    for row in rows:
        judged = Verdict(row.key, row.target, row.level, "max", 1e9, row.value, 0.0, "met", "", row.params)
        for records in (80, None):
            said = value_text(row.key, row.value, records, row.params, unit=row.unit)
            assert observed_text(judged, records) == said
            assert row_value_text(row, records) == said.partition(" of the ")[0]
