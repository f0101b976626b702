from dataclasses import replace

import pytest
from prepared_workspaces import reseal

from sfumato.tui.runs.runs import GateAnswers, RunsTab, runs_table
from sfumato.workspace.jobs.queue import claim_task, record_progress
from sfumato.workspace.store.runs import RunState, find_run, list_runs, summarise_runs
from sfumato.workspace.store.workspace import Workspace

DONE, FAILED, INTERRUPTED, RUNNING = 1, 2, 3, 4
DOWN = {RUNNING: 0, INTERRUPTED: 1, FAILED: 2, DONE: 3}


def keys_to(run_id):
    return ["enter", *["j"] * DOWN[run_id]]


def named_rows(seat):
    return [line for line in seat.text.splitlines() if " Household survey  " in line]


def line_of(seat, run_id):
    return next(line for line in seat.text.splitlines()[2:] if line.strip().startswith(f"{run_id} "))


async def test_every_state_is_a_word_and_a_sign(sit, directory, size):
    async with sit(directory, "enter", size=size) as seat:
        states = {run_id: line_of(seat, run_id) for run_id in (DONE, FAILED, INTERRUPTED, RUNNING)}
        assert " done " in states[DONE]
        assert "✓" not in states[DONE], "only the gate says that a release may leave"
        assert "✗ failed" in states[FAILED]
        assert "‖ interrupted" in states[INTERRUPTED]
        assert "● running" in states[RUNNING]
        assert "✗ 1 of 3 not met" in states[DONE] or size[0] == 80


@pytest.mark.slow
async def test_a_public_key_stands_in_the_header_and_below_the_list(sit, directory):
    async with sit(directory, *keys_to(DONE), size=(90, 40)) as seat:
        assert "public key" in seat.text.splitlines()[0]
        assert "public key" in " ".join(seat.text.splitlines()[5:])
    with Workspace.open(directory) as workspace, workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET key_public = 0")
    with Workspace.open(directory) as workspace:
        reseal(workspace)
    async with sit(directory, tab="runs") as seat:
        assert "Household survey › run" in seat.text
        assert "public key" not in seat.text


@pytest.mark.slow
@pytest.mark.parametrize("rows_at_hand", [2_000, -1], ids=["in a thread", "in a process"])
async def test_a_run_that_is_not_as_it_was_sealed_says_so(sit, built_data, monkeypatch, rows_at_hand):
    monkeypatch.setattr("sfumato.tui.app.seals.ROWS_CHECKED_IN_APP", rows_at_hand)
    monkeypatch.setattr("sfumato.tui.app.app.SfumatoApp.owns_process", rows_at_hand < 0)
    async with sit(built_data, *keys_to(DONE)) as seat:
        assert "not as it was sealed" not in seat.text, "the control"
    with Workspace.open(built_data) as workspace, workspace.write_transaction() as connection:
        connection.execute("UPDATE result SET value = value + 1 WHERE run_id = ? AND draw IS NULL", (DONE,))
    async with sit(built_data, tab="runs") as seat:
        assert "not as it was sealed" in seat.text.splitlines()[0]


@pytest.mark.slow
async def test_a_running_run_shows_tasks_and_what_is_computed(sit, directory):
    async with sit(directory, "enter", size=(240, 60)) as seat:
        line = line_of(seat, RUNNING)
        assert "1/20" in line
        assert "5 %" in line
        assert "draw 400/2,000 emcee" in line
        assert "~" in line


@pytest.mark.slow
async def test_a_failed_run_says_why(sit, directory):
    async with sit(directory, "enter", size=(260, 60)) as seat:
        assert "the worst R-hat is 1.2" in line_of(seat, FAILED)
        await seat.press("j", "j", "enter", "act:verdicts")
        assert "No verdicts yet: run 2 is not done (✗ failed)" in seat.text
        assert "the worst R-hat is 1.2, must be at most 1.01" in seat.text


