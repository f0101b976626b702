"""Checks of the gate that compare the released tables with the confidential one; they need no measure of the recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from sfumato.engine.adversary.cells import cell_keys, count_occurrences, find_positions, row_keys
from sfumato.engine.adversary.copies import count_members_with_released_row, measure_equal_records
from sfumato.engine.adversary.evidence import COPY_LEVEL
from sfumato.engine.adversary.independent_rows import compare_whole_rows
from sfumato.engine.adversary.neighbours import NeighbourPairs
from sfumato.engine.adversary.pooled import measure_agreed_values
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.partition.equivalence_classes import class_sizes, equivalence_classes
from sfumato.engine.wording import agreeing_word, count_noun, join_names

from ..visible_text import is_formula
from .checks import (
    KEPT_KEYS,
    CheckNotApplicable,
    CheckResult,
    ExaminedRelease,
    GateCheck,
    PooledDatasets,
    percent_text,
    record_numbers,
    result_from_likeness,
    worst_over_pools,
)
from .earlier import ReleasedData
from .kept_column_checks import kept_columns_of_release
from .value_checks import UNCONTROLLED, check_extremes

NOT_DRAWN = "asked of drawn values only; records of an anonymised table are protected by their classes"
INFERRED = 0.2
"""The share of the records from which on drawn values beside kept ones block, as of attribute inference."""
NEAR = "1%"
"""How near the mean of m values has to be where the recipe names no radius."""
WEIGHT_ALONE = "nothing but the survey weight is drawn"
OURS = "a choice of ours; no rule of the field has a number"
MORE_ROOM = "larger leaves (minbucket), smoothing = true for trees, a model instead of donors, or fewer variables"


def _people_share_text(case: ExaminedRelease, count: int, people: int) -> str:
    """Return ``88 of 20,190 people (0.4 %)``, or what else the records are."""
    return f"{count:,} of {people:,} {case.record_noun} ({percent_text(count / people)})"


def _kept_and_drawn(case: ExaminedRelease) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the variables kept and drawn without the survey weight: a row is a person's own whatever number of others it represents."""
    out = case.recipe.schema.names_by_role(Role.WEIGHT)
    kept, drawn = (tuple(n for n in names if n not in out) for names in (case.plan.kept, case.plan.replaced))
    return kept, drawn


def _same_treatment(
    case: ExaminedRelease, kept: tuple[str, ...], drawn: tuple[str, ...]
) -> Callable[[ReleasedData], bool]:
    """Return a test whether an earlier release has these variables, keeps the same ones, and draws the same: then both have one baseline."""

    def fits(one: ReleasedData) -> bool:
        names = (*kept, *drawn)
        same = one.has_variables(names, case.confidential.schema) and {n for n in names if n in one.replaced} == set(
            drawn
        )
        return one.is_synthetic and same

    return fits


def _check_equal_records(case: ExaminedRelease) -> CheckResult:
    kept, drawn = _kept_and_drawn(case)
    if not case.is_synthetic or not drawn:
        raise CheckNotApplicable(WEIGHT_ALONE if case.is_synthetic else NOT_DRAWN)
    pairs = case.nearest_record_pairs(kept, drawn) if kept else None

    def look(pool: PooledDatasets) -> CheckResult:
        found = measure_equal_records(
            case.confidential, case.confidential_cells, pool.cells_by_dataset, kept, drawn, pairs
        )
        said = (
            f"{percent_text(found.value)} of the released rows equal a confidential record in all {len(kept) + len(drawn)} variables; of an "
            f"independent sample it would be {percent_text(found.baseline)} ({pool.size_text}); {count_noun(len(found.records), 'record')} {agreeing_word(len(found.records), 'is', 'are')} repeated"
        )
        seen = result_from_likeness(found, said)
        # beside kept columns a fitted model says something of each record, as an inference does: it has the limits of one
        return (
            replace(seen, at_most="block" if seen.compared_value > INFERRED else "warn")
            if kept
            else _limit_by_holdout(case, pool, drawn, seen)
        )

    return worst_over_pools(case, _same_treatment(case, kept, drawn), look, together=False)


