"""What leaves the building: the files of ``public/``, none of which says more of the confidential data than the policy lets out.

No seed, no hash of a confidential or stored table, no path, no exact statistic of the confidential data and no risk. The title
and the description of the recipe stay inside: whoever wrote them did not write for the public. The titles and labels of
variables leave, since the data could not be read without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.engine.methods.run import Randomness

from .contents import ReleasePlan
from .dossier import Dossier
from .forms import FILE_TYPES, STATISTICAL, Form
from .kinds_of_missing import Counts, named_kinds, own_kinds, released_kinds
from .tables import codebook, dataset_bytes, released_levels

if TYPE_CHECKING:
    import pyarrow as pa


def dataset_names(plan: ReleasePlan, form: Form) -> tuple[str, ...]:
    """``dataset-SYNTHETIC-01.csv`` and so on; ANONYMISED where records were changed and not drawn."""
    digits = max(2, len(str(plan.datasets)))
    kind = plan.run.recipe.origin.upper()
    suffix = FILE_TYPES[form].suffix
    return tuple(f"dataset-{kind}-{draw:0{digits}}.{suffix}" for draw in range(1, plan.datasets + 1))


def public_files(dossier: Dossier, key: bytes) -> Iterator[tuple[str, bytes]]:
    """The files by name, but for the manifest. ``key`` is the run's; it decides the order of the rows."""
    plan = dossier.plan
    recipe = plan.run.recipe
    schema = recipe.released_schema
    levels = released_levels((dossier.released(draw) for draw in range(plan.datasets)), plan.left_out)
    confidential = dossier.confidential()
    named = _named_kinds(dossier, confidential)
    for draw, name in enumerate(dataset_names(plan, dossier.form), start=1):
        order = Randomness(recipe.seed, key, (plan.tables[draw - 1],))
        rng = order.generator("release", draw) if plan.shuffled else None
        note = f"{recipe.origin.upper()} data, dataset {draw} of {plan.datasets}"
        table = dossier.released(draw - 1)
        chance = order.generator("kinds of missing", draw)
        kinds = released_kinds(table, confidential, named, plan.kept, chance) if named else None
        yield name, dataset_bytes(table, schema, plan.left_out, dossier.form, rng, levels, note, kinds, named_by(named))
    original = confidential, dossier.original.schema
    yield "codebook.csv", codebook(schema, levels, plan.left_out, original, named_by(named)).encode()


def named_by(named: Counts) -> dict[str, tuple[str, ...]]:
    """The kinds that are named, by variable, in their order."""
    return {name: tuple(sorted(kinds)) for name, kinds in named.items()}


def _named_kinds(dossier: Dossier, confidential: pa.Table) -> Counts:
    """The kinds of missing value that the datasets tell apart: none where the form has no room for them, or a privacy account is kept."""
    plan = dossier.plan
    account = any(step.method.account for step in plan.run.recipe.synthesis)
    if dossier.form not in STATISTICAL or account:
        return {}
    return {name: counts for name, counts in named_kinds(own_kinds(confidential)).items() if name not in plan.left_out}
