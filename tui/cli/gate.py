"""Commands about releases: the policy in force, and the gate's findings on a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import JSON, RUN, WORKSPACE, check_run_named, check_writable, open_workspace, table_text, write_object
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding


@click.command()
@WORKSPACE
@JSON
def policy(directory: Path | None, json_file: str | None) -> None:
    """Print the policy in force: limits of all checks, and why.

    It is a policy.toml that can be saved and changed.
    """
    from sfumato.workspace.gate.gate import check_policy
    from sfumato.workspace.gate.policy_text import policy_object, policy_toml
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    check_writable(json_file)
    found = read_policy_of_workspace(open_workspace(directory).directory)
    check_policy(found)
    write_object(policy_object(found), json_file)
    if json_file != "-":
        echo(policy_toml(found), nl=False, verbatim=True)


@click.command()
@RUN
@WORKSPACE
@JSON
@click.option("--all", "every", is_flag=True, help="List what passes and what does not apply too.")
def examine(run_id: str, directory: Path | None, json_file: str | None, *, every: bool) -> int:
    """Say whether a release may leave, and why; write nothing.

    RUN is a number, a name, or last. The exit status is 1 where the gate blocks the release.
    """
    from sfumato.workspace.gate.answer import answer_from_examination
    from sfumato.workspace.gate.contents import plan_release
    from sfumato.workspace.gate.gate import examine_release as examined
    from sfumato.workspace.policy.policy import read_policy_of_workspace
    from sfumato.workspace.store.runs import count_confidential_records

    check_run_named(run_id, directory)
    check_writable(json_file)
    workspace = open_workspace(directory)
    release_plan, own_policy = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    found = examined(workspace, release_plan, own_policy)
    answer = answer_from_examination(
        found, release_plan.run.recipe, own_policy, count_confidential_records(workspace, release_plan.run)
    )
    # Findings may name single records.
    write_object({**found.to_table(), "may_leave": answer.to_table()}, json_file, private=True)
    if json_file != "-":
        echo("\n".join([*answer.lines, ""]))
        echo(findings_text(found.findings, found.run_id, every=every))
    return 1 if found.status == "block" else 0


@click.command()
@click.argument("request", metavar="REQUEST.json", type=click.Path(path_type=Path))
@click.option("--reason", required=True, metavar="TEXT", help="Why it is approved, or refused.")
@click.option("--refuse", is_flag=True, help="Refuse it instead.")
@click.option("--waive", "waivers", multiple=True, metavar="CHECK=REASON", help="As for release. Repeatable.")
@JSON
def approve(request: Path, reason: str, waivers: tuple[str, ...], json_file: str | None, *, refuse: bool) -> None:
    """Approve a release that another account has asked for.

    It was asked for by sfumato release RUN --request, by an account of this machine.

    Prints the request and what the gate found, and writes the answer into the same folder. It needs no workspace.
    """
    from sfumato.workspace.release.approval import decide_request, read_request
    from sfumato.workspace.reporting.findings import stored_message

    from .outputs import parse_waivers

    check_writable(json_file)
    said = read_request(request)
    waived = parse_waivers(waivers)
    answer = decide_request(request, "refused" if refuse else "approved", reason, waived)
    findings = said["examination"].get("findings", [])
    write_object(
        {
            "disclosure": said.get("disclosure", ""),
            "title": said.get("title", ""),
            "format": said.get("form", ""),
            "requested_because": said["reason"],
            "findings": findings,
            "decision": "refused" if refuse else "approved",
            "reason": reason,
            "waivers": waived,
            "answer": str(answer),
        },
        json_file,
        private=True,
    )
    if json_file == "-":
        return
    for one in findings:
        if one["status"] != "pass" and one.get("applies", True):
            echo(f"{one.get('state', one['status'])}: {one['check']}: {stored_message(one)}")
    echo(f'asked for as {said.get("form", "")} because: "{said["reason"]}"')
    echo(f"{'refused' if refuse else 'approved'}: {answer}")


def findings_text(findings: Sequence[Finding], run_id: int, *, every: bool = False) -> str:
    """Return the table of findings, and in words those that are open; ``every`` lists the others in the table too."""
    from sfumato.workspace.reporting.findings import (
        finding_counts_text,
        finding_table,
        finding_text,
        findings_of_same_leak,
        folded_counts_text,
        is_open,
        lead_findings,
    )
    from sfumato.workspace.reporting.terminal_text import fold_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    parts = [f"Run {run_id}: {finding_counts_text(findings)}"]
    shown = finding_table(findings, every=every)
    if shown.rows:
        parts.append(table_text(shown))
    if not every and (left := folded_counts_text(findings)):
        parts.append(f"{left} (--all lists them)")
    for one in lead_findings(findings):
        if is_open(one):
            head, *rest = finding_text(one, findings_of_same_leak(one, findings))
            parts.append("\n".join([head, *(part for line in rest for part in fold_text(f"  {line}", width, "  "))]))
    return "\n\n".join(parts)
