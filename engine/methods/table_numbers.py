"""Numbers of printed tables, as a run reports them beside those of its measures, with limits like any other.

They come from the tasks of tables, not from a step: every recipe with tables has them. The method is no part of the
registry, since no step names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..data.intervals import Range
from .outputs import Label, Output
from .registry import Method
from .results import Estimate, Measure
from .spec import Spec

COUNT_RANGE: Range = (0.0, None)
FEWER_CELLS = (
    "print broader groups, or fewer levels",
    "leave out a table that shares variables with others",
)
RULES = ("run the recipe again, so that what earlier releases printed is taken into account", *FEWER_CELLS)
OPEN_CELLS = ("remove what fixed publishes in [tables]", *RULES)


def _count_output(name: str, meaning: str, goal: str, label: Label, unit: str = "cells") -> Output:
    """Return an output that counts cells, or people."""
    return Output(name, meaning, "low" if goal == "low" else "none", unit, range=COUNT_RANGE, label=label)


OUTPUTS = (
    _count_output(
        "cells",
        "different cells of all printed tables that have records",
        "none",
        Label("Different cells of the tables", "The tables have {value} that differ in their records."),
    ),
    _count_output(
        "primary",
        "cells that are unsafe in themselves, by all rules or by one",
        "none",
        Label("Unsafe cells", "By the rules {value} are unsafe in themselves.", levers=FEWER_CELLS),
    ),
    _count_output(
        "secondary",
        "cells that are hidden so that unsafe ones do not follow",
        "none",
        Label("Cells hidden for others' sake", "Beside the unsafe ones {value} are hidden.", levers=FEWER_CELLS),
    ),
    _count_output(
        "exact_outside",
        "unsafe cells that anybody works out exactly",
        "low",
        Label(
            "Unsafe cells exact for anybody",
            "From what is printed anybody works out {value} exactly.",
            "At 0 no unsafe cell follows for a reader who knows that values are at least 0.",
            "Too many unsafe cells follow exactly.",
            OPEN_CELLS,
        ),
    ),
    _count_output(
        "exact_zeros_shown",
        "unsafe cells that a reader works out exactly who sees which cells are 0",
        "low",
        Label(
            "Unsafe cells exact where zeros are shown",
            "Whoever sees which cells are 0 works out {value} exactly.",
            "At 0 no unsafe cell follows for a reader who sees that zeros are printed.",
            "Too many unsafe cells follow exactly, since zeros are printed.",
            OPEN_CELLS,
        ),
    ),
    _count_output(
        "exact_contributor",
        "unsafe cells that somebody works out exactly who knows an own part of the cells",
        "low",
        Label(
            "Unsafe cells exact for a contributor",
            "Whoever knows an own part of the cells works out {value} exactly.",
            "At 0 no unsafe cell follows for a person, household or firm who knows what the own records add to each cell.",
            "Too many unsafe cells follow for those who know what their own records add to each cell.",
            OPEN_CELLS,
        ),
    ),
    _count_output(
        "short_of_level",
        "unsafe cells that cannot be as large as the rules want",
        "low",
        Label(
            "Unsafe cells known too closely",
            "Of the unsafe cells {value} cannot be as large as they must stay possible.",
            "At 0 every unsafe cell can be as large as the rules want.",
            "Too many unsafe cells can be estimated more closely than the rules let a reader.",
            OPEN_CELLS,
        ),
    ),
    _count_output(
        "undecided",
        "unsafe cells of which it was not found out",
        "low",
        Label(
            "Unsafe cells that are undecided",
            "Of {value} it was not found out whether they follow.",
            "At 0 it was found out for every unsafe cell.",
            "Of too many unsafe cells it was not found out whether they follow.",
            FEWER_CELLS,
        ),
    ),
    _count_output(
        "unprotected",
        "unsafe cells that earlier releases printed, or that are printed whatever follows",
        "low",
        Label(
            "Unsafe cells that nothing protects",
            "Nothing that is hidden now protects {value}.",
            "At 0 no unsafe cell was printed before, or is printed by the recipe all the same.",
            "Too many unsafe cells were printed before, or are printed by the recipe all the same.",
            OPEN_CELLS,
        ),
    ),
    _count_output(
        "people_affected",
        "people in cells that follow, are known too closely or are undecided",
        "low",
        Label(
            "People in cells that are not safe",
            "In cells that are not shown to be safe there are {value}.",
            "At 0 every cell with people in it is shown to be safe, or none is unsafe.",
            "Too many people are in cells that are not shown to be safe.",
            OPEN_CELLS,
        ),
        "people",
    ),
    Output(
        "hidden_share",
        "share of the different cells that is hidden",
        "low",
        "share",
        range=(0.0, 1.0),
        label=Label(
            "Share of the cells that is hidden",
            "Of the different cells {value} are hidden.",
            "Lower is better: the tables say more.",
            "The tables hide more than the limit allows.",
            FEWER_CELLS,
            counts="share",
        ),
    ),
    Output(
        "smallest_interval",
        "narrowest interval in which an unsafe cell was shown to be possible",
        "high",
        range=COUNT_RANGE,
        label=Label(
            "Narrowest interval of an unsafe cell",
            "Every unsafe cell was shown to be possible in an interval of at least {value}.",
            "Higher is better: a reader can be told less closely what a cell holds.",
            "A reader can tell an unsafe cell more closely than the limit allows.",
            RULES,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class TableNumbers(Spec):
    """Parameters of the numbers of printed tables: none; the recipe's ``[tables]`` states the rules."""


def _not_called(*_: object) -> Measure:
    """Raise: the tasks of tables compute these numbers."""
    raise NotImplementedError("numbers of tables come from the tasks of tables")


TABLE_NUMBERS = Method(
    "tables",
    "numbers",
    "Printed tables",
    TableNumbers,
    "Hundepool et al., Statistical Disclosure Control (2012), chapter 4; Fischetti & Salazar (2001)",
    _not_called,
    OUTPUTS,
)
"""What a run says of its printed tables; keys are ``tables.numbers.exact_outside`` and so on."""


def table_estimates(counts: Mapping[str, float], reasons: Mapping[str, str]) -> tuple[Estimate, ...]:
    """Return the estimates of the numbers of tables by name; a number that is NaN was not computed, for its reason.

    ``primary_RULE`` are the unsafe cells by one rule.
    """
    found = [
        Estimate(one.name, counts[one.name], reason=reasons.get(one.name, "")) for one in OUTPUTS if one.name in counts
    ]
    rules = [name.removeprefix("primary_") for name in counts if name.startswith("primary_")]
    found += [Estimate("primary", counts[f"primary_{rule}"], params={"rule": rule}) for rule in rules]
    return tuple(found)