def _limit_by_holdout(
    case: ExaminedRelease, pool: PooledDatasets, names: tuple[str, ...], result: CheckResult
) -> CheckResult:
    """Return the result for rows in these variables, which only warns where rows of hold-out people are released as often as those of members.

    Without a hold-out it blocks where no release with independently drawn rows would repeat as many records.
    """
    if result.compared_value <= 0:
        return result
    if case.controls is None:
        whole = [row_keys(cells, names) for cells in pool.cells_by_dataset]
        own = row_keys(case.confidential_cells, names)
        found = [compare_whole_rows("", own, one) for one in whole]
        # A copy of the whole table scores as a copy, however many people share their values.
        is_copy = result.value == 1.0 and result.baseline == 0.0
        is_sure = is_copy or min(one.p for one in found) * len(found) <= COPY_LEVEL
        return result if is_sure else replace(result, message=f"{result.message}{UNCONTROLLED}", at_most="warn")
    controls = cell_keys(case.controls, names)
    rows = np.concatenate([row_keys(case.confidential_cells, names), row_keys(controls, names)])
    shown = count_members_with_released_row(
        rows, len(case.confidential), [row_keys(cells, names) for cells in pool.cells_by_dataset]
    )
    if shown.holdout_p <= COPY_LEVEL:
        return result
    said = f"{result.message}; rows of {shown.n_controls:,} of {shown.n_eligible_controls:,} hold-out {case.record_noun} are released, and of {shown.n_members:,} of {shown.n_eligible_members:,} {case.record_noun} of the data"
    return replace(result, message=said, at_most="warn")


def _worst_of_variables(results: Iterable[CheckResult], otherwise: str) -> CheckResult:
    """Return the worst result over several variables; of equal ones the first. Without any, raise CheckNotApplicable with the text
    ``otherwise``.
    """
    found = list(results)
    if not found:
        raise CheckNotApplicable(otherwise)
    return max(found, key=lambda one: one.severity)


def _require_measured(result: CheckResult) -> CheckResult:
    """Return the result for several datasets together. Raise CheckNotApplicable where nothing could be combined."""
    if not result.is_measured:
        raise CheckNotApplicable(result.message)
    return result


def _rows_of_records(case: ExaminedRelease, release: ReleasedData) -> Integers:
    """Return the row of each confidential record in a release's datasets, (n,); -1 where it cannot be known.

    A row is known by its place, where neither release is shuffled; else by what both keep, where it is unique with that in both. The
    intruder knows
    whether the person is in the data of an earlier release: of those who are not, no row is taken for theirs.
    """
    n = len(case.confidential)
    if release is case.release:
        if not release.shuffled:
            return np.arange(n)
        rows = row_keys(case.confidential_cells, case.plan.kept, n)
        return np.where(count_occurrences(rows, rows) == 1, np.arange(n), -1)
    found = next(one for one in case.same_people_releases if one.earlier.release is release)
    if (
        not release.shuffled
        and not case.plan.is_shuffled
        and found.earlier.table_sha256 == case.original_dataset.table_sha256
    ):
        return np.arange(n)
    # by what that release shows: whoever links its rows sees the people through its rules
    left, schema = release.as_released, case.recipe.schema
    names = tuple(name for name in case.plan.kept if name in left.kept and left.has_variables((name,), schema))
    if not names:
        return np.full(n, -1)
    if left is release:
        theirs, own = (
            row_keys(case.pool_releases(release).cells_by_dataset[0], names),
            row_keys(case.confidential_cells, names, n),
        )
    else:
        shown = recode_data(case.exact_records, left.recode)
        theirs = row_keys(cell_keys(left.read(0, names), names, shown), names)
        own = row_keys(cell_keys(shown, names), names, n)
    order = np.argsort(theirs, kind="stable")
    place = find_positions(theirs[order], own)
    alone = (place >= 0) & (count_occurrences(own, own) == 1) & (count_occurrences(own, theirs) == 1)
    if found.overlap is not None:
        alone[found.overlap.only_in_first] = False
    return np.where(alone, order[np.maximum(place, 0)], -1)


def _declared_radii(case: ExaminedRelease) -> dict[str, Radius]:
    found: dict[str, Radius] = {}
    for step in case.recipe.measures:
        radius: object = getattr(step.spec, "radius", None)
        if isinstance(radius, dict):
            found = {**radius, **found}
    return found


