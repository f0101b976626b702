"""Heat maps of pairs of variables: how far each is from the confidential data, and which pairs share a released table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.rows import Row

from .figure import AxisBins, BinShares, Figure, Panel

OTHER_VARIABLE = "other"
"""Parameter of a row that names the second variable of a pair."""


def triangle_figures(rows: Sequence[Row], kept: Collection[frozenset[str]]) -> list[Figure]:
    """Return a figure for each measure that has values of pairs, with a second panel of the ``kept`` pairs.

    ``rows`` are averages over the datasets.
    """
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        other = row.params.get(OTHER_VARIABLE)
        if other and row.target and row.value is not None and row.dataset != "confidential" and row.unit == "share":
            found.setdefault(row.key, {})[row.target, str(other)] = row.value
    return [_triangle_figure(measure_name(key), values, kept) for key, values in found.items()]


def _triangle_figure(name: str, values: dict[tuple[str, str], float], kept: Collection[frozenset[str]]) -> Figure:
    """Return the figure of one measure, from its values by pair of variables."""
    names = tuple(dict.fromkeys(variable for pair in values for variable in pair))
    places = {variable: at for at, variable in enumerate(names)}
    bins = AxisBins(np.arange(len(names) + 1, dtype=np.float64) - 0.5, names)
    sizes, together = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for (a, b), value in values.items():
        # a pair fills one half of the square; the other half stays blank
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
