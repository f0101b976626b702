import threading

import pytest
from textual.widgets import Input

from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.parts.form import Form
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = "\n".join(f"{20 + i % 30},{(i * 37) % 91 + 0.5}" for i in range(60))
    (tmp_path / "people.csv").write_text(f"age,cost\n{rows}\n")
    return tmp_path / "people.csv"


async def type_in(seat, text, field=0):
    """Put a text that is too long to type key by key."""
    seat.app.screen.query(Input)[field].value = str(text)
    await seat.press("shift")


async def test_an_empty_workspace_names_the_next_keys(sit, empty_workspace, size):
    async with sit(empty_workspace, size=size) as seat:
        for words in (
            "No projects yet",
            "N Open the demo",
            "I Import a file",
            "ctrl+p Check a file that somebody anonymised",
            "n Run a recipe",
            "ctrl+p Open or create",
        ):
            assert words in " ".join(seat.text.split())
        assert " ".join(seat.footer.split()) == "n New run I Import ? Keys q Quit"


async def test_enter_on_an_empty_workspace_does_nothing(sit, empty_workspace):
    async with sit(empty_workspace, "enter", "j", "G") as seat:
        assert "No projects yet" in seat.text


async def test_projects_are_listed_with_their_newest_run(sit, directory, size):
    async with sit(directory, size=size) as seat:
        lines = [line for line in seat.text.splitlines() if line.startswith(" Household survey  ")]
        assert len(lines) == 1
        assert "● running" in lines[0]
        assert "Second project" in seat.text


async def test_below_the_projects_stand_data_runs_and_the_next_keys(sit, directory, size):
    async with sit(directory, size=size) as seat:
        await seat.until(lambda: "runs           4  Household survey" in seat.text)
        said = seat.app.screen.query_one("#project-facts").content.plain
        assert "2  Household survey · ✗ failed" in said
        assert "1  Household survey · done" in said
        assert "✓" not in said, "only the gate says that a release may leave"
        assert "space marks it" in " ".join(said.split())
        assert "Import a file" in said
        await seat.press("j")
        await seat.until(lambda: seat.app.screen.query_one("#project-facts").content.plain.startswith("Second project"))


async def test_a_low_terminal_keeps_its_lines_for_the_projects(sit, directory):
    async with sit(directory, size=(80, 9)) as seat:
        assert not seat.app.screen.query_one("#project-facts").display
        assert "Second project" in seat.text


async def test_a_wide_terminal_shows_progress_and_time(sit, directory):
    async with sit(directory, size=(120, 40)) as seat:
        assert "newest run" in seat.text
        assert "1/2" in seat.text
        assert "%" in seat.text


@pytest.mark.slow
async def test_enter_opens_the_project_and_q_comes_back(sit, directory):
    async with sit(directory, "enter") as seat:
        assert "[3 Runs]" in seat.text
        assert "Household survey" in seat.text.splitlines()[0]
        await seat.press("q")
        assert "Second project" in seat.text


@pytest.mark.slow
async def test_a_project_without_runs_says_how_to_start_one(sit, directory):
    async with sit(directory, "j", "enter") as seat:
        assert "No runs yet: 2 opens the plan, and R there runs it; n runs a recipe" in seat.text
        for digit in "4444":
            await seat.press(digit)
            assert "2   the plan of this project; R there runs it" in seat.text
            assert " ".join(seat.footer.split()) == "enter To the page → Place to the right ? Keys q Close"
        await seat.press("2")
        assert "2   the plan" not in seat.text


async def test_q_quits_from_the_projects(sit, directory):
    async with sit(directory, "q", "y") as seat:
        assert seat.app._exit


@pytest.mark.slow
async def test_a_digit_opens_the_project_under_the_cursor_at_that_tab(sit, directory):
    async with sit(directory, "2") as seat:
        assert "[2 Plan]" in seat.text
        assert "Household survey" in seat.text.splitlines()[0]


async def test_a_project_made_elsewhere_appears(sit, empty_workspace):
    from sfumato.workspace.store.workspace import Workspace

    async with sit(empty_workspace) as seat:
        workspace = Workspace.open(empty_workspace)
        with workspace.write_transaction():
            workspace.ensure_project("From the command line")
        workspace.close()
        seat.app._poll_workspace()
        await seat.press("shift")
        assert "From the command line" in seat.text


@pytest.mark.slow
async def test_d_opens_the_demo(sit, empty_workspace, no_worker, size):
    async with sit(empty_workspace, "N", size=size) as seat:
        assert "[3 Runs]" in seat.text
        assert "RAND Health Insurance Experiment" in seat.text
        assert [directory for directory, _ in no_worker] == [empty_workspace]
    with Workspace.open(empty_workspace, read_only=True) as reader:
        assert find_run(reader, 1).recipe.seed == 1


