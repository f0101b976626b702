"""A triangle of the pairs of variables: how far each is off in a release, and which share a table that the records were drawn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.rows import Row

from .figure import AxisBins, BinShares, Figure, Panel

OTHER_VARIABLE = "other"
"""The row parameter that names the second variable of a pair."""


def triangle_figures(rows: Sequence[Row], kept: Collection[frozenset[str]]) -> list[Figure]:
    """Draw a figure for each measure that has numbers of pairs: their sizes, and beside them the ``kept`` pairs where there are some.

    ``rows`` are averages over the datasets. A pair without a number is blank, as the other half of the square is.
    """
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        other = row.params.get(OTHER_VARIABLE)
        if other and row.target and row.value is not None and row.dataset != "confidential" and row.unit == "share":
            found.setdefault(row.key, {})[row.target, str(other)] = row.value
    return [_triangle_figure(measure_name(key), values, kept) for key, values in found.items()]


def _triangle_figure(name: str, values: dict[tuple[str, str], float], kept: Collection[frozenset[str]]) -> Figure:
    names = tuple(dict.fromkeys(variable for pair in values for variable in pair))
    places = {variable: at for at, variable in enumerate(names)}
    bins = AxisBins(np.arange(len(names) + 1, dtype=np.float64) - 0.5, names)
    sizes, together = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for (a, b), value in values.items():
        sizes[places[b], places[a]] = value
    for a, b in combinations(names, 2):
        together[places[b], places[a]] = float(frozenset((a, b)) in kept)
    panels = [Panel(name, (), x_names=names, cells=BinShares(sizes, bins, bins))]
    if together.any():
        panels.append(Panel("pairs in a table that was kept", (), x_names=names, cells=BinShares(together, bins, bins)))
    said = (
        f"{int(together.sum())} of {len(values)} pairs are in a table that the records were drawn from." if kept else ""
    )
    return Figure(f"{name}: every pair", "heat", tuple(panels), said)
