"""Tables with all draws of a run's samplers, written by the task that fitted the model and sealed with it.

A table has a row for each step of a chain: ``.chain`` and ``.draw`` count from 1, ``.warmup`` tells whether the step is
of the burn-in; then a column for each parameter, and the density last. They are as confidential as the data: no release
and no report takes them.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.results import SamplerDraws
from sfumato.engine.recipe.recipe import Recipe

from ..errors import DamagedTable
from .tables import TableStore

CHAIN_COLUMN, DRAW_COLUMN, WARMUP_COLUMN = ".chain", ".draw", ".warmup"
METADATA_KEY = b"sfumato.chains"
"""Key of the table's metadata for what no row contains: the burn-in, the sampler and the names."""


def chains_name(item: int) -> str:
    """Return the artefact's name ``chains/0`` for all draws of synthesis step 0."""
    return f"chains/{item}"


def write_chains(tables: TableStore, chains: SamplerDraws) -> str:
    """Store all draws of a sampler, and return the hash of their table."""
    number, steps = chains.density.shape
    columns = [
        np.repeat(np.arange(1, number + 1, dtype=np.int32), steps),
        np.tile(np.arange(1, steps + 1, dtype=np.int32), number),
        np.tile(np.arange(steps) < chains.burn_in, number),
        *(np.ascontiguousarray(chains.values[:, :, j]).ravel() for j in range(len(chains.parameters))),
        chains.density.ravel(),
    ]
    names = [CHAIN_COLUMN, DRAW_COLUMN, WARMUP_COLUMN, *chains.parameters, chains.density_name]
    about = {
        "burn_in": chains.burn_in,
        "sampler": chains.sampler,
        "parameters": list(chains.parameters),
        "density": chains.density_name,
    }
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=names)
    return tables.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(about, sort_keys=True)}))


def read_chains(tables: TableStore, sha256: str) -> SamplerDraws:
    """Read the draws that ``write_chains`` stored. Raises DamagedTable, also for a table of something else."""
    table = tables.read_stored_table(sha256)
    try:
        about = json.loads((table.schema.metadata or {})[METADATA_KEY])
        shape = (len(np.unique(table.column(0).to_numpy())), -1)
        first = len(table.column_names) - len(about["parameters"]) - 1
        columns = [table.column(first + j).to_numpy().reshape(shape) for j in range(len(about["parameters"]) + 1)]
        return SamplerDraws(
            tuple(about["parameters"]),
            np.stack(columns[:-1], axis=-1),
            np.asarray(columns[-1]),
            str(about["density"]),
            int(about["burn_in"]),
            str(about["sampler"]),
        )
    except (KeyError, ValueError, TypeError):
        raise DamagedTable(f"the table {sha256[:8]} holds no chains that this version can read") from None


def kept_chains_remark(recipe: Recipe, data: Microdata | None) -> str:
    """Describe which chains a run would keep, and how large they are at most; empty where it keeps none.

    Without the ``data`` the number of parameters of a model is unknown.
    """
    keeping = [step for step in recipe.synthesis if getattr(step.spec, "keep_chains", False)]
    if not keeping:
        return ""
    of = "; ".join(step.target for step in keeping)
    size = "" if data is None else f", at most {byte_size_text(sum(step.spec.chain_bytes(data) for step in keeping))}"
    return f"All draws of the chains of {of} are kept in the workspace{size}, as confidential as the data."


def byte_size_text(size: int) -> str:
    """Format a number of bytes with one decimal: ``12.3 MB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
