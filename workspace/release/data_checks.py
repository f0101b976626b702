"""The gate's checks of the released tables themselves, beside the confidential one: they ask for no measure of the recipe."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfumato.engine.arrays import Floats
from sfumato.engine.disclosure.cells import comparable, how_often, rows_of
from sfumato.engine.disclosure.copies import equal_records, lone_values, near_records, rare_levels
from sfumato.engine.disclosure.likeness import Likeness
from sfumato.engine.disclosure.pooled import agreed_values, recurring_records
from sfumato.engine.disclosure.tails import tails
from sfumato.engine.matching.radius import Radius
from sfumato.engine.partition.equivalence_classes import class_sizes, equivalence_classes
from sfumato.engine.release_form import AnonymisationSpec
from sfumato.engine.schema import Kind, Role
from sfumato.engine.wording import agree, counted

from ..visible_text import is_formula
from .checks import Case, Check, Sighting, numbered

NOT_DRAWN = "asked of drawn values only; records of an anonymised table are protected by their classes"
NEAR = "1%"
"""How near the mean of m values has to be where the recipe names no radius."""


def _beyond(likeness: Likeness, said: str) -> Sighting:
    return Sighting(said, likeness.value, likeness.baseline, likeness.excess, numbered(likeness.records))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


WEIGHT_ALONE = "nothing but the survey weight is drawn"


def _facts(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables kept and drawn without the survey weight: a row is a person's own whatever number of others it stands for."""
    out = case.recipe.schema.of_role(Role.WEIGHT)
    kept, drawn = (tuple(n for n in names if n not in out) for names in (case.plan.kept, case.plan.replaced))
    return kept, drawn


def _equal_records(case: Case) -> Sighting:
    kept, drawn = _facts(case)
    if not case.synthetic or not drawn:
        return Sighting(WEIGHT_ALONE if case.synthetic else NOT_DRAWN)
    pairs = case.nearest(kept, drawn) if kept else None
    found = equal_records(case.confidential, case.own, case.cells, kept, drawn, pairs)
    said = (
        f"{_percent(found.value)} of the released rows equal a confidential record in all {len(kept) + len(drawn)} variables; of an "
        f"independent sample it would be {_percent(found.baseline)} ({case.size}); {counted(len(found.records), 'record')} {agree(len(found.records), 'is', 'are')} repeated"
    )
    return _beyond(found, said)


def _near_records(case: Case) -> Sighting:
    kept, drawn = _facts(case)
    if not case.synthetic or not drawn:
        return Sighting(WEIGHT_ALONE if case.synthetic else NOT_DRAWN)
    pairs = case.nearest(kept, drawn) if kept else None
    found = near_records(case.confidential, case.releases, case.own, case.cells, kept, drawn, pairs)
    said = (
        f"{_percent(found.value)} of the released rows are within 1 % of a confidential record in every number and equal to it in all else; of an "
        f"independent sample it would be {_percent(found.baseline)} ({case.size}, of which at most 500 rows of each dataset were looked at)"
    )
    return _beyond(found, said)


def _equal_sensitive(case: Case) -> Sighting:
    sensitive = tuple(n for n in case.plan.replaced if case.confidential.schema[n].role is Role.SENSITIVE)
    if not case.synthetic:
        return Sighting(NOT_DRAWN)
    if len(sensitive) < 2:
        return Sighting("fewer than two sensitive variables are drawn: lone_values looks at one")
    found = equal_records(case.confidential, case.own, case.cells, (), sensitive)
    said = (
        f"{_percent(found.value)} of the released rows have all {len(sensitive)} sensitive values of one confidential record; of an "
        f"independent sample it would be {_percent(found.baseline)} ({case.size})"
    )
    return _beyond(found, said)


def _worst(sightings: Iterable[Sighting], otherwise: str) -> Sighting:
    """The worst of what was seen of several variables; of equals the first."""
    found = list(sightings)
    return max(found, key=lambda one: (one.at_most == "block", one.held)) if found else Sighting(otherwise)


def _lone_values(case: Case) -> Sighting:
    if not case.synthetic:
        return Sighting(NOT_DRAWN)

    def of(name: str) -> Sighting:
        found = lone_values(case.own[name], (cells[name] for cells in case.cells))
        said = (
            f"{name}: {_percent(found.value)} of the released values are one that a single confidential record has; of an independent "
            f"sample it would be {_percent(found.baseline)}, of the confidential data {_percent(found.copy)} ({case.size})"
        )
        return _beyond(found, said)

    return _worst(map(of, case.numbers), "no numbers or dates are replaced")


