"""The figures of runs in a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotFound, NotReady
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import finished_with_companions
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.figures import draw_run_figures

SWEEP = {"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.0, 0.1]}
INTERVALS = {"method": "utility.interval_overlap", "means": ["income"]}
RISK = {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}}


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]
) -> Iterator[tuple[Workspace, list[int]]]:
    """Two runs, the second beside the first, in a workspace that nobody writes in."""
    with Workspace.create(tmp_path_factory.mktemp("shown") / "workspace", PUBLIC) as workspace:
        table, source = small[0].to_table(), SourceFile("simulated.csv", b"simulated")
        both = [
            enter_run(
                workspace,
                Recipe.from_table({**table, "measure": [RISK, INTERVALS], "study": [SWEEP], "label": label}),
                source,
                small[1],
            )
            for label in ("first", "second")
        ]
        with workspace.write_transaction() as connection:
            connection.execute("INSERT INTO companion VALUES (?, 0, ?)", both)
        run_worker(workspace.directory, idle=0)
        yield workspace, both


@pytest.mark.slow
def test_a_run_with_one_beside_it_has_distributions_intervals_and_sweeps(
    shown: tuple[Workspace, list[int]],
) -> None:
    workspace, runs = shown
    done = finished_with_companions(workspace, runs[0])
    assert [run.id for run in done] == runs
    figures = draw_run_figures(workspace, done)
    assert [figure.kind for figure in figures] == ["histogram", "density", "heat", "intervals", "sweep"]
    visits = figures[0]
    assert [panel.title for panel in visits.panels] == ["first", "second"]
    assert visits.series_names == ("confidential", "dataset 1", "dataset 2", "dataset 3")
    assert visits.panels[0].series[1].y.sum() == pytest.approx(1)
    assert 0.5 < np.nansum(visits.panels[0].series[0].y) <= 1 + 1e-9
    assert [panel.title for panel in figures[2].panels] == [
        "confidential",
        "synthetic, mean of 3",
        "synthetic, mean of 3 less confidential",
    ]
    assert figures[3].panels[0].x_names == ("confidential", "first", "second")
    assert {one.name for panel in figures[4].panels for one in panel.series} == {"first", "second", "confidential"}


@pytest.mark.slow
def test_how_many_datasets_and_how_wide_bins_can_be_chosen(shown: tuple[Workspace, list[int]]) -> None:
    workspace, runs = shown
    figures = draw_run_figures(
        workspace, finished_with_companions(workspace, runs[1]), datasets=1, bin_widths={"income": 200, "age": 10}
    )
    assert [figure.title for figure in figures[:3]] == [
        "Histogram of visits",
        "Histogram of income",
        "Histogram of age",
    ]
    assert [panel.title for panel in figures[0].panels] == ["second"]
    assert figures[1].panels[0].bar_width == 200
    assert figures[0].series_names == ("confidential", "dataset 1")
    age = figures[2].panels[0]
    np.testing.assert_array_equal(age.series[0].y[age.series[0].y >= 3], age.series[1].y[age.series[1].y >= 3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "says"),
    [({"incom": 1.0}, 'did you mean "income"'), ({"region": 1.0}, "has levels"), ({"visits": 0.0}, "above 0"),
     ({"visits": float("nan")}, "above 0"), ({"income": 1e-6}, "no more than 1,000 bins")],
)  # fmt: skip
def test_bins_that_cannot_be_are_refused(
    shown: tuple[Workspace, list[int]], widths: dict[str, float], says: str
) -> None:
    workspace, runs = shown
    with pytest.raises(BadInput, match=says) as caught:
        draw_run_figures(workspace, finished_with_companions(workspace, runs[0]), bin_widths=widths)
    assert caught.value.place.startswith("--bin-width")


def test_a_run_that_has_not_ended_has_no_figures_yet(workspace: Workspace, enter: Callable[..., int]) -> None:
    run_id = enter()
    with pytest.raises(NotReady, match=f"run {run_id} is queued"):
        finished_with_companions(workspace, run_id)
    with pytest.raises(NotFound):
        finished_with_companions(workspace, 17)
