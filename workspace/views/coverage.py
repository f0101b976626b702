"""Share of its file's people that a run's release describes: all but those whom missing values or suppression leave
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engine.data.affected_group import AffectedGroup
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.wording import RecordCount, format_percent, join_names, record_noun

from ..store.artefacts import count_control_records, released_dataset_hash
from ..store.runs import StoredRun
from ..store.workspace import Workspace
from ..visible_text import replace_unprintable


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """Share of a file's people that a release describes.

    Those of the file are all that satisfy the recipe's condition. A sample and a hold-out are drawn at random, so a
    release describes whom they leave out.

    file_records: number of the file's people; 0 where it was not counted
    dropped: how many of them were dropped for a missing value
    suppressed_share: share of the others that an anonymisation suppressed
    missing_counts: how many of the file's people lack a value, by variable that people were dropped for
    affected_group: the group of which most people were dropped beyond chance; None where there is none or it is not known
    """

    file_records: RecordCount
    dropped: int
    suppressed_share: float = 0.0
    missing_counts: Mapping[str, int] | None = None
    affected_group: AffectedGroup | None = None

    @property
    def share(self) -> float | None:
        """Return the share of the file's people that the release describes; None where it is not known."""
        if not self.file_records:
            return None if self.dropped else 1 - self.suppressed_share
        return (1 - self.dropped / self.file_records) * (1 - self.suppressed_share)

    @property
    def described_people(self) -> int:
        """Return how many of the file's people the release describes, as far as its share is known."""
        return round((self.share or 0.0) * self.file_records)

    @property
    def is_whole(self) -> bool:
        """Return whether nobody of the file is left out."""
        return not self.dropped and not self.suppressed_share

    @property
    def text(self) -> str:
        """Return the share and why people are left out, in a sentence without its full stop."""
        noun = record_noun(self.file_records)
        share = "an unknown share" if self.share is None else format_percent(self.share)
        counted = f"{self.described_people:,} of {self.file_records:,} {noun} of the file, {share}"
        head = f"describes {counted if self.file_records else f'{share} of the {noun} of the file'}"
        reasons = [
            f"{self.dropped:,} dropped for a missing value{self._lacking_text}" if self.dropped else "",
            f"{format_percent(self.suppressed_share)} of the others suppressed" if self.suppressed_share else "",
        ]
        return "; ".join([head, *filter(None, reasons)])

    @property
    def _lacking_text(self) -> str:
        """Return by which variables people were dropped: `` of income (500) and age (300)``."""
        counts = sorted((self.missing_counts or {}).items(), key=lambda one: -one[1])
        named = [f"{replace_unprintable(name)} ({count:,})" for name, count in counts if count]
        return f" of {join_names(named)}" if named else ""

    def to_table(self) -> dict[str, Any]:
        """Return the coverage as JSON has it."""
        return {
            "share": self.share,
            "records_of_file": int(self.file_records) or None,
            "dropped": self.dropped,
            "suppressed_share": self.suppressed_share,
            "missing": dict(self.missing_counts or {}),
        }


def read_file_coverage(workspace: Workspace, run: StoredRun) -> FileCoverage:
    """Return the share of its file's people that a run's release describes. Raises DamagedTable."""
    dataset, source = workspace.find_dataset(run.dataset_id), run.recipe.data
    if source.sample is None and source.screen is None:
        # From sealed numbers: all records that were not dropped are in the run.
        people = dataset.records + count_control_records(workspace, run.id) + dataset.dropped
    else:
        people = dataset.file_records
    return FileCoverage(
        run.count_records(people),
        dataset.dropped,
        _suppressed_share(workspace, run, dataset.records),
        _missing_counts(workspace, run),
        _affected_group(workspace, run),
    )


def _suppressed_share(workspace: Workspace, run: StoredRun, records: int) -> float:
    """Return the share of a run's records that its anonymised table lacks; 0 for other releases."""
    if run.recipe.origin != "anonymised":
        return 0.0
    found = released_dataset_hash(workspace, run.id, 1)
    return max(0.0, 1 - workspace.tables.count_table_records(found) / records) if found else 0.0


def _missing_counts(workspace: Workspace, run: StoredRun) -> dict[str, int]:
    """Return how many people lack a value, by variable that the run's recipe drops people for."""
    source = run.recipe.data
    names = source.complete_cases if source.missing is MissingPolicy.KEEP else run.recipe.schema.names
    query = "SELECT name, records FROM missing WHERE dataset_id = ?"
    found = {row["name"]: int(row["records"]) for row in workspace.connection.execute(query, (run.dataset_id,))}
    return {name: found[name] for name in names if name in found}


def _affected_group(workspace: Workspace, run: StoredRun) -> AffectedGroup | None:
    """Return the group of which most people were dropped when the file was read; None where there is none."""
    query = """SELECT variable, level, records, lacking, other_records, other_lacking, p FROM dropped_group
               WHERE dataset_id = ?"""
    row = workspace.connection.execute(query, (run.dataset_id,)).fetchone()
    return None if row is None else AffectedGroup(*row)
