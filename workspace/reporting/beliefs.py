"""Beliefs of an intruder about records before and after a release: as values, tables, a figure and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import count_noun, format_percent

from ..plots.beliefs import belief_change_panel, first_datasets_panel
from ..plots.figure import Figure
from .tables import DisplayColumn, DisplayTable, table_from_titles
from .words import interval_text, number, params_text

ValuesByVariable = Mapping[str, str | int | float]
ONLY_ATTACKED_RECORDS = (
    "Only records that were asked about count. A record of which nothing is said here is not a record without risk."
)
MOST_RANKED_RECORDS = 20
"""Number of records that a report ranks."""
DIAGONAL_REMARK = "Above the diagonal the truth has become more probable."


@dataclass(frozen=True, eq=False)
class MeasureBeliefs:
    """Beliefs of an intruder about t records of a run, by one measure, over all its datasets.

    measure_place: place of the measure in the recipe
    key, title, params: key, title and parameters of the measure
    n_records: number of records of the run
    record_numbers: records that were attacked, from 1, (t,)
    prior, posterior: probability of the truth before and after the release, (t,)
    right_after, right_before: rows of the shares guessed right after and before the release
    right_counts: number of records by whether they are guessed right (before, after)
    right_by_first_datasets: row of the share guessed right by the first 1 to m datasets
    right_by_group: rows after and before the release, by name of the group
    certain_from: probability from which the intruder counts as nearly certain
    is_informed: whether the intruder believes anything before the release
    """

    run_id: int
    measure_place: str
    key: str
    title: str
    params: Mapping[str, Any]
    n_records: int
    record_numbers: NDArray[np.int64]
    prior: NDArray[np.float64]
    posterior: NDArray[np.float64]
    right_after: Row
    right_before: Row
    right_counts: Mapping[tuple[bool, bool], float]
    right_by_first_datasets: Mapping[int, Row]
    right_by_group: Mapping[str, tuple[Row, Row]]
    certain_from: float
    is_informed: bool

    @property
    def n_attacked(self) -> int:
        """Return the number of attacked records."""
        return len(self.posterior)

    @property
    def nearly_certain(self) -> NDArray[np.bool_]:
        """Mark the records whose truth is nearly certain after the release, (t,)."""
        return self.posterior >= self.certain_from

    @property
    def newly_certain(self) -> NDArray[np.bool_]:
        """Mark the records whose truth is nearly certain after the release and was not before, (t,)."""
        return self.nearly_certain & (self.prior < self.certain_from)

    @property
    def attacked_text(self) -> str:
        """Return the number of attacked records in words: ``all 400 records``, ``300 of 1,000 records``."""
        return f"{'all ' if self.n_attacked == self.n_records else f'{self.n_attacked:,} of '}{count_noun(self.n_records, 'record')}"

    @property
    def result_text(self) -> str:
        """Return the shares guessed right before and after, and the number of nearly certain records."""
        band = interval_text(self.right_after.lower, self.right_after.upper)
        right = f"right {number(self.right_after.value)}{f' ({band})' if band else ''}, before {number(self.right_before.value)}"
        return f"{right} · sure of {int(self.nearly_certain.sum()):,}, newly {int(self.newly_certain.sum()):,}"

    @property
    def finding_text(self) -> str:
        """Return in a sentence what the intruder learns: guesses right before and after, and how many are new certainties."""
        after, before = (format_percent(row.value or 0.0) for row in (self.right_after, self.right_before))
        newly = int(self.newly_certain.sum())
        sure = f"{newly:,} of them" if newly else "none of them"
        return (
            f"Who knows all other records and how the release was made guesses {after} of {self.attacked_text} right with it, "
            f"{before} without it; {sure} become nearly certain."
        )

    @property
    def measure_text(self) -> str:
        """Return the place of the measure with its parameters: ``measure[1], prior = uniform``."""
        params = params_text(self.params)
        return f"{self.measure_place}, {params}" if params else self.measure_place


@dataclass(frozen=True, slots=True)
class RecordGuess:
    """Guess at a record: its probability after and before the release, whether it is right, and its values if asked
    for.
    """

    posterior: float
    prior: float
    is_right: bool
    values: ValuesByVariable | None = None


@dataclass(frozen=True, slots=True)
class RecordGuesses:
    """The most likely guesses at one record, the most likely first.

    record: its number, from 1
    posterior, prior: probability of its truth after and before the release
    candidates: number of guesses that are at least as likely as the truth
    posterior_by_dataset: probability of its truth by each dataset alone
    guesses: the guesses
    true_values: values of the record, where they were requested
    """

    record: int
    posterior: float
    prior: float
    candidates: int
    posterior_by_dataset: tuple[float, ...]
    guesses: tuple[RecordGuess, ...]
    true_values: ValuesByVariable | None = None


def times_as_likely(posterior: float, prior: float) -> str:
    """Return the ratio of a posterior to a prior probability as text; empty where the prior is nearly 0."""
    return number(posterior / prior) if prior > 1e-12 else ""


def record_belief_lines(found: RecordGuesses) -> list[str]:
    """Return the belief in a record's truth in sentences, without a value of the record."""
    ratio = times_as_likely(found.posterior, found.prior)
    moved = f"the truth has probability {number(found.posterior)}, {number(found.prior)} before the release"
    first = moved + (f": {ratio} times as likely" if ratio else ": it was as good as impossible")
    ranked = (
        "no other guess is as likely"
        if found.candidates == 1
        else f"{found.candidates:,} guesses are at least as likely as the truth, itself among them"
    )
    return [f"{first}; {ranked}.", f"By each dataset alone: {', '.join(map(number, found.posterior_by_dataset))}."]


