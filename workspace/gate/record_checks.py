"""The gate's checks of what the released records hold: rows, values and columns beside the confidential ones, and the rules of the recipe.

They need no measure of the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from sfumato.engine.adversary.cells import (
    cell_keys,
    comparable_numbers,
    count_occurrences,
    count_sharing,
    find_positions,
    row_keys,
)
from sfumato.engine.adversary.copies import count_members_with_released_row, measure_equal_records
from sfumato.engine.adversary.disguise import DisguisedColumn, find_disguise
from sfumato.engine.adversary.evidence import COPY_LEVEL
from sfumato.engine.adversary.independent_rows import compare_whole_rows
from sfumato.engine.adversary.kept_columns import CombinationSizes
from sfumato.engine.adversary.neighbours import NeighbourPairs
from sfumato.engine.adversary.pooled import measure_agreed_values
from sfumato.engine.adversary.tails import ReleasedTails, measure_released_tails
from sfumato.engine.constraints.constraints import columns_of_constraint
from sfumato.engine.constraints.evaluation import count_compliance
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.microdata import Microdata, schema_with_levels
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.partition.equivalence_classes import equivalence_classes

from ..visible_text import is_formula
from . import sentences
from .checks import (
    FOLLOW_LESS,
    KEPT_KEYS,
    OWN_CHOICE,
    CheckNotApplicable,
    CheckResult,
    ExaminedRelease,
    GateCheck,
    PooledDatasets,
    Status,
    record_numbers,
    result_from_likeness,
    worst_over_pools,
)
from .earlier import ReleasedData
from .joint import NUMBERS
from .kept_columns import kept_columns_of_release, row_learned_text
from .sentences import fill_sentence

INFERRED = 0.2
"""The share of the records from which on drawn values beside kept ones block, as of attribute inference."""
NEAR = "1%"
"""How near the mean of m values has to be where the recipe names no radius."""
MORE_ROOM = f"{FOLLOW_LESS}, or release fewer variables"


def _kept_and_drawn(case: ExaminedRelease) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the kept and the drawn variables, without the survey weight."""
    # A row is a person's own whatever number of others its weight represents.
    out = case.recipe.schema.names_by_role(Role.WEIGHT)
    kept, drawn = (tuple(n for n in names if n not in out) for names in (case.plan.kept, case.plan.replaced))
    return kept, drawn


def _same_treatment(
    case: ExaminedRelease, kept: tuple[str, ...], drawn: tuple[str, ...]
) -> Callable[[ReleasedData], bool]:
    """Return a test whether an earlier release keeps and draws the same ones of these variables."""

    # Only then do both have one baseline.
    def fits(one: ReleasedData) -> bool:
        """Return whether a release treats these variables in the same way."""
        names = (*kept, *drawn)
        same = one.has_variables(names, case.confidential.schema) and {n for n in names if n in one.replaced} == set(
            drawn
        )
        return one.is_synthetic and same

    return fits