def _check_agreed_values(case: ExaminedRelease) -> CheckResult:
    if not case.is_synthetic:
        raise CheckNotApplicable(NOT_DRAWN)
    if len(case.plan.tables) < 2 and not case.same_people_releases:
        raise CheckNotApplicable("there is one dataset")
    if not case.release.is_in_order:
        raise NotComputable("rows of the datasets are not known to be of the same record")
    radii, schema = _declared_radii(case), case.confidential.schema
    held: dict[int, Integers] = {}
    paired: dict[tuple[int, ...], NeighbourPairs] = {}

    def pairs_of_linked_records(pool: PooledDatasets, linked: Integers) -> NeighbourPairs:
        if len(linked) == len(case.confidential):
            return case.nearest_record_pairs(case.plan.kept, case.plan.replaced)
        key = tuple(release.run_id for release, _ in pool.datasets)
        if key not in paired:
            paired[key] = case.nearest_record_pairs(case.plan.kept, case.plan.replaced, linked)
        return paired[key]

    def rows(release: ReleasedData) -> Integers:
        if release.run_id not in held:
            held[release.run_id] = _rows_of_records(case, release)
        return held[release.run_id]

    def check_variable(name: str) -> CheckResult:
        def look(pool: PooledDatasets) -> CheckResult:
            told = [rows(release) for release, _ in pool.datasets]
            linked = np.flatnonzero(np.sum([one >= 0 for one in told], axis=0) >= 2)
            if not len(linked):
                return CheckResult("rows of different datasets cannot be linked to the same record")
            window = _hit_window(case, name, radii.get(name))
            found = measure_agreed_values(
                case.confidential,
                pool.tables_with_variable(name),
                name,
                pairs_of_linked_records(pool, linked),
                window,
                told,
            )
            said = (
                f"{name}: the {count_noun(len(told), 'value')} together reveal {percent_text(found.value)} of the {count_noun(len(linked), 'record')} whose rows can be "
                f"linked, and {percent_text(found.baseline)} of the records most like them ({pool.size_text})"
            )
            if found.noise >= found.copy_value - found.baseline:
                said += "; with so few records it may be chance"
            return result_from_likeness(found, said)

        def fits(one: ReleasedData) -> bool:
            return one.is_synthetic and one.is_in_order and one.has_variables((name,), schema) and name in one.replaced

        return worst_over_pools(case, fits, look, together=True)

    return _require_measured(_worst_of_variables(map(check_variable, case.plan.replaced), "nothing is replaced"))


def _hit_window(case: ExaminedRelease, name: str, radius: Radius | None) -> tuple[Floats, Floats]:
    numbers = case.confidential.numbers(name)
    if case.confidential.schema[name].kind.has_levels:
        return numbers, numbers
    present = ~np.isnan(numbers)
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    default = 1 if case.confidential.schema[name].kind is Kind.DATE else NEAR
    low[present], high[present] = (radius or Radius.parse(default)).window(numbers[present])
    return low, high


def _check_kept_weight(case: ExaminedRelease) -> CheckResult:
    weights = tuple(name for name in case.plan.kept if name in case.recipe.schema.names_by_role(Role.WEIGHT))
    if not weights:
        return CheckResult("no survey weight is released unchanged", 0)
    rows = row_keys(case.confidential_cells, weights, len(case.confidential))
    sizes = count_occurrences(rows, rows)
    few = np.flatnonzero(sizes < case.policy.smallest_cell)
    said = (
        f"{_people_share_text(case, len(few), len(rows))} have a survey weight ({weights[0]}) that fewer than {case.policy.smallest_cell} {case.record_noun} "
        f"share; {int((sizes == 1).sum()):,} of them have a unique one: whoever knows how the weights were made knows their strata and classes"
    )
    return CheckResult(said, len(few) / len(rows), records=record_numbers(few))


def _check_identifying_columns(case: ExaminedRelease) -> CheckResult:
    def check_variable(name: str) -> CheckResult:
        rows = case.confidential_cells[name]
        alone = count_occurrences(rows, rows) == 1
        said = f"{name} is released unchanged, and {_people_share_text(case, int(alone.sum()), len(rows))} have a unique value"
        role = case.confidential.schema[name].role
        meant = role is Role.SENSITIVE and not case.is_synthetic
        return CheckResult(
            said,
            float(alone.mean()),
            records=record_numbers(np.flatnonzero(alone)),
            at_most="warn" if meant else "block",
            headline=f"can be found by {name} alone, which is released unchanged",
            leak=KEPT_KEYS,
        )

    if not case.plan.kept:
        return CheckResult("no variable is released unchanged", 0)
    return _worst_of_variables(map(check_variable, case.plan.kept), "")