@pytest.mark.slow
async def test_i_imports_a_file_and_shows_its_variables(sit, empty_workspace, people, size):
    async with sit(empty_workspace, "I", size=size) as seat:
        assert "name a file" in seat.text
        await type_in(seat, str(people)[:-5])
        assert "no such file" in seat.text
        await seat.press("end", "right")
        assert seat.app.screen.query(Input)[0].value == str(people)
        await type_in(seat, "Survey of people", 1)
        await seat.press("enter")
        await seat.until(lambda: "none unclear" in seat.text)
        await seat.press("enter")
        await seat.until(lambda: len(seat.app.screen_stack) == 3)
        assert any("60 records in project" in notice for notice in seat.app.notices)
        assert "Role of age" in seat.text
        await seat.press("escape")
        assert "[1 Data]" in seat.text
        assert "people.csv: 60 records" in seat.text
        assert "Survey of people" in seat.text
        await seat.press("2")
        assert "a adds the first step; there is nothing to run yet" in seat.text
        assert "✓" not in seat.text.splitlines()[3], "a plan without steps is not praised"


@pytest.mark.slow
async def test_a_file_that_is_no_table_is_refused_in_words(sit, empty_workspace, tmp_path, people):
    (tmp_path / "bad.csv").write_bytes(b"\0\1")
    async with sit(empty_workspace, "I") as seat:
        await type_in(seat, tmp_path / "bad.csv")
        await seat.press("enter")
        assert (
            "these files can be read: CSV, TSV, Parquet, Arrow, Excel (.xlsx), SPSS, Stata and SAS"
            in seat.app.notices[-1]
        )
        assert "No projects yet" in seat.text


@pytest.mark.slow
async def test_another_workspace_is_opened(sit, empty_workspace, directory, people, size):
    async with sit(empty_workspace, "act:workspace", size=size) as seat:
        await type_in(seat, people.parent)
        assert "it has other things in it" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        await type_in(seat, directory)
        await seat.press("enter")
        assert seat.app.directory == directory
        assert "Household survey" in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_a_new_workspace_is_made(sit, directory, people):
    async with sit(directory, "act:workspace") as seat:
        await type_in(seat, people.parent / "new")
        await seat.press("enter")
        assert "No projects yet" in seat.text
    Workspace.open(people.parent / "new").close()


@pytest.mark.slow
async def test_a_form_of_the_first_screen_is_left_with_escape(sit, empty_workspace):
    async with sit(empty_workspace, "I", "escape", "act:workspace", "escape") as seat:
        assert "No projects yet" in seat.text


@pytest.mark.slow
async def test_words_sift_the_projects_and_enter_opens_the_one_that_is_shown(sit, directory):
    with Workspace.open(directory) as workspace, workspace.write_transaction():
        workspace.ensure_project("Zebra crossings")
    async with sit(directory, "slash", *"zebra", "enter") as seat:
        assert "Household" not in seat.text
        await seat.press("enter")
        assert "Zebra crossings" in seat.text.splitlines()[0]


@pytest.mark.slow
async def test_marked_projects_are_named_before_they_are_deleted(sit, empty_workspace):
    with Workspace.open(empty_workspace) as workspace, workspace.write_transaction():
        for name in ("one", "two", "three"):
            workspace.ensure_project(name)
    async with sit(empty_workspace, "g", "space", "j", "space", "X") as seat:
        assert "Delete 2 projects:" in seat.text
        await seat.press("y")
        assert "2 projects are deleted" in seat.app.notices[-1]
    with Workspace.open(empty_workspace, read_only=True) as workspace:
        assert workspace.connection.execute("SELECT count(*) FROM project").fetchone()[0] == 1


@pytest.mark.slow
async def test_details_asked_for_while_the_list_is_read_do_not_discard_it(sit, empty_workspace):
    """Another workspace once had the projects of the one before: the facts of a row were asked for meanwhile."""
    async with sit(empty_workspace) as seat:
        screen, come, begun = seat.app.screen, [], threading.Event()

        def take_list(answer):
            come.append(answer)

        def take_facts(answer):
            come.append(answer)

        def read_late(_):
            assert begun.wait(60)
            return "list"

        screen.read(lambda _: begun.wait(60) and "old list", take_list)
        screen.read(read_late, take_list)
        screen.read(lambda _: "facts", take_facts)
        begun.set()
        await seat.until(lambda: len(come) == 2)
        assert sorted(come) == ["facts", "list"]