def _check_equal_records(case: ExaminedRelease) -> CheckResult:
    """Check how many released rows equal a confidential record, beyond chance."""
    kept, drawn = _kept_and_drawn(case)
    if not case.is_synthetic or not drawn:
        raise CheckNotApplicable(sentences.WEIGHT_ALONE if case.is_synthetic else sentences.DRAWN_VALUES_ONLY)
    pairs = case.nearest_record_pairs(kept, drawn) if kept else None

    def look(pool: PooledDatasets) -> CheckResult:
        """Return the result for one pool of datasets."""
        found = measure_equal_records(
            case.confidential, case.confidential_cells, pool.cells_by_dataset, kept, drawn, pairs
        )
        message = fill_sentence(
            sentences.EQUAL_RECORDS,
            share=found.value,
            variables=len(kept) + len(drawn),
            baseline=found.baseline,
            size=pool.size_text,
            repeated=len(found.records),
        )
        seen = result_from_likeness(found, message)
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
    """Lower the result for equal rows to a warning where hold-out people's rows are released as often as members'.

    Without a hold-out it blocks where no release with independently drawn rows would repeat as many records.
    """
    if result.compared_value <= 0:
        return result
    if case.controls is None:
        whole = [row_keys(cells, names) for cells in pool.cells_by_dataset]
        own = row_keys(case.confidential_cells, names)
        unit_of = None if case.units is None else case.units.unit_of
        found = [compare_whole_rows("", own, one, unit_of) for one in whole]
        # A copy of the whole table scores as a copy, however many people share their values.
        is_copy = result.value == 1.0 and result.baseline == 0.0
        # Bonferroni over the datasets.
        is_sure = is_copy or min(one.p for one in found) * len(found) <= COPY_LEVEL
        return result if is_sure else replace(result, message=result.message + sentences.UNCONTROLLED, at_most="warn")
    controls = cell_keys(case.controls, names)
    rows = np.concatenate([row_keys(case.confidential_cells, names), row_keys(controls, names)])
    shown = count_members_with_released_row(
        rows,
        len(case.confidential),
        [row_keys(cells, names) for cells in pool.cells_by_dataset],
        None if case.joint_units is None else case.joint_units.unit_of,
    )
    if shown.holdout_p <= COPY_LEVEL:
        return result
    message = fill_sentence(
        sentences.ROWS_OF_HOLDOUT,
        message=result.message,
        controls=shown.n_controls,
        eligible_controls=shown.n_eligible_controls,
        members=shown.n_members,
        eligible_members=shown.n_eligible_members,
        noun=case.record_noun if case.joint_units is None else case.unit_noun,
    )
    return replace(result, message=message, at_most="warn")


def _replaced_numbers(case: ExaminedRelease) -> tuple[str, ...]:
    """Return the replaced variables that are numbers; raise CheckNotApplicable where there are none."""
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.PROTECTED_BY_CLASSES)
    if not case.replaced_numbers:
        raise CheckNotApplicable(sentences.NO_NUMBERS)
    return case.replaced_numbers


def _replaces_column(case: ExaminedRelease, name: str) -> Callable[[ReleasedData], bool]:
    """Return a test whether an earlier release draws this variable."""
    schema = case.confidential.schema

    def replaces(data: ReleasedData) -> bool:
        return data.is_synthetic and data.has_variables((name,), schema) and name in data.replaced

    return replaces


def _column_tails(case: ExaminedRelease, name: str, pool: PooledDatasets) -> ReleasedTails:
    """Return which of the smallest and largest values of a variable are released."""
    variable = case.confidential.schema[name]
    released = (comparable_numbers(one, name, case.confidential) for one in pool.tables_with_variable(name))
    return measure_released_tails(
        comparable_numbers(case.confidential, name),
        released,
        case.policy.smallest_cell,
        (variable.lower, variable.upper),
    )


def check_extremes(case: ExaminedRelease) -> CheckResult:
    """Check whether the smallest and largest confidential values are released."""
    names = _replaced_numbers(case)

    def look(pool: PooledDatasets) -> CheckResult:
        """Return the result for one pool of datasets."""
        ends, records, columns = 0, [np.zeros(0, dtype=np.int64)], list[str]()
        for name in names:
            found = _column_tails(case, name, pool)
            if found.ends:
                ends += len(found.ends)
                records.append(found.records)
                columns.append(
                    fill_sentence(sentences.EXTREMES_OF_COLUMN, name=name, ends=" and the ".join(found.ends))
                )
        if not ends:
            return CheckResult(sentences.NO_EXTREMES, 0)
        message = fill_sentence(
            sentences.EXTREMES,
            columns="; ".join(columns),
            size=pool.size_text,
            uncontrolled="" if case.controls is not None else sentences.UNCONTROLLED,
        )
        return CheckResult(
            message,
            ends,
            records=record_numbers(np.unique(np.concatenate(records))),
            # A single one may be chance, so that it never blocks.
            at_most="warn",
            at_least="warn",
        )

    return worst_over_pools(case, lambda one: all(_replaces_column(case, n)(one) for n in names), look, together=True)


