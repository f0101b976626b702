"""Commands that show or publish a finished run: its figures, its report, its release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from sfumato.engine.wording import count_noun

from ..session.release_texts import release_contents_lines, released_text
from .completion import complete_variables
from .options import (
    JSON,
    PUBLIC,
    RUN,
    WORKSPACE,
    check_run_named,
    check_seal,
    check_writable,
    open_workspace,
    table_text,
    write_object,
)
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.release.forms import DatasetForm
    from sfumato.workspace.service.release import WrittenRelease
    from sfumato.workspace.store.workspace import Workspace


@click.command()
@RUN
@WORKSPACE
@click.option("--width", type=click.IntRange(20), help="Cells across (default: the terminal's).")
@click.option("--height", type=click.IntRange(6), default=16, show_default=True, help="Lines of one panel.")
@click.option("--datasets", type=click.IntRange(1), default=3, show_default=True, help="Released datasets to draw.")
@click.option(
    "--bin-width",
    "widths",
    multiple=True,
    metavar="VARIABLE=WIDTH",
    shell_complete=complete_variables,
    help="Width of the bars, such as days=25. Repeatable.",
)
@click.option(
    "--svg",
    "svg_directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write one SVG file a figure in DIR instead.",
)
@PUBLIC
def figures(
    run_id: str,
    directory: Path | None,
    width: int | None,
    height: int,
    datasets: int,
    widths: tuple[str, ...],
    svg_directory: Path | None,
    *,
    public: bool,
) -> None:
    """Draw distributions, intervals and sweeps of a run.

    The release is drawn beside the confidential data. RUN is a number, a name, or last.

    Bars and curves of fewer than three confidential records are left out. With --public the distributions of
    the released data are drawn alone.
    """
    from .charts import draw_figures, write_svgs

    workspace = open_workspace(directory)
    check_seal(workspace, run_id)
    if svg_directory is None:
        echo(draw_figures(workspace, run_id, width, height, datasets, widths, public=public))
    else:
        paths = write_svgs(workspace, run_id, svg_directory, datasets, widths, public=public)
        echo(f"{count_noun(len(paths), 'figure')} written to {svg_directory}{internal_remark(public=public)}")


@click.command()
@RUN
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Where to write it: a page, or Markdown where its name ends in .md.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@PUBLIC
@WORKSPACE
def report(run_id: str, output: Path, directory: Path | None, *, force: bool, public: bool) -> None:
    """Write the report of a run as one HTML file.

    RUN is a number, a name, or last. The report has release, verdicts, utility, risk, figures and sources.

    With --public it is a page for users of the data: what they are, how to compute with them, what they keep.
    """
    from sfumato.workspace.release.report import write_report

    size = write_report(open_workspace(directory), run_id, output, force=force, public=public)
    echo(f"report written to {output} ({size // 1024:,} KiB){internal_remark(public=public)}")


def internal_remark(*, public: bool) -> str:
    """Return the remark ``; INTERNAL: as confidential as the data`` for what is not public; empty for what is."""
    from sfumato.workspace.policy.disclosure import INTERNAL

    return "" if public else f"; {INTERNAL}"


class FormName(click.ParamType[str]):
    """Parameter type for a format of released data."""

    name = "format"

    def _format_choice(self) -> click.Choice[str]:
        """Return the choice among the formats that can be written."""
        from sfumato.workspace.release.forms import writable_forms

        # Looked up when needed, so that no other command waits for the formats.
        return click.Choice(writable_forms())

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of a format of released data that was typed. Raises click's BadParameter for another."""
        return self._format_choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._format_choice().get_metavar(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._format_choice().shell_complete(ctx, param, incomplete)


@click.command()
@RUN
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Output folder (new or empty).",
)
@click.option("--request", "asking", is_flag=True, help="Ask for it instead, where the policy wants a second person.")
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Reason to release despite a block; kept in the audit log.",
)
@click.option(
    "--waive",
    "waivers",
    multiple=True,
    metavar="CHECK=REASON",
    help="Reason for waiving one check that blocks (kept in the audit log). Repeatable.",
)
@click.option("--format", "form", type=FormName(), help="Of the datasets (default: the confidential file's).")
@WORKSPACE
@JSON
def release(
    run_id: str,
    output: Path | None,
    reason: str,
    waivers: tuple[str, ...],
    form: str | None,
    directory: Path | None,
    json_file: str | None,
    *,
    asking: bool,
) -> None:
    """Write the release of a run, if the gate allows it.

    RUN is a number, a name, or last. public/ has the datasets, internal/ report, recipe and results.

    Variables that the recipe calls identifiers are left out. Where the gate blocks it (sfumato examine RUN says why), it
    needs a --reason, or a --waive for every check that blocks. Where the policy wants a second person, it is asked for
    with --request and a --reason, another account answers (sfumato approve), and then it is written with -o alone.
    """
    from sfumato.workspace.gate.contents import plan_release
    from sfumato.workspace.release.forms import form_for_file
    from sfumato.workspace.service.release import write_run_release as write

    if asking == (output is not None):
        raise click.UsageError("name a directory with -o DIR, or ask for the release with --request")
    check_run_named(run_id, directory)
    check_writable(json_file)
    workspace = open_workspace(directory)
    plan = plan_release(workspace, run_id)
    form = form or form_for_file(workspace.find_dataset(plan.run.dataset_id).name)
    if output is None:
        from sfumato.workspace.release.approval import request_release

        asked = request_release(workspace, plan.run.id, reason, parse_waivers(waivers), form)
        write_object({**release_contents_object(plan, form), "request": str(asked)}, json_file)
        if json_file != "-":
            echo(f"asked for as {form}; another account answers with: sfumato approve {asked} --reason TEXT")
        return
    done = write(workspace, plan.run.id, output, form, reason, parse_waivers(waivers))
    write_object(released_object(done, plan, form), json_file)
    if json_file != "-":
        echo(released_text(done))
        echo("\n".join(release_contents_lines(plan, form)))


