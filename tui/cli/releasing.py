"""The command ``sfumato release``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .options import WORKSPACE, open_workspace

if TYPE_CHECKING:
    from sfumato.workspace.release.package import Released, ReleasePlan

__all__ = ["contents_text", "release", "released_text"]


@click.command()
@click.argument("run_id", metavar="RUN", default="last")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Where to: empty, or not there yet.",
)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Why it goes out although a threshold is not met or a sensitive variable is as it was; kept in the audit log.",
)
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the datasets."
)
@WORKSPACE
def release(run_id: str, output: Path, reason: str, form: Literal["csv", "parquet"], directory: Path | None) -> None:
    """Write the release of RUN (a number, or last): datasets, codebook, report, recipe, results, and a manifest of hashes.

    Variables that the recipe calls identifiers are left out. Where a threshold is not met, or a
    sensitive variable would go out as it is, it needs a --reason.
    """
    from sfumato.workspace.release.package import plan_release
    from sfumato.workspace.release.package import release as write

    workspace = open_workspace(directory)
    plan = plan_release(workspace, run_id)
    click.echo(released_text(write(workspace, plan.run.id, output, form, reason)))
    click.echo(contents_text(plan))


def released_text(done: Released) -> str:
    """``released to DIR: 7 files``, and that thresholds were not met."""
    unmet = f"; {done.unmet} thresholds not met, the reason is in the audit log" if done.unmet else ""
    return f"released to {done.directory}: {len(done.files)} files, manifest sha256 {done.manifest_sha256}{unmet}"


def contents_text(plan: ReleasePlan) -> str:
    """What goes out, variable by variable."""
    tables = f"{plan.datasets} dataset{'s' * (plan.datasets != 1)} of {plan.records:,} records, {plan.rows}"
    parts = {
        "replaced": plan.replaced,
        "as they are in the confidential data": plan.kept,
        "left out, identifiers": plan.left_out,
    }
    return "\n".join([tables, *(f"{words}: {', '.join(names)}" for words, names in parts.items() if names)])
