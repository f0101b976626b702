"""Lines with what is known of the fit of one model of a run: its facts first, then its parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import fit_text
from sfumato.workspace.reporting.diagnostics import ALL_PARAMETERS, OF_DRAWS, SparklineValues, fit_facts
from sfumato.workspace.reporting.words import sign_for

from ..widgets.facts import fact_lines
from ..widgets.sparkline import trend_line

INTERVALS = "; {} {} 2 sd, {} 0"
GAP = 4
"""Cells between two columns of parameters."""
_MEAN_AND_SD = re.compile(r"mean (\S+) · sd (\S+)")
PAIR_GAP = "  "
"""Between the mean and the sd of a parameter."""
MOST_NAME, SHAPE, MOST_INTERVAL = 30, 12, 61
"""Most cells of a parameter's name, those of the picture of its draws, and most of its interval on a common axis."""


def model_lines(
    lines: Sequence[Diagnostic],
    target: str,
    facts: Sequence[tuple[str, str]],
    shapes: SparklineValues,
    width: int,
    room: int,
    more: str,
) -> list[Content]:
    """Return what is known of the model of one variable in at most ``room`` lines of ``width`` cells.

    Its heading comes first, then ``facts`` by name, then its parameters in as few columns as fit, with the shape of
    their draws if there is room; without room for all, parameters come before facts. The last line is ``more`` where
    something is left out.
    """
    own = [line for line in lines if line.target == target]
    blocks: list[list[Content]] = []
    for across in range(1, _most_across(own, target, width) + 1):
        parameters = _parameter_blocks(target, own, shapes, width, across)
        heading = parameters[0] if parameters else [Content.styled(f"Model of {target}", "bold")]
        blocks = [heading, *(fact_lines([fact], width) for fact in facts), *parameters[1:]]
        if sum(map(len, blocks)) <= room:
            return [line for block in blocks for line in block]
    heading, *rest = blocks
    blocks = [heading, *rest[len(facts) :], *rest[: len(facts)]]
    told: list[Content] = []
    for at, block in enumerate(blocks):
        # A fact is told as a whole or not at all, and the last line says that there is more.
        if len(told) + len(block) > room - (at < len(blocks) - 1):
            # A heading of which nothing is told says nothing.
            return [*told, Content.styled(more, "$text-muted")] if at > 1 else []
        told += block
    return told


def _most_across(lines: Sequence[Diagnostic], target: str, width: int) -> int:
    """Return how many parameters of a model fit beside each other."""
    parameters = [(part, text) for part, text in _aligned_facts(lines) if part not in (target, ALL_PARAMETERS)]
    if not parameters:
        return 1
    cell = min(MOST_NAME, max(cell_len(part) for part, _ in parameters)) + 1 + max(cell_len(t) for _, t in parameters)
    return max(1, (width + GAP) // (cell + GAP))


def _aligned_facts(lines: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """Return what is known of each fitted part; mean and sd of parameters without these words, which their heading has,
    below each other.
    """
    facts = fit_facts(lines)
    found = {part: pair for part, text in facts if (pair := _MEAN_AND_SD.fullmatch(text))}
    sizes = [max((cell_len(pair[at]) for pair in found.values()), default=0) for at in (1, 2)]
    return [
        (part, f"{found[part][1]:>{sizes[0]}}{PAIR_GAP}{found[part][2]:>{sizes[1]}}" if part in found else text)
        for part, text in facts
    ]


def _parameter_blocks(
    target: str, lines: Sequence[Diagnostic], shapes: SparklineValues, width: int, most: int
) -> list[list[Content]]:
    """Return the heading of a model's parameters and their lines, in at most so many columns; none without parameters."""
    facts = [(part, text) for part, text in _aligned_facts(lines) if part != target]
    whole = [text for part, text in facts if part == ALL_PARAMETERS]
    parameters = [(part, text) for part, text in facts if part != ALL_PARAMETERS]
    said = f", {count_noun(len(parameters), 'parameter')}" if parameters else ""
    drawn = ": mean and sd of the draws" if any(line.name in OF_DRAWS for line in lines) else ""
    blocks = [[Content.styled(f"Model of {target}{said}{drawn}", "bold")]] if facts else []
    last = [fact_lines([("all together", text)], width) for text in whole]
    if not parameters:
        return [*blocks, *last]
    name = min(MOST_NAME, max(cell_len(part) for part, _ in parameters))
    value = max(cell_len(text) for _, text in parameters)
    cell = name + 1 + value
    if cell > width:
        return [*blocks, *(fact_lines([fact], width, MOST_NAME) for fact in parameters), *last]
    across = min(most, _most_across(lines, target, width))
    slot = (width + GAP) // across - GAP
    intervals = _interval_lines(lines, min(MOST_INTERVAL, slot - cell - 1)) if across == 1 else {}
    if intervals:
        blocks[0] = [
            Content.assemble(
                *blocks[0],
                (INTERVALS.format(sign_for("bar"), sign_for("plus or minus"), sign_for("limit")), "$text-muted"),
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
    # The line at the cursor has the statistics of the whole model too, so that they yield to the parameters.
    return [*blocks, *last]


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