def release_contents_object(plan: ReleasePlan, form: DatasetForm) -> dict[str, Any]:
    """Return what a release holds, by the treatment of its variables, as part of an object of ``--json``."""
    return {
        "disclosure": "internal",
        "run": plan.run.id,
        "format": form,
        "datasets": plan.datasets,
        "tables": len(plan.run.recipe.tables),
        "records": int(plan.records),
        "shuffled": plan.is_shuffled,
        "replaced": list(plan.replaced),
        "unchanged": list(plan.unchanged_variables),
        "coarser": {name: str(rule) for name, rule in plan.run.recipe.form.recode.items()},
        "surrogate_keys": list(plan.surrogate_keys),
        "renumbered_units": list(plan.renumbered_units),
        "left_out": list(plan.identifiers_without_key),
    }


def released_object(done: WrittenRelease, plan: ReleasePlan, form: DatasetForm) -> dict[str, Any]:
    """Return a written release as the object that ``--json`` writes."""
    return {
        **release_contents_object(plan, form),
        "directory": str(done.directory),
        "files": list(done.files),
        "manifest_sha256": done.manifest_sha256,
        "thresholds_not_met": done.n_unmet,
    }


def parse_waivers(waivers: tuple[str, ...]) -> dict[str, str]:
    """Return the reasons by check from texts ``CHECK=REASON``. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    given: dict[str, str] = {}
    for text in waivers:
        check, sign, reason = text.partition("=")
        if not sign or check in given:
            raise BadInput("--waive", f'"{text}" is {"given twice" if check in given else "not CHECK=REASON"}')
        given[check] = reason
    return given


def show_public_results(run_id: str, directory: Path | None, json_file: str | None) -> None:
    """Print the publishable results of a run, and write them as JSON where a file is named."""
    from sfumato.workspace.release.report import check_charged, read_public_release
    from sfumato.workspace.release.users import public_results
    from sfumato.workspace.reporting.user_guide import utility_table

    workspace = open_workspace(directory)
    check_seal(workspace, run_id)
    check_charged(workspace, run_id)
    found = read_public_release(workspace, run_id)
    write_object(public_results(found), json_file)
    if json_file != "-":
        echo(table_text(utility_table(found.figure_rows)) if found.figure_rows else "no result of this run may leave")
        echo(found.disclosure_text)


def show_record_weights(workspace: Workspace, run_id: str, top: int, json_file: str | None) -> None:
    """Print the records with the least weight in the models of a run, and their risk before and after.

    Raises NotFound and NotReady.
    """
    from sfumato.workspace.reporting.weights import LEGEND, weight_table, weights_object
    from sfumato.workspace.views.weights import read_record_weights

    found = read_record_weights(workspace, run_id)
    write_object(weights_object(found, top), json_file, private=True)
    if json_file != "-":
        echo(
            "\n\n".join(
                filter(
                    None,
                    [
                        f"run {found.run_id}: {found.summary_text}",
                        table_text(weight_table(found, top)),
                        found.risk_changes_text,
                        LEGEND,
                    ],
                )
            )
        )
