"""``sfumato hierarchies``: the hierarchy of a quasi-identifier as a tree with its records; proposed, and between files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion as completing
from .options import WORKSPACE, chosen_workspace, printed, workspace_key
from .outputs import said_internal
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.plan.hierarchies import OpenHierarchy

MOST_TREE_BYTES = 64 << 20


@click.command()
@click.argument("recipe", shell_complete=completing.recipes)
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
def hierarchies(
    recipe: str,
    variable: str,
    data: str | None,
    tree_file: str | None,
    output: Path | None,
    directory: Path | None,
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

    if output is not None and output.exists():
        raise BadInput("--output", f'"{output}" exists already; name a new file')
    smallest = read_policy_of_workspace(chosen_workspace(directory)).smallest_cell
    text = None if tree_file is None else _text_of(tree_file)
    opened = hierarchy_of_recipe(recipe, data, variable, text, smallest, workspace_key(directory), propose=propose)
    echo(hierarchy_text(opened))
    if output is not None:
        from sfumato.engine.partition.hierarchy_files import hierarchy_csv

        output.write_text(hierarchy_csv(opened.as_tree), "utf-8")
        echo(f"\nwritten to {output}{said_internal(public=False)}")


def _text_of(name: str) -> str:
    from sfumato.engine.errors import BadInput
    from sfumato.workspace.errors import StrangeFile
    from sfumato.workspace.plain_files import read_plain

    try:
        return read_plain(Path(name), MOST_TREE_BYTES).decode("utf-8-sig")
    except StrangeFile as error:
        raise BadInput("--from", f'"{name}" is {error.kind}, not a tree') from None
    except UnicodeDecodeError:
        raise BadInput("--from", f'"{name}" is not text in UTF-8') from None
    except OSError:
        raise BadInput("--from", f'"{name}" cannot be read') from None


def hierarchy_text(opened: OpenHierarchy) -> str:
    """The tree as a table, how it was made, what it shows of the records, and what a recipe says of intervals."""
    from sfumato.engine.errors import BadInput
    from sfumato.engine.wording import count_noun
    from sfumato.workspace.plan.drafts import inline
    from sfumato.workspace.reporting.tables import table

    try:
        lines = opened.lines()
    except ValueError as error:
        raise BadInput("VARIABLE", str(error)) from None
    rows = [("  " * line.node.depth + line.node.label, f"{line.values:,}", opened.records_told(line)) for line in lines]
    parts = [printed(table(("node", "values", "records"), rows, right=(1, 2), spare=(1,)))]
    parts += ["\n".join(filter(None, (opened.said, opened.learnt)))]
    if lacking := opened.lacking:
        parts.append(
            f"{count_noun(len(lacking), 'value')} of the data not in the tree; --propose shows one that has all of them"
        )
    if opened.holds == "widths" and opened.written:
        parts.append(f"in a recipe: widths = {inline({opened.variable.name: opened.written})}")
    return "\n\n".join(filter(None, parts))
