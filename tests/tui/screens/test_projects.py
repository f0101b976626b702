async def test_an_empty_workspace_names_the_next_key_and_commands(sit, empty, size):
    async with sit(empty, size=size) as seat:
        assert "No project yet. Press n to run a recipe" in seat.text
        assert "sfumato demo" in seat.text
        assert "n New run" in seat.footer


async def test_enter_on_an_empty_workspace_does_nothing(sit, empty):
    async with sit(empty, "enter", "j", "G") as seat:
        assert "No project yet" in seat.text


async def test_projects_are_listed_with_their_newest_run(sit, directory, size):
    async with sit(directory, size=size) as seat:
        lines = [line for line in seat.text.splitlines() if "Household survey" in line]
        assert len(lines) == 1
        assert "● running" in lines[0]
        assert "Second project" in seat.text


async def test_a_wide_terminal_shows_progress_and_time(sit, directory):
    async with sit(directory, size=(120, 40)) as seat:
        assert "newest run" in seat.text
        assert "1/2" in seat.text
        assert "%" in seat.text


async def test_enter_opens_the_project_and_q_comes_back(sit, directory):
    async with sit(directory, "enter") as seat:
        assert "[1 Runs]" in seat.text
        assert "Household survey" in seat.text.splitlines()[0]
        await seat.press("q")
        assert "Second project" in seat.text


async def test_a_project_without_runs_says_how_to_start_one(sit, directory):
    async with sit(directory, "j", "enter") as seat:
        assert "No run yet. Press n to run a recipe" in seat.text
        for digit in "2345":
            await seat.press(digit)
        assert "[5 Diagnostics]" in seat.text


async def test_q_quits_from_the_projects(sit, directory):
    async with sit(directory, "q") as seat:
        assert seat.app._exit


async def test_a_project_made_elsewhere_appears(sit, empty):
    from workspace.workspace import Workspace

    async with sit(empty) as seat:
        workspace = Workspace.open(empty)
        with workspace.writing():
            workspace.ensure_project("From the command line")
        workspace.close()
        seat.app._poll()
        await seat.press("shift")
        assert "From the command line" in seat.text
