"""Files of ``public/``, which leave the building; none says more of the confidential data than the policy allows.

They hold no seed, no hash of a confidential or stored table, no path, no exact statistic of the confidential data and
no risk. The title and the description of the recipe stay inside: whoever wrote them did not write for the public. The
titles and labels of variables are released, since the data could not be read without them.

A released cell without a value has a kind of missing value: refused, not asked, and so on. A variable that is released
unchanged keeps each record's own kind, where the release has the confidential records in their order. In a synthetic
one the kinds are drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.methods.run import Randomness

from ..gate.contents import ReleasePlan
from ..ingest.file_formats import format_by_name
from ..ingest.reserved_names import KIND_COLUMN_PREFIX
from ..policy.disclosure import DisclosureRules
from ..store.tables import TableStore
from .dossier import ReleaseDossier
from .forms import DatasetForm, keeps_codes
from .long_tables import can_write_parts, iterate_dataset_bytes
from .surrogate_keys import KeysByPart, key_columns, key_variables
from .tables import DatasetContext, codebook_csv, dataset_bytes, released_levels

KindCounts = Mapping[str, Mapping[str, int]]
MOST_SAMPLED, MARGIN = 10_000, 1.25
"""Rows by which the size of files is estimated, and what may be more of it than they show."""
KEY_COLUMN_BYTES = 17
"""Bytes of a key that joins rows, with its separator."""


def confidential_missing_kinds(confidential: pa.Table) -> pd.DataFrame:
    """Return the kind of each missing value of the confidential table, (n, k) for k variables with kinds.

    None elsewhere.
    """
    named = [name for name in confidential.column_names if name.startswith(KIND_COLUMN_PREFIX)]
    columns = {
        name.removeprefix(KIND_COLUMN_PREFIX): confidential.column(name).to_pandas().astype("object") for name in named
    }
    return pd.DataFrame(columns)


def publishable_missing_kinds(kinds: pd.DataFrame, rules: DisclosureRules) -> dict[str, dict[str, int]]:
    """Return, by variable, the kinds of missing value that enough records have, with their rounded numbers of records.

    .
    """
    found = {str(name): kinds[name].value_counts() for name in kinds}
    return {
        name: {
            str(kind): int(max(rules.round_count(n), rules.base))
            for kind, n in counts.items()
            # A kind of fewer records is named nowhere: those values are system missing in the release.
            if n >= rules.fewest_records
        }
        for name, counts in found.items()
        if (counts >= rules.fewest_records).any()
    }


def released_missing_kinds(
    released: pa.Table,
    confidential: pa.Table,
    named: KindCounts,
    kept: Collection[str],
    rules: DisclosureRules,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the kind of each missing value of a released table, (n, k) for k variables with ``named`` kinds.

    None is system missing. ``kept`` are the variables that are unchanged from the confidential table.
    """
    own = confidential_missing_kinds(confidential)
    found: dict[str, pd.Series] = {}
    for name, counts in named.items():
        if name not in released.column_names:
            continue
        missing = released.column(name).is_null(nan_is_null=True).to_numpy()
        known = own[name].where(own[name].isin(counts))
        there = confidential.column(name).is_null(nan_is_null=True).to_numpy()
        if name in kept:
            # Only in the confidential order do the records' own kinds belong to these rows.
            alike = len(missing) == len(there) and bool((missing == there).all())
            found[name] = known if alike else pd.Series([None] * len(missing), dtype="object")
        else:
            found[name] = _draw_missing_kinds(missing, counts, int((there & known.isna().to_numpy()).sum()), rules, rng)
    return pd.DataFrame(found, index=range(released.num_rows))


def _draw_missing_kinds(
    missing: np.ndarray, counts: Mapping[str, int], unnamed: int, rules: DisclosureRules, rng: np.random.Generator
) -> pd.Series:
    """Draw a kind for each ``missing`` value (n,) by rounded counts.

    ``unnamed`` confidential values have no named kind.
    """
    kinds = np.array([*counts, None], dtype=object)
    # A method draws that a value is missing, not why. So kinds are drawn independently, and in rounded proportions:
    # exact ones would be a statistic of the confidential data.
    shares = np.array([*counts.values(), rules.round_count(unnamed)], dtype=np.float64)
    shares /= shares.sum()
    drawn = kinds[rng.choice(len(kinds), len(missing), p=shares)]
    drawn[~missing] = None
    return pd.Series(drawn, dtype="object")


def dataset_file_names(plan: ReleasePlan, form: DatasetForm) -> tuple[str, ...]:
    """Return the names of the datasets' files, such as ``dataset-SYNTHETIC-01.csv`` or ``dataset-ANONYMISED-01.csv``.

    .
    """
    digits = max(2, len(str(plan.datasets)))
    kind = plan.run.recipe.origin.upper()
    suffix = format_by_name(form).suffix
    return tuple(f"dataset-{kind}-{draw:0{digits}}.{suffix}" for draw in range(1, plan.datasets + 1))


