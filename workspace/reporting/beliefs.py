"""What an intruder believes of records before a release and after it: as values, as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import count_noun

from ..plots.beliefs import first_panel, moved_panel
from ..plots.figure import Figure
from .tables import Column, Table, table
from .words import interval, number, params_text

Values = Mapping[str, str | int | float]
ONLY = "Only records that were asked about count. A record of which nothing is said here is not a record without risk."
MOST = 20
"""So many records a report ranks."""
ABOVE = "Above the diagonal the truth has become more probable."


@dataclass(frozen=True, eq=False)
class BeliefsFound:
    """The beliefs of one measure of a run, over all its datasets, outside groups.

    ``prior`` and ``posterior`` (t,) are the probabilities of the truth of the t records asked about, of ``records`` in all, whose
    ``numbers`` (t,) count from 1. ``after`` and
    ``before`` are the rows of the shares guessed right, ``cross`` how many records were guessed right (before, after),
    ``first`` the rows by the first 1 to m datasets, ``groups`` the rows before and after of groups, by name. ``informed`` says whether the
    intruder believes anything before the release.
    """

    run_id: int
    place: str
    key: str
    title: str
    params: Mapping[str, Any]
    records: int
    numbers: NDArray[np.int64]
    prior: NDArray[np.float64]
    posterior: NDArray[np.float64]
    after: Row
    before: Row
    cross: Mapping[tuple[bool, bool], float]
    first: Mapping[int, Row]
    groups: Mapping[str, tuple[Row, Row]]
    certain: float
    informed: bool

    @property
    def asked(self) -> int:
        """How many records were asked about."""
        return len(self.posterior)

    @property
    def nearly_certain(self) -> NDArray[np.bool_]:
        """Whose truth is nearly certain after the release, (t,)."""
        return self.posterior >= self.certain

    @property
    def newly_certain(self) -> NDArray[np.bool_]:
        """Whose truth is nearly certain after the release and was not before, (t,)."""
        return self.nearly_certain & (self.prior < self.certain)

    @property
    def over(self) -> str:
        """``all 400 records``, ``300 of 1,000 records``."""
        return f"{'all ' if self.asked == self.records else f'{self.asked:,} of '}{count_noun(self.records, 'record')}"

    @property
    def answer(self) -> str:
        """Shares guessed right, and how many truths are nearly certain."""
        band = interval(self.after.lower, self.after.upper)
        right = f"right {number(self.after.value)}{f' ({band})' if band else ''}, before {number(self.before.value)}"
        return f"{right} · sure of {int(self.nearly_certain.sum()):,}, newly {int(self.newly_certain.sum()):,}"

    @property
    def uses(self) -> str:
        """``measure[1], prior = uniform``."""
        params = params_text(self.params)
        return f"{self.place}, {params}" if params else self.place


@dataclass(frozen=True, slots=True)
class Guess:
    """One guess at a record: its probability after the release and before, whether it is right, and its values where they are asked for."""

    posterior: float
    prior: float
    right: bool
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class RecordGuesses:
    """The most likely guesses at one record (its number from 1), the most likely first.

    ``posterior`` and ``prior`` are of its truth, ``alone`` by each dataset alone; so many guesses are at least as likely as the truth
    (``candidates``). ``own`` are all the record's values, where they are asked for.
    """

    record: int
    posterior: float
    prior: float
    candidates: int
    alone: tuple[float, ...]
    guesses: tuple[Guess, ...]
    own: Values | None = None


def times(posterior: float, prior: float) -> str:
    """How many times as likely the truth has become; empty where it was as good as impossible before."""
    return number(posterior / prior) if prior > 1e-12 else ""


def belief_lines(found: RecordGuesses) -> list[str]:
    """What is believed of a record, in words and without a value."""
    ratio = times(found.posterior, found.prior)
    moved = f"the truth has probability {number(found.posterior)}, {number(found.prior)} before the release"
    first = moved + (f": {ratio} times as likely" if ratio else ": it was as good as impossible")
    ranked = (
        "no other guess is as likely"
        if found.candidates == 1
        else f"{found.candidates:,} guesses are at least as likely as the truth, itself among them"
    )
    return [f"{first}; {ranked}.", f"By each dataset alone: {', '.join(map(number, found.alone))}."]


def guess_table(found: RecordGuesses) -> Table:
    """The guesses by rank; with values where they were asked for."""
    names = list(next((one.values for one in found.guesses if one.values is not None), {}))
    rows = [
        [str(rank), number(one.posterior), number(one.prior), times(one.posterior, one.prior), _right(one),
         *(str((one.values or {})[name]) for name in names)]
        for rank, one in enumerate(found.guesses, start=1)
    ]  # fmt: skip
    return table(["guess", "after", "before", "times as likely", "is it right", *names], rows, range(4))


def _right(guess: Guess) -> str:
    return "the truth" if guess.right else "wrong"


def cross_table(found: BeliefsFound) -> Table:
    """Guesses before the release against guesses after it (Reiter, Wang & Zhang, Table 3)."""
    rows = [
        [said, *(number(value) for value in (sum(own), *own))]
        for said, own in (
            ("correct", (found.cross[True, True], found.cross[True, False])),
            ("incorrect", (found.cross[False, True], found.cross[False, False])),
        )
    ]
    heads = ("guess before", "records", "correct after", "incorrect after")
    return table(heads, rows, (1, 2, 3), title="Guesses before and after the release")


def first_table(found: BeliefsFound) -> Table:
    """The share guessed right by the first so many datasets, beside the share before."""
    rows = [
        [str(m), number(row.value), interval(row.lower, row.upper), number(row.baseline)]
        for m, row in sorted(found.first.items())
    ]
    return table(
        ("first datasets", "guessed right", "interval", "before"), rows, (0, 1, 3), title="By the first datasets"
    )


def group_table(found: BeliefsFound) -> Table | None:
    """The shares of each group; None where the measure has no groups."""
    rows = [
        [name, number(after.value), interval(after.lower, after.upper), number(before.value)]
        for name, (after, before) in found.groups.items()
    ]
    return table(("group", "guessed right", "interval", "before"), rows, (1, 3), title="By group") if rows else None


def belief_tables(found: BeliefsFound) -> list[Table]:
    """All that is told of a run's records together."""
    groups = group_table(found)
    return [cross_table(found), first_table(found), *([groups] if groups else [])]