def set_sql(directory, statement):
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        connection.execute(statement)
    workspace.close()


async def paints(seat, monkeypatch):
    """The updates that are painted from now on."""
    await seat.pilot.pause(0.2)
    painted, show = [], seat.app._display

    def display(screen, picture):
        painted.extend([] if picture is None else [picture])
        show(screen, picture)

    monkeypatch.setattr(seat.app, "_display", display)
    return painted


@pytest.mark.slow
async def test_a_screen_on_which_nothing_changes_is_not_repainted(sit, drawing, directory, monkeypatch):
    set_sql(directory, "UPDATE run SET state = 'interrupted', finished = created WHERE state = 'running'")
    async with sit(directory, "enter", size=(200, 60)) as seat:
        painted = await paints(seat, monkeypatch)
        for _ in range(3):
            seat.app.refresh_page()
            await seat.press("shift")
        assert painted == []


@pytest.mark.slow
async def test_progress_is_followed_in_its_own_line(sit, drawing, directory, monkeypatch):
    async with sit(directory, "enter", size=(240, 60)) as seat:
        for done in (800, 900):  # what the first paint after a layout covers is Textual's affair
            painted = await paints(seat, monkeypatch)
            set_sql(directory, f"UPDATE task SET done = {done} WHERE state = 'running'")
            seat.app._poll_workspace()
            await seat.press("shift")
        assert "draw 900/2,000 emcee" in line_of(seat, RUNNING)
        listed = seat.app.screen.pane.list_width
        assert {y for picture in painted for y, start, _ in picture.spans if start < listed} == {4}


async def test_columns_stand_still_while_the_texts_of_a_running_run_change(directory):
    with Workspace.open(directory) as workspace:
        lines = summarise_runs(workspace, 1)
    texts = ("5/min", "4.9/min", "12.5/min")
    widths = set()
    for rate in texts:
        table = runs_table(GateAnswers({}, None, {}), is_live=True)
        columns = [replace(one, cell=lambda _, rate=rate: rate) if one.name == "rate" else one for one in table.columns]
        found = replace(table, columns=columns).columns_in(lines, 160)
        widths.add(tuple((one.name, one.width) for one in found))
    assert len(widths) == 1


@pytest.mark.slow
async def test_a_poll_without_a_change_reads_nothing(sit, directory, monkeypatch):
    async with sit(directory, "enter") as seat:
        read = []
        monkeypatch.setattr(RunsTab, "show_runs", lambda *_: read.append(1))
        for _ in range(5):
            seat.app._poll_workspace()
            await seat.press("shift")
        assert read == []


@pytest.mark.slow
async def test_enter_chooses_the_run_of_the_other_tabs(sit, directory):
    async with sit(directory, *keys_to(DONE), "enter") as seat:
        assert "[Verdicts]" in seat.text
        assert "run 1  public key  ✓ done" in seat.text.splitlines()[0]
        await seat.press("act:diagnostics", "act:statistics")
        assert "posterior_mean" in seat.text


@pytest.mark.slow
async def test_keys_that_cannot_help_are_dim(sit, directory):
    async with sit(directory, "enter") as seat:
        pane = seat.app.screen.query_one(RunsTab)

        def can():
            return {action for action in ("again", "interrupt", "resume") if pane.check_action(action, ())}

        assert can() == {"again", "interrupt"}
        await seat.press("j")
        assert can() == {"again", "resume"}
        await seat.press("j")
        assert can() == {"again", "resume"}
        await seat.press("j")
        assert can() == {"again"}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("n",), ("q",), ("right", "enter")])
