"""Results in the layout of ACRO, which SACRO-Viewer opens for output checking: ``acro_files/results.json`` and files.

Tables are CSV files with the measurements, the verdicts and the gate's findings; figures are PNG pictures where the
extra ``png`` is installed. Each file has its SHA-256 under ``checksums/``. Each output belongs to one statbarn, whose
name and risks stand under ``fair`` as ACRO writes them. The folder is internal: whoever checks outputs sees what the
report shows.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any, Literal

import numpy as np

from sfumato.engine.methods.labels import label_of
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.statbarns import CONTEXT, RISKS, STATBARNS, Statbarn, statbarn_by_unit
from sfumato.engine.tables.declared_table import COUNT
from sfumato.engine.tables.system import EMPTY, PrintedTable
from sfumato.engine.wording import count_noun

from ..gate.gate import Finding
from ..plots.figure import FigureKind
from ..plots.png import svg_to_png
from ..plots.svg import figure_svg
from ..policy.disclosure import MARKING
from ..release.dossier import ReleaseDossier
from ..reporting.findings import compared_text, finding_counts_text
from ..reporting.findings import finding_limit_text as found_limit_text
from ..reporting.words import FAMILY_HEADINGS, limit_text, settings_text
from ..table_files.printed_tables import CellStatuses, public_table_csv
from ..visible_text import plain_cell
from .kept_tables import table_csv
from .printed_tables import printed_file_names
from .written import WrittenFile, json_document

VERSION = "1.0.1"
"""The version of ACRO whose layout it is."""
AcroStatus = Literal["pass", "fail", "review"]
ACRO_STATUS_OF_FINDING: dict[str, AcroStatus] = {
    "pass": "pass",
    "warn": "review",
    "not checked": "review",
    "block": "fail",
}

STATBARN_OF_FIGURE: dict[FigureKind, Statbarn] = {
    "histogram": "Frequencies",
    "shares": "Frequencies",
    "density": "Frequencies",
    "ecdf": "Position",
    "difference": "Position",
    "scatter": "Frequencies",
    "heat": "Frequencies",
    "intervals": "StatisticalHypothesisTests",
    "sweep": "Frequencies",
    "map": "Frequencies",
}
"""The statbarn of each kind of figure, by what it draws: bars count records, a cumulative share shows every percentile."""


@dataclass(frozen=True, slots=True)
class AcroOutput:
    """Entry of ACRO's queue of outputs.

    name: name of its file
    content: bytes of its file
    statbarn: its class of statistics
    status: result of the check
    summary: the same in words
    command: the command that made it
    comments: remarks
    """

    name: str
    content: bytes
    statbarn: Statbarn
    status: AcroStatus
    summary: str
    command: str
    comments: tuple[str, ...] = ()


def acro_files(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``acro_files/results.json``, its files, and their checksums, by name."""
    outputs = [
        *_table_outputs(dossier),
        *_kept_table_outputs(dossier),
        *_printed_table_outputs(dossier),
        *_figure_outputs(dossier),
    ]
    results = {f"output_{i}": _queue_entry(dossier, one, f"output_{i}") for i, one in enumerate(outputs)}
    made = {one.name: one.content for one in outputs}
    made["results.json"] = json_document({"version": VERSION, "results": results})
    sums = {f"checksums/{name}.txt": hashlib.sha256(content).hexdigest().encode() for name, content in made.items()}
    return {f"acro/{name}": content for name, content in (made | sums).items()}


def _queue_entry(dossier: ReleaseDossier, output: AcroOutput, uid: str) -> dict[str, Any]:
    """Return an output as the entry of ACRO's queue of outputs."""
    # The run's time, not the present one: the same dossier gives the same bytes.
    finished = dossier.plan.run.finished or dossier.plan.run.created
    return {
        "uid": uid,
        "status": output.status,
        "type": "custom",
        "properties": {},
        "files": [{"name": output.name, "sdc": {}}],
        "outcome": {},
        "command": output.command,
        "summary": f"{output.status}; {_statbarn_text(output.statbarn)}; {output.summary}",
        "exception": dossier.reason if output.status != "pass" else "",
        "timestamp": datetime.fromtimestamp(finished, UTC).isoformat(),
        "comments": [MARKING, *output.comments],
        "fair": {"context": CONTEXT, "statbarn": output.statbarn, "risks": list(RISKS[output.statbarn])},
    }


