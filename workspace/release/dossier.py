"""All that the files of a release are written from: what goes out, how it was made and judged, and who answers for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row

from ..audit import user
from ..gate.answer import Answer, answer_of
from ..gate.checks import Case
from ..gate.contents import ReleasePlan
from ..gate.gate import Examination
from ..gate.public_figure_checks import figures_of_case
from ..gate.question_checks import FoundBy
from ..policy.policy import Policy
from ..store.runs import done_together
from ..store.workspace import Dataset, Workspace
from ..views.approved import approved_tables
from ..views.figures import figures_of
from ..views.results import diagnostics_of, result_rows
from .judgements import judgements_of
from .users import promised

if TYPE_CHECKING:
    import pyarrow as pa

    from ..plots.figure import Figure
    from ..policy.disclosure import PublicFigure
    from ..reporting.privacy_promise import PrivacyPromise
    from .forms import Form


@dataclass(frozen=True)
class Dossier:
    """What is known of a release when its files are written.

    ``original`` describes the confidential table, which ``confidential()`` reads; ``released(l)`` reads the l-th stored
    dataset, from 0, with the columns and the order that it has in the workspace. ``rows`` are all results, those of single
    datasets too; ``promise()`` is what they promise of privacy, read once. ``judgements`` is what people have said of it, by what they were asked;
    ``public_figures()`` are the figures of utility that leave; ``approved()`` are the protected tables that may be published. ``found_by`` is how many people the kept columns alone find; ``figures()`` draws those of the report, once. ``user`` is who releases.
    """

    plan: ReleasePlan
    policy: Policy
    examination: Examination
    form: Form
    reason: str
    original: Dataset
    rows: tuple[Row, ...]
    diagnostics: tuple[Diagnostic, ...]
    confidential: Callable[[], pa.Table]
    released: Callable[[int], pa.Table]
    judgements: Mapping[str, str]
    found_by: FoundBy
    promise: Callable[[], PrivacyPromise | None]
    figures: Callable[[], Sequence[Figure]]
    public_figures: Callable[[], Sequence[PublicFigure]]
    approved: Callable[[], tuple[ApprovedTable, ...]]
    user: str

    @property
    def answer(self) -> Answer:
        """Return whether the release may leave, with the waivers of the examination."""
        return answer_of(self.examination, self.plan.run.recipe, self.policy, self.original.records)


def dossier_of(
    workspace: Workspace, plan: ReleasePlan, policy: Policy, examination: Examination, form: Form, reason: str
) -> Dossier:
    """Read what there is on a run that is to be released; tables are read when they are asked for."""
    stored = workspace.dataset(plan.run.dataset_id)
    original = replace(stored, records=plan.run.count_records(stored.records))
    rows, case = tuple(result_rows(workspace, plan.run.id)), Case(workspace, plan, policy)
    return Dossier(
        plan,
        policy,
        examination,
        form,
        reason,
        original,
        rows,
        tuple(diagnostics_of(workspace, plan.run.id)),
        lambda: workspace.tables.read(original.table_sha256),
        lambda draw: workspace.tables.read(plan.tables[draw]),
        judgements_of(workspace.directory, plan.run.id),
        case.found_by,
        cache(lambda: promised(plan.run.recipe, workspace.read(original), rows, secret=not plan.run.key_public)),
        cache(lambda: figures_of(workspace, done_together(workspace, plan.run.id))),
        cache(lambda: figures_of_case(case)),
        cache(lambda: approved_tables(workspace, plan.run)),
        user(),
    )
