"""How the samplers of a run fared: every parameter in a table, and the traces of the worst.

Traces are as confidential as the data (``sfumato.engine.traces``): a report that goes with a release is made without
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..plots.markup import Markup, element
from ..plots.svg import svg
from ..plots.traces import plots_of, trace_figure
from ..store.trace_tables import ModelTrace, traces_of
from ..store.workspace import Workspace
from ..views.convergence import ALL, ParameterLine, parameter_lines, worst_first
from ..views.results import diagnostics_of
from ..views.runs import Run
from .numbers import number
from .parts import table

__all__ = ["convergence_table", "trace_parts"]

WORST = 3
CONFIDENTIAL = "Traces show posterior draws, which are as confidential as the data: this page is not for release. The report of a release leaves them out."


def convergence_table(workspace: Workspace, runs: Sequence[Run]) -> Markup | str:
    """R-hat, sample sizes, acceptance and Pareto k of every parameter, held against the usual limits in words."""
    lines = [_cells(line) for run in runs for line in parameter_lines(diagnostics_of(workspace, run.id))]
    heads = ("variable", "parameter", "R-hat", "bulk ESS", "tail ESS", "acceptance", "Pareto k", "")
    caption = "Convergence: R-hat at most 1.01, effective sample sizes at least 400, Pareto k at most 0.7 (Vehtari et al. 2021, 2024)"
    return table(caption, heads, lines, numeric=range(2, 7)) if lines else ""


def _cells(line: ParameterLine) -> list[str]:
    figures = (line.r_hat, line.bulk, line.tail, line.acceptance, line.pareto_k)
    verdict = f"✗ {', '.join(line.flags)}" if line.flags else "✓ within limits" if line.judged else ""
    return [line.target, line.parameter, *("" if one is None else number(one) for one in figures), verdict]


def trace_parts(workspace: Workspace, runs: Sequence[Run]) -> Iterator[Markup]:
    """The traces of the worst parameters of every run; a line for each model that has none, saying why."""
    figures, words = [], []
    for run in runs:
        models = {model.target: model for model in traces_of(workspace, run.id)}
        words += [_words(model) for model in models.values() if not plots_of(model.trace)]
        lines = [line for line in parameter_lines(diagnostics_of(workspace, run.id)) if line.target in models]
        drawn = [line for line in worst_first(lines) if plots_of(models[line.target].trace)][:WORST]
        figures += [_figure(models[line.target], line, f"trace-{run.id}-{i}") for i, line in enumerate(drawn, start=1)]
    if words:
        yield element("ul", [element("li", one) for one in words])
    if figures:
        yield element("p", element("strong", CONFIDENTIAL))
        yield from figures


def _words(model: ModelTrace) -> str:
    reason = getattr(model.trace, "reason", "")
    return f"{model.target}: nothing to converge; {reason}." if reason else f"{model.target}: no trace was kept."


def _figure(model: ModelTrace, line: ParameterLine, ident: str) -> Markup:
    names: tuple[str, ...] = getattr(model.trace, "parameters", ())
    at = len(names) - 1 if line.parameter == ALL else names.index(line.parameter)
    assert model.trace is not None
    figure = trace_figure(model.trace, plots_of(model.trace)[0], at, f"{model.target} {names[at]}")
    said = ", ".join(line.flags) or "within limits"
    return element("figure", svg(figure, ident), element("figcaption", f"{figure.title} ({said}). {figure.caption}"))
