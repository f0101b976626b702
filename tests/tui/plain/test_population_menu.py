"""The ledger of a population by lines alone: what is spent, and a statement that other people were asked."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from prepared_populations import PROJECT, REASON, WEAK_REASON, charged_workspace

from sfumato.tui.plain.mode import hold_conversation
from sfumato.tui.plain.session import PlainSession
from sfumato.tui.plain.talk import Conversation, ConversationEnded
from sfumato.workspace.audit import AuditAct, audit_rows, user
from sfumato.workspace.gate.ledger import list_population_ledgers
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
LEDGER = [
    f'The population "{PROJECT}": 1 release charged, epsilon 2, delta 1e-09.',
    "Of the budget of epsilon 3, 1 is left.",
]
Talk = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def directory(home: Path) -> Path:
    return charged_workspace(home / "w")


@pytest.fixture
def talked(directory: Path) -> Talk:
    """Hold a conversation in the menu Release with these answers; return its status and its lines."""

    def talk(*answers: str, script: bool = True) -> tuple[int, list[str]]:
        out = io.StringIO()
        with Workspace.open(directory) as workspace:
            lines = "".join(f"{one}\n" for one in ("Release", *answers)).encode()
            conversation = Conversation(io.BytesIO(lines), out, script=script)
            with pytest.raises(ConversationEnded) as ended:
                hold_conversation(PlainSession(conversation, workspace, jobs=1))
        return ended.value.status, out.getvalue().splitlines()

    return talk


def statements(directory: Path) -> list[tuple[object, object]]:
    """The name and the reason of each statement of other people in the audit log."""
    with Workspace.open(directory) as workspace:
        rows = [one for one in audit_rows(workspace.connection) if one.act == AuditAct.POPULATION_BEGUN]
    return [(one.details_table["population"], one.details_table["reason"]) for one in rows]


def test_the_menu_offers_the_ledger_and_shows_it(talked: Talk) -> None:
    status, lines = talked("Privacy ledger")
    assert status == 0
    assert "6. Privacy ledger: what was spent of the budget of these people, and by which runs" in lines
    assert "7. Other people: state that other people were asked, with a reason" in lines
    at = lines.index(LEDGER[0])
    assert lines[at + 1] == LEDGER[1]
    assert any(line.startswith("Run 1, ") and line.endswith(": epsilon 2.") for line in lines[at:])


def test_other_people_are_stated_after_the_ledger_and_a_question(talked: Talk, directory: Path) -> None:
    status, lines = talked("Other people", "Spring 2026", REASON, "yes", "Privacy ledger")
    assert status == 0
    told = [
        "The ledger of Spring 2026 begins with the whole budget. The audit log keeps your name and the reason.",
        f"Stated by {user()}: other people were asked. Releases are charged to Spring 2026 from now on.",
        'The population "Spring 2026": no release is charged yet.',
        "Of the budget of epsilon 3, 3 is left.",
    ]
    places = [lines.index(one) for one in (*LEDGER, *told)]
    assert places == sorted(places)
    assert statements(directory) == [("Spring 2026", REASON)]


def test_nothing_is_stated_by_default(talked: Talk, directory: Path) -> None:
    status, lines = talked("Other people", "Spring 2026", REASON, "")
    assert status == 0
    assert "Nothing is stated." in lines
    assert statements(directory) == []


def test_a_name_in_use_and_a_weak_reason_are_asked_for_again(talked: Talk, directory: Path) -> None:
    answers = "Other people", PROJECT.upper(), "Spring 2026", WEAK_REASON, "none", REASON, "yes"
    status, lines = talked(*answers, script=False)
    assert status == 0
    wrong = [line for line in lines if line.startswith("Wrong answer: ")]
    assert len(wrong) == 3
    assert f'"{PROJECT.upper()}" is in use in this workspace; choose a new name' in wrong[0]
    assert all("needs at least 3 different words that say who was asked, and when" in one for one in wrong[1:])
    assert statements(directory) == [("Spring 2026", REASON)]


def test_a_script_ends_at_a_weak_reason_and_states_nothing(talked: Talk, directory: Path) -> None:
    status, lines = talked("Other people", "Spring 2026", WEAK_REASON, "yes")
    assert status == 1
    assert "Stopped at line 4 of the input" in lines[-1]
    assert statements(directory) == []


def test_a_policy_says_who_may_state_it(talked: Talk, directory: Path) -> None:
    (directory / "policy.toml").write_text('[privacy]\nepsilon = 3.0\n[approval]\nwaivers = ["somebody"]\n', "utf-8")
    _, lines = talked("Other people", "Spring 2026", REASON, "yes")
    (refused,) = [line for line in lines if "may not state that other people were asked" in line]
    assert "the policy lets somebody" in refused
    assert statements(directory) == []
    with Workspace.open(directory) as workspace:
        assert [one.name for one in list_population_ledgers(workspace)] == [PROJECT]