RANKED = (
    Column("rank", "rank", align="right"),
    Column("record", "record", align="right"),
    Column("after", "probability of the truth", align="right"),
    Column("before", "before the release", align="right"),
    Column("ratio", "times as likely", align="right"),
)


def ranking_table(found: BeliefsFound) -> Table:
    """The records whose truth is most probable, of equals those of which it was least before: no values."""
    order = np.lexsort((found.numbers, found.prior, -found.posterior))
    rows = [
        [str(rank), str(found.numbers[i]), number(float(found.posterior[i])), number(float(found.prior[i])),
         times(float(found.posterior[i]), float(found.prior[i]))]
        for rank, i in enumerate(order[:MOST], start=1)
    ]  # fmt: skip
    return Table(RANKED, rows, f"The {count_noun(len(rows), 'record')} whose truth is most probable")


def belief_figure(found: BeliefsFound) -> Figure:
    """How belief in the truth moved, and the share guessed right by the first datasets."""
    values = [(float(m), row.value, row.lower, row.upper) for m, row in sorted(found.first.items())]
    panels = (moved_panel(found.prior, found.posterior), first_panel(values, found.before.value))
    return Figure(f"{found.title}: {found.uses}", "map", panels, f"Of {found.over}. {ABOVE} {sure(found)}")


def sure(found: BeliefsFound) -> str:
    """What it means to be sure, of how many records the intruder is, and what a reader has to know of the numbers."""
    newly, all_of = int(found.newly_certain.sum()), int(found.nearly_certain.sum())
    said = (
        f"The intruder is sure of {count_noun(all_of, 'record')}, whose truth has a probability of {number(found.certain)} or more; "
        f"{newly:,} of them had less before."
    )
    remark = found.after.reason
    return f"{said} {remark[0].upper()}{remark[1:]}." if remark else said


def belief_object(found: BeliefsFound) -> dict[str, Any]:
    """What ``--json`` writes of all records together."""
    return {
        "asked": found.asked,
        "guessed_right": found.after.value,
        "guessed_right_before": found.before.value,
        "cross": {
            "right_both": found.cross[True, True],
            "gained": found.cross[False, True],
            "lost": found.cross[True, False],
            "wrong_both": found.cross[False, False],
        },
        "of_first": {str(m): row.value for m, row in sorted(found.first.items())},
        "groups": {
            name: {"guessed_right": after.value, "guessed_right_before": before.value}
            for name, (after, before) in found.groups.items()
        },
        "nearly_certain": int(found.nearly_certain.sum()),
        "newly_certain": int(found.newly_certain.sum()),
        "certain_from": found.certain,
    }


def guesses_object(found: RecordGuesses) -> dict[str, Any]:
    """What ``--json`` writes of one record; values only where they were asked for."""
    guesses = [
        {"posterior": one.posterior, "prior": one.prior, "right": one.right}
        | ({} if one.values is None else {"values": dict(one.values)})
        for one in found.guesses
    ]
    return {"alone": list(found.alone), "guesses": guesses}