def _worst_of_variables(results: Iterable[CheckResult], otherwise: str) -> CheckResult:
    """Return the worst result over several variables, the first of equal ones.

    Raises CheckNotApplicable with the text ``otherwise`` where there is no result.
    """
    found = list(results)
    if not found:
        raise CheckNotApplicable(otherwise)
    return max(found, key=lambda one: one.severity)


def _require_measured(result: CheckResult) -> CheckResult:
    """Return the result for several datasets together; raise CheckNotApplicable where nothing could be combined."""
    if not result.is_measured:
        raise CheckNotApplicable(result.message)
    return result


def _rows_of_records(case: ExaminedRelease, release: ReleasedData) -> Integers:
    """Return the row of each confidential record in the datasets of a release, (n,); -1 where it cannot be known.

    A row is known by its position where neither release is shuffled; else by what both releases keep, where that is
    unique in both.
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
        # The intruder knows who was in the data of the earlier release: no row is taken for a person who was not.
        alone[found.overlap.only_in_first] = False
    return np.where(alone, order[np.maximum(place, 0)], -1)


def _declared_radii(case: ExaminedRelease) -> dict[str, Radius]:
    """Return the radius that measures of the recipe declare for each variable; of several the first."""
    found: dict[str, Radius] = {}
    for step in case.recipe.measures:
        radius: object = getattr(step.spec, "radius", None)
        if isinstance(radius, dict):
            found = {**radius, **found}
    return found


def _check_agreed_values(case: ExaminedRelease) -> CheckResult:
    """Check which values several datasets reveal together, beyond what they reveal of similar people."""
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.DRAWN_VALUES_ONLY)
    if len(case.plan.tables) < 2 and not case.same_people_releases:
        raise CheckNotApplicable(sentences.ONE_DATASET)
    if not case.release.is_in_order:
        raise NotComputable(sentences.ROWS_OF_ONE_RECORD_UNKNOWN)
    radii, schema = _declared_radii(case), case.confidential.schema
    rows_by_run: dict[int, Integers] = {}
    paired: dict[tuple[int, ...], NeighbourPairs] = {}

    def pairs_of_linked_records(pool: PooledDatasets, linked: Integers) -> NeighbourPairs:
        """Return pairs of similar records among those whose rows are known in two datasets or more."""
        if len(linked) == len(case.confidential):
            return case.nearest_record_pairs(case.plan.kept, case.plan.replaced)
        key = tuple(release.run_id for release, _ in pool.datasets)
        if key not in paired:
            paired[key] = case.nearest_record_pairs(case.plan.kept, case.plan.replaced, linked)
        return paired[key]

    def rows(release: ReleasedData) -> Integers:
        """Return the row of each record in the datasets of a release, computed once."""
        if release.run_id not in rows_by_run:
            rows_by_run[release.run_id] = _rows_of_records(case, release)
        return rows_by_run[release.run_id]

    def check_variable(name: str) -> CheckResult:
        """Return the worst result for one variable over pools of releases."""

        def look(pool: PooledDatasets) -> CheckResult:
            """Return the result for one variable and one pool of datasets."""
            record_rows = [rows(release) for release, _ in pool.datasets]
            # Two rows of a record are the fewest that can agree.
            linked = np.flatnonzero(np.sum([one >= 0 for one in record_rows], axis=0) >= 2)
            if not len(linked):
                return CheckResult(sentences.ROWS_NOT_LINKED)
            window = _hit_window(case, name, radii.get(name))
            found = measure_agreed_values(
                case.confidential,
                pool.tables_with_variable(name),
                name,
                pairs_of_linked_records(pool, linked),
                window,
                record_rows,
            )
            message = fill_sentence(
                sentences.AGREED_VALUES,
                name=name,
                datasets=len(record_rows),
                share=found.value,
                linked=len(linked),
                baseline=found.baseline,
                size=pool.size_text,
                chance=sentences.AGREED_BY_CHANCE if found.noise >= found.copy_value - found.baseline else "",
            )
            return result_from_likeness(found, message)

        def fits(one: ReleasedData) -> bool:
            return one.is_synthetic and one.is_in_order and one.has_variables((name,), schema) and name in one.replaced

        return worst_over_pools(case, fits, look, together=True)

    return _require_measured(_worst_of_variables(map(check_variable, case.plan.replaced), sentences.NOTHING_REPLACED))


def _hit_window(case: ExaminedRelease, name: str, radius: Radius | None) -> tuple[Floats, Floats]:
    """Return the lower and the upper end, (n,) each, between which a pooled value counts as the record's own."""
    numbers = case.confidential.numbers(name)
    if case.confidential.schema[name].kind.has_levels:
        return numbers, numbers
    present = ~np.isnan(numbers)
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    # A share of a date has no meaning: dates are near within one day.
    default = 1 if case.confidential.schema[name].kind is Kind.DATE else NEAR
    low[present], high[present] = (radius or Radius.parse(default)).window(numbers[present])
    return low, high


