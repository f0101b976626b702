"""Command that audits tables that any tool made: which hidden cells follow from what is printed."""

from __future__ import annotations

import sys
from typing import Any, Literal

import click

from .options import JSON, QUIET, check_writable, table_text, write_object
from .speech import echo


@click.command("audit-tables")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--changes",
    "earlier",
    multiple=True,
    metavar="FILE",
    help="A table of an earlier release of the same people: list what the two print differently. Repeatable.",
)
@click.option(
    "--hierarchy",
    "hierarchies",
    multiple=True,
    metavar="VARIABLE=FILE",
    help="Which rows contain which: a .hrc of tau-ARGUS, or a CSV with a value and its groups. Repeatable.",
)
@click.option(
    "--p-percent",
    type=click.FloatRange(0, min_open=True),
    metavar="P",
    help="Find hidden cells whose largest possible value is at most P % above the smallest.",
)
@click.option(
    "--threshold",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Fewest people of a cell that may be printed.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="NAMES",
    help="Columns with labels (default: all that are nothing else). Commas between names; repeatable.",
)
@click.option(
    "--value",
    default="",
    metavar="NAME",
    help="Column of the values (default: count, freq, value, or the last with numbers).",
)
@click.option(
    "--status",
    default="",
    metavar="NAME",
    help="Column that says what is hidden (default: status, or primary and suppressed).",
)
@click.option(
    "--contributors",
    default="",
    metavar="NAME",
    help="Column with the number of contributors (default: contributors, units, enterprises, firms).",
)
@click.option(
    "--hidden-mark",
    "hidden",
    multiple=True,
    metavar="SIGN",
    help="A further sign of a hidden cell, such as -1 or n/a. Repeatable.",
)
@click.option("--zero-mark", "zeros", multiple=True, metavar="SIGN", help="A sign of 0, such as -. Repeatable.")
@click.option("--total", "totals", multiple=True, metavar="LABEL", help="A further label of a total. Repeatable.")
@click.option(
    "--no-total",
    "no_totals",
    multiple=True,
    metavar="VARIABLE",
    help="No row of this variable is the total. Repeatable.",
)
@click.option("--counts", "kind", flag_value="counts", help="Values are numbers of people, which are whole.")
@click.option("--sums", "kind", flag_value="sums", help="Values are sums, such as turnover.")
@click.option(
    "--missing",
    type=click.Choice(("zero", "hidden")),
    default="zero",
    show_default=True,
    help="What a cell is that stands in no line.",
)
@click.option(
    "--rounding", type=click.FloatRange(0), default=0.0, metavar="UNIT", help="Values are rounded to multiples of UNIT."
)
@click.option("--zeros-hidden", is_flag=True, help="Readers do not see which cells are 0.")
@click.option("--values", is_flag=True, help="Show between which values the found cells lie: they are confidential.")
@JSON
@QUIET
def audit_tables(
    files: tuple[str, ...],
    earlier: tuple[str, ...],
    hierarchies: tuple[str, ...],
    p_percent: float | None,
    threshold: int | None,
    kind: Literal["counts", "sums"] | None,
    json_file: str | None,
    rounding: float,
    *,
    zeros_hidden: bool,
    values: bool,
    quiet: bool,
    **form: Any,
) -> None:
    """Say which hidden cells of tables follow from what they print.

    FILES are tables that any tool made: CSV with a column of labels for each variable, a value and a status; .tab of
    tau-ARGUS beside its .rda. Several files are one system: columns of one name are one variable.

    Hidden is what the status says, or a value such as x, :, .., ., *, c or <5. A minus and an empty cell may be 0 or hidden:
    you are asked. A row is the total by its label, or because it is the sum of the others.

    Readers: everybody; those who see which cells are 0; whoever is alone in a cell, where the files say how many contribute. No
    confidential file is needed, and nothing is stored.

    Exit status 1 unless the answer is yes.
    """
    from sfumato.engine.errors import BadInput
    from sfumato.engine.wording import split_names
    from sfumato.workspace.reporting.audited_tables import (
        NOT_COVERED,
        audited_tables_sentences,
        changed_cells_table,
        found_cells_table,
        left_out_sentence,
    )
    from sfumato.workspace.service.table_file_audit import TableAuditSettings, audit_table_files
    from sfumato.workspace.table_files.printed_files import PrintedForm

    check_writable(json_file)
    trees = list[tuple[str, str]]()
    for text in hierarchies:
        variable, sign, file = text.partition("=")
        if not (variable and sign and file):
            raise BadInput("--hierarchy", f'"{text}" is not VARIABLE=FILE, such as region=region.hrc')
        trees.append((variable, file))
    form["by"] = split_names(form["by"])
    settings = TableAuditSettings(
        PrintedForm(**form, kind=kind or ""),
        tuple(trees),
        p_percent,
        threshold or 0,
        rounding,
        zeros_hidden,
    )
    found = audit_table_files(files, settings, earlier)
    write_object(found.to_dict(values=values), json_file, private=True)
    if json_file != "-" and not quiet:
        parts = ["\n".join(audited_tables_sentences(found))]
        if found.found:
            parts.append(table_text(found_cells_table(found.found, values=values)))
            parts.append(left_out_sentence(len(found.found)))
        if found.changes is not None:
            parts.append(
                table_text(changed_cells_table(found.changes))
                if found.changes
                else "Both releases print the same, or differ by many."
            )
            parts.append(left_out_sentence(len(found.changes)))
        parts.append("\n".join([NOT_COVERED, found.headline]))
        echo("\n\n".join(filter(None, parts)))
    sys.exit(0 if found.answer == "yes" else 1)
