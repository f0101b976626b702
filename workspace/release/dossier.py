"""Dossier that all files of a release are written from: what is released, how it was made and judged, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import IO, TYPE_CHECKING

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row

from ..audit import user
from ..gate.answer import ReleaseAnswer, answer_from_examination
from ..gate.checks import ExaminedRelease
from ..gate.contents import ReleasePlan
from ..gate.gate import Examination
from ..gate.ledger import ledger_after_release
from ..gate.package_accounts import trusted_packages_of_run
from ..gate.public_figures import public_figures_of_release
from ..gate.questions import ShareFoundBy
from ..policy.policy import Policy
from ..store.artefacts import count_control_records
from ..store.protected_tables import StoredTables, read_run_protected_tables
from ..store.runs import finished_with_companions, read_run_records
from ..store.tables import TableStore
from ..store.workspace import StoredDataset, Workspace
from ..views.approved import read_approved_tables
from ..views.coverage import FileCoverage, read_file_coverage
from ..views.figures import draw_run_figures
from ..views.results import read_diagnostics, read_result_rows
from .judgements import read_judgements_of_run
from .last_release import ChangesSinceRelease, read_changes_since_release
from .users import privacy_promise_of_run

if TYPE_CHECKING:
    import pyarrow as pa

    from ..plots.figure import Figure
    from ..policy.disclosure import PublicFigure
    from ..reporting.ledger import PopulationLedger
    from ..reporting.privacy_promise import PrivacyPromise
    from .forms import DatasetForm


@dataclass(frozen=True)
class StoredParts:
    """Stored tables of a release, some rows at a time.

    tables: where they are stored
    hashes: hashes of the datasets, by draw
    confidential: hash of the confidential table
    """

    tables: TableStore
    hashes: Sequence[str]
    confidential: str

    @property
    def are_long(self) -> bool:
        """Return whether the datasets are stored in several parts."""
        return bool(self.hashes) and all(map(self.tables.has_parts, self.hashes))

    def iterate_released(self, draw: int) -> Iterator[pa.Table]:
        """Yield the rows of dataset ``draw``, from 0, each verified as it is read. Raises DamagedTable."""
        return self.tables.iterate_row_groups(self.hashes[draw])

    def iterate_all_released(self) -> Iterator[pa.Table]:
        """Yield the rows of all datasets, as ``iterate_released`` does. Raises DamagedTable."""
        return chain.from_iterable(map(self.tables.iterate_row_groups, self.hashes))

    def iterate_confidential(self) -> Iterator[pa.Table]:
        """Yield the rows of the confidential table, each verified as it is read. Raises DamagedTable."""
        return self.tables.iterate_row_groups(self.confidential)

    def read_confidential_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels of the confidential table, by column. Raises DamagedTable."""
        return self.tables.read_levels(self.confidential)

    def open_spool(self) -> IO[bytes]:
        """Open a file without a name on the disk of the workspace. Raises OSError."""
        return self.tables.open_spool()


@dataclass(frozen=True)
class ReleaseDossier:
    """Knowledge of a release when its files are written.

    plan: what is released
    policy: the policy of the workspace
    examination: the findings of the gate
    form: format of the datasets
    reason: why it is released
    original: description of the confidential table
    rows: all results, those of single datasets too
    diagnostics: diagnostics of the models
    read_confidential: function that reads the confidential table
    read_released: function that reads the l-th stored dataset, from 0, or some named columns of it, in the order that it has in the workspace
    stored_parts: the same tables some rows at a time
    judgements: what people have answered, by question
    share_found_by: share of people that the kept columns alone find
    read_promise: function that reads what the results promise of privacy, once; None where no step keeps an account
    draw_figures: function that draws the figures of the report, once
    read_public_figures: function that computes the figures of utility that are released, once
    read_approved_tables: function that reads the protected tables that may be published, once
    read_printed_tables: function that reads the tables of the recipe, once; None without any
    coverage: share of the file's people whom the release describes
    user: account that releases
    ledger: what was charged to the population of the release, this release included
    last_release: what changed since the last release of the project; None where there is none
    held_out: number of records that were held out, to try attacks on people who are not in the release
    """

    plan: ReleasePlan
    policy: Policy
    examination: Examination
    form: DatasetForm
    reason: str
    original: StoredDataset
    rows: tuple[Row, ...]
    diagnostics: tuple[Diagnostic, ...]
    read_confidential: Callable[[], pa.Table]
    read_released: Callable[..., pa.Table]
    stored_parts: StoredParts
    judgements: Mapping[str, str]
    share_found_by: ShareFoundBy
    read_promise: Callable[[], PrivacyPromise | None]
    draw_figures: Callable[[], Sequence[Figure]]
    read_public_figures: Callable[[], Sequence[PublicFigure]]
    read_approved_tables: Callable[[], tuple[ApprovedTable, ...]]
    read_printed_tables: Callable[[], StoredTables | None]
    coverage: FileCoverage
    user: str
    ledger: PopulationLedger | None = None
    last_release: ChangesSinceRelease | None = None
    held_out: int = 0

    @property
    def answer(self) -> ReleaseAnswer:
        """Return whether the release may leave, with the waivers of the examination."""
        return answer_from_examination(self.examination, self.plan.run.recipe, self.policy, self.original.records)


def read_dossier(
    workspace: Workspace, plan: ReleasePlan, policy: Policy, examination: Examination, form: DatasetForm, reason: str
) -> ReleaseDossier:
    """Read the dossier of a run that is to be released."""
    stored = workspace.find_dataset(plan.run.dataset_id)
    original = replace(stored, records=plan.run.count_records(stored.records))
    rows, case = tuple(read_result_rows(workspace, plan.run.id)), ExaminedRelease(workspace, plan, policy)
    charge = examination.charge
    ledger = None if charge is None else ledger_after_release(workspace, policy, charge)
    return ReleaseDossier(
        plan,
        policy,
        examination,
        form,
        reason,
        original,
        rows,
        tuple(read_diagnostics(workspace, plan.run.id)),
        # Tables are read when a document needs them, not before: they may be large.
        lambda: workspace.tables.read_stored_table(original.table_sha256),
        lambda draw, names=None: workspace.tables.read_stored_table(plan.tables[draw], names),
        StoredParts(workspace.tables, plan.tables, original.table_sha256),
        read_judgements_of_run(workspace.directory, plan.run.id),
        case.share_found_by_columns,
        cache(
            lambda: privacy_promise_of_run(
                plan.run.recipe,
                read_run_records(workspace, plan.run),
                rows,
                secret=not plan.run.key_public,
                ledger=None if ledger is None else ledger.sum_for_public,
                trusted_packages=trusted_packages_of_run(workspace, plan.run, policy.packages),
            )
        ),
        cache(lambda: draw_run_figures(workspace, finished_with_companions(workspace, plan.run.id))),
        cache(lambda: public_figures_of_release(case)),
        cache(
            lambda: read_approved_tables(
                workspace, plan.run, trusted_packages_of_run(workspace, plan.run, policy.packages).versions
            )
        ),
        cache(lambda: read_run_protected_tables(workspace, plan.run.id)),
        read_file_coverage(workspace, plan.run),
        user(),
        ledger,
        read_changes_since_release(workspace, plan, policy),
        count_control_records(workspace, plan.run.id),
    )
