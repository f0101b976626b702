"""The same sentence in every place: commands, JSON, plain mode, report, assessment and record; and in no public file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import keyed_workspace
import pytest

from sfumato.tui.plain.mode import hold_conversation
from sfumato.tui.plain.session import PlainSession
from sfumato.tui.plain.talk import Conversation, ConversationEnded
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate.answer import answer_for_run, answer_from_examination
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Waiver, examine_release
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.release.report import make_report
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

workspace = keyed_workspace.workspace
blank_pictures = keyed_workspace.blank_pictures


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocked", "clean"])
def test_the_same_sentence_stands_in_every_place(
    kind: str,
    home: Path,
    workspace: Workspace,
    enter: Callable[..., int],
    sfumato: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Command line, JSON, plain mode, report and, of what is released, assessment and record print the words of the gate's answer."""
    # The audience decides which of the two it is: its limits block the people whom the kept columns find, or report them.
    run_id = enter(release={"m": 3, "seed": 7, "audience": "public" if kind == "blocked" else "enclave"})
    run_worker(workspace.directory, idle=0)
    where = str(workspace.directory)
    answer = answer_for_run(workspace, run_id)
    assert answer is not None
    assert (answer.may_leave == "no") == (kind == "blocked")
    said = "\n".join(answer.lines)

    assert sfumato("results", "1", "--workspace", where, "--json", "results.json") == 0
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith(said), "it is the last that results print"
    assert json.loads(Path("results.json").read_text("utf-8"))["may_leave"] == answer.to_table()

    status = sfumato("examine", "1", "--workspace", where, "--json", "examined.json")
    assert status == (1 if kind == "blocked" else 0)
    assert capsys.readouterr().out.startswith(f"{said}\n"), "it is the first that examine prints"
    assert json.loads(Path("examined.json").read_text("utf-8"))["may_leave"] == answer.to_table()

    out = io.StringIO()
    script = "\n".join(
        [
            "Projects",
            "Open a project",
            "1",
            "back",
            "Findings",
            "Verdicts",
            "1",
            "back",
            "Release",
            "Findings of the gate",
            "1",
            "",
        ]
    )
    with pytest.raises(ConversationEnded), Workspace.open(workspace.directory) as opened:
        hold_conversation(PlainSession(Conversation(io.BytesIO(script.encode()), out, script=True), opened, jobs=1))
    spoken = out.getvalue()
    assert spoken.count(said) == 2, "findings and release of plain mode"
    place = spoken.index(said)
    assert spoken.index("The gate: ", place) < spoken.index("Run 1: the threshold is met.", place)

    document = make_report(workspace, run_id)
    page, text = document.to_html(), document.to_markdown()
    assert answer.sentence in text
    assert text.index(answer.title) < text.index("Verdicts")
    assert page.index(answer.title) < page.index("Verdicts</h2>")
    assert document.to_html() == make_report(workspace, run_id).to_html(), "the same bytes"

    if kind == "blocked":
        with pytest.raises(NotReleased) as refused:
            write_run_release(workspace, run_id, tmp_path / "no")
        assert str(refused.value).startswith(answer.sentence)
    plan, rules = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    examined = examine_release(workspace, plan, rules)
    reason = "agreed with the data owner" if examined.blocking_findings else ""
    write_run_release(workspace, run_id, tmp_path / "out", reason=reason)
    waivers = (Waiver("*", reason, "x"),) if reason else ()
    with_waiver = answer_from_examination(
        replace(examined, waivers=waivers), plan.run.recipe, rules, plan.run.count_records(80)
    )
    inside = tmp_path / "out" / "internal"
    assessed = (inside / "risk-assessment.md").read_text("utf-8")
    assert f"**{with_waiver.title}**" in assessed
    assert (
        json.loads((inside / "disclosure-control.json").read_text("utf-8"))["may_leave"]["answer"]
        == with_waiver.may_leave
    )
    assert with_waiver.title in (inside / "report.html").read_text("utf-8")
    public = tmp_path / "out" / "public"
    for path in public.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert answer.title.encode() not in content, f"{path.name} is public"
        assert answer.sentence.encode() not in content