def _check_small_classes(case: ExaminedRelease) -> CheckResult:
    keys = case.quasi_identifiers
    if case.is_synthetic or not keys:
        if case.is_synthetic:
            raise CheckNotApplicable("not an anonymised table")
        raise NotComputable("no variable is a quasi-identifier")
    released = case.released_datasets[0]
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    sizes = class_sizes(classes)
    smallest = int(sizes.min())
    few = np.flatnonzero(sizes[classes] < case.policy.smallest_cell)
    records = released.linked_records[few] if released.linked else few[:0]
    said = (
        f"the smallest class of records that agree on all quasi-identifiers has {smallest:,}; {percent_text(len(few) / len(released))} of the records "
        f"are in classes of fewer than {case.policy.smallest_cell}"
    )
    least = kept_columns_of_release(case).limits.smallest_class
    audience = kept_columns_of_release(case).audience
    return CheckResult(
        said + (f"; the limit for this audience ({audience}) is {least}" if least else ""),
        smallest,
        records=record_numbers(records),
        at_most="block" if least else "warn",
        headline=f"are in classes of fewer than {max(least, case.policy.smallest_cell)} with the same {join_names(keys)}",
        block_limit=least or None,
    )


def _check_formula_cells(case: ExaminedRelease) -> CheckResult:
    schema, found = case.recipe.released_schema, set()
    for name in case.confidential_cells:
        if schema[name].kind.has_levels:
            texts = [*case.datasets_with_variable(name)[0].frame[name].cat.categories, *schema[name].labels.values()]
            found |= {name for text in texts if is_formula(str(text))}
    said = f"levels that a spreadsheet may take for a formula: {', '.join(sorted(found)) or 'none'}"
    return CheckResult(said, len(found))


DATA_CHECKS = (
    GateCheck(
        "equal_records", "released rows that equal a confidential record", "excess (0 as an independent sample, 1 as a copy)", 0.01, 0.05,
        "one row in twenty more than chance explains is a person's own row; " + OURS, MORE_ROOM, _check_equal_records,
        "identical matches against a holdout: Platzer & Reutterer (2021); excess risk: Giomi et al. (2023)",
    ),
    GateCheck(
        "extremes", "smallest and largest values that are released unchanged", "values", None, 0,
        "a minimum or maximum is one person's value", "smoothing = true for trees, bounds that the recipe declares, or top and bottom codes before the import",
        check_extremes, "maxima and minima are not released: ESSnet SDC guidelines for output checking (Brandt et al. 2010)",
    ),
    GateCheck(
        "agreed_values", "values that the datasets reveal together", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "beyond what a person like it would lose, it is what the model remembers of the record; " + OURS, f"fewer datasets, {MORE_ROOM}",
        _check_agreed_values, "attack against a control: Giomi et al. (2023)",
    ),
    GateCheck(
        "kept_weight", "survey weights that few people share, released unchanged", "share of the people", 0, 0.5,
        "a weight is made from strata, response classes and totals, of variables that the release may hide too; " + OURS,
        "synthesise the weight after the variables that it is made from, or round it before the import", _check_kept_weight,
        "sampling weights give strata away: de Waal & Willenborg (1997); smallest cell of the policy",
    ),
    GateCheck(
        "identifying_columns", "columns kept that are as good as an identifier", "share of the people", 0.5, 0.9,
        "a column in which nearly everybody is alone links the release to any file that has it; whatever its role; what an anonymised table keeps as sensitive only warns",
        'give it role = "identifier", which leaves it out, or synthesise it', _check_identifying_columns,
    ),
    GateCheck(
        "small_classes", "the smallest class of an anonymised table", "records", None, 3,
        "in a class of two each member knows the other's values", "a larger k", _check_small_classes,
        "at least 3: a common rule of statistical offices (Hundepool et al. 2012); it warns below the policy's smallest cell", is_minimum=True, smallest_cell_limit="warn",
    ),
    GateCheck(
        "formula_cells", "text that a spreadsheet may run", "variables", 0, None,
        "a level of somebody else's file may be a formula; the CSV files have such text neutralised", "rename the levels", _check_formula_cells,
        "OWASP: CSV injection",
    ),
)  # fmt: skip