async def test_interrupting_asks_and_enter_agrees_as_in_every_question(sit, directory, keys):
    async with sit(directory, *keys_to(RUNNING), "i") as seat:
        assert "Interrupt run 4?" in seat.text
        assert seat.app.focused.id == "yes"
        await seat.press(*keys)
        assert "Interrupt run 4?" not in seat.text
        with Workspace.open(directory, read_only=True) as reader:
            assert find_run(reader, RUNNING).state is RunState.RUNNING


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("y",), ("enter",)])
async def test_interrupting_after_a_yes(sit, directory, keys):
    async with sit(directory, *keys_to(RUNNING), "i", *keys) as seat:
        await seat.press("shift")
        with Workspace.open(directory, read_only=True) as reader:
            assert find_run(reader, RUNNING).state is RunState.INTERRUPTED
        assert "‖ interrupted" in line_of(seat, RUNNING)
        assert seat.app.notices == ["Run 4 is interrupted"]


@pytest.mark.slow
@pytest.mark.parametrize("run_id", [INTERRUPTED, FAILED])
async def test_resuming_queues_the_run(sit, directory, no_worker, run_id):
    async with sit(directory, *keys_to(run_id), "i") as seat:
        with Workspace.open(directory, read_only=True) as reader:
            assert find_run(reader, run_id).state is RunState.QUEUED
        assert f"Run {run_id} resumed" in seat.app.notices
        assert no_worker == []  # the worker that lives comes to it


@pytest.mark.slow
async def test_running_again_enters_the_same_recipe_and_data(sit, directory, no_worker):
    async with sit(directory, *keys_to(DONE), "R") as seat:
        assert "Run the recipe of run 1 again?" in seat.text
        await seat.press("n")
        assert no_worker == []
        await seat.press("R", "y")
        with Workspace.open(directory, read_only=True) as reader:
            newest, old = list_runs(reader)[0], find_run(reader, DONE)
        assert (newest.id, newest.recipe_sha256, newest.dataset_id) == (5, old.recipe_sha256, old.dataset_id)
        assert newest.tasks_total == old.tasks_total
        assert seat.app.screen.run_id == 5
        assert "○ queued" in line_of(seat, 5)


@pytest.mark.slow
async def test_a_run_whose_worker_died_says_so_and_gets_another(sit, directory, no_worker):
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE worker SET heartbeat = 0")
        connection.execute("UPDATE run SET created = 0")
    workspace.close()
    async with sit(directory, *keys_to(RUNNING)) as seat:
        assert "! no worker" in line_of(seat, RUNNING)
        await seat.press("i")
        assert [asked[0] for asked in no_worker] == [directory]
        with Workspace.open(directory, read_only=True) as reader:
            assert find_run(reader, RUNNING).state is RunState.RUNNING


@pytest.mark.slow
async def test_the_cursor_stays_on_its_run_when_another_comes(sit, directory, no_worker):
    async with sit(directory, *keys_to(FAILED)) as seat:
        workspace = Workspace.open(directory)
        held = claim_task(workspace, "w")
        record_progress(workspace, held, 1, 2, "x")
        from sfumato.workspace.jobs.runs import reenter_run

        reenter_run(workspace, DONE)
        workspace.close()
        seat.app._poll_workspace()
        await seat.press("shift")
        assert seat.app.screen.query_one(RunsTab).current_row.run.id == FAILED


@pytest.mark.slow
async def test_a_run_is_deleted_after_a_question_that_enter_does_not_answer(sit, directory):
    async with sit(directory, *keys_to(DONE)) as seat:
        await seat.press("X", "enter", "enter")
        assert seat.app.notices[-1] == "Enter is no answer here; press y to delete, n for no"
        await seat.press("n")
        assert line_of(seat, DONE)
        await seat.press("X", "y")
        assert "Run 1 is deleted" in seat.app.notices[-1]
    with Workspace.open(directory, read_only=True) as reader:
        assert DONE not in [run.id for run in list_runs(reader)]


@pytest.mark.slow
async def test_a_run_that_goes_on_cannot_be_deleted(sit, directory):
    async with sit(directory, *keys_to(RUNNING), "X") as seat:
        assert isinstance(seat.app.screen.query_one(RunsTab), RunsTab)
        assert line_of(seat, RUNNING)
        await seat.press("question_mark")
        assert "Delete" not in seat.text


