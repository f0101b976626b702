"""Lines with what is known of the fits of a run's models: the variables first, then the parameters of each model."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import fit_text
from sfumato.workspace.reporting.diagnostics import ALL_PARAMETERS, SparklineValues, statistic_cells
from sfumato.workspace.reporting.tables import grid_value
from sfumato.workspace.reporting.words import number

from ..widgets.facts import fact_lines
from ..widgets.sparkline import trend_line

FITS = "What is known of the fits"
OF_DRAWS = {"mean_of_draws": "mean", "sd_of_draws": "sd"}
"""Statistics whose draws the heading of the parameters names."""
GAP = 4
"""Cells between two columns of parameters."""
MOST_NAME, SHAPE = 30, 12
"""Most cells of a parameter's name, and those of the picture of its draws."""


def fit_facts(lines: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """Return what is known of each fitted part in a line: ``PID``, ``records 944 · steps 5``."""
    found: dict[str, list[str]] = {}
    for line in lines:
        part = line.target if line.parameter in ("", line.target) else line.parameter
        judged = str(grid_value(statistic_cells(line)["passed"]))
        rule = f" ({judged}: {line.rule})" if line.rule else ""
        name = OF_DRAWS.get(line.name, line.name.replace("_", " "))
        found.setdefault(part, []).append(f"{name} {number(line.value)}{rule}")
    return [(part, " · ".join(texts)) for part, texts in found.items()]


def fit_lines(
    lines: Sequence[Diagnostic], order: Sequence[str], shapes: SparklineValues, width: int, room: int, more: str
) -> list[Content]:
    """Return at most ``room`` lines of ``width`` cells, the last one ``more`` where something is left out.

    Variables come first, in the ``order`` of the table above. Below them stand the parameters of each model under its
    name, in as many columns as fit, with the shape of their draws if there is room.
    """
    places = {target: at for at, target in reversed(list(enumerate(order)))}
    targets = sorted(dict.fromkeys(line.target for line in lines), key=lambda one: places.get(one, len(places)))
    own = {target: [line for line in lines if line.target == target] for target in targets}
    variables = [(target, text) for target in targets for part, text in fit_facts(own[target]) if part == target]
    blocks = [[Content.styled(FITS, "bold")]]
    blocks += [fact_lines([fact], width) for fact in variables]
    models = [made for target in targets if (made := _parameter_blocks(target, own[target], shapes, width))]
    headed = [made[0] for made in models] if variables else []
    blocks += [block for made in models for block in made]
    if sum(map(len, blocks)) + len(headed) <= room:
        # A blank line parts the models where it hides nothing.
        blocks = [[Content(""), *block] if block in headed else block for block in blocks]
    told: list[Content] = []
    for at, block in enumerate(blocks):
        # A fact is told as a whole or not at all, and the last line says that there is more.
        last = at == len(blocks) - 1
        if len(told) + len(block) > room - (not last):
            return [*told, Content.styled(more, "$text-muted")]
        told += block
    return told


def _parameter_blocks(
    target: str, lines: Sequence[Diagnostic], shapes: SparklineValues, width: int
) -> list[list[Content]]:
    """Return the heading of a model's parameters and their lines, in columns; none without parameters."""
    facts = [(part, text) for part, text in fit_facts(lines) if part != target]
    whole = [text for part, text in facts if part == ALL_PARAMETERS]
    parameters = [(part, text) for part, text in facts if part != ALL_PARAMETERS]
    said = f", {count_noun(len(parameters), 'parameter')}" if parameters else ""
    drawn = ": mean and sd of the draws" if any(line.name in OF_DRAWS for line in lines) else ""
    blocks = [[Content.styled(f"Model of {target}{said}{drawn}", "bold")]] if facts else []
    blocks += [fact_lines([("all together", text)], width) for text in whole]
    if not parameters:
        return blocks
    name = min(MOST_NAME, max(cell_len(part) for part, _ in parameters))
    value = max(cell_len(text) for _, text in parameters)
    cell = name + 1 + value
    if cell > width:
        return blocks + [fact_lines([fact], width, MOST_NAME) for fact in parameters]
    across = max(1, (width + GAP) // (cell + GAP))
    slot = (width + GAP) // across - GAP
    shape = SHAPE if slot >= cell + 1 + SHAPE else 0
    rows = -(-len(parameters) // across)
    for row in range(rows):
        parts: list[Content | str | tuple[str, str]] = []
        for part, text in parameters[row::rows]:
            picture = trend_line(shapes.get((target, part), ()), shape)
            parts += [
                (fit_text(part, name), "$primary"),
                f" {fit_text(text, value)} ",
                (fit_text(picture, max(0, slot - cell - 1)) + " " * GAP, "$primary"),
            ]
        blocks.append([Content.assemble(*parts)])
    return blocks
