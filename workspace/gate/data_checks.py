"""The gate's checks of the released tables themselves, beside the confidential one: they ask for no measure of the recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from sfumato.engine.adversary.cells import cells_of, occurrences, positions_in, rows_of
from sfumato.engine.adversary.copies import equal_records, rows_of_members
from sfumato.engine.adversary.evidence import COPY_LEVEL
from sfumato.engine.adversary.independent_rows import compare_rows
from sfumato.engine.adversary.neighbours import Pairs
from sfumato.engine.adversary.pooled import agreed_values
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.recoding import recoded
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.partition.equivalence_classes import class_sizes, equivalence_classes
from sfumato.engine.wording import agree, counted, listed

from ..visible_text import is_formula
from .checks import KEPT_KEYS, Case, Check, DoesNotApply, Pool, Sighting, beyond, numbered, percent_of, pooled
from .earlier import ReleasedData
from .kept_column_checks import kept_columns_of
from .value_checks import UNCONTROLLED, look_at_extremes

NOT_DRAWN = "asked of drawn values only; records of an anonymised table are protected by their classes"
INFERRED = 0.2
"""The share of the records from which on drawn values beside kept ones block, as of attribute inference."""
NEAR = "1%"
"""How near the mean of m values has to be where the recipe names no radius."""
WEIGHT_ALONE = "nothing but the survey weight is drawn"
OURS = "a choice of ours; no rule of the field has a number"
MORE_ROOM = "larger leaves (minbucket), smoothing = true for trees, a model instead of donors, or fewer variables"


def _of_people(case: Case, count: int, people: int) -> str:
    """Return ``88 of 20,190 people (0.4 %)``, or what else the records are."""
    return f"{count:,} of {people:,} {case.noun} ({percent_of(count / people)})"


def _facts(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables kept and drawn without the survey weight: a row is a person's own whatever number of others it stands for."""
    out = case.recipe.schema.of_role(Role.WEIGHT)
    kept, drawn = (tuple(n for n in names if n not in out) for names in (case.plan.kept, case.plan.replaced))
    return kept, drawn


def _alike(case: Case, kept: tuple[str, ...], drawn: tuple[str, ...]) -> Callable[[ReleasedData], bool]:
    """Whether an earlier release has these variables, keeps the same of them, and draws the same: then one baseline is that of both."""

    def fits(one: ReleasedData) -> bool:
        names = (*kept, *drawn)
        same = one.has(names, case.confidential.schema) and {n for n in names if n in one.replaced} == set(drawn)
        return one.synthetic and same

    return fits


def _equal_records(case: Case) -> Sighting:
    kept, drawn = _facts(case)
    if not case.synthetic or not drawn:
        raise DoesNotApply(WEIGHT_ALONE if case.synthetic else NOT_DRAWN)
    pairs = case.nearest(kept, drawn) if kept else None

    def look(pool: Pool) -> Sighting:
        found = equal_records(case.confidential, case.own, pool.cells, kept, drawn, pairs)
        said = (
            f"{percent_of(found.value)} of the released rows equal a confidential record in all {len(kept) + len(drawn)} variables; of an "
            f"independent sample it would be {percent_of(found.baseline)} ({pool.size}); {counted(len(found.records), 'record')} {agree(len(found.records), 'is', 'are')} repeated"
        )
        seen = beyond(found, said)
        # beside kept columns a fitted model says something of each record, as an inference does: it has the limits of one
        return (
            replace(seen, at_most="block" if seen.held > INFERRED else "warn")
            if kept
            else _of_members(case, pool, drawn, seen)
        )

    return pooled(case, _alike(case, kept, drawn), look, together=False)


