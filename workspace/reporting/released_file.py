"""What one anonymised file shows by itself, compared with limits, as tables, sentences and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

# A process that answers with a view reads the types of its fields.
from sfumato.engine.partition.released_file import Diversity, ReleasedFileAnonymity, SensitiveVariable
from sfumato.engine.wording import agreeing_word, count_noun

from ..policy.disclosure import MARKING
from ..visible_text import replace_unprintable
from .tables import DisplayCell, DisplayTable, table_from_titles

if TYPE_CHECKING:
    from .document import Document

UNSEEN = (
    "One file cannot show whether values are synthetic or have noise, whom other files or knowledge would re-identify, "
    "or which people were left out. A row counts as a person. These numbers do not say that the file is safe; compare "
    "it with the confidential file: sfumato evaluate RECIPE --original FILE --released FILE"
)


@dataclass(frozen=True, slots=True)
class AnonymityLimits:
    """Limits of a file: least k and distinct values l, largest distance t; None where none was asked."""

    k: int | None = None
    l: float | None = None  # noqa: E741
    t: float | None = None


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """A measured value and its limit; ``value`` is None where it was not computed, which meets no limit."""

    key: str
    target: str
    value: float | None
    limit: float

    @property
    def is_met(self) -> bool:
        """Return whether the value was computed and keeps to the limit."""
        if self.value is None:
            return False
        return self.value <= self.limit if self.key == "t" else self.value >= self.limit


@dataclass(frozen=True, slots=True)
class ReleasedFileView:
    """What one file shows, the limits that were asked of it, and its columns that were not looked at."""

    file: str
    found: ReleasedFileAnonymity
    limits: AnonymityLimits
    other_columns: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[LimitVerdict, ...]:
        """Return a verdict for each limit, and of l and t for each sensitive variable."""
        return tuple(self._iterate_verdicts())

    def _iterate_verdicts(self) -> Iterator[LimitVerdict]:
        if self.limits.k is not None:
            yield LimitVerdict("k", "", self.found.compared_k, self.limits.k)
        if not self.found.sensitive:
            # no variable was named
            for key, limit in (("l_distinct", self.limits.l), ("t", self.limits.t)):
                if limit is not None:
                    yield LimitVerdict(key, "", None, limit)
        for one in self.found.sensitive:
            if self.limits.l is not None:
                yield LimitVerdict("l_distinct", one.name, one.compared_l, self.limits.l)
            if self.limits.t is not None:
                yield LimitVerdict("t", one.name, one.compared_t, self.limits.t)

    @property
    def are_limits_met(self) -> bool:
        """Return whether every limit is met."""
        return all(verdict.is_met for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and verdicts for JSON."""
        return {
            "disclosure": "internal",
            "file": self.file,
            **asdict(self.found),
            "sensitive": [_sensitive_to_dict(one) for one in self.found.sensitive],
            "compared_k": self.found.compared_k,
            "suppressed_cells": self.found.suppressed_cells,
            "other_columns": list(self.other_columns),
            "verdicts": [{**asdict(one), "status": "met" if one.is_met else _failure(one)} for one in self.verdicts],
            "not_shown": UNSEEN,
        }


def _sensitive_to_dict(one: SensitiveVariable) -> dict[str, Any]:
    """Return the numbers of a sensitive variable: in the worst class, in the suppressed records, and those of limits."""
    classes = dict.fromkeys(("l_distinct", "l_entropy", "t")) if one.classes is None else asdict(one.classes)
    suppressed = None if one.suppressed is None else asdict(one.suppressed)
    return {
        "name": one.name, "missing": one.missing, **classes, "suppressed": suppressed,
        "compared_l": one.compared_l, "compared_t": one.compared_t,
    }  # fmt: skip


def _failure(verdict: LimitVerdict) -> str:
    """Return why a limit is not met: the value, or that there is none."""
    return "not computed" if verdict.value is None else "not met"


def released_file_sentences(view: ReleasedFileView) -> list[str]:
    """Return what the file shows in sentences."""
    found = view.found
    lines = [f"{replace_unprintable(view.file)}: {count_noun(found.records, 'record')}."]
    if found.k is None:
        lines.append("Every record has all known cells suppressed: there is no class, and k is not computed.")
    else:
        lines.append(
            f"Smallest class of records with the same known values: k = {found.k:,}, of "
            f"{count_noun(found.classes, 'class')}."
        )
        lines.append(
            f"{count_noun(found.unique_records, 'record')} {agreeing_word(found.unique_records, 'is', 'are')} alone in "
            f"{agreeing_word(found.unique_records, 'its', 'their')} class."
        )
    out = found.suppressed_records
    lines.append(
        f"Suppressed: {count_noun(found.suppressed_cells, 'cell')} of the known variables. {count_noun(out, 'record')} "
        f"{agreeing_word(out, 'has', 'have')} all known cells suppressed and {agreeing_word(out, 'is', 'are')} in no class."
    )
    if out:
        fewer = found.compared_k != found.k
        compared = f" A limit on k is compared with {found.compared_k:,}." if fewer else ""
        lines.append(
            "These records are a group apart, since a person whose values no class has is among them. Limits on l and t "
            f"are for that group too.{compared}"
        )
    if not found.sensitive:
        lines.append("l and t are not computed: no sensitive variable is named.")
    if missing := sum(one.missing for one in found.sensitive):
        lines.append(
            f"{count_noun(missing, 'cell')} of the sensitive variables {agreeing_word(missing, 'is', 'are')} missing or "
            "suppressed and not counted in l; a class without any value has l = 0."
        )
    if view.other_columns:
        named = ", ".join(map(replace_unprintable, view.other_columns))
        lines.append(f"Not looked at: {named}. Whoever knows one of them may tell the records of a class apart.")
    return lines


