"""Commands about what may leave: the policy in force, and what the gate finds on a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import JSON, RUN, WORKSPACE, check_run_named, check_writable, open_workspace, printed, write_object
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.release.gate import Finding


@click.command()
@WORKSPACE
def policy(directory: Path | None) -> None:
    """Print the policy in force: limits of all checks, and why.

    It is a policy.toml that can be saved and changed.
    """
    from sfumato.workspace.policy.policy import policy_of
    from sfumato.workspace.release.gate import check_policy
    from sfumato.workspace.release.policy_text import policy_toml

    found = policy_of(open_workspace(directory).directory)
    check_policy(found)
    echo(policy_toml(found), nl=False, verbatim=True)


@click.command()
@RUN
@WORKSPACE
@JSON
def examine(run_id: str, directory: Path | None, json_file: str | None) -> int:
    """Examine what a release would give away; write nothing.

    RUN is a number, a name, or last. The exit status is 1 where the gate blocks the release.
    """
    from sfumato.workspace.policy.policy import policy_of
    from sfumato.workspace.release.contents import plan_release
    from sfumato.workspace.release.gate import examine as examined

    check_run_named(run_id, directory)
    check_writable(json_file)
    workspace = open_workspace(directory)
    found = examined(workspace, plan_release(workspace, run_id), policy_of(workspace.directory))
    write_object(found.to_table(), json_file, private=True)
    if json_file != "-":
        echo(findings_text(found.findings, found.run_id))
    return 1 if found.status == "block" else 0


@click.command()
@click.argument("request", metavar="REQUEST.json", type=click.Path(path_type=Path))
@click.option("--reason", required=True, metavar="TEXT", help="Why it is approved, or refused.")
@click.option("--refuse", is_flag=True, help="Refuse it instead.")
@click.option("--waive", "waivers", multiple=True, metavar="CHECK=REASON", help="As for release. Repeatable.")
def approve(request: Path, reason: str, waivers: tuple[str, ...], *, refuse: bool) -> None:
    """Approve a release that another account has asked for.

    It was asked for by sfumato release RUN --request, by an account of this machine.

    Prints the request and what the gate found, and writes the answer into the same folder. It needs no workspace.
    """
    from sfumato.workspace.release.approval import decide, request_text

    from .outputs import waivers_given

    said = request_text(request)
    answer = decide(request, "refused" if refuse else "approved", reason, waivers_given(waivers))
    for one in said["examination"].get("findings", []):
        if one["status"] != "pass" and one.get("applies", True):
            echo(f"{one['status']}: {one['check']}: {one['said']}")
    echo(f'asked for as {said.get("form", "")} because: "{said["reason"]}"')
    echo(f"{'refused' if refuse else 'approved'}: {answer}")


def findings_text(findings: Sequence[Finding], run_id: int) -> str:
    """The table of the findings, and in words those that do not pass."""
    from sfumato.workspace.reporting.findings import by_status, counts_text, finding_table, finding_text
    from sfumato.workspace.reporting.terminal_text import folded

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    parts = [f"Run {run_id}: {counts_text(findings)}", printed(finding_table(findings))]
    for one in by_status(findings):
        if one.status != "pass" and one.applies:
            head, *rest = finding_text(one)
            parts.append("\n".join([head, *(part for line in rest for part in folded(f"  {line}", width, "  "))]))
    return "\n\n".join(parts)