def _of_members(case: Case, pool: Pool, names: tuple[str, ...], seen: Sighting) -> Sighting:
    """Return what is seen of rows in these variables: it only warns where rows of hold-out people are released as often as those of members.

    Without a hold-out it blocks where no release with independently drawn rows would repeat so many records.
    """
    if seen.held <= 0:
        return seen
    if case.controls is None:
        whole = [rows_of(cells, names) for cells in pool.cells]
        own = rows_of(case.own, names)
        found = [compare_rows("", own, one) for one in whole]
        # A copy of the whole table scores as a copy, however many people share their values.
        is_copy = seen.value == 1.0 and seen.baseline == 0.0
        is_sure = is_copy or min(one.p for one in found) * len(found) <= COPY_LEVEL
        return seen if is_sure else replace(seen, said=f"{seen.said}{UNCONTROLLED}", at_most="warn")
    controls = cells_of(case.controls, names)
    rows = np.concatenate([rows_of(case.own, names), rows_of(controls, names)])
    shown = rows_of_members(rows, len(case.confidential), [rows_of(cells, names) for cells in pool.cells])
    if shown.by_holdout <= COPY_LEVEL:
        return seen
    said = f"{seen.said}; rows of {shown.controls:,} of {shown.of_controls:,} hold-out {case.noun} are released, and of {shown.members:,} of {shown.of_members:,} {case.noun} of the data"
    return replace(seen, said=said, at_most="warn")


def _worst(sightings: Iterable[Sighting], otherwise: str) -> Sighting:
    """The worst of what was seen of several variables; of equals the first. Without any the check does not apply, ``otherwise``."""
    found = list(sightings)
    if not found:
        raise DoesNotApply(otherwise)
    return max(found, key=lambda one: one.order)


def _several(seen: Sighting) -> Sighting:
    """What several datasets show together. Raises DoesNotApply where nothing can be taken together."""
    if not seen.measured:
        raise DoesNotApply(seen.said)
    return seen


def _rows_of_records(case: Case, release: ReleasedData) -> Integers:
    """The row of a release's datasets that can be told to be each confidential record's, (n,); -1 where none can.

    By its place, where neither release is shuffled; else by what both keep, where it is alone with that in both. The intruder knows whether
    the person is in the data of an earlier release: of those who are not, no row is taken for theirs.
    """
    n = len(case.confidential)
    if release is case.release:
        if not release.shuffled:
            return np.arange(n)
        rows = rows_of(case.own, case.plan.kept, n)
        return np.where(occurrences(rows, rows) == 1, np.arange(n), -1)
    found = next(one for one in case.related if one.earlier.release is release)
    if not release.shuffled and not case.plan.shuffled and found.earlier.table_sha256 == case.original.table_sha256:
        return np.arange(n)
    # by what that release shows: whoever links its rows sees the people through its rules
    left, schema = release.as_left, case.recipe.schema
    names = tuple(name for name in case.plan.kept if name in left.kept and left.has((name,), schema))
    if not names:
        return np.full(n, -1)
    if left is release:
        theirs, own = rows_of(case.pool(release).cells[0], names), rows_of(case.own, names, n)
    else:
        shown = recoded(case.exact, left.recode)
        theirs = rows_of(cells_of(left.read(0, names), names, shown), names)
        own = rows_of(cells_of(shown, names), names, n)
    order = np.argsort(theirs, kind="stable")
    place = positions_in(theirs[order], own)
    alone = (place >= 0) & (occurrences(own, own) == 1) & (occurrences(own, theirs) == 1)
    if found.overlap is not None:
        alone[found.overlap.here] = False
    return np.where(alone, order[np.maximum(place, 0)], -1)


def _radii(case: Case) -> dict[str, Radius]:
    found: dict[str, Radius] = {}
    for step in case.recipe.measures:
        radius: object = getattr(step.spec, "radius", None)
        if isinstance(radius, dict):
            found = {**radius, **found}
    return found