def _rare_levels(case: Case) -> Sighting:
    schema = case.confidential.schema
    counted, records, said = 0, [np.zeros(0, dtype=np.int64)], []
    for name in case.own:
        if not schema[name].kind.has_levels or name in case.recipe.generalised:
            continue
        count, those = rare_levels(case.own[name], (cells[name] for cells in case.cells), case.policy.smallest_cell)
        counted += count
        records.append(those)
        said += [f"{name} {count}"] * bool(count)
    words = f"levels that fewer than {case.policy.smallest_cell} confidential records have are released: {', '.join(said) or 'none'}"
    return Sighting(words, counted, records=numbered(np.unique(np.concatenate(records))))


def _tails(case: Case) -> Iterable[tuple[str, Likeness, tuple[str, ...], tuple[int, ...]]]:
    for name in case.numbers:
        variable = case.confidential.schema[name]
        own = comparable(case.confidential, name)
        released = (comparable(one, name, case.confidential) for one in case.variable(name))
        found = tails(own, released, case.policy.smallest_cell, (variable.lower, variable.upper))
        yield name, found.likeness, found.ends, numbered(found.records)


def _tail_values(case: Case) -> Sighting:
    if not case.synthetic:
        return Sighting(NOT_DRAWN)
    cell = case.policy.smallest_cell
    return _worst(
        (
            _beyond(
                found,
                f"{name}: {_percent(found.value)} of the values of its {cell} smallest and {cell} largest records are released as "
                f"they are, {_percent(found.baseline)} would be by chance ({case.size})",
            )
            for name, found, _, _ in _tails(case)
        ),
        "no numbers or dates are replaced",
    )


def _extremes(case: Case) -> Sighting:
    if not case.synthetic:
        return Sighting(NOT_DRAWN)
    seen = [(name, ends, records) for name, _, ends, records in _tails(case) if ends]
    named = "; ".join(f"{name}: the {' and the '.join(ends)} value" for name, ends, _ in seen)
    records = sorted({record for _, _, those in seen for record in those})
    said = (
        f"released as they are: {named}"
        if named
        else "no smallest or largest value of a few records is released as it is"
    )
    return Sighting(said, sum(len(ends) for _, ends, _ in seen), records=records)


def _recurring(case: Case) -> Sighting:
    kept, drawn = _facts(case)
    if not case.synthetic or not drawn:
        return Sighting(WEIGHT_ALONE if case.synthetic else NOT_DRAWN)
    if case.plan.datasets < 2:
        return Sighting("there is one dataset")
    found = recurring_records(case.confidential, case.own, case.cells, kept, drawn)
    said = (
        f"{_percent(found.value)} of the confidential records are alone with their values and stand whole in at least half of the "
        f"{counted(case.plan.datasets, 'dataset')}; {_percent(found.baseline)} would by chance ({case.size})"
    )
    return _beyond(found, said)


