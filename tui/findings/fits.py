"""Lines with what is known of the fits of a run's models: the variables first, then the parameters of each model."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import fit_text
from sfumato.workspace.reporting.diagnostics import ALL_PARAMETERS, OF_DRAWS, SparklineValues, fit_facts
from sfumato.workspace.reporting.words import sign_for

from ..widgets.facts import fact_lines
from ..widgets.sparkline import trend_line

FITS = "What is known of the fits"
INTERVALS = "; lines: mean {} 2 sd on one axis, {} is 0"
GAP = 4
"""Cells between two columns of parameters."""
MOST_NAME, SHAPE, MOST_INTERVAL = 30, 12, 61
"""Most cells of a parameter's name, those of the picture of its draws, and most of its interval on a common axis."""


def fit_lines(
    lines: Sequence[Diagnostic],
    order: Sequence[str],
    shapes: SparklineValues,
    width: int,
    room: int,
    more: str,
    known: Collection[str] = (),
) -> list[Content]:
    """Return at most ``room`` lines of ``width`` cells, the last one ``more`` where something is left out.

    Variables come first, in the ``order`` of the table above, without those that it tells, ``known``. Below them stand
    the parameters of each model under its name, in as few columns as fit, with the shape of their draws if there is room.
    """
    places = {target: at for at, target in reversed(list(enumerate(order)))}
    targets = sorted(dict.fromkeys(line.target for line in lines), key=lambda one: places.get(one, len(places)))
    own = {target: [line for line in lines if line.target == target] for target in targets}
    variables = [
        (target, text)
        for target in targets
        for part, text in fit_facts(own[target])
        if part == target and target not in known
    ]
    is_headed = bool(variables) or not known
    most = max([1, *(_most_across(own[target], target, width) for target in targets)])
    blocks: list[list[Content]] = []
    headed: list[list[Content]] = []
    for across in range(1, most + 1):
        blocks = [[Content.styled(FITS, "bold")]] if is_headed else []
        blocks += [fact_lines([fact], width) for fact in variables]
        models = [made for target in targets if (made := _parameter_blocks(target, own[target], shapes, width, across))]
        headed = [made[0] for made in models] if variables else []
        blocks += [block for made in models for block in made]
        if sum(map(len, blocks)) + len(headed) <= room:
            # A blank line parts the models where it hides nothing.
            return [line for block in blocks for line in ([Content("")] if block in headed else []) + block]
    told: list[Content] = []
    for at, block in enumerate(blocks):
        # A fact is told as a whole or not at all, and the last line says that there is more.
        last = at == len(blocks) - 1
        if len(told) + len(block) > room - (not last):
            # A heading of which nothing is told says nothing.
            told = told[:-1] if at and blocks[at - 1] in headed else told
            return [*told, Content.styled(more, "$text-muted")]
        told += block
    return told


def _most_across(lines: Sequence[Diagnostic], target: str, width: int) -> int:
    """Return how many parameters of a model fit beside each other."""
    parameters = [(part, text) for part, text in fit_facts(lines) if part not in (target, ALL_PARAMETERS)]
    if not parameters:
        return 1
    cell = min(MOST_NAME, max(cell_len(part) for part, _ in parameters)) + 1 + max(cell_len(t) for _, t in parameters)
    return max(1, (width + GAP) // (cell + GAP))


def _parameter_blocks(
    target: str, lines: Sequence[Diagnostic], shapes: SparklineValues, width: int, most: int
) -> list[list[Content]]:
    """Return the heading of a model's parameters and their lines, in at most so many columns; none without parameters."""
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
    across = min(most, _most_across(lines, target, width))
    slot = (width + GAP) // across - GAP
    intervals = _interval_lines(lines, min(MOST_INTERVAL, slot - cell - 1)) if across == 1 else {}
    if intervals:
        blocks[0] = [
            Content.assemble(
                *blocks[0], (INTERVALS.format(sign_for("plus or minus"), sign_for("limit")), "$text-muted")
            )
        ]
    shape = SHAPE if slot >= cell + 1 + SHAPE else 0
    rows = -(-len(parameters) // across)
    for row in range(rows):
        parts: list[Content | str | tuple[str, str]] = []
        for part, text in parameters[row::rows]:
            parts += [(fit_text(part, name), "$primary"), f" {fit_text(text, value)} "]
            picture = fit_text(trend_line(shapes.get((target, part), ()), shape), max(0, slot - cell - 1))
            parts += [intervals[part]] if part in intervals else [(picture + " " * GAP, "$primary")]
        blocks.append([Content.assemble(*parts)])
    return blocks


def _interval_lines(lines: Sequence[Diagnostic], width: int) -> dict[str, Content]:
    """Return the interval of each parameter on an axis that all have in common; none without mean and sd, or room.

    The axis includes 0, which says whether a predictor matters.
    """
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        if line.name in OF_DRAWS and line.value is not None and math.isfinite(line.value):
            found.setdefault(line.parameter, {})[line.name] = line.value
    ends = {
        name: (own["mean_of_draws"] - 2 * own["sd_of_draws"], own["mean_of_draws"] + 2 * own["sd_of_draws"])
        for name, own in found.items()
        if len(own) == len(OF_DRAWS)
    }
    low, high = (pick([0.0, *(end for pair in ends.values() for end in pair)]) for pick in (min, max))
    if len(ends) < 2 or width < SHAPE or high <= low:
        return {}

    def cell_of(value: float) -> int:
        """Return the cell of a value on the axis."""
        return round((value - low) / (high - low) * (width - 1))

    made = {}
    for name, (first, last) in ends.items():
        cells = [(" ", "")] * width
        cells[cell_of(0.0)] = (sign_for("limit"), "$text-muted")
        for place in range(cell_of(first), cell_of(last) + 1):
            cells[place] = (sign_for("bar"), "$primary")
        cells[cell_of((first + last) / 2)] = (sign_for("value"), "$primary")
        made[name] = Content.assemble(*cells)
    return made