def _agreed_values(case: Case) -> Sighting:
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if len(case.plan.tables) < 2 and not case.related:
        raise DoesNotApply("there is one dataset")
    if not case.release.in_order:
        raise NotComputable("rows of the datasets are not known to be of the same record")
    radii, schema = _radii(case), case.confidential.schema
    held: dict[int, Integers] = {}
    paired: dict[tuple[int, ...], Pairs] = {}

    def nearest(pool: Pool, linked: Integers) -> Pairs:
        if len(linked) == len(case.confidential):
            return case.nearest(case.plan.kept, case.plan.replaced)
        key = tuple(release.run_id for release, _ in pool.datasets)
        if key not in paired:
            paired[key] = case.nearest(case.plan.kept, case.plan.replaced, linked)
        return paired[key]

    def rows(release: ReleasedData) -> Integers:
        if release.run_id not in held:
            held[release.run_id] = _rows_of_records(case, release)
        return held[release.run_id]

    def of(name: str) -> Sighting:
        def look(pool: Pool) -> Sighting:
            told = [rows(release) for release, _ in pool.datasets]
            linked = np.flatnonzero(np.sum([one >= 0 for one in told], axis=0) >= 2)
            if not len(linked):
                return Sighting("rows of different datasets cannot be told to be of the same record")
            window = _window(case, name, radii.get(name))
            found = agreed_values(case.confidential, pool.variable(name), name, nearest(pool, linked), window, told)
            said = (
                f"{name}: the {counted(len(told), 'value')} together give away {percent_of(found.value)} of the {counted(len(linked), 'record')} whose rows can be "
                f"linked, and {percent_of(found.baseline)} of the records most like them ({pool.size})"
            )
            if found.noise >= found.copy - found.baseline:
                said += "; so few records cannot be told from chance"
            return beyond(found, said)

        def fits(one: ReleasedData) -> bool:
            return one.synthetic and one.in_order and one.has((name,), schema) and name in one.replaced

        return pooled(case, fits, look, together=True)

    return _several(_worst(map(of, case.plan.replaced), "nothing is replaced"))


def _window(case: Case, name: str, radius: Radius | None) -> tuple[Floats, Floats]:
    numbers = case.confidential.numbers(name)
    if case.confidential.schema[name].kind.has_levels:
        return numbers, numbers
    present = ~np.isnan(numbers)
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    default = 1 if case.confidential.schema[name].kind is Kind.DATE else NEAR
    low[present], high[present] = (radius or Radius.parse(default)).window(numbers[present])
    return low, high


def _kept_weight(case: Case) -> Sighting:
    weights = tuple(name for name in case.plan.kept if name in case.recipe.schema.of_role(Role.WEIGHT))
    if not weights:
        return Sighting("no survey weight leaves as it is", 0)
    rows = rows_of(case.own, weights, len(case.confidential))
    sizes = occurrences(rows, rows)
    few = np.flatnonzero(sizes < case.policy.smallest_cell)
    said = (
        f"{_of_people(case, len(few), len(rows))} have a survey weight ({weights[0]}) that fewer than {case.policy.smallest_cell} {case.noun} "
        f"share; {int((sizes == 1).sum()):,} of them share theirs with nobody: whoever knows how the weights were made knows their strata and classes"
    )
    return Sighting(said, len(few) / len(rows), records=numbered(few))


def _identifying(case: Case) -> Sighting:
    def of(name: str) -> Sighting:
        rows = case.own[name]
        alone = occurrences(rows, rows) == 1
        said = f"{name} is released unchanged, and {_of_people(case, int(alone.sum()), len(rows))} share their value with nobody"
        role = case.confidential.schema[name].role
        meant = role is Role.SENSITIVE and not case.synthetic
        return Sighting(
            said,
            float(alone.mean()),
            records=numbered(np.flatnonzero(alone)),
            at_most="warn" if meant else "block",
            headline=f"can be found by {name} alone, which is released unchanged",
            leak=KEPT_KEYS,
        )

    if not case.plan.kept:
        return Sighting("no variable leaves as it is", 0)
    return _worst(map(of, case.plan.kept), "")