def ranked_guess_table(found: RecordGuesses) -> DisplayTable:
    """Return the guesses at a record by rank, with their values where they were requested."""
    names = list(next((one.values for one in found.guesses if one.values is not None), {}))
    rows = [
        [str(rank), number(one.posterior), number(one.prior), times_as_likely(one.posterior, one.prior), _truth_text(one),
         *(str((one.values or {})[name]) for name in names)]
        for rank, one in enumerate(found.guesses, start=1)
    ]  # fmt: skip
    return table_from_titles(["guess", "after", "before", "times as likely", "is it right", *names], rows, range(4))


def _truth_text(guess: RecordGuess) -> str:
    """Return whether a guess is the truth, in words."""
    return "the truth" if guess.is_right else "wrong"


def before_after_table(found: MeasureBeliefs) -> DisplayTable:
    """Return the cross table of guesses before and after the release, by whether they are right."""
    rows = [
        # Reiter, Wang & Zhang, Table 3
        [said, *(number(value) for value in (sum(own), *own))]
        for said, own in (
            ("correct", (found.right_counts[True, True], found.right_counts[True, False])),
            ("incorrect", (found.right_counts[False, True], found.right_counts[False, False])),
        )
    ]
    heads = ("guess before", "records", "correct after", "incorrect after")
    return table_from_titles(heads, rows, (1, 2, 3), title="Guesses before and after the release")


def first_datasets_table(found: MeasureBeliefs) -> DisplayTable:
    """Return the share guessed right by the first 1 to m datasets, beside the share before the release."""
    rows = [
        [str(m), number(row.value), interval_text(row.lower, row.upper), number(row.baseline)]
        for m, row in sorted(found.right_by_first_datasets.items())
    ]
    return table_from_titles(
        ("first datasets", "guessed right", "interval", "before"), rows, (0, 1, 3), title="By the first datasets"
    )


def group_rates_table(found: MeasureBeliefs) -> DisplayTable | None:
    """Return the shares guessed right in each group; None where the measure has no groups."""
    rows = [
        [name, number(after.value), interval_text(after.lower, after.upper), number(before.value)]
        for name, (after, before) in found.right_by_group.items()
    ]
    return (
        table_from_titles(("group", "guessed right", "interval", "before"), rows, (1, 3), title="By group")
        if rows
        else None
    )


