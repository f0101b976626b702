"""A run's report as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.thresholds import Verdict

from ..plan.companions import done_together, names_of, published_tables
from ..plots.figure import Figure
from ..plots.markup import Markup, element
from ..plots.svg import svg
from ..store.workspace import Workspace
from ..views.figures import figures_of
from ..views.results import diagnostics_of, result_rows, verdicts_of
from ..views.runs import Run
from .convergence import convergence_table, trace_parts
from .findings import published_section, result_tables, sweep_section, verdict_table
from .methods import diagnostic_section, method_section
from .overview import recipe_section, release_section, variable_section
from .parts import Section, section
from .uses import settings_apart

__all__ = ["report_page"]

READING = (
    "Values of the release are averages over its datasets; their intervals are 95 % Monte Carlo intervals of that average, "
    "and where a method has a combining rule, its confidence intervals. A baseline is what the measure would be "
    "without a difference; risks stand beside those of the confidential data themselves, which is the risk without protection. "
    "A value that could not be computed says so and is never 0. No record of the confidential data is shown: "
    "figures leave out bars and curves that fewer than three confidential records make up."
)
STYLE = Markup(
    """
body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #222; background: #fff; margin: 0 auto; max-width: 72rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #999; } h3 { margin-bottom: .3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .88rem; } caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }
thead th { border-bottom: 1px solid #555; } tbody th { font-weight: normal; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; font-size: .92rem; } dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
dd ul { margin: 0; padding-left: 1.1rem; } figure { margin: 1.5rem 0; } figcaption { font-size: .88rem; color: #444; } svg { width: 100%; height: auto; max-width: 60rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f5f5f5; padding: 1rem; } code { font-size: .85em; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; } figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_page(workspace: Workspace, run_id: int | str, *, traces: bool = False) -> str:
    """The report of a run that is done, with what the runs beside it found. Raises NotFound and NotReady.

    The same run gives the same page, byte for byte. With ``traces`` it shows posterior draws, and is as confidential as
    the data: a release has the page without them.
    """
    runs = done_together(workspace, run_id)
    main, *beside = runs
    verdicts = verdicts_of(workspace, main.id)
    parts = [
        release_section(main, workspace.dataset(main.dataset_id), beside),
        variable_section(main.recipe),
        section("Verdicts", verdict_table(verdicts, settings_apart(main.recipe_toml))),
        *_found(workspace, main, ""),
        *[
            part
            for run, name in list(zip(runs, names_of(runs), strict=True))[1:]
            for part in _beside(workspace, run, name)
        ],
        published_section(published_tables(workspace, runs)),
        section("Figures", [_figure(one, i) for i, one in enumerate(figures_of(workspace, runs), start=1)]),
        diagnostic_section(
            [found for run in runs for found in diagnostics_of(workspace, run.id)],
            convergence_table(workspace, runs),
            *(trace_parts(workspace, runs) if traces else ()),
        ),
        method_section([run.recipe for run in runs]),
        recipe_section(main),
    ]
    return _page(main, verdicts, [part for part in parts if part is not None])


def _found(workspace: Workspace, run: Run, of: str) -> list[Section | None]:
    rows = [row for row in result_rows(workspace, run.id) if row.draw is None]
    plain = [row for row in rows if row.level is None]
    tables = [
        section(f"{heading}{of}", one)
        for heading, one in result_tables(plain, run.recipe.published, settings_apart(run.recipe_toml))
    ]
    return [*tables, sweep_section(rows, of)]


def _beside(workspace: Workspace, run: Run, name: str) -> list[Section | None]:
    shown = element("p", "These thresholds are only shown; those above decide.")
    verdicts = section(
        f"Verdicts, {name}", shown, verdict_table(verdicts_of(workspace, run.id), settings_apart(run.recipe_toml))
    )
    return [verdicts, *_found(workspace, run, f", {name}")]


def _figure(figure: Figure, number: int) -> Markup:
    caption = element("figcaption", f"Figure {number}. {figure.title}. {figure.caption}")
    return element("figure", svg(figure, f"figure-{number}"), caption)


def _page(main: Run, verdicts: Sequence[Verdict], parts: Sequence[Section]) -> str:
    failed = sum(verdict.outcome != "pass" for verdict in verdicts)
    outcome = (
        f"{failed} of {len(verdicts)} thresholds are not met." if failed else f"All {len(verdicts)} thresholds are met."
    )
    links = [element("li", element("a", part.title, href=f"#{part.ident}")) for part in parts]
    body = element(
        "main",
        element("h1", main.title),
        element("p", main.recipe.description) if main.recipe.description else "",
        element("p", element("strong", outcome)) if verdicts else "",
        element("nav", element("ul", links), aria_label="Contents"),
        element("p", READING),
        [part.markup for part in parts],
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", f"{main.title}: disclosure control report"),
        element("style", STYLE),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body), lang='en')}\n"