def _small_classes(case: Case) -> Sighting:
    keys = case.quasi_identifiers
    if case.synthetic or not keys:
        if case.synthetic:
            raise DoesNotApply("not an anonymised table")
        raise NotComputable("no variable is a quasi-identifier")
    released = case.releases[0]
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    sizes = class_sizes(classes)
    smallest = int(sizes.min())
    few = np.flatnonzero(sizes[classes] < case.policy.smallest_cell)
    records = released.records[few] if released.linked else few[:0]
    said = (
        f"the smallest class of records that agree on all quasi-identifiers has {smallest:,}; {percent_of(len(few) / len(released))} of the records "
        f"are in classes of fewer than {case.policy.smallest_cell}"
    )
    least = kept_columns_of(case).limits.smallest_class
    audience = kept_columns_of(case).audience
    return Sighting(
        said + (f"; the limit for this audience ({audience}) is {least}" if least else ""),
        smallest,
        records=numbered(records),
        at_most="block" if least else "warn",
        headline=f"are in classes of fewer than {max(least, case.policy.smallest_cell)} with the same {listed(keys)}",
        block_limit=least or None,
    )


def _formulas(case: Case) -> Sighting:
    schema, found = case.recipe.released_schema, set()
    for name in case.own:
        if schema[name].kind.has_levels:
            texts = [*case.variable(name)[0].frame[name].cat.categories, *schema[name].labels.values()]
            found |= {name for text in texts if is_formula(str(text))}
    said = f"levels that a spreadsheet may take for a formula: {', '.join(sorted(found)) or 'none'}"
    return Sighting(said, len(found))


DATA_CHECKS = (
    Check(
        "equal_records", "released rows that equal a confidential record", "excess (0 as an independent sample, 1 as a copy)", 0.01, 0.05,
        "one row in twenty more than chance explains is a person's own row; " + OURS, MORE_ROOM, _equal_records,
        "identical matches against a holdout: Platzer & Reutterer (2021); excess risk: Giomi et al. (2023)",
    ),
    Check(
        "extremes", "smallest and largest values that are released unchanged", "values", None, 0,
        "a minimum or maximum is one person's value", "smoothing = true for trees, bounds that the recipe declares, or top and bottom codes before the import",
        look_at_extremes, "maxima and minima are not released: ESSnet SDC guidelines for output checking (Brandt et al. 2010)",
    ),
    Check(
        "agreed_values", "values that the datasets give away together", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "beyond what a person like it would lose, it is what the model remembers of the record; " + OURS, f"fewer datasets, {MORE_ROOM}",
        _agreed_values, "attack against a control: Giomi et al. (2023)",
    ),
    Check(
        "kept_weight", "survey weights that few people share, released unchanged", "share of the people", 0, 0.5,
        "a weight is made from strata, response classes and totals, of variables that the release may hide too; " + OURS,
        "synthesise the weight after the variables that it is made from, or round it before the import", _kept_weight,
        "sampling weights give strata away: de Waal & Willenborg (1997); smallest cell of the policy",
    ),
    Check(
        "identifying_columns", "columns kept that are as good as an identifier", "share of the people", 0.5, 0.9,
        "a column in which nearly everybody is alone links the release to any file that has it; whatever its role; what an anonymised table keeps as sensitive only warns",
        'give it role = "identifier", which leaves it out, or synthesise it', _identifying,
    ),
    Check(
        "small_classes", "the smallest class of an anonymised table", "records", None, 3,
        "in a class of two each member knows the other's values", "a larger k", _small_classes,
        "at least 3: a common rule of statistical offices (Hundepool et al. 2012); it warns below the policy's smallest cell", least=True, cell="warn",
    ),
    Check(
        "formula_cells", "text that a spreadsheet may run", "variables", 0, None,
        "a level of somebody else's file may be a formula; the CSV files have such text neutralised", "rename the levels", _formulas,
        "OWASP: CSV injection",
    ),
)  # fmt: skip
