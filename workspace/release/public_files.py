"""What leaves the building: the files of ``public/``, none of which says more of the confidential data than the policy lets out.

No seed, no hash of a confidential or stored table, no path, no exact statistic of the confidential data and no risk. The title
and the description of the recipe stay inside: whoever wrote them did not write for the public. The titles and labels of
variables leave, since the data could not be read without them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.engine.run import Randomness

from .contents import ReleasePlan
from .dossier import Dossier
from .tables import Form, codebook, dataset_bytes, released_levels


def dataset_names(plan: ReleasePlan, form: Form) -> tuple[str, ...]:
    """``dataset-SYNTHETIC-01.csv`` and so on; ANONYMISED where records were changed and not drawn."""
    digits = max(2, len(str(plan.datasets)))
    kind = plan.run.recipe.origin.upper()
    return tuple(f"dataset-{kind}-{draw:0{digits}}.{form}" for draw in range(1, plan.datasets + 1))


def public_files(dossier: Dossier, key: bytes) -> Iterator[tuple[str, bytes]]:
    """The files by name, but for the manifest. ``key`` is the run's; it decides the order of the rows."""
    plan = dossier.plan
    recipe = plan.run.recipe
    schema = recipe.released_schema
    levels = released_levels((dossier.released(draw) for draw in range(plan.datasets)), plan.left_out)
    for draw, name in enumerate(dataset_names(plan, dossier.form), start=1):
        order = Randomness(recipe.seed, key, (plan.tables[draw - 1],))
        rng = order.generator("release", draw) if plan.shuffled else None
        note = f"{recipe.origin.upper()} data, dataset {draw} of {plan.datasets}"
        yield name, dataset_bytes(dossier.released(draw - 1), schema, plan.left_out, dossier.form, rng, levels, note)
    original = dossier.confidential(), dossier.original.schema
    yield "codebook.csv", codebook(schema, levels, plan.left_out, original).encode()
