import tomllib

import pytest

from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import replace_variable
from sfumato.workspace.store.workspace import Workspace

ROLES = {
    "town": ("categorical", "quasi_identifier"),
    "age": ("count", "quasi_identifier"),
    "smoker": ("binary", "sensitive"),
}


@pytest.fixture
def imported_workspace(empty_workspace, tmp_path):
    """A project of 90 people whose variables have roles."""
    from sfumato.workspace.service.importing import import_file

    rows = "\n".join(f"{'north' if i % 3 else 'south'},{20 + i % 37},{'no' if i % 4 else 'yes'}" for i in range(90))
    (tmp_path / "people.csv").write_text(f"town,age,smoker\n{rows}\n")
    import_file(empty_workspace, str(tmp_path / "people.csv"), "")
    save_state(empty_workspace, AppState(project=1, tab="data"))
    return empty_workspace


@pytest.fixture
def with_roles(imported_workspace):
    """The same once everybody knows who may know what."""
    with Workspace.open(imported_workspace) as workspace:
        draft = find_draft(workspace, 1)
        for name, (kind, role) in ROLES.items():
            draft = draft.with_text(replace_variable(draft.toml, name, {"kind": kind, "role": role}))
        save_draft(workspace, draft)
    return imported_workspace


def plan_of(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return find_draft(reader, 1).toml


@pytest.mark.slow
async def test_two_keys_draft_a_synthesis_and_one_takes_it_back(sit, with_roles, size):
    before = plan_of(with_roles)
    async with sit(with_roles, "D", size=size) as seat:
        assert "synthesised: smoker" in seat.text
        assert "unchanged, coarser or synthesised, as the limits require: town, age" in " ".join(seat.text.split())
        assert "It takes a few seconds and about 0." in seat.text
        await seat.press("enter")
        assert "R runs this plan" in seat.text
        drafted = tomllib.loads(plan_of(with_roles))
        assert {step["target"] for step in drafted["synthesis"]} == {"smoker", "town"}
        assert drafted["release"]["recode"] == {"age": 10}
        assert "audience" not in drafted["release"], "the public is the default"
        said = "".join(seat.app.notices)
        assert "Not measured: membership" in said
        assert "age is shown in steps of 10: 90 of 90 people would be in classes of fewer than 11 without." in said
        await seat.press("u")
    assert plan_of(with_roles) == before


@pytest.mark.slow
async def test_the_form_shows_only_what_the_kind_of_plan_asks(sit, with_roles):
    def shown(seat):
        labels = seat.app.screen.query("Label")
        return [str(one.render()) for one in labels if one.display and str(one.id).startswith("label-")]

    async with sit(with_roles, "D") as seat:
        assert shown(seat) == ["goal", "synthesise", "drawn", "m", "audience"]
        await seat.press("right")
        assert shown(seat) == ["goal", "k", "l", "t", "audience"]
        await seat.press("right")
        assert shown(seat) == ["goal", "audience"]


@pytest.mark.slow
async def test_a_draft_for_an_enclave_changes_no_kept_column_and_is_proposed_again(sit, with_roles, size):
    async with sit(with_roles, *("D", *["down"] * 4, "right", "right"), size=size) as seat:
        assert "unchanged: town, age" in seat.text
        await seat.press("enter")
        drafted = tomllib.loads(plan_of(with_roles))
        assert drafted["release"]["audience"] == "enclave"
        assert "recode" not in drafted["release"]
        await seat.press("1", "D")
        assert "[enclave]" in seat.text, "the plan's own audience is chosen"


@pytest.mark.slow
async def test_an_anonymisation_of_k_and_l_takes_few_keys(sit, with_roles, size):
    async with sit(with_roles, *("D", "right", "down", "down", "2", "enter"), size=size):
        pass
    (step,) = tomllib.loads(plan_of(with_roles))["anonymisation"]
    assert (step["k"], step["l"]) == (11, 2.0), "what the public requires"
    assert "m" not in tomllib.loads(plan_of(with_roles))["release"]


@pytest.mark.slow
async def test_without_roles_it_asks_for_them_and_changes_nothing(sit, imported_workspace, size):
    before = plan_of(imported_workspace)
    async with sit(imported_workspace, "D", "enter", size=size) as seat:
        assert "No variable has a role yet" in " ".join(seat.text.split())
        await seat.press("escape")
    assert plan_of(imported_workspace) == before


@pytest.mark.slow
async def test_what_no_draft_can_be_asked_is_said_while_it_is_typed(sit, with_roles, size):
    async with sit(with_roles, *("D", "right", "down", "backspace", "1"), size=size) as seat:
        assert "must be a whole number of at least 2" in seat.text
