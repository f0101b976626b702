"""Compact list of the people most at risk, beside the gate's findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from sfumato.engine.wording import count_noun, join_names, singular_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.reporting.words import number
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.lines import Scroll

if TYPE_CHECKING:
    from sfumato.workspace.reporting.records import RecordLine
    from sfumato.workspace.store.workspace import Workspace

MOST_PEOPLE = 10
MOST_READ = 100
"""Records or units among which those are sought of whom the release says more than was believed before."""
LEAST_HEIGHT = 30
"""Height of a terminal in lines from which people are shown."""
TITLES = "People most at risk", "Most at risk"
GUESSED_TITLES = "Values guessed most surely", "Guessed most surely"
"""Names of the list where an intruder guesses values of people whom he knows, and finds nobody."""
FOUND_BY, SURE_HEAD = ", mainly by", "how sure"
WHO, SURE = 14, 7
"""Cells of the columns who, at least, and how sure."""
CERTAIN = "certain"
BY = ", found by "
"""Words between the number of somebody's records and the variables by which all of them together are found."""
MOST_WIDTH = 76
"""Most cells of a line: how sure stands near the name."""


@dataclass(frozen=True)
class PersonAtRisk:
    """Record or unit at risk.

    row: its row in the tab Records, from 0
    who: its number in words
    found_by: what drives the risk, or by which variables it is found
    probability: how sure the intruder is; empty where that is not known
    """

    row: int
    who: str
    found_by: str
    probability: str


@dataclass(frozen=True)
class PeopleMostAtRisk:
    """People most at risk of a run.

    run_id: the run
    people: the first of them
    is_found_by: whether the text of each says by what it is found; otherwise how many records it has
    are_found: whether people are found; otherwise their values are guessed
    """

    run_id: int
    people: Sequence[PersonAtRisk]
    is_found_by: bool = True
    are_found: bool = True


def read_people_at_risk(directory: Path, run_id: int) -> PeopleMostAtRisk:
    """Read the people most at risk by the first measure of the tab Records, without values."""
    from sfumato.workspace.store.workspace import Workspace

    with Workspace.open(directory, read_only=True) as workspace:
        return _people_of_run(workspace, run_id)


def _people_of_run(workspace: Workspace, run_id: int) -> PeopleMostAtRisk:
    """Read the people most at risk of a run, without those of whom the release says no more than was believed before."""
    from sfumato.workspace.views.records import find_risk_drivers, find_unit_matches, rank_records, record_measures

    measures = record_measures(workspace, run_id)
    if not measures:
        return PeopleMostAtRisk(run_id, ())
    records = rank_records(workspace, run_id, measures[0], None)
    if records.units is not None:
        noun = singular_noun(records.units.noun)
        # The tab lists each unit in one row.
        folded = records.fold(())
        listed = enumerate(folded.lines(0, MOST_READ))
        units = [(row, line) for row, line in listed if _is_more_likely(line)][:MOST_PEOPLE]
        matches = (
            find_unit_matches(workspace, records, [line.record for _, line in units]) if measures[0].is_matching else {}
        )
        # Who is found more surely by one of his records alone is not found by what all of them match on.
        used = {
            line.record: join_names([replace_unprintable(name) for name in matches[line.record].used])
            for _, line in units
            if line.record in matches and matches[line.record].probability >= line.probability - 1e-6
        }
        return PeopleMostAtRisk(
            run_id,
            [
                PersonAtRisk(
                    row,
                    f"{noun} {line.unit:,}",
                    f"{count_noun(line.members or 0, 'record')}{BY}{used.get(line.record, '')}".removesuffix(BY),
                    _how_surely(line.probability),
                )
                for row, line in units
            ],
            is_found_by=False,
            are_found=_are_found(line for _, line in units),
        )
    told = [(row, line) for row, line in enumerate(records.lines(0, MOST_READ)) if _is_more_likely(line)][:MOST_PEOPLE]
    drivers = find_risk_drivers(workspace, records, [line.record for _, line in told])
    people = []
    for place, (row, line) in enumerate(told):
        driver = None if drivers is None else drivers.driver(place)
        found_by = "" if driver is None else replace_unprintable(driver.variable)
        people.append(PersonAtRisk(row, f"record {line.record:,}", found_by, _how_surely(line.probability)))
    return PeopleMostAtRisk(run_id, people, are_found=_are_found(line for _, line in told))