def _statbarn_text(statbarn: Statbarn) -> str:
    """Return the statbarn of an output in words."""
    return "no statistic of the records" if statbarn == "none" else f"statbarn {statbarn}"


def _table_outputs(dossier: ReleaseDossier) -> list[AcroOutput]:
    """Return the tables of findings, verdicts and measurements, the last by family and statbarn."""
    outputs = [_findings_output(dossier), _verdicts_output(dossier)]
    for family, heading in FAMILY_HEADINGS.items():
        rows = [row for row in dossier.rows if row.family == family and row.draw is None]
        for statbarn in STATBARNS:
            if own := [row for row in rows if statbarn_of(row) == statbarn]:
                said = f"{heading}: numbers of the confidential data and of the release"
                name = f"{family}-{statbarn}.csv"
                outputs.append(
                    AcroOutput(name, _rows_csv(own), statbarn, "review", said, f"sfumato results {dossier.plan.run.id}")
                )
    return outputs


def _kept_table_outputs(dossier: ReleaseDossier) -> list[AcroOutput]:
    """Return the protected tables of counts that are released with the datasets."""
    return [
        AcroOutput(
            f"kept-{at:02}.csv",
            table_csv(one),
            "Frequencies",
            "review",
            f"counts of the confidential records by {', '.join(map(plain_cell, one.variables))}: {one.protection}",
            f"sfumato release {dossier.plan.run.id}",
        )
        for at, one in enumerate(dossier.read_approved_tables(), start=1)
    ]


def _printed_table_outputs(dossier: ReleaseDossier) -> list[AcroOutput]:
    """Return the printed tables of the recipe."""
    stored = dossier.read_printed_tables()
    if stored is None:
        return []
    measures = {one.name: one.measure for one in dossier.plan.run.recipe.tables}
    return [
        printed_table_output(
            f"{name}.csv", one, stored.statuses, f"sfumato release {dossier.plan.run.id}", measures[one.name]
        )
        for name, one in zip(printed_file_names(stored), stored.printed, strict=True)
    ]


def printed_table_output(
    name: str, printed: PrintedTable, statuses: CellStatuses, command: str, value_name: str = COUNT
) -> AcroOutput:
    """Return a protected table as an entry of the queue: its public file, its statbarn and what is hidden.

    A table of which something is not shown to be safe fails. Others are for a person to review, as ACRO has linked
    tables: what other tables say of the same people is more than one table shows.
    """
    cells = np.unique(printed.cells[printed.cells != EMPTY])
    hidden = int((~statuses.published[cells]).sum())
    failing = np.zeros(len(statuses.published), dtype=np.bool_) if statuses.failing is None else statuses.failing
    open_cells = int((failing | (statuses.primary & statuses.published))[cells].sum())
    by_rule = [(rule, int(found[cells].sum())) for rule, found in statuses.by_rule.items()]
    why = ", ".join(f"{number:,} by {rule.replace('_', ' ')}" for rule, number in by_rule if number)
    words = f"{hidden:,} of {count_noun(len(cells), 'cell')} hidden" + (f" ({why})" if why else "")
    if statuses.failing is None:
        words += "; not audited"
    elif open_cells:
        words += f"; {count_noun(open_cells, 'cell')} not shown to be safe"
    return AcroOutput(
        name,
        public_table_csv(printed, statuses, value_name),
        "Frequencies" if statuses.whole[cells].all() else "LinearAggregations",
        "fail" if open_cells else "review",
        words,
        command,
    )


def statbarn_of(row: Row) -> Statbarn:
    """Return the statbarn of a number, as its output declares it; for an unknown method, by the unit of the row."""
    method = method_by_key(row.method_key)
    outputs = () if method is None else method.result_outputs
    found: Statbarn = next((one.checked_as for one in outputs if one.name == row.measure), statbarn_by_unit(row.unit))
    # A quantile at 0 or 1 is a minimum or maximum: ACRO has a statbarn of its own for these.
    if found == "Position" and row.params.get("q") in (0, 1):
        return "Endpoints"
    return found