def limits_sentence(view: ReleasedFileView) -> str:
    """Return whether the limits are met: ``1 of 3 limits is not met: k``."""
    if not view.verdicts:
        return "No limit was set: these are numbers without a verdict."
    missed = [" of ".join(filter(None, (one.key, one.target))) for one in view.verdicts if not one.is_met]
    if not missed:
        return f"{count_noun(len(view.verdicts), 'limit')} of this file {agreeing_word(len(view.verdicts), 'is', 'are')} met."
    verb = agreeing_word(len(missed), "is", "are")
    named = ", ".join(map(replace_unprintable, missed))
    return f"{len(missed)} of {count_noun(len(view.verdicts), 'limit')} {verb} not met: {named}."


def released_file_tables(view: ReleasedFileView) -> list[DisplayTable]:
    """Return the tables of limits, known and sensitive variables, without those that are empty."""
    tables = [limits_table(view)] if view.verdicts else []
    tables.append(known_columns_table(view))
    return [*tables, sensitive_columns_table(view)] if view.found.sensitive else tables


def released_file_lines(view: ReleasedFileView) -> list[str]:
    """Return all that the tables show as lines for reading aloud, a verdict or a variable on each."""
    verdicts = [
        f"{'met' if one.is_met else _failure(one)}: {' of '.join(filter(None, (one.key, one.target)))} "
        f"{'not computed' if one.value is None else format(one.value, '.4g')}, {_limit_text(one)}"
        for one in view.verdicts
    ]
    known = [
        f"{one.name}: {count_noun(one.values, 'value')}, {count_noun(one.intervals, 'interval')} and {one.masked:,} with * "
        f"among them; {count_noun(one.suppressed, 'suppressed cell')}"
        for one in view.found.known
    ]
    sensitive = [
        f"{name}, {group}: {count_noun(own.l_distinct, 'different value')}, entropy l {own.l_entropy:.3g}, distance t {own.t:.3g}"
        for name, group, own in _diversities(view)
    ]
    return [*verdicts, *known, *sensitive]


def released_file_document(view: ReleasedFileView) -> Document:
    """Return the page about what one file shows by itself."""
    # Pages load the library of figures, for which a screen need not wait.
    from .document import BulletList, Chapter, Document, Paragraph

    limits = [limits_table(view)] if view.verdicts else []
    sensitive = [Chapter("Sensitive variables", [sensitive_columns_table(view)])] if view.found.sensitive else []
    parts = [
        Chapter("Limits", [Paragraph(limits_sentence(view), is_strong=True), *limits]),
        Chapter("Classes and suppressed records", [BulletList(released_file_sentences(view)[1:])]),
        Chapter("Known variables", [known_columns_table(view)]),
        *sensitive,
        Chapter("What one file cannot show", [Paragraph(UNSEEN)]),
    ]
    summary = f"{count_noun(view.found.records, 'record')}, without the confidential file."
    title = f"What {replace_unprintable(view.file)} shows by itself"
    return Document(title, MARKING, parts, summary=summary, kind="what one anonymised file shows")


def known_columns_table(view: ReleasedFileView) -> DisplayTable:
    """Return the known variables with their suppressed cells and generalised values."""
    rows: list[list[DisplayCell | str]] = [
        [
            replace_unprintable(one.name),
            f"{one.suppressed:,}",
            f"{one.values:,}",
            f"{one.intervals:,}",
            f"{one.masked:,}",
        ]
        for one in view.found.known
    ]
    return table_from_titles(
        ("known", "suppressed", "values", "of them intervals", "of them with *"), rows, right=(1, 2, 3, 4)
    )


def sensitive_columns_table(view: ReleasedFileView) -> DisplayTable:
    """Return the diversity of each sensitive variable in its worst class."""
    missing = {one.name: one.missing for one in view.found.sensitive}
    rows: list[list[DisplayCell | str]] = [
        [replace_unprintable(name), f"{missing[name]:,}", group, f"{own.l_distinct:,}", f"{own.l_entropy:.3g}", f"{own.t:.3g}"]
        for name, group, own in _diversities(view)
    ]  # fmt: skip
    return table_from_titles(
        ("sensitive", "missing", "records", "distinct l", "entropy l", "distance t"), rows, right=(1, 3, 4, 5)
    )


def _diversities(view: ReleasedFileView) -> Iterator[tuple[str, str, Diversity]]:
    """Yield each sensitive variable with the name and the diversity of its worst class, and of the suppressed records."""
    for one in view.found.sensitive:
        for group, own in (("worst class", one.classes), ("suppressed", one.suppressed)):
            if own is not None:
                yield one.name, group, own


def _limit_text(verdict: LimitVerdict) -> str:
    """Return the limit of a verdict: ``at least 5``."""
    return f"{'at most' if verdict.key == 't' else 'at least'} {verdict.limit:g}"


def limits_table(view: ReleasedFileView) -> DisplayTable:
    """Return the limits and whether each is met."""
    rows: list[list[DisplayCell | str]] = [
        [
            DisplayCell("met", "pass") if one.is_met else DisplayCell(_failure(one), "fail"),
            one.key,
            replace_unprintable(one.target),
            "" if one.value is None else f"{one.value:.4g}",
            _limit_text(one),
        ]
        for one in view.verdicts
    ]
    return table_from_titles(("", "limit", "variable", "value", "asked"), rows, right=(3,))