def estimate_dataset_bytes(tables: TableStore, plan: ReleasePlan, form: DatasetForm) -> int:
    """Return about how many bytes the datasets' files take in a form, somewhat more than less: by the first rows of one.

    Raises DamagedTable, and NotReleased where the form has no room for what there is.
    """
    if not plan.tables:
        return 0
    head = next(tables.iterate_row_groups(plan.tables[0])).slice(0, MOST_SAMPLED)
    sample = len(dataset_bytes(head, plan.run.recipe.released_schema, plan.left_out, form))
    keys = KEY_COLUMN_BYTES * len(key_variables(plan.run.recipe))
    rows = sum(map(tables.count_table_records, plan.tables))
    return int(MARGIN * rows * (sample / max(1, head.num_rows) + keys))


def public_files(dossier: ReleaseDossier, key: bytes) -> Iterator[tuple[str, bytes | Iterator[bytes]]]:
    """Yield the public files as name and bytes, except the manifest; of a long dataset the bytes come piece by piece.

    ``key`` is the run's. It decides the order of the rows, and the surrogate keys. The order of a long dataset is another
    than it would be in memory, by the same numbers.
    """
    if _has_parts(dossier):
        yield from _files_of_parts(dossier, key)
        return
    plan = dossier.plan
    recipe = plan.run.recipe
    schema = recipe.released_schema
    levels = released_levels(dossier.stored_parts.iterate_all_released(), plan.left_out)
    confidential = dossier.read_confidential()
    named = _missing_kinds_of_release(dossier, confidential)
    for draw, name in enumerate(dataset_file_names(plan, dossier.form), start=1):
        order = Randomness(recipe.seed, key, (plan.tables[draw - 1],))
        rng = order.generator("release", draw) if plan.is_shuffled else None
        note = f"{recipe.origin.upper()} data, dataset {draw} of {plan.datasets}"
        table = dossier.read_released(draw - 1)
        chance, columns = order.generator("kinds of missing", draw), key_columns(table, recipe, key)
        kinds = (
            released_missing_kinds(table, confidential, named, plan.kept, dossier.policy.disclosure_rules, chance)
            if named
            else None
        )
        context = DatasetContext(
            rng=rng,
            levels=levels,
            note=note,
            kinds=kinds,
            named_kinds=kind_names_by_variable(named),
            keys=[(variable, columns[variable.name]) for variable in key_variables(recipe)],
        )
        yield name, dataset_bytes(table, schema, plan.left_out, dossier.form, context)
    original = dossier.stored_parts.read_confidential_levels(), dossier.original.schema
    codebook = codebook_csv(
        schema,
        levels,
        plan.left_out,
        original,
        kind_names_by_variable(named),
        key_variables(recipe),
        dossier.form,
    )
    yield "codebook.csv", codebook.encode()


def _has_parts(dossier: ReleaseDossier) -> bool:
    """Return whether the datasets are long and their files can be written some rows at a time."""
    parts, plan = dossier.stored_parts, dossier.plan
    if not parts.are_long or keeps_codes(dossier.form):
        return False
    return can_write_parts(dossier.form, next(parts.iterate_released(0)).slice(0, 1), plan.left_out)


def _files_of_parts(dossier: ReleaseDossier, key: bytes) -> Iterator[tuple[str, bytes | Iterator[bytes]]]:
    """Yield the public files of long datasets, as ``public_files`` does."""
    plan, parts = dossier.plan, dossier.stored_parts
    recipe = plan.run.recipe
    levels = released_levels(parts.iterate_all_released(), plan.left_out)
    keys = KeysByPart(recipe, key) if key_variables(recipe) else None
    for draw, name in enumerate(dataset_file_names(plan, dossier.form)):
        order = Randomness(recipe.seed, key, (plan.tables[draw],))
        rng = order.generator("release", draw + 1) if plan.is_shuffled else None
        note = f"{recipe.origin.upper()} data, dataset {draw + 1} of {plan.datasets}"
        yield (
            name,
            iterate_dataset_bytes(
                partial(parts.iterate_released, draw),
                recipe.released_schema,
                plan.left_out,
                dossier.form,
                DatasetContext(rng=rng, levels=levels, note=note),
                parts.open_spool,
                keys,
            ),
        )
    original = parts.read_confidential_levels(), dossier.original.schema
    codebook = codebook_csv(
        recipe.released_schema, levels, plan.left_out, original, {}, key_variables(recipe), dossier.form
    )
    yield "codebook.csv", codebook.encode()


def kind_names_by_variable(named: KindCounts) -> dict[str, tuple[str, ...]]:
    """Return the names of the kinds of missing value, by variable, sorted."""
    return {name: tuple(sorted(kinds)) for name, kinds in named.items()}


def _missing_kinds_of_release(dossier: ReleaseDossier, confidential: pa.Table) -> KindCounts:
    """Return the kinds of missing value that the datasets distinguish, with their counts, by variable."""
    plan = dossier.plan
    account = any(step.method.synthesis.privacy.account for step in plan.run.recipe.synthesis)
    # Other forms have no room for kinds, and their proportions would have to be entered into a privacy account.
    if not keeps_codes(dossier.form) or account:
        return {}
    return {
        name: counts
        for name, counts in publishable_missing_kinds(
            confidential_missing_kinds(confidential), dossier.policy.disclosure_rules
        ).items()
        if name not in plan.left_out
    }