def _check_kept_weight(case: ExaminedRelease) -> CheckResult:
    """Check how many people share their released survey weight with few others."""
    weights = tuple(name for name in case.plan.kept if name in case.recipe.schema.names_by_role(Role.WEIGHT))
    if not weights:
        return CheckResult(sentences.NO_KEPT_WEIGHT, 0)
    rows = row_keys(case.confidential_cells, weights, len(case.confidential))
    sizes = CombinationSizes(count_sharing(rows, case.units))
    few = sizes.records_below(case.policy.smallest_cell)
    message = fill_sentence(
        sentences.KEPT_WEIGHT,
        few=len(few),
        records=len(rows),
        noun=case.record_noun,
        share=len(few) / len(rows),
        weight=weights[0],
        smallest_cell=case.policy.smallest_cell,
        alone=sizes.n_unique,
    )
    return CheckResult(message, len(few) / len(rows), records=record_numbers(few))


def _check_identifying_columns(case: ExaminedRelease) -> CheckResult:
    """Check for a kept column in which nearly everybody has a unique value."""

    def check_variable(name: str) -> CheckResult:
        """Return the share of people who have a unique value of a variable."""
        rows = case.confidential_cells[name]
        alone = CombinationSizes(count_sharing(rows, case.units)).records_below(2)
        message = fill_sentence(
            sentences.IDENTIFYING_COLUMN,
            name=name,
            alone=len(alone),
            records=len(rows),
            noun=case.record_noun,
            share=len(alone) / len(rows),
        )
        role = case.confidential.schema[name].role
        meant = role is Role.SENSITIVE and not case.is_synthetic
        return CheckResult(
            message,
            len(alone) / len(rows),
            records=record_numbers(alone),
            # An anonymised table keeps its sensitive variables on purpose.
            at_most="warn" if meant else "block",
            headline=fill_sentence(sentences.FOUND_BY_COLUMN, name=name),
            learned=row_learned_text(case, (name,)),
            leak=KEPT_KEYS,
        )

    if not case.plan.kept:
        return CheckResult(sentences.NO_KEPT_VARIABLE, 0)
    return _worst_of_variables(map(check_variable, case.plan.kept), "")