def belief_tables(found: MeasureBeliefs) -> list[DisplayTable]:
    """Return the tables about all attacked records together."""
    groups = group_rates_table(found)
    return [before_after_table(found), first_datasets_table(found), *([groups] if groups else [])]


RANKING_COLUMNS = (
    DisplayColumn("rank", "rank", align="right"),
    DisplayColumn("record", "record", align="right"),
    DisplayColumn("after", "probability of the truth", align="right"),
    DisplayColumn("before", "before the release", align="right"),
    DisplayColumn("ratio", "times as likely", align="right"),
)


def belief_ranking_table(found: MeasureBeliefs) -> DisplayTable:
    """Return the records by falling probability of their truth, without values; among equals the lowest prior first."""
    # the last key is the first by which lexsort sorts
    order = np.lexsort((found.record_numbers, found.prior, -found.posterior))
    rows = [
        [str(rank), str(found.record_numbers[i]), number(float(found.posterior[i])), number(float(found.prior[i])),
         times_as_likely(float(found.posterior[i]), float(found.prior[i]))]
        for rank, i in enumerate(order[:MOST_RANKED_RECORDS], start=1)
    ]  # fmt: skip
    return DisplayTable(RANKING_COLUMNS, rows, f"The {count_noun(len(rows), 'record')} whose truth is most probable")


def belief_figure(found: MeasureBeliefs) -> Figure:
    """Return a figure of the change of belief in the truth and of the share guessed right by the first datasets."""
    values = [(float(m), row.value, row.lower, row.upper) for m, row in sorted(found.right_by_first_datasets.items())]
    panels = (belief_change_panel(found.prior, found.posterior), first_datasets_panel(values, found.right_before.value))
    return Figure(
        f"{found.title}: {found.measure_text}",
        "map",
        panels,
        f"Of {found.attacked_text}. {DIAGONAL_REMARK} {certainty_text(found)}",
    )


def certainty_text(found: MeasureBeliefs) -> str:
    """Return for how many records the intruder is nearly certain, and what that means."""
    newly, all_of = int(found.newly_certain.sum()), int(found.nearly_certain.sum())
    said = (
        f"The intruder is sure of {count_noun(all_of, 'record')}, whose truth has a probability of {number(found.certain_from)} or more; "
        f"{newly:,} of them had less before."
    )
    remark = found.right_after.reason
    return f"{said} {remark[0].upper()}{remark[1:]}." if remark else said


def beliefs_object(found: MeasureBeliefs) -> dict[str, Any]:
    """Return the object that ``--json`` writes about all attacked records together."""
    return {
        "asked": found.n_attacked,
        "guessed_right": found.right_after.value,
        "guessed_right_before": found.right_before.value,
        "cross": {
            "right_both": found.right_counts[True, True],
            "gained": found.right_counts[False, True],
            "lost": found.right_counts[True, False],
            "wrong_both": found.right_counts[False, False],
        },
        "of_first": {str(m): row.value for m, row in sorted(found.right_by_first_datasets.items())},
        "groups": {
            name: {"guessed_right": after.value, "guessed_right_before": before.value}
            for name, (after, before) in found.right_by_group.items()
        },
        "nearly_certain": int(found.nearly_certain.sum()),
        "newly_certain": int(found.newly_certain.sum()),
        "certain_from": found.certain_from,
    }


def guesses_object(found: RecordGuesses) -> dict[str, Any]:
    """Return the object that ``--json`` writes about one record; values only where they were requested."""
    guesses = [
        {"posterior": one.posterior, "prior": one.prior, "right": one.is_right}
        | ({} if one.values is None else {"values": dict(one.values)})
        for one in found.guesses
    ]
    return {"alone": list(found.posterior_by_dataset), "guesses": guesses}
