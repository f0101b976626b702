"""The gate's check of the counts that protected tables reveal together: those of this release, and those that earlier ones of the same records published.

The number of rows of the datasets is published too. Where one of these releases has a row for each record, readers know the number of
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.errors import NotComputable
from sfumato.engine.margins.linear_bounds import MarginAudit, known_record_range
from sfumato.engine.methods.results import Fit
from sfumato.engine.wording import count_noun

from ..errors import NotFound
from ..store.runs import StoredRun, find_run
from ..views.approved import read_publishing_fits
from .checks import CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck
from .earlier_checks import ELSEWHERE

MOST_NAMED = 5
"""Sets of variables that are named of those whose small counts follow."""
WITHHELD = (
    "the tables are not published: small counts follow from them, or it was not found out (diagnostics of the fit); "
    "round to a larger limit, keep fewer tables, or release a rounded number of records"
)


def _check_kept_tables(case: ExaminedRelease) -> CheckResult:
    own = _published_fits(case, case.plan.run)
    if not own:
        if any(
            step.method.synthesis.follows is not None for step, _ in read_publishing_fits(case.workspace, case.plan.run)
        ):
            raise NotComputable(WITHHELD)
        raise CheckNotApplicable("no step publishes tables of counts")
    with_tables, gone, unlike = dict[int, list[tuple[Any, Fit, Any, tuple[str, ...]]]](), list[int](), list[int]()
    rows = [case.recipe.form.records]
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 != case.original_dataset.table_sha256:
            continue  # other records: the check of differencing says by how many they differ
        try:
            run = find_run(case.workspace, one.run_id)
        except NotFound:
            gone.append(one.run_id)
            continue
        rows.append(run.recipe.form.records)
        if found := _published_fits(case, run):
            with_tables[one.run_id] = found
            if _rules_for_tables(run, [*own, *found]) != _rules_for_tables(case.plan.run, [*own, *found]):
                unlike.append(one.run_id)
    if gone:
        raise NotComputable(
            f"{count_noun(len(gone), 'deleted run')} of these records was released before, and its tables are gone; {ELSEWHERE}"
        )
    if unlike:
        raise NotComputable(
            f"run {', '.join(map(str, unlike))}, released before, joins other levels than this release does: their tables cannot be compared cell by "
            f"cell; {ELSEWHERE}"
        )
    records = known_record_range(len(case.confidential), rows)
    audits = []
    for method in dict.fromkeys(method for method, *_ in own):
        follows = method.synthesis.follows
        fits = [fit for published in (own, *with_tables.values()) for of, *fit in published if of is method]
        if follows is not None and (audit := follows(fits, case.confidential, records)) is not None:
            audits.append(audit)
    if not audits:
        return CheckResult(f"the published tables have noise: no count follows exactly from them; {ELSEWHERE}", 0)
    return _result_of_audits(audits, list(with_tables), records)


def _result_of_audits(
    audits: Sequence[MarginAudit], earlier: Sequence[int], records: tuple[float, float]
) -> CheckResult:
    """Return the result of the audits of all tables; a system of tables that could not be audited as a whole never passes."""
    exact, undecided, looked, too_large = (
        sum(getattr(one, name) for one in audits) for name in ("exact", "undecided", "looked_at", "too_large")
    )
    tables = f"the tables of this release and of run {', '.join(map(str, earlier))}, released before" if earlier else ""
    tables = tables or "the tables of this release"
    known = "and the number of records" if records[0] == records[1] else ""
    said = f"from {' '.join(filter(None, [tables, known]))}, {exact:,} of {count_noun(looked, 'small count')} "
    said += f"{'follows' if looked == 1 else 'follow'} exactly"
    named = [
        f"{' and '.join(one.names[at] for at in variables)}: {number:,}"
        for one in audits
        for variables, number in one.variables
    ]
    more = f"; and {len(named) - MOST_NAMED:,} more sets of variables" if len(named) > MOST_NAMED else ""
    said += f" ({'; '.join(named[:MOST_NAMED])}{more})" if named else ""
    open_ = [
        f"{undecided:,} are undecided" if undecided else "",
        f"{count_noun(too_large, 'set')} of connected tables {'has' if too_large == 1 else 'have'} too many cells to be audited as a whole"
        if too_large
        else "",
    ]
    said = "; ".join([said, *filter(None, open_), ELSEWHERE])
    if exact:
        return CheckResult(said, exact)
    if undecided or too_large:
        raise NotComputable(said)
    return CheckResult(said, 0)


def _rules_for_tables(
    run: StoredRun, published: Sequence[tuple[Any, Fit, Any, tuple[str, ...]]]
) -> dict[str, RecodeRule]:
    """Return the public rules of a run for the variables of some tables."""
    names = {name for *_, targets in published for name in targets}
    return {name: rule for name, rule in run.recipe.form.recode.items() if name in names}


def _published_fits(case: ExaminedRelease, run: StoredRun) -> list[tuple[Any, Fit, Any, tuple[str, ...]]]:
    """Return the fits of a run whose tables are released with it, each as (method, fit, Spec, targets)."""
    data = run.recipe.recode_data(case.exact_records).without_controls
    return [
        (step.method, fit, step.spec, step.targets)
        for step, fit in read_publishing_fits(case.workspace, run)
        if step.method.synthesis.approved is not None
        and step.method.synthesis.approved(fit, step.spec, step.targets, data)
    ]


KEPT_TABLE_CHECKS = (
    GateCheck(
        "kept_tables", "small counts that follow from published tables", "small counts", 0, 0,
        "all published tables and the number of rows together can leave one possible count where each alone leaves several",
        "round to a larger limit, publish fewer or smaller tables, or release a rounded number of records ([release] records); publish the tables "
        "of an earlier release again rather than similar ones", _check_kept_tables,
        "bounds by linear and whole-number programs: Dobra & Fienberg (2000)",
    ),
)  # fmt: skip
