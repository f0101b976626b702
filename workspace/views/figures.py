"""Figures of a run and of the runs beside it, read from the workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import align_levels, recode_data
from sfumato.engine.data.schema import Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.plots.joint import pair_figures

from ..plots.curves import RunRows, interval_figures, sweep_figures
from ..plots.distributions import RunDatasets, distribution_figure
from ..plots.figure import Figure, mark_internal
from ..plots.planes import plane_figures
from ..plots.triangle import triangle_figures
from ..store.artefacts import read_released_dataset
from ..store.runs import StoredRun, read_run_records, release_names
from ..store.workspace import Workspace
from .approved import pairs_in_approved_tables
from .columns_beside import read_variable_values
from .results import read_result_rows

DRAWN_DATASETS = 3
MOST_BINS = 1000
SHARE_WIDTH = 0.1
"""Width of the bins of a binary variable that was released as shares of its second level."""


def draw_run_figures(
    workspace: Workspace,
    runs: Sequence[StoredRun],
    datasets: int = DRAWN_DATASETS,
    bin_widths: Mapping[str, float] | None = None,
    *,
    public: bool = False,
) -> list[Figure]:
    """Return the figures of runs on the same data: distributions, pairs, intervals, sweeps and planes.

    The first run is the main one. ``datasets`` of each run are drawn; ``bin_widths`` are in the unit of the variable.
    ``public`` figures are the distributions of the released data alone; others are marked as internal. Raises BadInput.
    """
    if runs[0].recipe.has_tables_alone:
        return []
    runs = [run for run in runs if not run.recipe.has_tables_alone]
    names = release_names(runs)
    if public:
        origins = [
            run.recipe.origin for run in runs
        ]  # the names are what somebody wrote who did not write for the public
        return _distribution_figures(workspace, runs, origins, datasets, bin_widths or {}, public=True)
    rows = [
        RunRows(name, [row for row in read_result_rows(workspace, run.id) if row.draw is None])
        for name, run in zip(names, runs, strict=True)
    ]
    figures = [
        *_distribution_figures(workspace, runs, names, datasets, bin_widths or {}, public=False),
        *_pair_figures(workspace, runs[0]),
        *triangle_figures(rows[0].rows, pairs_in_approved_tables(workspace, runs[0])),
        *interval_figures(rows),
        *sweep_figures(rows),
        *plane_figures(rows),
    ]
    return [mark_internal(figure) for figure in figures]


def _pair_figures(workspace: Workspace, run: StoredRun) -> list[Figure]:
    """Return the joint distributions of the first released variables of a run."""
    recipe = run.recipe
    columns = read_variable_values(workspace, run.dataset_id, run, recipe.released)
    chosen = [columns[name] for name in recipe.released if name in columns]
    return pair_figures(chosen, "anonymised" if recipe.anonymisation else "synthetic")


def _distribution_figures(
    workspace: Workspace,
    runs: Sequence[StoredRun],
    names: Sequence[str],
    datasets: int,
    bin_widths: Mapping[str, float],
    *,
    public: bool,
) -> list[Figure]:
    """Return the distributions of the released variables and of those with a bin width."""
    recipe = runs[0].recipe
    confidential = read_run_records(workspace, runs[0])
    released = [
        [_read_released_dataset(workspace, run, draw) for draw in range(1, min(datasets, run.recipe.m) + 1)]
        for run in runs
    ]
    confidential, released = _align_level_codes(confidential, released, runs, public=public)
    groups = [RunDatasets(name, tuple(tables)) for name, tables in zip(names, released, strict=True)]
    variables = [
        recipe.schema.require_variable(name, "--bin-width") for name in dict.fromkeys((*recipe.released, *bin_widths))
    ]
    for variable in variables:
        _check_bin_width(variable, confidential, bin_widths.get(variable.name))
    labels = frozenset().union(*(run.recipe.generalised for run in runs))
    # generalised values are intervals and groups, which have no place among exact ones
    shown = [_drawn_variable(variable, runs) for variable in variables if variable.name not in labels]
    widths = {v.name: SHARE_WIDTH for v in shown if v.kind is not recipe.schema[v.name].kind and v.bounds == (0, 1)}
    return [
        distribution_figure(v, confidential, groups, {**widths, **bin_widths}.get(v.name), public=public) for v in shown
    ]


def _align_level_codes(
    confidential: Microdata, released: Sequence[Sequence[Microdata]], runs: Sequence[StoredRun], *, public: bool
) -> tuple[Microdata, list[list[Microdata]]]:
    """Return the tables with level codes that mean the same where runs recode levels.

    If ``public``, the confidential table is recoded as the release is.
    """
    recodes = [run.recipe.form.recode for run in runs]
    if public:
        for rules in recodes:
            confidential = recode_data(confidential, rules)
    else:
        for tables, rules in zip(released, recodes, strict=True):
            confidential = align_levels(confidential, tables[0], rules)[0]
    return confidential, [
        [one if public else align_levels(confidential, one, rules)[1] for one in tables]
        for tables, rules in zip(released, recodes, strict=True)
    ]


def _drawn_variable(variable: Variable, runs: Sequence[StoredRun]) -> Variable:
    """Return the variable, or a numerical one where a run released shares in place of its two levels."""
    released = [run.recipe.released_schema[variable.name] for run in runs]
    return next((found for found in released if variable.kind.has_levels and not found.kind.has_levels), variable)


def _check_bin_width(variable: Variable, confidential: Microdata, width: float | None) -> None:
    """Raise BadInput where a bin width does not suit a variable."""
    if width is None:
        return
    place = f"--bin-width {variable.name}"
    if variable.kind.has_levels:
        raise BadInput(place, f"a {variable.kind} variable has levels, not bins; leave it out")
    values = confidential.present_numbers(variable.name)
    if not width > 0 or float(values.max() - values.min()) / width > MOST_BINS:
        raise BadInput(place, f"must be above 0 and make no more than {MOST_BINS:,} bins")


def _read_released_dataset(workspace: Workspace, run: StoredRun, draw: int) -> Microdata:
    """Read a released dataset of a finished run."""
    found = read_released_dataset(workspace, run.id, run.recipe, draw)
    assert found is not None
    return found