def _linkable(case: Case) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The records whose rows in the m datasets can be told to be theirs: all in the original order, else those alone in what is kept."""
    n = len(case.confidential)
    if not case.plan.shuffled:
        return np.arange(n)
    rows = rows_of(case.own, case.plan.kept, n)
    return np.flatnonzero(how_often(rows, rows) == 1)


def _radii(case: Case) -> dict[str, Radius]:
    found: dict[str, Radius] = {}
    for step in case.recipe.measures:
        radius: object = getattr(step.spec, "radius", None)
        if isinstance(radius, dict):
            found = {**radius, **found}
    return found


def _agreed_values(case: Case) -> Sighting:
    n = len(case.confidential)
    alike = case.recipe.linked and all(case.workspace.tables.records(table) == n for table in case.plan.tables)
    if not case.synthetic or case.plan.datasets < 2 or not alike:
        return Sighting("rows of the datasets are not known to be of the same record" if case.synthetic else NOT_DRAWN)
    alone = _linkable(case)
    if not len(alone):
        return Sighting("rows of different datasets cannot be told to be of the same record")
    pairs = case.nearest(case.plan.kept, case.plan.replaced, alone if case.plan.shuffled else None)
    radii = _radii(case)

    def of(name: str) -> Sighting:
        window = _window(case, name, radii.get(name))
        found = agreed_values(case.confidential, case.variable(name), name, pairs, window)
        said = (
            f"{name}: the {counted(case.plan.datasets, 'value')} together give away {_percent(found.value)} of the {counted(len(alone), 'record')} whose rows can be "
            f"linked, and {_percent(found.baseline)} of the records most like them"
        )
        if found.noise >= found.copy - found.baseline:
            said += "; so few records cannot be told from chance"
        return _beyond(found, said)

    return _worst(map(of, case.plan.replaced), "nothing is replaced")


def _window(case: Case, name: str, radius: Radius | None) -> tuple[Floats, Floats]:
    numbers = case.confidential.numbers(name)
    if case.confidential.schema[name].kind.has_levels:
        return numbers, numbers
    present = ~np.isnan(numbers)
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    default = 1 if case.confidential.schema[name].kind is Kind.DATE else NEAR
    low[present], high[present] = (radius or Radius.parse(default)).window(numbers[present])
    return low, high


def _kept_keys(case: Case) -> Sighting:
    schema = case.confidential.schema
    keys = tuple(name for name in case.plan.kept if schema[name].role is Role.QUASI_IDENTIFIER)
    if not case.synthetic or not keys:
        return Sighting(
            "no quasi-identifier leaves as it is" if case.synthetic else "small_classes looks at an anonymised table"
        )
    rows = rows_of(case.own, keys, len(case.confidential))
    sizes = how_often(rows, rows)
    few = np.flatnonzero(sizes < case.policy.smallest_cell)
    said = (
        f"{_percent(len(few) / len(rows))} of the records have quasi-identifiers, as they leave, that fewer than {case.policy.smallest_cell} "
        f"records share, {_percent(float((sizes == 1).mean()))} are alone with them ({', '.join(keys)}): who knows them finds the row"
    )
    return Sighting(said, len(few) / len(rows), records=numbered(few))


def _kept_weight(case: Case) -> Sighting:
    weights = tuple(name for name in case.plan.kept if name in case.recipe.schema.of_role(Role.WEIGHT))
    if not weights:
        return Sighting("no survey weight leaves as it is")
    rows = rows_of(case.own, weights, len(case.confidential))
    sizes = how_often(rows, rows)
    few = np.flatnonzero(sizes < case.policy.smallest_cell)
    said = (
        f"{_percent(len(few) / len(rows))} of the records have a survey weight ({weights[0]}) that fewer than {counted(case.policy.smallest_cell, 'record')} "
        f"share, {_percent(float((sizes == 1).mean()))} are alone with it: whoever knows how the weights were made knows their strata and classes"
    )
    return Sighting(said, len(few) / len(rows), records=numbered(few))


def _identifying(case: Case) -> Sighting:
    def of(name: str) -> Sighting:
        rows = case.own[name]
        alone = how_often(rows, rows) == 1
        said = f"{name} leaves as it is, and {_percent(float(alone.mean()))} of the records are alone with its value"
        role = case.confidential.schema[name].role
        meant = role is Role.QUASI_IDENTIFIER or (role is Role.SENSITIVE and not case.synthetic)
        return Sighting(
            said, float(alone.mean()), records=numbered(np.flatnonzero(alone)), at_most="warn" if meant else "block"
        )

    return _worst(map(of, case.plan.kept), "no variable leaves as it is")


def quasi_identifiers(case: Case) -> tuple[str, ...]:
    """Those of an anonymised release: what its steps say, else the variables of that role that go out."""
    named = [
        name
        for step in case.recipe.anonymisation
        if isinstance(step.spec, AnonymisationSpec)
        for name in step.spec.keys(case.recipe.schema)
    ]
    known = [name for name in case.recipe.schema.of_role(Role.QUASI_IDENTIFIER) if name in case.own]
    return tuple(dict.fromkeys(named or known))


def _small_classes(case: Case) -> Sighting:
    keys = quasi_identifiers(case)
    if case.synthetic or not keys:
        return Sighting(
            "not an anonymised table" if case.synthetic else "no variable is a quasi-identifier", judged=np.inf
        )
    released = case.releases[0]
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    sizes = class_sizes(classes)
    smallest = int(sizes.min())
    few = np.flatnonzero(sizes[classes] < case.policy.smallest_cell)
    records = released.records[few] if released.linked else few[:0]
    said = (
        f"the smallest class of records that agree on all quasi-identifiers has {smallest:,}; {_percent(len(few) / len(released))} of the records "
        f"are in classes of fewer than {case.policy.smallest_cell}"
    )
    return Sighting(said, smallest, records=numbered(records))


def _formulas(case: Case) -> Sighting:
    schema, found = case.recipe.released_schema, set()
    for name in case.own:
        if schema[name].kind.has_levels:
            texts = [*case.variable(name)[0].frame[name].cat.categories, *schema[name].labels.values()]
            found |= {name for text in texts if is_formula(str(text))}
    said = f"levels that a spreadsheet may take for a formula: {', '.join(sorted(found)) or 'none'}"
    return Sighting(said, len(found))


OURS = "a choice of ours; no rule of the field has a number"
MORE_ROOM = "larger leaves (minbucket), smoothing = true for trees, a model instead of donors, or fewer variables"

DATA_CHECKS = (
    Check(
        "equal_records", "released rows that equal a confidential record", "share beyond an independent sample", 0.01, 0.05,
        "one row in twenty more than chance explains is a person's own row; " + OURS, MORE_ROOM, _equal_records,
        "identical matches against a holdout: Platzer & Reutterer (2021); excess risk: Giomi et al. (2023)",
    ),
    Check(
        "near_records", "released rows that are nearly a confidential record", "share beyond an independent sample", 0.05, 0.2,
        "a copy with a little noise equals nobody and is still everybody's own; " + OURS, MORE_ROOM, _near_records,
        "distance to the closest record against a holdout: Platzer & Reutterer (2021)",
    ),
    Check(
        "equal_sensitive", "released rows with all sensitive values of one record", "share beyond an independent sample", 0.05, 0.2,
        "they may belong to another row's quasi-identifiers, so that more is borne than of whole records; " + OURS, MORE_ROOM, _equal_sensitive,
        "Platzer & Reutterer (2021)",
    ),
    Check(
        "lone_values", "values that one record has and that leave as they are", "share of the way from an independent sample to a copy", 0.05, 0.2,
        "whoever knows such a value knows that the person is in the data; " + OURS, "smoothing = true for trees, a model instead of donors, or a rounded variable",
        _lone_values, "an independent sample: Good (1953)",
    ),
    Check(
        "rare_levels", "levels of a few records that leave", "levels", 0, None,
        "whoever is alone in a category is known by it; a model that has the level draws it too, so that it only warns",
        "join rare levels in the data before they are imported", _rare_levels, "smallest cell of the policy",
    ),
    Check(
        "tail_values", "values of the smallest and largest records that leave", "share beyond chance", 0.05, 0.25,
        "they belong to the persons who are known best; " + OURS, "smoothing = true for trees, a model instead of donors, or top and bottom codes before the import",
        _tail_values, "maxima and minima are not released: ESSnet SDC guidelines for output checking (Brandt et al. 2010)",
    ),
    Check(
        "extremes", "smallest and largest values that leave exactly", "values", None, 0,
        "a minimum or maximum is one person's value", "smoothing = true for trees, bounds that the recipe declares, or top and bottom codes before the import",
        _extremes, "maxima and minima are not released: ESSnet SDC guidelines for output checking (Brandt et al. 2010)",
    ),
    Check(
        "recurring_records", "records that come again in half of the datasets", "share of the way from an independent sample to a copy", 0.01, 0.05,
        "a row that comes again is a person's with more certainty than a row of one dataset; " + OURS, f"fewer datasets, {MORE_ROOM}",
        _recurring, "datasets taken together: Reiter & Mitra (2009), §2",
    ),
    Check(
        "agreed_values", "values that the datasets give away together", "share beyond records alike", 0.05, 0.2,
        "beyond what a person like it would lose, it is what the model remembers of the record; " + OURS, f"fewer datasets, {MORE_ROOM}",
        _agreed_values, "attack against a control: Giomi et al. (2023)",
    ),
    Check(
        "kept_keys", "quasi-identifiers of a few records that leave unchanged", "share of the records", 0, None,
        "the row can be found, though what it then shows is drawn; it only warns, since a sensitive variable that is kept blocks",
        "synthesise the quasi-identifiers too, or group them before the import", _kept_keys, "smallest cell of the policy",
    ),
    Check(
        "kept_weight", "survey weights of a few records that leave unchanged", "share of the records", 0, 0.5,
        "a weight is made from strata, response classes and totals, of variables that the release may hide too; " + OURS,
        "synthesise the weight after the variables that it is made from, or round it before the import", _kept_weight,
        "sampling weights give strata away: de Waal & Willenborg (1997); smallest cell of the policy",
    ),
    Check(
        "identifying_columns", "columns kept that are as good as an identifier", "share of the records", 0.5, 0.9,
        "a column in which nearly everybody is alone links the release to any file that has it; quasi-identifiers, and what an anonymised table keeps as sensitive, only warn",
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
