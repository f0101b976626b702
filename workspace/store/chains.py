"""All draws of a run's samplers, as tables of the workspace: written by the task that fitted the model, sealed like all that it leaves.

A table has a row a step of a chain: ``.chain`` and ``.draw`` count from 1, ``.warmup`` says whether the step is of the burn-in, then a
column a parameter, and the density of the step last. They are as confidential as the data. No release and no report takes them.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.results import SamplerDraws
from sfumato.engine.recipe.recipe import Recipe

from ..errors import DamagedTable
from .tables import Tables

CHAIN, DRAW, WARMUP = ".chain", ".draw", ".warmup"
ABOUT = b"sfumato.chains"
"""Under which the table's schema says what no row does: the burn-in, the sampler and the names."""


def chains_name(item: int) -> str:
    """``chains/0``: all draws of the sampler of synthesis step 0."""
    return f"chains/{item}"


def write_chains(tables: Tables, chains: SamplerDraws) -> str:
    """Store all draws; returns the hash of their table."""
    number, steps = chains.density.shape
    columns = [
        np.repeat(np.arange(1, number + 1, dtype=np.int32), steps),
        np.tile(np.arange(1, steps + 1, dtype=np.int32), number),
        np.tile(np.arange(steps) < chains.burn_in, number),
        *(np.ascontiguousarray(chains.values[:, :, j]).ravel() for j in range(len(chains.parameters))),
        chains.density.ravel(),
    ]
    names = [CHAIN, DRAW, WARMUP, *chains.parameters, chains.density_name]
    about = {
        "burn_in": chains.burn_in,
        "sampler": chains.sampler,
        "parameters": list(chains.parameters),
        "density": chains.density_name,
    }
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=names)
    return tables.write(table.replace_schema_metadata({ABOUT: json.dumps(about, sort_keys=True)}))


def read_chains(tables: Tables, sha256: str) -> SamplerDraws:
    """The draws that ``write_chains`` stored. Raises DamagedTable, also where the table is of something else."""
    table = tables.read(sha256)
    try:
        about = json.loads((table.schema.metadata or {})[ABOUT])
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


def chains_words(recipe: Recipe, data: Microdata | None) -> str:
    """What chains a run would keep and what they take at most, in a sentence; empty where it keeps none.

    Without the ``data`` nobody can say how many parameters a model has.
    """
    keeping = [step for step in recipe.synthesis if getattr(step.spec, "keep_chains", False)]
    if not keeping:
        return ""
    of = "; ".join(step.target for step in keeping)
    size = "" if data is None else f", at most {size_words(sum(step.spec.chain_bytes(data) for step in keeping))}"
    return f"All draws of the chains of {of} are kept in the workspace{size}, as confidential as the data."


def size_words(size: int) -> str:
    """``12.3 MB``: bytes in a unit that has one to three digits before the point."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