def _check_small_classes(case: ExaminedRelease) -> CheckResult:
    """Check the smallest equivalence class of an anonymised table."""
    keys = case.quasi_identifiers
    if case.is_synthetic or not keys:
        if case.is_synthetic:
            raise CheckNotApplicable(sentences.NOT_AN_ANONYMISED_TABLE)
        raise NotComputable(sentences.NO_QUASI_IDENTIFIER)
    released = case.released_datasets[0]
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    sizes = count_sharing(classes.astype(np.uint64), released.units)
    smallest = int(sizes.min())
    few = np.flatnonzero(sizes < case.policy.smallest_cell)
    records = released.linked_records[few] if released.linked else few[:0]
    least = kept_columns_of_release(case).limits.smallest_class
    audience = kept_columns_of_release(case).audience
    message = fill_sentence(
        sentences.SMALL_CLASSES,
        smallest=smallest,
        share=len(few) / len(released),
        smallest_cell=case.policy.smallest_cell,
        limit=fill_sentence(sentences.CLASS_LIMIT, audience=audience, limit=least) if least else "",
    )
    return CheckResult(
        message,
        smallest,
        records=record_numbers(records),
        at_most="block" if least else "warn",
        headline=fill_sentence(sentences.IN_SMALL_CLASSES, limit=max(least, case.policy.smallest_cell), names=keys),
        learned=row_learned_text(case),
        block_limit=least or None,
    )


def _check_formula_cells(case: ExaminedRelease) -> CheckResult:
    """Check for released texts that a spreadsheet would run as formulas."""
    schema, found = case.recipe.released_schema, set()
    for name in case.confidential_cells:
        if schema[name].kind.has_levels:
            texts = [*case.datasets_with_variable(name)[0].frame[name].cat.categories, *schema[name].labels.values()]
            found |= {name for text in texts if is_formula(str(text))}
    return CheckResult(fill_sentence(sentences.FORMULA_CELLS, names=", ".join(sorted(found)) or "none"), len(found))


def _hidden_columns(case: ExaminedRelease) -> dict[str, str]:
    """Return the columns that a release is to hide, each with the reason why."""
    schema = case.recipe.schema
    found = {v.name: "an identifier" for v in schema if v.role.is_identifier}
    if case.is_synthetic:
        found |= {n: "synthesised" for n in case.plan.replaced if schema[n].role is Role.SENSITIVE}
        found |= {n: "sensitive" for n in case.plan.kept if schema[n].role is Role.SENSITIVE}
    else:
        found |= dict.fromkeys(case.plan.replaced, "generalised or suppressed")
    return found


def _column_numbers(data: Microdata, name: str) -> Floats | None:
    """Return a column as numbers, (n,), levels of an ordered one by their rank; None for unordered levels."""
    return data.numbers(name) if data.schema[name].kind in NUMBERS or data.schema[name].kind is Kind.ORDINAL else None


def _check_disguised_columns(case: ExaminedRelease) -> CheckResult:
    """Check for kept columns from which a hidden column follows."""
    data, found = case.confidential, list[DisguisedColumn]()
    secrets = _hidden_columns(case)
    for name in case.plan.kept:
        cells = cell_keys(data, (name,))[name]
        for secret in secrets:
            if secret == name:
                continue
            one = find_disguise(
                name,
                secret,
                cells,
                cell_keys(data, (secret,))[secret],
                _column_numbers(data, name),
                _column_numbers(data, secret),
            )
            if one is not None:
                found.append(one)
    if not found:
        return CheckResult(sentences.NO_DISGUISED_COLUMN, 0)
    worst = max(found, key=lambda one: one.share)
    message = "; ".join(_disguise_text(one, secrets[one.sensitive_column], case.record_noun) for one in found)
    return CheckResult(message, len(found), records=record_numbers(worst.records))


def _disguise_text(disguise: DisguisedColumn, why: str, noun: str) -> str:
    """Describe how a kept column gives a hidden one away, and why that one is hidden."""
    column, relation, secret = disguise.column, disguise.relation, disguise.sensitive_column
    if relation.startswith("has the same"):
        return fill_sentence(sentences.DISGUISED_COLUMN, column=column, relation=relation, secret=secret, why=why)
    return fill_sentence(
        sentences.DISGUISED_FOR_SOME,
        column=column,
        relation=relation,
        secret=secret,
        why=why,
        share=disguise.share,
        noun=noun,
    )


