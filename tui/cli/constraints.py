"""Command ``sfumato constraints``: records that break each rule of a recipe, and rules that all records keep."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from sfumato.engine.wording import count_noun

from .options import JSON, check_writable, table_text, write_object
from .speech import echo


@click.command()
@click.argument("target", metavar="FILE|RECIPE")
@click.option("--data", metavar="FILE", help="The confidential file, in place of the recipe's.")
@click.option("--suggest", is_flag=True, help="Find rules that every record keeps to and chance does not explain.")
@click.option("--toml", is_flag=True, help="With --suggest: print them as [constraints] of a recipe.")
@click.option("--strict", is_flag=True, help="End with status 1 where a record breaks a rule.")
@JSON
def constraints(
    target: str, data: str | None, json_file: str | None, *, suggest: bool, toml: bool, strict: bool
) -> None:
    """Count the records that break each rule of a recipe.

    Of a data FILE alone, find the rules that all its records keep.

    Nothing is stored and nothing refused. What is found is a fact about these records: internal, as the records are.
    """
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.plan.drafts import write_plan
    from sfumato.workspace.reporting.constraints import (
        compliance_text,
        constraints_section,
        declared_rules_table,
        suggested_rules_table,
    )
    from sfumato.workspace.service.ruled_files import evaluate_rules_of_file

    check_writable(json_file)
    recipe = is_recipe(target)
    search = suggest or toml or not recipe
    view = call_in_process(
        evaluate_rules_of_file,
        target,
        data,
        recipe,
        search,
        what=f'the reading of "{data or target}"',
        seconds=READ_SECONDS,
    )
    # Rules that were found are facts about the confidential records.
    write_object({"disclosure": "internal", **asdict(view)}, json_file, private=True)
    if json_file != "-" and toml:
        echo(write_plan({"constraints": constraints_section(view.found)}).rstrip("\n"))
    elif json_file != "-":
        parts = [compliance_text(view)] if recipe else [f"{count_noun(view.records, 'record')}"]
        parts += [table_text(declared_rules_table(view.said))] if view.said else []
        if view.found:
            parts += [table_text(suggested_rules_table(view.found))]
            parts += ["They hold for these records; other records may break them. --toml prints them for a recipe."]
        elif search:
            parts.append("No rule holds for all records beyond what chance explains.")
        echo("\n\n".join(parts))
    sys.exit(1 if strict and any(line.broken for line in view.said) else 0)


def is_recipe(target: str) -> bool:
    """Return whether a name is that of a recipe rather than of a file of data."""
    from sfumato.workspace.recipes import recipe_names

    return Path(target).suffix == ".toml" or target in recipe_names()
