"""The panels of figures as charts of characters draw them."""

from __future__ import annotations

import numpy as np

from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series

__all__ = ["plot_series"]


def plot_series(panel: Panel, figure: Figure, *, log: bool = False) -> list[Series]:
    """The series of a panel as plots draw them, the thin ones last and like the one of their name; ``log`` takes logarithms of x."""
    whole = [one for one in panel.series if not one.thin]
    places = {one.name: place for place, one in enumerate(whole)}
    return [
        Series(
            one.name, np.log10(one.x) if log else one.x, one.y, one.lower, one.upper, marker=one.marker or figure.marker,
            kin=places[one.name] if one.thin else None,
        )
        for one in sorted(panel.series, key=lambda one: one.thin)
    ]  # fmt: skip
