from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.methods.results import ChainTrace, Diagnostic, ImportanceTrace, NoTrace
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.jobs.queue import requeue_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plots.figure import describe_figure
from sfumato.workspace.plots.svg import figure_svg
from sfumato.workspace.plots.traces import plot_names, plot_part_names, trace_figure
from sfumato.workspace.release.report import report_page
from sfumato.workspace.reporting.diagnostics import ALL_PARAMETERS, convergence_by_parameter, sort_worst_first
from sfumato.workspace.reporting.page import WORST_PARAMETERS
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import TRACE_KIND_KEY, read_trace, read_traces, trace_name, write_trace
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_diagnostics

N = 200
RECIPE = {
    "variables": {
        "age": {"kind": "continuous", "role": "quasi_identifier"},
        "days": {"kind": "count", "role": "sensitive", "bounds": [0, 20]},
        "stays": {"kind": "count", "role": "sensitive", "bounds": [0, 20]},
        "income": {"kind": "continuous", "role": "sensitive"},
        "region": {"kind": "categorical", "role": "sensitive"},
    },
    "release": {"m": 2, "seed": 3},
    "synthesis": [
        {
            "target": "days",
            "method": "zero_inflated_truncated_poisson",
            "predictors": ["age"],
            "sampler": "emcee",
            "most_steps": 120,
            "accept_unconverged": True,
        },
        {"target": "stays", "method": "zero_inflated_truncated_poisson", "predictors": ["age"]},
        {"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["age"]},
        {"target": "region", "method": "cart", "predictors": ["age"]},
    ],
    "measure": [],
}


def entered(directory: Path, **sections: object) -> Workspace:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 4, N) / 2.0
    counts = [np.minimum(rng.poisson(np.exp(1 + 0.5 * age)), 20) * (rng.random(N) < 0.7) for _ in range(2)]
    region = rng.choice(["n", "s"], N)
    frame = pd.DataFrame(
        {
            "age": age,
            "days": counts[0],
            "stays": counts[1],
            "income": np.exp(age + rng.normal(0, 0.3, N)),
            "region": region,
        }
    )
    recipe = Recipe.from_table({**RECIPE, **sections})
    workspace = Workspace.create(directory, PUBLIC)
    enter_recipe(workspace, recipe, frame)
    return workspace


@pytest.fixture(scope="module")
def workspace_with_runs(tmp_path_factory):
    workspace = entered(tmp_path_factory.mktemp("traced") / "workspace")
    run_worker(workspace.directory, idle=0)
    yield workspace
    workspace.close()


def hashes(workspace):
    return dict(workspace.connection.execute("SELECT name, sha256 FROM artefact").fetchall())


@pytest.mark.slow
def test_every_model_has_a_trace_or_says_why_not(workspace_with_runs):
    found = read_traces(workspace_with_runs, 1)
    assert [model.target for model in found] == ["days", "stays", "income", "region"]
    chain, importance, exact, tree = [model.trace for model in found]
    assert isinstance(chain, ChainTrace)
    assert chain.parameters == (
        "alpha[intercept]",
        "alpha[age]",
        "beta[intercept]",
        "beta[age]",
        "log_tau",
        "log posterior",
    )
    assert isinstance(importance, ImportanceTrace)
    assert exact == NoTrace("its posterior draws are exact and independent")
    assert tree == NoTrace("a tree is grown once, not sampled")


@pytest.mark.slow
def test_same_bytes_from_two_processes_and_after_an_interruption(workspace_with_runs, tmp_path):
    other = entered(tmp_path / "other")
    run_worker(other.directory, jobs=2, idle=0)
    assert hashes(other) == hashes(workspace_with_runs)
    with other.write_transaction() as connection:
        for name in ("fit/0", trace_name(0)):
            connection.execute("DELETE FROM artefact WHERE name = ?", (name,))
        connection.execute("DELETE FROM diagnostic WHERE target = 'days'")
        connection.execute("UPDATE task SET state = 'waiting' WHERE key = 'fit/0'")
        connection.execute("UPDATE run SET state = 'queued'")
    run_worker(other.directory, idle=0)
    assert hashes(other) == hashes(workspace_with_runs)
    other.close()


@pytest.mark.slow
def test_a_trace_is_small(workspace_with_runs):
    for name, sha256 in hashes(workspace_with_runs).items():
        if name.startswith("trace/"):
            assert workspace_with_runs.tables.path_of(sha256).stat().st_size < 200_000


@pytest.mark.slow
def test_a_run_of_an_earlier_version_has_models_without_traces(tmp_path, workspace_with_runs):
    old = entered(tmp_path / "old")
    assert read_traces(old, 1) == []
    with old.write_transaction() as connection:
        connection.execute("INSERT INTO artefact VALUES (1, 'fit/2', 'x')")
    assert [(model.target, model.trace) for model in read_traces(old, 1)] == [("income", None)]
    old.close()


def test_a_kind_that_is_not_known_is_an_error(workspace):
    sha256 = workspace.tables.write_arrays({TRACE_KIND_KEY: np.asarray("LaterTrace")})
    with pytest.raises(DamagedTable, match="does not know"):
        read_trace(workspace.tables, sha256)


def test_traces_are_read_as_they_were_written(workspace, workspace_with_runs):
    for model in read_traces(workspace_with_runs, 1):
        again = read_trace(workspace.tables, write_trace(workspace.tables, model.trace))
        assert type(again) is type(model.trace)
        for name, value in vars(model.trace).items():
            np.testing.assert_array_equal(getattr(again, name), value)
            assert type(getattr(again, name)) is type(value)