def _how_surely(probability: float) -> str:
    """Return a probability; of whom the answer says that he is found for certain in the same word."""
    return CERTAIN if probability == 1 else number(probability)


def _is_more_likely(line: RecordLine) -> bool:
    """Return whether the release makes a guess more likely than it was before; true of measures without a before."""
    return line.prior is None or line.probability > line.prior


def _are_found(lines: Iterable[RecordLine]) -> bool:
    """Return whether people are found. Where a guess was possible before the release, their values are guessed."""
    return all(line.prior is None for line in lines)


class PeopleAtRisk(Scroll):
    """List of the people most at risk; ``enter`` shows the one under the cursor in the tab Records."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "ask", "Records", show=True)]
    DEFAULT_CSS = """
    PeopleAtRisk { height: auto; padding: 0 0 0 1; scrollbar-size: 1 1; }
    PeopleAtRisk.below-list { padding: 0; margin: 1 0 0 0; }
    """

    @dataclass
    class PersonSelected(Message):
        """Message that the user wants to see the record or unit in this ``row`` of the tab Records."""

        row: int

    def __init__(self, place: Literal["below-list", "beside-list"]) -> None:
        """Create the list without people in its place; it takes no space."""
        super().__init__()
        self.add_class(place)
        self._people: Sequence[PersonAtRisk] = ()
        self._at = 0
        self._width = 40
        self._is_found_by = False
        self._titles = TITLES
        self.display = False

    def show_people(self, found: PeopleMostAtRisk | None, width: int, most: int = MOST_PEOPLE) -> None:
        """Show at most so many people in lines of ``width`` cells; without people, or in a low terminal, nothing."""
        self._people = () if found is None else found.people[: max(0, most)]
        self._width, self._is_found_by = min(width, MOST_WIDTH), found is not None and found.is_found_by
        self._titles = GUESSED_TITLES if found is not None and not found.are_found else TITLES
        self._at = min(self._at, max(0, len(self._people) - 1))
        self.display = bool(self._people) and self.app.size.height >= LEAST_HEIGHT
        # Its own lines only: what is left belongs to the explanation above.
        self.styles.height = len(self._people) + 1
        self._paint_people()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Mark the person under the cursor as long as the keys are this list's."""
        super().watch_has_focus(has_focus)
        self._paint_people()

    def _paint_people(self) -> None:
        """Write the heading and a line for each person."""
        title = "$foreground bold" if self.has_focus else "$foreground"
        who = max([WHO, *(len(one.who) for one in self._people)])
        room = max(1, self._width - who - SURE - 2)
        left = self._width - len(SURE_HEAD)
        by = FOUND_BY if self._is_found_by and self._titles is TITLES else ""
        name = next((one for one in self._titles if len(one) + len(by) < left), self._titles[-1])
        by = by if len(name) + len(by) < left else ""
        told = fit_text(by, left - len(name)) + SURE_HEAD
        lines = [Content.assemble((name, title), (told, "$text-muted")).truncate(self._width)]
        for at, one in enumerate(self._people):
            found_by = one.found_by if cell_len(one.found_by) <= room else one.found_by.partition(BY)[0]
            text = f"{fit_text(one.who, who)} {fit_text(found_by, room)} {fit_text(one.probability, SURE, 'right')}"
            style = "reverse" if self.has_focus and at == self._at else ""
            lines.append(Content.styled(cut_text(text, self._width), style))
        self.show_text(Content("\n").join(lines) if self._people else "")

    def action_lines(self, lines: int) -> None:
        """Move the cursor by lines."""
        self._at = max(0, min(self._at + lines, len(self._people) - 1))
        self._paint_people()
        self.scroll_to(y=max(0, self._at + 2 - self.size.height), animate=False)

    def action_ends(self, end: int) -> None:
        """Move the cursor to the first line (0) or the last (1)."""
        self.action_lines(len(self._people) * (1 if end else -1))

    def action_ask(self) -> None:
        """Request the tab Records at the person under the cursor."""
        if self._people:
            self.post_message(self.PersonSelected(self._people[self._at].row))
