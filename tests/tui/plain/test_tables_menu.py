"""The act Tables of plain mode: rows in lines, hidden values only after a question, and a decision that changes the plan."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from protected_towns import run_of_tables

from sfumato.tui.plain.mode import hold_conversation
from sfumato.tui.plain.session import PlainSession
from sfumato.tui.plain.talk import Conversation, ConversationEnded
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
Talked = Callable[..., tuple[int, list[str]]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("towns") / "workspace"
    run_of_tables(directory)
    return directory


@pytest.fixture
def talked(built: Path, tmp_path: Path) -> Talked:
    """The status and the lines of a conversation in a copy of a workspace with protected tables."""
    directory = Path(shutil.copytree(built, tmp_path / "workspace"))

    def talk(answers: Sequence[str]) -> tuple[int, list[str]]:
        out = io.StringIO()
        with Workspace.open(directory) as workspace:
            conversation = Conversation(io.BytesIO("".join(f"{one}\n" for one in answers).encode()), out, script=True)
            with pytest.raises(ConversationEnded) as ended:
                hold_conversation(PlainSession(conversation, workspace, jobs=1, project_id=1, run_id=1))
            draft = find_draft(workspace, 1)
        return ended.value.status, [*out.getvalue().splitlines(), *([] if draft is None else [draft.toml])]

    return talk


def test_a_table_is_read_in_lines_and_hidden_values_are_not(talked: Talked) -> None:
    status, lines = talked(["Findings", "Tables", "", "1", "1", "no", "", "Done", "back", "quit"])
    assert status == 0, lines
    text = "\n".join(lines)
    assert "region coast: total 20, food 12, iron 8, wool 0." in text
    assert "iron hidden: unsafe by a rule, wool hidden to protect another cell." in text
    assert "Why: fewer than 5 records." in text
    assert "One who uses zeros: places it from 1 to 10." in text
    assert "Value: 2." not in text


def test_a_value_is_shown_after_a_question(talked: Talked) -> None:
    _, lines = talked(["Findings", "Tables", "", "1", "1", "yes", "", "Done", "back", "quit"])
    assert "Value: 2." in lines


def test_publishing_an_unsafe_cell_is_said_not_to_pass_and_changes_the_plan_only_after_yes(talked: Talked) -> None:
    asked = ["Findings", "Tables", "", "1", "1", "no", "Publish it"]
    status, lines = talked([*asked, "no", "Done", "back", "quit"])
    assert status == 0, lines
    assert "With this, the tables do not pass." in lines
    assert "fixed" not in lines[-1]
    status, lines = talked([*asked, "yes", "Done", "back", "quit"])
    assert status == 0, lines
    assert 'status = "published"' in lines[-1]


def test_a_printed_cell_is_hidden(talked: Talked) -> None:
    status, lines = talked(
        [
            "Findings",
            "Tables",
            "",
            "1",
            "Hide a printed cell",
            "region coast, trade food",
            "yes",
            "Done",
            "back",
            "quit",
        ]
    )
    assert status == 0, lines
    assert any("No unsafe cell follows" in line for line in lines)
    assert 'status = "hidden"' in lines[-1]