async def test_a_running_run_shows_its_rate(sit, directory):
    async with sit(directory, "enter", size=(240, 60)) as seat:
        assert "/s" in line_of(seat, RUNNING) or "/min" in line_of(seat, RUNNING) or "/h" in line_of(seat, RUNNING)
        assert "/min" not in line_of(seat, DONE)


@pytest.mark.slow
async def test_the_run_under_the_cursor_is_shown_at_a_glance(sit, directory):
    async with sit(directory, *keys_to(DONE), size=(80, 24)) as seat:
        said = ("not met", "People found on average", f"{DONE}: ")
        await seat.until(lambda: all(words in seat.text for words in said))
        await seat.press("k")
        await seat.until(lambda: f"{FAILED}: " in seat.text and "What differs from run 1" in seat.text)


async def test_a_low_terminal_keeps_its_lines_for_the_runs(sit, directory):
    async with sit(directory, *keys_to(DONE), size=(80, 12)) as seat:
        assert "People found on average" not in seat.text
        assert f"{DONE}: " not in seat.text


@pytest.mark.slow
async def test_marked_runs_that_have_ended_are_deleted_together_shown_or_not(sit, directory, no_worker):
    async with sit(directory, "enter", "asterisk", "slash", *"running", "enter") as seat:
        assert len([line for line in seat.text.splitlines() if line.startswith("*")]) == 1
        await seat.press("X")
        assert "Delete 3 runs: 3, 2, 1?" in seat.text
        assert "1 of the marked runs have not ended" in seat.text
        await seat.press("n", "X", "y")
        assert "3 runs are deleted" in seat.app.notices[-1]
    with Workspace.open(directory, read_only=True) as workspace:
        assert [row[0] for row in workspace.connection.execute("SELECT id FROM run")] == [4]


@pytest.mark.slow
async def test_words_sift_the_runs_by_what_is_known_of_them(sit, directory, no_worker):
    async with sit(directory, "enter", "slash", *"state:failed", "enter", size=(90, 40)) as seat:
        await seat.until(lambda: [line.split()[0] for line in named_rows(seat)] == ["2"])
        assert "state:failed" in seat.text
        await seat.press("slash", "ctrl+u", "enter")
        assert "state:failed" not in seat.text
        await seat.until(lambda: len(named_rows(seat)) == 4)


@pytest.mark.slow
async def test_below_a_short_list_stand_meters_of_the_run_and_no_wall_of_its_plan(sit, directory):
    """The answer comes first, then each number against its limit, then what mends it; the place Plan has the plan."""
    async with sit(directory, *keys_to(DONE), size=(160, 40)) as seat:
        said = seat.app.screen.query_one("#glance").content.plain
        assert said.index("The gate") < said.index("1 of 3 not met") < said.index("What to change")
        failed = next(line for line in said.splitlines() if line.startswith("✗ People found on average"))
        assert "├" in failed and "┤" in failed and "of raw data    at most" in failed  # noqa: PT018
        assert any("Time" in line and " s" in line for line in said.splitlines())
        assert "Synthesis       " in said
        for words in ("predictors", "sensitive: "):
            assert words not in said, "the place Plan has it"
        await seat.press("k")
        assert "Limits          " in seat.app.screen.query_one("#glance").content.plain, "this run has no verdicts"


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(120, 24), (120, 16), (80, 24), (160, 50)])
async def test_the_run_in_words_takes_no_row_of_the_list(sit, directory, shape):
    async with sit(directory, *keys_to(DONE), size=shape) as seat:
        runs, glance = seat.app.screen.query_one(RunsTab), seat.app.screen.query_one("#glance")
        least = 0 if runs.is_split else runs.size.height // 2
        if glance.display:
            assert len(glance.content.plain.splitlines()) <= max(runs.size.height - 5, least)
        if runs.is_split:
            assert runs.grid.max_scroll_y == 0