def _finding_cells(one: Finding) -> tuple[str | float | None, ...]:
    return (one.check, one.status, one.title, one.message, one.value, one.baseline, one.limit)


def _findings_output(dossier: ReleaseDossier) -> AcroOutput:
    """Return the table of the gate's findings."""
    heads = ("check", "status", "title", "found", "value", "baseline", "limit", "state", "compared", "bound", "people")
    lines = [
        (*_finding_cells(one), one.state, compared_text(one), found_limit_text(one), one.people)
        for one in dossier.examination.findings
    ]
    status = dossier.examination.status
    return AcroOutput(
        "gate.csv",
        _csv_bytes(heads, lines),
        "Frequencies",
        ACRO_STATUS_OF_FINDING[status],
        f"what the gate found: {finding_counts_text(dossier.examination.findings)}",
        f"sfumato release {dossier.plan.run.id}",
    )


def _verdicts_output(dossier: ReleaseDossier) -> AcroOutput:
    """Return the table of the recipe's thresholds and what was observed."""
    heads = ("verdict", "name", "value", "of", "level", "settings", "observed", "limit", "reason")
    verdicts = dossier.plan.verdicts
    lines = [
        (one.outcome, label_of(one), one.value, one.target, one.level, settings_text(one.params or {}), one.observed,
         limit_text(one.bound, one.limit, one.value), one.reason)
        for one in verdicts
    ]  # fmt: skip
    outcomes = {one.outcome for one in verdicts}
    status: AcroStatus = "fail" if "not met" in outcomes else "pass" if outcomes == {"met"} else "review"
    said = "thresholds of the recipe and what was observed" if verdicts else "the recipe sets no threshold"
    return AcroOutput(
        "verdicts.csv",
        _csv_bytes(heads, lines),
        "StatisticalHypothesisTests",
        status,
        said,
        f"sfumato results {dossier.plan.run.id}",
    )


def _rows_csv(rows: Iterable[Row]) -> bytes:
    """Return rows of results as a CSV table."""
    heads = ("measure", "of", "level", "settings", "dataset", "value", "lower", "upper", "baseline", "unit", "reason")
    lines = [
        (row.key, row.target, row.level, settings_text(row.params), row.dataset, row.value, row.lower, row.upper,
         row.baseline, row.unit, row.reason)
        for row in rows
    ]  # fmt: skip
    return _csv_bytes(heads, lines)


def _csv_bytes(heads: Sequence[str], lines: Iterable[Sequence[str | float | None]]) -> bytes:
    """Return a CSV table with text cells that no spreadsheet takes for formulas."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    for line in lines:
        writer.writerow([plain_cell(one) if isinstance(one, str) else "" if one is None else one for one in line])
    return text.getvalue().encode()


def _figure_outputs(dossier: ReleaseDossier) -> list[AcroOutput]:
    """Return every figure of the report as a picture; without cairosvg one note that they are missing."""
    outputs = []
    for number, figure in enumerate(dossier.draw_figures(), start=1):
        drawing = f'<?xml version="1.0" encoding="UTF-8"?>\n{figure_svg(figure, f"figure-{number}")}\n'
        # ACRO takes no SVG.
        picture = svg_to_png(drawing, note=MARKING)
        if picture is None:
            note = f"{count_noun(len(dossier.draw_figures()), 'figure')} stand in report.html: no PNG could be drawn, for cairosvg is not installed. {MARKING}\n"
            return [
                AcroOutput(
                    "figures.txt", note.encode(), "none", "review", "figures that are not here", "sfumato report"
                )
            ]
        said = f"{figure.title}. {figure.caption}".strip()
        outputs.append(
            AcroOutput(
                f"figure-{number:02}.png", picture, STATBARN_OF_FIGURE[figure.kind], "review", said, "sfumato figures"
            )
        )
    return outputs
