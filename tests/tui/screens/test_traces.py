"""The parameters of a run's models, and the chains of one of them."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from textual.widgets import Input

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.methods.results import Diagnostic, ImportanceTrace
from sfumato.engine.posterior.ensemble import chain_trace
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.diagnostics import ParameterDialog, figure_series
from sfumato.tui.findings.drawn_values import drawn_value_lines
from sfumato.tui.findings.fits import model_lines
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.sparkline import trend_line
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.traces import trace_figure
from sfumato.workspace.reporting.diagnostics import (
    ALL_PARAMETERS,
    EARLIER_VERSION,
    ParameterConvergence,
    convergence_cells,
    convergence_lines,
    convergence_summary,
    convergence_text,
    fit_answer,
    fit_meaning,
    fold_passed_parameters,
    missing_check_text,
    missing_check_texts,
)
from sfumato.workspace.reporting.tables import grid_value
from sfumato.workspace.store.artefacts import write_trace
from sfumato.workspace.store.workspace import Workspace

RNG = np.random.default_rng(5)
WEIGHTED = ImportanceTrace(
    ("sigma", "tau", "log posterior"), RNG.normal(size=(500, 3)), np.full(500, 0.002), np.zeros(2), np.ones(2)
)


def chains():
    """Two parameters of eight chains; of the second, one chain stays behind."""
    theta = RNG.normal(size=(300, 8, 2))
    density = -0.5 * (theta**2).sum(axis=2)
    theta[:, 3, 1] += 8
    density[:, 3] -= 40
    return chain_trace(theta, density, ("alpha", "beta"), 60)


STATISTICS = [
    ("acceptance", ALL_PARAMETERS, 0.45, "", None),
    ("r_hat", "alpha", 1.001, "at most 1.01", True),
    ("effective_sample_size", "alpha", 900.0, "at least 400", True),
    ("tail_effective_sample_size", "alpha", 850.0, "at least 400", True),
    ("r_hat", "beta", 1.4, "at most 1.01", False),
    ("effective_sample_size", "beta", 20.0, "at least 400", False),
    ("tail_effective_sample_size", "beta", 15.0, "at least 400", False),
]
WEIGHTS = [
    ("pareto_k", ALL_PARAMETERS, 0.93, "at most 0.7", False),
    ("effective_sample_size", ALL_PARAMETERS, 120.0, "", None),
]


def sampled(directory, trace, statistics):
    """Run 1 with another trace of its model, or none, and other statistics."""
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM diagnostic WHERE run_id = 1")
        connection.execute("DELETE FROM artefact WHERE run_id = 1 AND name = 'trace/0'")
        if trace is not None:
            sha256 = write_trace(workspace.tables, trace)
            connection.execute("INSERT INTO artefact VALUES (1, 'trace/0', ?)", (sha256,))
        connection.executemany(
            """INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed)
               VALUES (1, 'income', ?, ?, ?, ?, ?)""",
            statistics,
        )
    workspace.close()
    return directory


@pytest.fixture
def chained(built_data):
    return sampled(built_data, chains(), STATISTICS)


@pytest.fixture
def weighted(built_data):
    return sampled(built_data, WEIGHTED, WEIGHTS)


def table_rows(seat):
    """Return the lines of the table of parameters, and those below it."""
    lines = seat.text.splitlines()
    return lines[1 + next(i for i, line in enumerate(lines) if "model of" in line) :]


async def test_parameters_outside_a_limit_come_first_with_their_trace_and_in_words(sit, chained, size):
    async with sit(chained, tab="diagnostics", size=size) as seat:
        lines = seat.text.splitlines()
        assert "Do the models fit well enough? ✗ Not sure. income beta: R-hat over 1.01" in lines[3]
        assert "What to do: run longer" in " ".join(lines[4:6])
        assert "tail ESS under 400." in " ".join(lines[3:5]), "the answer is whole"
        assert "may be off their model." in seat.text, "and so is what to do"
        assert "2 parameters of 1 model: ✗ 1 outside a limit" in lines[3] or size[0] < 160
        rows = table_rows(seat)
        assert rows[0].split()[:5] == ["income", "beta", "1.400", "20", "15"]
        assert "✗ R-hat over 1.01 +2" in rows[0]
        assert rows[2].split()[:2] == ["income", "alpha"]
        assert "✓ within limits" in rows[2]
        assert any(block in rows[1] for block in "▁▂▃▄▅▆▇█")
        assert "R-hat 1.4000 · bulk ESS 20 · tail ESS 15" in seat.reading
        footer = " ".join(seat.footer.split())
        assert footer.startswith("enter Draws t Plot ")
        assert all(key in footer for key in ("e Export", "w Release", "? Keys", "q Close"))
        assert max(map(len, lines)) <= size[0]


async def test_f_leaves_what_is_outside_a_limit(sit, chained):
    async with sit(chained, "f", tab="diagnostics", size=(80, 24)) as seat:
        assert "outside a limit only" in seat.text
        assert "beta" in seat.text
        assert "alpha" not in seat.text
        assert "alpha" in await seat.press("f")


@pytest.mark.slow
async def test_every_plot_of_a_chain_has_its_key(sit, chained, size):
    async with sit(chained, "enter", tab="diagnostics", size=size) as seat:
        assert isinstance(seat.app.screen, ParameterDialog)
        assert isinstance(seat.app.focused, Plot)
        assert "income beta: trace · 2 of 3 · every chain" in seat.text
        assert "m Plot } Chain . Parameter" in " ".join(seat.footer.split())
        for key, words in (("m", "over expected"), ("m", "all draws"), ("m", "lag in steps"), ("m", "burn-in")):
            assert words in await seat.press(key)
            assert max(map(len, seat.text.splitlines())) <= size[0]
        assert not seat.app.screen.check_action("plot", ("weights",))
        await seat.press("q")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_chains_are_shown_alone_and_parameters_one_after_the_other(sit, chained):
    async with sit(chained, "enter", tab="diagnostics", size=(80, 24)) as seat:
        assert "only chain 4" in await seat.press("right_curly_bracket")
        assert "every chain" in await seat.press("left_curly_bracket")
        assert "every chain" in await seat.press(
            "right_curly_bracket",
            "right_curly_bracket",
            "right_curly_bracket",
            "right_curly_bracket",
            "right_curly_bracket",
        )
        assert "only 2 late" in await seat.press("act:ranks", "left_curly_bracket")
        assert "income log posterior: ranks · 3 of 3" in await seat.press("full_stop")
        assert "the whole model: accepted 45%" in seat.text
        assert "income beta" in await seat.press("comma")
        assert "only" not in await seat.press("act:autocorrelation")
        assert "} Chain" not in " ".join(seat.footer.split())


@pytest.mark.slow
async def test_the_cursor_reads_every_chain(sit, chained):
    async with sit(chained, "enter", "end", tab="diagnostics", size=(120, 40)) as seat:
        reading = seat.reading
        assert reading.split()[0] == "300"
        assert "chain 4" in reading
        assert "all 8" in reading
        assert "R-hat 1.4" in await seat.press("0")


@pytest.mark.slow
async def test_weighted_draws_have_a_density_and_weights(sit, weighted, size):
    async with sit(weighted, tab="diagnostics", size=size) as seat:
        assert "✗ Pareto k over 0.7 +1" in table_rows(seat)[0]
        assert "Pareto k 0.93 · ESS of the weights 120" in seat.reading
        text = await seat.press("enter")
        assert "income log posterior: density" in text
        assert "normal approximation" not in text
        assert "normal approximation" in await seat.press("full_stop")
        assert "weight, times the number of draws" in await seat.press("act:weights")
        assert "importance-weighted" in await seat.press("act:density")
        await seat.press("act:trace", "act:ranks", "act:autocorrelation", "right_curly_bracket")
        assert "importance-weighted" in seat.text
        assert not seat.app.screen.check_action("plot", ("trace",))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "svg"])
async def test_a_plot_is_written_to_a_file_that_says_it_is_confidential(sit, chained, tmp_path, ending):
    file = tmp_path / f"plot.{ending}"
    async with sit(chained, "enter", "e", tab="diagnostics") as seat:
        assert "run-1-income-beta-trace-confidential" in seat.app.screen.query_one(Input).value
        seat.app.screen.query_one(Input).value = str(file)
        await seat.press("enter")
    text = file.read_text("utf-8")
    if ending == "svg":
        assert "Confidential. Each line is a chain" in text
        return
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == ["series", "step", "beta", "lower", "upper"]
    assert {row[0] for row in rows[1:]} >= {"chain 4", "all 8", "burn-in"}
    assert len(rows) == 1 + 5 * 300 + 2


@pytest.mark.slow
async def test_the_parameters_are_written_to_a_file(sit, chained, tmp_path):
    async with sit(chained, "e", tab="diagnostics") as seat:
        seat.app.screen.query_one(Input).value = str(tmp_path / "list.csv")
        await seat.press("enter")
    rows = list(csv.reader((tmp_path / "list.csv").read_text("utf-8").splitlines()))
    assert rows[0][:5] == ["target", "parameter", "r_hat", "bulk", "tail"]
    assert ["income", "beta", "1.4", "20.0", "15.0"] in [row[:5] for row in rows]


@pytest.mark.slow
async def test_a_model_without_chains_says_that_there_is_nothing_to_converge(sit, built_data):
    async with sit(built_data, tab="diagnostics", size=(80, 24)) as seat:
        assert "No check fails: no model has a sampler" in seat.text.splitlines()[3]
        reading = "income: no convergence check; its posterior draws are exact and independent"
        assert reading in seat.reading
        await seat.press("enter")
        assert isinstance(seat.app.screen, ProjectScreen)
        assert seat.app.notices[-1] == reading


async def test_a_run_of_an_earlier_version_says_that_it_has_no_traces(sit, built_data):
    directory = sampled(built_data, None, STATISTICS)
    async with sit(directory, tab="diagnostics") as seat:
        assert "✗ Not sure. income beta" in seat.text.splitlines()[3]
        await seat.press("enter")
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "an earlier version fitted it; run its recipe again" in seat.app.notices[-1]


@pytest.mark.slow
async def test_a_model_of_an_earlier_version_without_chains_has_a_line(sit, built_data):
    directory = sampled(built_data, None, [])
    async with sit(directory, tab="diagnostics", size=(80, 24)) as seat:
        assert "why it is not checked" in seat.text
        assert re.search(r" income +an earlier version fitted it; run its recipe again", seat.text)
        assert "income: no trace kept; an earlier version fitted it" in seat.text


def test_an_unconverged_model_is_flagged_and_a_converged_one_is_not():
    statistics = [Diagnostic(*one, target="y") for one in STATISTICS]
    lines = convergence_lines(statistics, {"z": "it is exact"}, {})
    assert [(one.convergence.parameter, one.is_flagged) for one in lines] == [
        ("beta", True), (ALL_PARAMETERS, False), ("alpha", False), ("", False),
    ]  # fmt: skip
    assert (
        convergence_summary(lines, {"z": "it is exact"})
        == "2 parameters of 1 model: ✗ 1 outside a limit · no convergence check in z"
    )
    good = [one for one in statistics if one.parameter != "beta"]
    assert convergence_summary(convergence_lines(good, {}, {}), {}) == "1 parameter of 1 model: ✓ all within limits"
    assert "accepted 0%" in convergence_text(ParameterConvergence("y", "", acceptance=0.0)), (
        "nothing accepted is said too"
    )
    assert "✗" not in convergence_text(ParameterConvergence("y", "alpha", 1.001, 900, 850))


def test_a_line_shows_how_values_go(monkeypatch):
    monkeypatch.delenv("SFUMATO_GLYPHS", raising=False)
    assert trend_line(range(8), 8) == "▁▁▂▃▄▅▆▆"
    assert trend_line([0, 9] * 500, 1) == "▁"
    assert trend_line([1.0, 1.0], 5) == "▄▄"
    assert trend_line([0.0, np.nan, 1.0], 3) == "▁ ▆"
    assert trend_line([], 5) == trend_line([np.nan], 5) == ""
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert trend_line(range(5), 5) == "_.-~^"


def test_of_a_long_chain_every_point_is_drawn_once_the_view_is_close():
    figure = trace_figure(chains(), "trace", 0, "")
    whole, close = figure_series(figure)[0], figure_series(figure, (100.0, 130.0))[0]
    assert 50 <= whole.x.size < 100
    assert whole.x[0] == close.x[0] == 1
    assert whole.x[-1] == close.x[-1] == 300
    assert set(range(100, 131)) <= set(close.x)
    assert not set(range(100, 131)) <= set(whole.x)
    assert len(figure_series(figure, bands=True)) == len(figure_series(figure)) + 2


@pytest.mark.slow
async def test_a_closer_look_keeps_view_and_cursor(sit, chained):
    async with sit(chained, "enter", "right_curly_bracket", "home", "plus", "plus", tab="diagnostics") as seat:
        plot = seat.app.screen.query_one(Plot)
        seen, cursor = plot.x_range, plot.cursor_x
        assert seen[1] < 100
        assert cursor == 1
        assert await seat.press("act:zoom_in_up")
        assert plot.x_range == seen


async def test_columns_that_are_empty_are_left_out_and_names_are_whole(sit, built_data):
    """A model whose draws are weighted has no R-hat; its whole name stands where an empty column stood."""
    name = "coefficient of a long name"
    statistics = [("effective_sample_size", ALL_PARAMETERS, 519.0, "", None), ("pareto_k", ALL_PARAMETERS, 0.2, "", None),
                  ("mean", name, 1.0, "", None)]  # fmt: skip
    directory = sampled(built_data, None, statistics)
    async with sit(directory, tab="diagnostics", size=(80, 24)) as seat:
        assert "R-hat" not in seat.text
        assert "tail" not in seat.text
        assert name in seat.text
        assert "Do the models fit well enough? No check fails: the sampler of income" in seat.text
        assert "settled." in seat.text


async def test_models_without_a_sampler_have_what_is_known_of_their_fits(sit, built_data):
    async with sit(built_data, tab="diagnostics", size=(120, 40)) as seat:
        assert "No check fails: no model has a sampler that must settle" in seat.text
        assert "Model of income" in seat.text
        assert "Draws" not in seat.footer
        await seat.press("act:statistics")
        assert "Model of income" not in seat.text


@pytest.mark.slow
async def test_the_model_below_the_table_is_that_of_the_row_under_the_cursor(sit, built_data):
    workspace = Workspace.open(sampled(built_data, None, STATISTICS))
    with workspace.write_transaction() as connection:
        connection.execute(
            "INSERT INTO diagnostic (run_id, target, name, parameter, value, rule) VALUES (1, 'reviews', 'r_hat', 'tau', 1.0, '')"
        )
    workspace.close()
    async with sit(built_data, tab="diagnostics", size=(120, 40)) as seat:
        await seat.until(lambda: "Model of income, 2 parameters" in seat.text)
        assert "tau" not in seat.text.split("Model of income")[1]
        await seat.press("G")
        await seat.until(lambda: "Model of reviews, 1 parameter" in seat.text)
        assert "Model of income" not in seat.text


async def test_many_parameters_within_limits_are_one_line_until_all_are_asked_for(sit, built_data):
    names = [f"coefficient {n}" for n in range(12)]
    statistics = [
        *(("r_hat", name, 1.4 if name == "coefficient 7" else 1.0, "at most 1.01", None) for name in names),
        ("acceptance", ALL_PARAMETERS, 0.45, "", None),
    ]
    async with sit(sampled(built_data, chains(), statistics), tab="diagnostics", size=(120, 24)) as seat:
        rows = table_rows(seat)
        assert "coefficient 7" in rows[0]
        assert "all parameters (11)" in rows[1]
        assert "coefficient 3" not in " ".join(rows[:3])
        assert "f twice shows every parameter" in seat.text
        assert "outside a limit only" in await seat.press("f")
        assert "coefficient 3 " in await seat.press("f")
        assert "all parameters (11)" in await seat.press("f")


def test_whether_models_fit_is_one_sentence_with_what_to_do():
    statistics = [Diagnostic(*one, target="y") for one in STATISTICS]
    state, said, do = fit_answer(convergence_lines(statistics, {}, {}), statistics, {})
    assert (state, said) == ("fail", "Not sure. y beta: R-hat over 1.01, bulk ESS under 400, tail ESS under 400.")
    assert do == "run longer: the draws of y may be off their model."
    tree = [Diagnostic("leaves", "z", 1.0, target="z"), Diagnostic("leaves", "x", 5.0, target="x")]
    whys = {"z": "a tree is grown once", "x": "a tree is grown once"}
    state, said, do = fit_answer(convergence_lines(tree, whys, {}), tree, whys)
    assert (state, said) == ("warn", "Partly. The tree of z has one leaf: its values follow nothing else.")
    assert do == "smaller leaves (minbucket of z) if values should follow other variables.", "the setting has its name"
    state, said, _ = fit_answer(convergence_lines(tree[1:], whys, {}), tree[1:], whys)
    assert (state, said) == ("", "No check fails: no model has a sampler that must settle.")
    broken = [Diagnostic("newton_decrement", "z", 0.2, "below 1e-12", passed=False, target="z")]
    state, said, _ = fit_answer(convergence_lines(broken, whys, {}), broken, whys)
    assert state == "fail"
    assert "newton_decrement of z is 0.2" in said
    old = {"z": EARLIER_VERSION}
    assert fit_answer(convergence_lines([], old, {}), [], old)[0] == "warn"


def verdicts(lines):
    """Return the variable and the verdict of each line."""
    return [(one.convergence.target, grid_value(convergence_cells(one)["verdict"])) for one in lines]


def test_what_the_answer_names_comes_first_and_is_marked():
    whys = {"x": "a tree is grown once", "z": "a tree is grown once"}
    tree = [Diagnostic("leaves", "x", 5.0, target="x"), Diagnostic("leaves", "z", 1.0, target="z")]
    fine = [Diagnostic("pareto_k", ALL_PARAMETERS, 0.2, "at most 0.7", passed=True, target="y")]
    found = convergence_lines([*fine, *tree], whys, {})
    assert verdicts(found) == [("z", "! one leaf"), ("y", "✓ within limits"), ("x", "no convergence check")]
    assert missing_check_text(found[0]) == "z: ! one leaf · no convergence check; a tree is grown once"
    assert not any(line.has_failed for line in found), "a tree of one leaf is no failed check"
    broken = [Diagnostic("newton_decrement", "x", 0.2, "below 1e-12", passed=False, target="x")]
    found = convergence_lines([*fine, *tree, *broken], whys, {})
    assert verdicts(found)[:2] == [("x", "✗ rule broken"), ("z", "! one leaf")]
    assert [line.has_failed for line in found] == [True, False, False]
    worse = [Diagnostic("r_hat", name, value, target="w") for name, value in (("a", 1.2), ("b", 1.5))]
    found = fold_passed_parameters(convergence_lines([*fine, *tree, *worse], whys, {}))
    assert [line.convergence.parameter for line in found[:3]] == ["b", "a", ""], "the worst is the first"
    assert fit_answer(found, [*fine, *tree, *worse], whys)[1].startswith("Not sure. w b:")


def test_a_tree_is_told_in_its_row_and_why_it_is_not_checked_once():
    whys = {"x": "a tree is grown once", "z": "a tree is grown once"}
    values = {"x": (5.0, 20.0, 0.2), "z": (1.0, 90.0, 0.0)}
    tree = [
        Diagnostic(name, target, value, target=target)
        for target, own in values.items()
        for name, value in zip(("leaves", "smallest_leaf", "leaves_of_one_value"), own, strict=True)
    ]
    found = convergence_lines(tree, whys, {})
    told = {one.convergence.target: convergence_cells(one)["parameter"] for one in found}
    assert told == {"x": "5 leaves of 20 or more, 1 of one value", "z": "1 leaf of all 90 records"}
    assert missing_check_texts(found) == ["no convergence check for z and x: a tree is grown once"]


def test_the_model_at_the_cursor_is_told_alone_with_its_parameters_in_columns():
    tree = [Diagnostic("leaves", "x", 5.0, target="x")]
    draws = [
        Diagnostic(name, f"alpha[{n}]", 0.5, target="y") for n in range(6) for name in ("mean_of_draws", "sd_of_draws")
    ]

    def lines_of_model(target, room, facts=(("drawn from", "x"),)):
        return [one.plain.rstrip() for one in model_lines([*draws, *tree], target, facts, {}, 80, room, "more")]

    assert lines_of_model("x", 20) == ["Model of x", "drawn from     x"]
    roomy = lines_of_model("y", 20)
    assert roomy[:2] == ["Model of y, 6 parameters: mean and sd of the draws; ━ ± 2 sd, ┃ 0", "drawn from     x"]
    assert roomy[-6].split()[:3] == ["alpha[0]", "0.5", "0.5"], "the heading says what the two are"
    assert roomy[-6].count("0.5  0.5") == 1
    assert "━■━" in roomy[-6], "with room the interval of each is drawn, on one axis"
    assert lines_of_model("y", 5)[-1].count("0.5  0.5") == 2, "without it they stand beside each other"
    short = lines_of_model("y", 3)
    assert "alpha[0]" in short[1], "parameters come before facts where room is short"
    assert short[-1] == "more"
    assert lines_of_model("y", 1) == [], "no heading without anything below it"


def test_mean_and_sd_of_parameters_stand_below_each_other():
    values = {"a": (12.5, 0.25), "b": (-0.125, 3.0)}
    draws = [
        Diagnostic(name, part, value, target="y")
        for part, pair in values.items()
        for name, value in zip(("mean_of_draws", "sd_of_draws"), pair, strict=True)
    ]
    _, *rows = [one.plain for one in model_lines(draws, "y", (), {}, 40, 20, "more")]
    assert [row.split()[1:3] for row in rows] == [["12.5", "0.25"], ["-0.125", "3"]]
    assert len({row.index(number) + len(number) for row, number in zip(rows, ("12.5", "-0.125"), strict=True)}) == 1


@pytest.mark.slow
async def test_advice_says_where_steps_are_set_and_columns_are_explained(sit, chained):
    async with sit(chained, tab="diagnostics", size=(120, 40)) as seat:
        assert "may be off their model. Set in Plan (2)." in seat.text
        titles = next(line for line in seat.text.splitlines() if "model of" in line).split()
        assert {"R-hat", "bulk", "tail", "trace"} <= set(titles)
        said = " ".join(seat.text.split())
        assert "bulk: independent draws that they count as (ESS)" in said
        assert "trace: the draws in their order" in said


def test_what_leaves_and_samplers_mean_is_said_in_words():
    def leaves(n, uniform):
        values = {"leaves": n, "smallest_leaf": 20.0, "leaves_of_one_value": uniform}
        return [Diagnostic(name, "x", value, target="x") for name, value in values.items()]

    assert fit_meaning(leaves(1.0, 0.0), "x").endswith("they follow no other variable.")
    assert "parts the records into 22 groups" in fit_meaning(leaves(22.0, 2 / 22), "x")
    assert fit_meaning(leaves(22.0, 2 / 22), "x").endswith("In 2 groups all records have one value.")
    weighted = [Diagnostic(*one, target="x") for one in WEIGHTS]
    assert "count as 120 independent ones" in fit_meaning(weighted, "x")
    assert "Chains agree where R-hat" in fit_meaning([Diagnostic(*one, target="x") for one in STATISTICS], "x")
    assert fit_meaning(leaves(1.0, 0.0), "y") == ""


def test_values_drawn_stand_beside_those_of_the_data_with_what_they_go_with():
    x = np.tile([0.0, 1.0], 500)
    drawn = RNG.permutation(x)
    yes_no = Variable("y", Kind.BINARY, levels=("no", "yes"))
    values = {
        "y": VariableValues(yes_no, x, (drawn,), ("no", "yes")),
        "x": VariableValues(replace(yes_no, name="x"), x, (x,), ("no", "yes")),
    }
    told = [one.plain.rstrip() for one in drawn_value_lines(values, 100, 20)]
    assert told[2].split()[:5] == ["no", "50.0", "%", "50.0", "%"]
    assert told[-1].split()[:2] == ["x", "1.00"], "in the data y is x"
    assert float(told[-1].split()[2]) < 0.2, "in the release it is not"
    assert len(drawn_value_lines(values, 100, 4)) == 4, "what they go with needs room of its own"
    assert drawn_value_lines(values, 100, 3) == drawn_value_lines(values, 20, 20) == []


@pytest.mark.slow
async def test_the_first_line_is_selected_once_the_traces_are_read(sit, built_data):
    leaf = [("leaves", "income", 1.0, "", None)]
    async with sit(sampled(built_data, None, leaf), tab="diagnostics", size=(80, 24)) as seat:
        assert "! one leaf" in table_rows(seat)[0]
        assert "income: ! one leaf · no trace kept" in seat.reading
