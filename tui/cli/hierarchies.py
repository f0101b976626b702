"""Command ``sfumato hierarchies``: the hierarchy of a quasi-identifier with its records, and exchange with files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion as completing
from .options import JSON, WORKSPACE, check_writable, chosen_workspace, table_text, workspace_key, write_object
from .outputs import internal_remark
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.plan.hierarchies import EditedHierarchy, HierarchyNodeLine

MOST_TREE_BYTES = 64 << 20


@click.command()
@click.argument("recipe", shell_complete=completing.complete_recipes)
@click.argument("variable")
@click.option("--data", metavar="FILE", help="The confidential file, in place of the recipe's.")
@click.option("--propose", is_flag=True, help="What is proposed, whatever the recipe says.")
@click.option(
    "--from", "tree_file", metavar="FILE", help="A tree of ARX (value;...;root) or of tau-Argus and sdcHierarchies (@)."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="NEW.csv", help="Write the tree in ARX's layout."
)
@WORKSPACE
@JSON
def hierarchies(
    recipe: str,
    variable: str,
    data: str | None,
    tree_file: str | None,
    output: Path | None,
    directory: Path | None,
    json_file: str | None,
    *,
    propose: bool,
) -> None:
    """Show the hierarchy along which a variable is generalised.

    Every node of VARIABLE in RECIPE has its values and records; counts of few records are hidden.

    Where the recipe says nothing, a hierarchy is proposed, with what it learns from the records. A file that -o writes is what a
    recipe names: hierarchies = { VARIABLE = "NEW.csv" }.
    """
    from sfumato.engine.errors import BadInput
    from sfumato.workspace.plan.hierarchies import hierarchy_of_recipe
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    check_writable(json_file)
    if output is not None and output.exists():
        raise BadInput("--output", f'"{output}" exists already; name a new file')
    smallest = read_policy_of_workspace(chosen_workspace(directory)).smallest_cell
    text = None if tree_file is None else _read_tree_file(tree_file)
    opened = hierarchy_of_recipe(recipe, data, variable, text, smallest, workspace_key(directory), propose=propose)
    if json_file is not None:
        write_object(hierarchy_object(opened), json_file, private=True)
    if json_file != "-":
        echo(hierarchy_text(opened))
    if output is not None:
        from sfumato.engine.partition.hierarchy_files import hierarchy_csv

        output.write_text(hierarchy_csv(opened.as_tree), "utf-8")
        # With --json standard output is the object alone.
        echo(
            f"{'' if json_file == '-' else chr(10)}written to {output}{internal_remark(public=False)}",
            err=json_file == "-",
        )


def _read_tree_file(name: str) -> str:
    """Read the text of a file with a tree. Raises BadInput."""
    from sfumato.engine.errors import BadInput
    from sfumato.workspace.errors import StrangeFile
    from sfumato.workspace.plain_files import read_plain

    try:
        # Spreadsheets write a byte order mark before the first value.
        return read_plain(Path(name), MOST_TREE_BYTES).decode("utf-8-sig")
    except StrangeFile as error:
        raise BadInput("--from", f'"{name}" is {error.kind}, not a tree') from None
    except UnicodeDecodeError:
        raise BadInput("--from", f'"{name}" is not text in UTF-8') from None
    except OSError:
        raise BadInput("--from", f'"{name}" cannot be read') from None


def _node_lines(opened: EditedHierarchy) -> list[HierarchyNodeLine]:
    """Return the nodes of a hierarchy. Raises BadInput where there are too many."""
    from sfumato.engine.errors import BadInput

    try:
        return opened.node_lines()
    except ValueError as error:
        raise BadInput("VARIABLE", str(error)) from None


def hierarchy_object(opened: EditedHierarchy) -> dict[str, Any]:
    """Return a hierarchy as the object that ``--json`` writes; ``records`` is null where the count is hidden."""
    from sfumato.workspace.policy.disclosure import INTERNAL

    return {
        "disclosure": INTERNAL,
        "variable": opened.variable.name,
        "setting": opened.setting,
        "nodes": [
            {"label": line.node.label, "depth": line.node.depth, "values": line.values, "records": line.records}
            for line in _node_lines(opened)
        ],
        "widths": list(opened.widths),
        "origin": opened.origin,
        "learnt": opened.learnt,
        "missing_values": list(opened.missing_values),
    }


def hierarchy_text(opened: EditedHierarchy) -> str:
    """Return a hierarchy as a table with its origin, what it reveals of the records, and a recipe's line for intervals."""
    from sfumato.engine.wording import count_noun
    from sfumato.workspace.plan.drafts import inline_toml
    from sfumato.workspace.reporting.tables import table_from_titles

    lines = _node_lines(opened)
    rows = [
        ("  " * line.node.depth + line.node.label, f"{line.values:,}", opened.shown_records(line)) for line in lines
    ]
    parts = [table_text(table_from_titles(("node", "values", "records"), rows, right=(1, 2), spare=(1,)))]
    parts += ["\n".join(filter(None, (opened.origin, opened.learnt)))]
    if lacking := opened.missing_values:
        parts.append(
            f"{count_noun(len(lacking), 'value')} of the data not in the tree; --propose shows one that has all of them"
        )
    if opened.setting == "widths" and opened.recipe_value:
        parts.append(f"in a recipe: widths = {inline_toml({opened.variable.name: opened.recipe_value})}")
    return "\n\n".join(filter(None, parts))