def test_parameters_have_their_statistics_in_a_line(workspace_with_runs):
    lines = convergence_by_parameter(read_diagnostics(workspace_with_runs, 1))
    assert [(line.target, line.parameter) for line in lines[:2]] == [
        ("days", ALL_PARAMETERS),
        ("days", "alpha[intercept]"),
    ]
    assert {line.target for line in lines} == {"days", "stays"}
    assert lines[0].acceptance is not None
    assert all("R-hat over 1.01" in line.exceeded_limits and line.tail and line.bulk for line in lines[1:6])
    whole = next(line for line in lines if line.target == "stays")
    assert whole.pareto_k < 0.7
    assert whole.bulk > 400


def line(name, parameter, value):
    return Diagnostic(name, parameter, value, target="days")


def test_limits_that_are_not_kept_are_flagged_in_words_and_come_first():
    found = convergence_by_parameter(
        [
            line("r_hat", "good", 1.0),
            line("effective_sample_size", "good", 900.0),
            line("r_hat", "bad", 1.2),
            line("effective_sample_size", "bad", 30.0),
            line("tail_effective_sample_size", "bad", 12.0),
            line("pareto_k", ALL_PARAMETERS, 0.9),
        ]
    )
    assert [one.parameter for one in found] == [ALL_PARAMETERS, "good", "bad"]
    assert found[0].exceeded_limits == ("Pareto k over 0.7",)
    assert found[1].exceeded_limits == ()
    assert found[2].exceeded_limits == ("R-hat over 1.01", "bulk ESS under 400", "tail ESS under 400")
    assert [one.parameter for one in sort_worst_first(found)] == ["bad", ALL_PARAMETERS, "good"]


@pytest.mark.slow
@pytest.mark.parametrize("item", [0, 1])
def test_every_plot_is_a_figure(workspace_with_runs, item):
    trace = read_traces(workspace_with_runs, 1)[item].trace
    expected = [("trace", "ranks", "density", "autocorrelation"), ("density", "weights")][item]
    assert plot_names(trace) == expected
    for plot in expected:
        for j in range(len(trace.parameters)):
            figure = trace_figure(trace, plot, j, "days alpha")
            assert figure.caption.startswith("Confidential.")
            assert figure_svg(figure, "one").startswith("<svg")
            assert "nan" not in figure_svg(figure, "one")
            assert describe_figure(figure)
    for only, name in enumerate(plot_part_names(trace, "ranks")):
        assert trace_figure(trace, "ranks", 0, "", only).panels[0].series[0].name == name


def test_densities_are_those_of_the_draws(workspace_with_runs):
    chains, importance = (model.trace for model in read_traces(workspace_with_runs, 1)[:2])
    everything = trace_figure(chains, "density", 0, "").panels[0].series[-1]
    assert np.trapezoid(everything.y, everything.x) == pytest.approx(1, abs=0.02)
    settled = chains.values[:, chains.step > chains.burn_in, 0]
    assert np.trapezoid(everything.y * everything.x, everything.x) == pytest.approx(
        settled.mean(), abs=0.1 * float(settled.std())
    )
    weighted, normal = trace_figure(importance, "density", 0, "").panels[0].series
    mean = np.trapezoid(weighted.y * weighted.x, weighted.x)
    assert mean == pytest.approx(importance.weights @ importance.draws[:, 0], rel=0.01)
    assert normal.x[np.argmax(normal.y)] == pytest.approx(importance.mode[0], abs=0.1 * importance.sd[0])


def test_nothing_is_drawn_of_what_has_no_chain():
    assert plot_names(NoTrace("")) == ()
    assert plot_names(None) == ()
    assert plot_part_names(None, "trace") == ()


@pytest.mark.slow
def test_the_report_has_the_parameters_and_the_traces_of_the_worst(workspace_with_runs):
    page = report_page(workspace_with_runs, 1, traces=True)
    assert "R-hat at most 1.01, effective sample sizes at least 400" in page
    assert "✗ R-hat over 1.01" in page
    assert sum(f'id="trace-1-{i}-title"' in page for i in range(1, 20)) == WORST_PARAMETERS
    assert "income: no convergence check; its posterior draws are exact and independent." in page
    assert "which are as confidential as the data: this page is not for release" in page
    assert report_page(workspace_with_runs, 1, traces=True) == page


@pytest.mark.slow
def test_no_trace_enters_a_release(workspace_with_runs, tmp_path):
    files = write_run_release(workspace_with_runs, 1, tmp_path / "out", reason="simulated data only").files
    names = {
        parameter
        for model in read_traces(workspace_with_runs, 1)
        for parameter in getattr(model.trace, "parameters", ())
    }
    assert "log posterior" in names
    for name in files:
        content = (tmp_path / "out" / name).read_bytes()
        assert b"log posterior" not in content
        assert b"Each line is a chain" not in content
        assert b"importance-weighted" not in content
    assert b"effective_sample_size" in (tmp_path / "out/internal/report.html").read_bytes(), (
        "the control: statistics do"
    )


@pytest.mark.slow
def test_chains_that_have_not_converged_fail_the_run_and_are_kept_to_be_looked_at(tmp_path):
    step = {name: value for name, value in RECIPE["synthesis"][0].items() if name != "accept_unconverged"}
    other = entered(tmp_path / "other", synthesis=[step])
    run_worker(other.directory, idle=0)
    for _ in range(2):
        assert "days: " in find_run(other, 1).error
        assert "has not converged: r_hat" in find_run(other, 1).error
        model = read_traces(other, 1)[0]
        assert isinstance(model.trace, ChainTrace)
        lines = convergence_by_parameter(read_diagnostics(other, 1))
        assert len(lines) == 6
        assert sum("R-hat over 1.01" in line.exceeded_limits for line in lines) >= 3
        assert "fit/0" not in hashes(other)
        requeue_run(other, 1)
        run_worker(other.directory, idle=0)
    other.close()
