"""Command on populations: the ledgers of what was spent, and statements about whose data a project has."""

from __future__ import annotations

from pathlib import Path

import click

from .options import JSON, WORKSPACE, check_writable, open_workspace, table_text, write_object
from .speech import echo


@click.command()
@click.argument("project", metavar="[PROJECT]", required=False)
@click.option("--name", metavar="NAME", help="State that PROJECT has people of this population.")
@click.option("--size", type=click.IntRange(1), metavar="N", help="With --name: how many people it has.")
@click.option("--identifier", metavar="VARIABLE", help="With --name: the variable that says who a person is.")
@click.option("--others", metavar="NAME", help="State that other people were asked than before.")
@click.option("--reason", metavar="TEXT", help="With --others: who was asked, and when.")
@WORKSPACE
@JSON
def population(
    project: str | None,
    name: str | None,
    size: int | None,
    identifier: str | None,
    others: str | None,
    reason: str | None,
    directory: Path | None,
    json_file: str | None,
) -> None:
    """Show what was spent of the privacy budget of each population.

    With PROJECT, show the ledger of its population: what each release was charged, and what is left.

    Without a statement a project is a population of its own. --name joins its ledger with that of the named population. --others begins
    a new population with a new ledger; the audit log keeps who stated it, and why.
    """
    from sfumato.workspace.gate.ledger import list_population_ledgers
    from sfumato.workspace.reporting.ledger import charges_table, ledger_sentences, populations_table
    from sfumato.workspace.service.population import (
        begin_population,
        find_project,
        ledger_of_project,
        state_population,
    )

    if project is None and any(one is not None for one in (name, size, identifier, others, reason)):
        raise click.UsageError("name the project that the statement is about")
    if name is not None and others is not None:
        raise click.UsageError("either --name, for the same people, or --others, for other people")
    if name is None and (size is not None or identifier is not None):
        raise click.UsageError("--size and --identifier go with --name")
    if (others is None) != (reason is None):
        raise click.UsageError("--others and --reason go together")
    check_writable(json_file)
    workspace = open_workspace(directory)
    if project is None:
        ledgers = list_population_ledgers(workspace)
        write_object({"populations": [one.to_table() for one in ledgers]}, json_file)
        if json_file != "-":
            echo(table_text(populations_table(ledgers)) if ledgers else "no project yet, and nothing was released")
        return
    project_id = find_project(workspace, project)
    if name is not None:
        state_population(workspace, project_id, name, size, identifier)
    if others is not None and reason is not None:
        begin_population(workspace, project_id, others, reason)
    ledger = ledger_of_project(workspace, project_id)
    write_object(ledger.to_table(), json_file)
    if json_file != "-":
        echo("\n".join(ledger_sentences(ledger)))
        if ledger.charges:
            echo(f"\n{table_text(charges_table(ledger))}")
