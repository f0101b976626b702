"""The gate's check of what protected tables give away together: those of this release, and those that earlier ones of the same records published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.engine.data.recoding_rules import Recode
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.results import Fit
from sfumato.engine.wording import counted

from ..errors import NotFound
from ..store.runs import Run, find_run
from ..views.approved import step_fits
from .checks import Case, Check, DoesNotApply, Sighting
from .earlier_checks import ELSEWHERE


def _kept_tables(case: Case) -> Sighting:
    own = _published(case, case.plan.run)
    if not own:
        raise DoesNotApply("no step publishes tables of counts")
    with_tables, gone, unlike = dict[int, list[tuple[Any, Fit, Any, tuple[str, ...]]]](), list[int](), list[int]()
    for one in (related.earlier for related in case.related):
        if one.table_sha256 != case.original.table_sha256:
            continue  # other records: the check of differencing says by how many they differ
        try:
            run = find_run(case.workspace, one.run_id)
        except NotFound:
            gone.append(one.run_id)
            continue
        if found := _published(case, run):
            with_tables[one.run_id] = found
            if _rules(run, [*own, *found]) != _rules(case.plan.run, [*own, *found]):
                unlike.append(one.run_id)
    if gone:
        raise NotComputable(
            f"{counted(len(gone), 'deleted run')} of these records was released before, and its tables are gone; {ELSEWHERE}"
        )
    if unlike:
        raise NotComputable(
            f"run {', '.join(map(str, unlike))}, released before, joins other levels than this release does: their tables cannot be compared cell by "
            f"cell; {ELSEWHERE}"
        )
    exact = undecided = looked = too_large = 0
    for method in dict.fromkeys(method for method, *_ in own):
        follows = method.synthesis.follows
        fits = [fit for published in (own, *with_tables.values()) for of, *fit in published if of is method]
        if follows is None or (found := follows(fits, case.confidential)) is None:
            continue
        exact, undecided = exact + found.exact, undecided + found.undecided
        looked, too_large = looked + found.looked_at, too_large + found.too_large
    if not looked and not too_large:
        return Sighting(f"no earlier release of these records published rounded tables of counts; {ELSEWHERE}", 0)
    runs = ", ".join(map(str, with_tables))
    said = f"with the tables of run {runs}, released before, {exact:,} of {counted(looked, 'small count')} {'follows' if looked == 1 else 'follow'} exactly"
    open_ = [
        f"{undecided:,} are undecided" if undecided else "",
        f"{counted(too_large, 'set')} of variables have too many cells to be looked at" if too_large else "",
    ]
    said = "; ".join([said, *filter(None, open_), ELSEWHERE])
    if exact:
        return Sighting(said, exact)
    return Sighting(said, undecided + too_large, at_most="warn")


def _rules(run: Run, published: Sequence[tuple[Any, Fit, Any, tuple[str, ...]]]) -> dict[str, Recode]:
    """The public rules of a run for the variables of some tables."""
    names = {name for *_, targets in published for name in targets}
    return {name: rule for name, rule in run.recipe.form.recode.items() if name in names}


def _published(case: Case, run: Run) -> list[tuple[Any, Fit, Any, tuple[str, ...]]]:
    """The fits of a run whose tables leave with it: method, fit, Spec and targets."""
    data = run.recipe.recoded(case.exact).alone
    return [
        (step.method, fit, step.spec, step.targets)
        for step, fit in step_fits(case.workspace, run)
        if step.method.synthesis.approved is not None
        and step.method.synthesis.approved(fit, step.spec, step.targets, data)
    ]


KEPT_TABLE_CHECKS = (
    Check(
        "kept_tables", "small counts that follow from tables of several releases", "small counts", 0, 0,
        "each release's tables were looked at alone; together they can leave one possible count where each leaves several",
        "publish the same tables again, round to a larger limit, or leave out the margins that both releases have nearly alike", _kept_tables,
        "linear programming bounds: Dobra & Fienberg (2000)",
    ),
)  # fmt: skip
