"""A study whose curves are drawn together, in the app: a line a synthesiser, epsilon on a logarithmic axis, what limits ask for."""

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import finished_workspace

from sfumato.tui.findings.study import series_on_axis
from sfumato.tui.findings.study_answers import CombinedCurvesView, make_study_view
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.studies import read_studies

SIZES = pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 50), marks=pytest.mark.sizes)], ids=str)
LEVELS = {"town": ["x", "y", "z"], "sex": ["f", "m"], "status": ["a", "b"]}
RECIPE = {
    "title": "Private census",
    "variables": {
        name: {"kind": "categorical", "role": "sensitive" if name == "status" else "quasi_identifier", "levels": levels}
        for name, levels in LEVELS.items()
    },
    "release": {"m": 1, "seed": 7, "records": 100},
    "synthesis": [{"method": "perturbed_gibbs", "target": list(LEVELS), "epsilon": 1.0}],
    "measure": [{"method": "risk.exact_copies"}],
    "study": [
        {
            "method": "studies.risk_utility",
            "synthesisers": ["step", "marginal_bootstrap"],
            "epsilons": [0.1, 1.0, 50.0],
            "records": 60,
            "replicates": 3,
            "limits": {"marginal": 0.5, "exact_copies": 0.0},
        }
    ],
}


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """A run with a small study along epsilon."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.choice(levels, 150) for name, levels in LEVELS.items()})
    directory = finished_workspace(tmp_path_factory.mktemp("private") / "workspace", [RECIPE], frame, "census.csv")
    save_state(directory, AppState(project=1, run=1, tab="sweep"))
    return directory


@pytest.fixture(scope="module")
def view(private):
    with Workspace.open(private, read_only=True) as reader:
        (study,) = read_studies(reader, 1)
    return make_study_view(study)


@pytest.mark.slow
def test_every_measure_has_a_picture_with_a_line_a_synthesiser(view):
    assert isinstance(view, CombinedCurvesView)
    first = view.panel_at(0)
    assert view.pictures[0] == "Marginal distance"
    assert [one.name for one in first.series] == [
        "step: perturbed_gibbs",
        "marginal_bootstrap",
        "baseline",
        "limit 0.5",
    ]
    series, unit = series_on_axis(first)
    assert unit == "log10"
    assert series[0].x.tolist() == pytest.approx([-1.0, 0.0, np.log10(50)])
    assert not [name for name in view.pictures if "mean error" in name], "nothing was measured of it"


@pytest.mark.slow
def test_what_is_read_and_exported_is_what_the_run_found(view):
    step = next(one for one in view.study.rows if one.measure == "marginal" and one.level == 1.0)
    read = view.reading_at(0, 1.3)
    assert read.startswith("epsilon = 1   step: perturbed_gibbs ")
    assert f"{step.value:.4g}"[:6] in read
    heads, lines = view.export_rows(0)
    assert heads[:3] == ("synthesiser", "epsilon", "marginal")
    assert (step.params["synthesiser"], 1.0, step.value, step.lower, step.upper, step.baseline, 0.5) in lines
    against = view.pictures.index("Marginal distance against exact copies")
    assert "epsilon" in view.reading_at(against, 0.5)
    numbers = view.study_table(0)
    assert [column.title for column in numbers.columns] == ["synthesiser", "within", "0.1", "1", "50", "but"]
    assert [row["curve"] for row in numbers.rows] == ["step: perturbed_gibbs", "marginal_bootstrap"]
    assert numbers.rows[1]["within"] == "", "what has no epsilon is asked for none"


@pytest.mark.slow
def test_the_limit_s_answer_stands_above_the_picture_of_its_measure_alone(view):
    copies = view.pictures.index("Exact copies")
    assert "at most 0 at epsilon: step ? none" in view.picture_answer(copies).plain
    assert view.picture_answer(0).plain.startswith("at most 0.5 at epsilon: step ≥ 0.1")
    assert view.picture_answer(view.pictures.index("Unique records")) is None


@pytest.mark.slow
@SIZES
async def test_the_keys_lead_through_planes_cursor_and_numbers(sit, private, view, size):
    async with sit(private, size=size) as seat:
        assert "at most 0.5 at epsilon" in seat.text
        assert "Marginal distance" in seat.text
        for label in ("step: perturbed_gibbs", "marginal_bootstrap", "0.1", "epsilon"):
            assert label in seat.text
        assert "epsilon = 1 " in await seat.press("right")
        assert "epsilon = 50" in await seat.press("end")
        steps = view.pictures.index("Marginal distance against exact copies")
        await seat.press(*["m"] * steps)
        assert "exact copies" in seat.text
        assert "epsilon" in await seat.press("right")
        await seat.press(*["act:previous_picture"] * steps)
        assert "epsilon = 1 " in await seat.press("0", "right")
        assert "within" in await seat.press("t")


@pytest.mark.slow
@SIZES
async def test_the_results_show_epsilon_beside_evidence_or_that_there_is_none(sit, private, size):
    async with sit(private, "act:results", size=size) as seat:
        assert "epsilon: " in seat.text
        assert "epsilon: a sample not computed" in seat.text, "with a public key there is no epsilon"
        assert "exact copies: Released records equal to a person" in seat.text
        assert "inference attack: NOT MEASURED" in seat.text


@pytest.mark.slow
async def test_a_run_without_an_account_keeps_the_line_for_its_rows(sit, built_data):
    async with sit(built_data, size=(80, 24), tab="results") as seat:
        assert "epsilon" not in seat.text
        assert "exact copies" not in seat.text