def _check_constraints(case: ExaminedRelease) -> CheckResult:
    """Check that released records keep to the constraints of the recipe."""
    rules = case.recipe.schema.constraints
    if not rules:
        raise CheckNotApplicable(sentences.NO_CONSTRAINTS)
    schema = replace(schema_with_levels(case.confidential), constraints=rules)
    made = {one.name for one in rules if not set(columns_of_constraint(one, schema)).isdisjoint(case.recipe.released)}
    worst: dict[str, tuple[int, int, int]] = {}
    unknown: set[str] = set()
    for draw, released in enumerate(case.released_datasets, start=1):
        for one in count_compliance(released, schema):
            name = one.constraint.name
            unknown |= {name} if one.unknown else set()
            if one.broken > worst.get(name, (0, 0, 0))[0]:
                worst[name] = (one.broken, one.records, draw)
    broken_rules = [
        fill_sentence(sentences.CONSTRAINT_BROKEN, name=name, broken=broken, records=records, dataset=draw)
        for name, (broken, records, draw) in worst.items()
    ]
    message = (
        fill_sentence(sentences.CONSTRAINTS_BROKEN, rules="; ".join(broken_rules))
        if worst
        else fill_sentence(sentences.CONSTRAINTS_KEPT, datasets=case.plan.datasets, rules=len(rules))
    )
    if unknown:
        message += fill_sentence(sentences.CONSTRAINTS_UNKNOWN, names=sorted(unknown))
    # What unchanged variables break, the confidential data break too: this only warns.
    at_most: Status = "block" if made & worst.keys() else "warn"
    return CheckResult(message, max((count for count, _, _ in worst.values()), default=0), at_most=at_most)


RECORD_CHECKS = (
    GateCheck(
        "disguised_columns", "columns that say what another is to hide", "columns", None, 0,
        "a column that is a one-to-one or monotone function of a hidden one gives it away, whatever its name and role",
        "give it the role that the hidden column has under [variables] and list it as a target of [[synthesis]], or leave it out", _check_disguised_columns,
    ),
    GateCheck(
        "equal_records", "released rows that equal a confidential record", "excess (0 as an independent sample, 1 as a copy)", 0.01, 0.05,
        "one row in twenty more than chance explains is a person's own row; " + OWN_CHOICE, MORE_ROOM, _check_equal_records,
        "identical matches against a holdout: Platzer & Reutterer (2021); excess risk: Giomi et al. (2023)",
        learned="Their whole record is read.",
    ),
    GateCheck(
        "extremes", "smallest and largest values that are released unchanged", "values", None, 0,
        "a minimum or maximum is one person's value", "smoothing = true for trees, bounds that the recipe declares, or top and bottom codes before the import",
        check_extremes, "maxima and minima are not released: ESSnet SDC guidelines for output checking (Brandt et al. 2010)",
        learned="Their own smallest or largest value is read.",
    ),
    GateCheck(
        "agreed_values", "values that several datasets together reveal", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "beyond what a person like it would lose, it is what the model remembers of the record; " + OWN_CHOICE, f"release fewer datasets; {MORE_ROOM}",
        _check_agreed_values, "attack against a control: Giomi et al. (2023)",
        learned="Their true values are read where the datasets agree.",
    ),
    GateCheck(
        "kept_weight", "survey weights that few people share, released unchanged", "share of the people", 0, 0.5,
        "a weight is made from strata, response classes and totals, of variables that the release may hide too; " + OWN_CHOICE,
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
    GateCheck(
        "constraints", "records that break a constraint of the recipe", "records of a dataset", 0, 0,
        "a record that cannot be is of no use, and says that a model did not know the rule", "let synthesis keep to it ([release] redraws, "
        "another order or model), or fix the rule", _check_constraints, "edit rules: Fellegi & Holt (1976)", intruder="none",
    ),
)  # fmt: skip
