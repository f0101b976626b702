import pytest
from textual.widgets import Input

from sfumato.engine.methods.results import Diagnostic
from sfumato.tui.findings.diagnostics import group_by_statistic, rule_limit, statistic_series
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def judged(directory):
    """Two parameters with a convergence statistic each, one of which breaks its rule, and their sample sizes."""
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        for name, parameter, value, rule, passed in (
            ("r_hat", "tau", 1.0, "at most 1.01", True),
            ("r_hat", "beta", 1.2, "at most 1.01", False),
            ("effective_sample_size", "tau", 812.0, "at least 400", True),
            ("effective_sample_size", "beta", 500.0, "at least 400", True),
        ):
            connection.execute(
                "INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed) VALUES (1, 'visits', ?, ?, ?, ?, ?)",
                (name, parameter, value, rule, passed),
            )
    workspace.close()
    return directory


@pytest.mark.slow
async def test_t_draws_a_statistic_and_m_the_next(sit, judged, size):
    async with sit(judged, "t", tab="diagnostics", size=size) as seat:
        assert isinstance(seat.app.focused, Plot)
        for words in ("r_hat", "rule broken", "at most 1.01", "left and right move the cursor"):
            assert words in seat.text
        room = size[0] > 80  # in 80 cells the keys that do more come first
        for keys in ("t Plot", "m Statistic", *(["f Failed only"] if room else [])):
            assert keys in " ".join(seat.footer.split())
        text = await seat.press("home")
        assert "visits beta · r_hat 1.2 · at most 1.01 · ✗ FAILED" in text
        assert "visits tau · r_hat 1 · at most 1.01 · ✓ passed" in await seat.press("right")
        assert "at most 0.5" in await seat.press("m")
        assert "at least 400" in await seat.press("m", "m")
        assert "r_hat" in await seat.press("act:previous_picture", "act:previous_picture", "act:previous_picture")
        assert max(map(len, seat.text.splitlines())) <= size[0]
        await seat.press("t")
        assert isinstance(seat.app.focused, Grid)


@pytest.mark.slow
async def test_f_shows_those_that_break_their_rule(sit, judged, size):
    async with sit(judged, "act:statistics", "f", tab="diagnostics", size=size) as seat:
        assert "failed only" in seat.text
        assert "✗ FAILED" in seat.text
        assert "passed" not in seat.text
        assert "posterior_mean" not in seat.text
        assert "posterior_mean" in await seat.press("f")


@pytest.mark.slow
async def test_without_a_broken_rule_the_filter_says_so(sit, directory):
    async with sit(directory, "act:statistics", "f", tab="diagnostics") as seat:
        assert "No statistic breaks its rule. Press f to see all." in seat.text
        await seat.press("t", "m", "act:previous_picture")
        assert "nothing to draw" in seat.text


@pytest.mark.slow
async def test_the_drawing_is_written_to_a_file(sit, judged, tmp_path):
    async with sit(judged, "t", "e", tab="diagnostics") as seat:
        seat.app.screen.query_one(Input).value = str(tmp_path / "plot.svg")
        await seat.press("enter")
    assert "broken by visits beta" in (tmp_path / "plot.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("rule", "limit"), [("at most 1.01", 1.01), ("at least 1,000", 1000.0), ("at least 4e+2", 400.0), ("", None)]
)
def test_the_limit_is_read_from_the_rule(rule, limit):
    assert rule_limit(rule) == limit


def test_statistics_with_a_rule_come_first_and_sizes_are_bars():
    lines = [
        Diagnostic("posterior_mean", "b", 1.0, target="a"),
        Diagnostic("effective_sample_size", "b", None, "at least 400", False, "a"),
    ]
    found = group_by_statistic(lines)
    assert list(found) == ["effective_sample_size", "posterior_mean"]
    assert [one.marker for one in statistic_series(found["effective_sample_size"])] == ["bars", "points", "line"]
    assert [one.marker for one in statistic_series(found["posterior_mean"])] == ["points"]
    assert statistic_series([]) == []


@pytest.mark.slow
async def test_statistics_of_every_model(sit, directory, size):
    async with sit(directory, "act:statistics", size=size, tab="diagnostics") as seat:
        assert "statistics of 1 model; ✓ every rule met (6)" in seat.text
        assert "posterior_mean" in seat.text
        assert "income" in seat.text


@pytest.mark.slow
async def test_broken_rules_come_first(sit, directory):
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        for name, value, passed in (("r_hat", 1.0, True), ("r_hat", 1.2, False)):
            connection.execute(
                "INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed) VALUES (1, 'visits', ?, 'tau', ?, 'at most 1.01', ?)",
                (name, value, passed),
            )
    workspace.close()
    async with sit(directory, "act:statistics", tab="diagnostics") as seat:
        lines = seat.text.splitlines()
        assert "of 2 models; ✗ 1 of 8 rules broken" in lines[3]
        assert "✗ FAILED" in lines[5]
        assert "1.2" in lines[5]
        assert "at most 1.01" in lines[5]
        assert "✓ passed" in seat.text


@pytest.mark.slow
async def test_a_run_that_has_fitted_nothing_says_so(sit, directory):
    async with sit(directory, "enter", "j", "enter", "act:diagnostics") as seat:
        assert "No model has been fitted in this run yet." in seat.text
