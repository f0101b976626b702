"""Matches of whole units under an intruder who is unsure of one variable: households, patients, people over time.

The intruder knows the certain variables of all members of a unit and believes a value of the uncertain one for each. A
variable of the unit has one belief for all members. Members are aligned as in ``risk.identification``, by the belief
where a radius would align them by the value, so that one alignment serves all windows of a belief. Whose value is
``unknown`` is decided unit by unit: which members lack it is then nothing that an alignment has to guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from ..data.arrays import Booleans, Floats
from ..data.microdata import Microdata
from ..matching.intruder import IntruderKnowledge
from ..matching.matching import ExactKey, MatchResults, WindowKey
from ..matching.radius import Radii
from ..matching.strategies import MatchKey
from ..matching.unit_matching import UnitMatcher, own_units

TwoMatches = tuple[MatchResults, MatchResults]
"""Matches by the known and the synthesised variables, and by the known ones alone."""


class UncertainUnits:
    """Units of one dataset and the keys by which an uncertain intruder matches them.

    Raises NotComputable if the release does not say which records are of one unit.
    """

    def __init__(
        self,
        confidential: Microdata,
        released: Microdata,
        known: Sequence[str],
        synthesised: Sequence[str],
        variable: str,
        radius: Radii,
    ) -> None:
        """Prepare the certain variables; the uncertain ``variable`` is among the ``known``."""
        assert confidential.units is not None
        self.units, self.variable = confidential.units, variable
        theirs = released.require_units()
        names = tuple(dict.fromkeys((*known, *synthesised)))
        keys = IntruderKnowledge.from_variables(confidential, names, radius).keys_by_variable(released)
        self.true_key = keys.pop(variable)
        self.names, self.known = tuple(keys), tuple(name for name in known if name != variable)
        self.certain = UnitMatcher(
            keys,
            self.units,
            theirs,
            by_place=bool(confidential.schema.order),
            own=own_units(self.units, theirs),
        )
        self.has_radius = variable in radius
        self.place = names.index(variable) if self.has_radius else 0
        self.record_of_belief = (
            self.units.first_records[self.units.unit_of] if variable in confidential.schema.unit_level else None
        )
        self.everyone = np.arange(len(self.units))

    @cached_property
    def matches_without_belief(self) -> TwoMatches:
        """Return the matches of an intruder who ignores the uncertain variable."""
        return self._match_both(self.certain, of_hits=False)

    @cached_property
    def matches_with_truth(self) -> TwoMatches:
        """Return the matches of an intruder who knows the uncertain variable."""
        return self._match_both(
            self.certain.with_key(self.variable, self.true_key, self.place), self.variable, of_hits=False
        )

    def match_in_windows(self, windows: Sequence[MatchKey]) -> Iterator[TwoMatches]:
        """Yield the matches by each of the windows of one belief, the belief alone first.

        Of the wider windows the candidates of units that are no hits may be 0.
        """
        keys = [self._belief_of_units(key) for key in windows]
        ranked = keys[0].lower if isinstance(keys[0], WindowKey) else None
        if ranked is not None and not self.has_radius:
            keys[0] = ExactKey(ranked, keys[0].released)
        near = [key for key in keys if isinstance(key, WindowKey)]
        for key in keys[: len(keys) - len(near)]:
            yield self._match_both(self.certain.with_key(self.variable, key), self.variable, of_hits=False)
        if not near:
            return
        assert ranked is not None
        found = self._match_each_window(near, ranked) if len(near) > 1 and not np.isnan(ranked).any() else None
        if found is not None:
            yield from found
            return
        for place, key in enumerate(near):
            # An open radius has no window around 0. Members are then aligned by each window.
            rank = np.where(np.isnan(ranked), key.lower, ranked)
            matcher = self.certain.with_key(self.variable, key, self.place, ranked=rank)
            yield self._match_both(matcher, self.variable, of_hits=place > 0 or not self.has_radius)

    def _match_each_window(self, windows: Sequence[WindowKey], ranked: Floats) -> list[TwoMatches] | None:
        """Return the matches by each of several windows that align the members by the same numbers (n,).

        The pairs of units that agree on all else are found once. Returns None where these are too many.
        """
        widest = WindowKey(
            np.min([key.lower for key in windows], axis=0),
            np.max([key.upper for key in windows], axis=0),
            windows[0].released,
        )
        matcher = self.certain.with_key(self.variable, widest, self.place, ranked=ranked)
        identified = matcher.match_in_each([*self.names, self.variable], self.variable, windows)
        if identified is None or len(self.names) == len(self.known):
            return None if identified is None else [(one, one) for one in identified]
        known = matcher.match_in_each([*self.known, self.variable], self.variable, windows)
        return None if known is None else list(zip(identified, known, strict=True))

    def match_where_known(self, lacking: Booleans) -> TwoMatches:
        """Return the matches where the value of some units is not known, those whose first record is ``lacking`` (n,)."""
        unknown = lacking[self.units.first_records]
        return tuple(  # type: ignore[return-value]
            MatchResults(
                np.where(unknown, without.candidates, told.candidates), np.where(unknown, without.hit, told.hit)
            )
            for without, told in zip(self.matches_without_belief, self.matches_with_truth, strict=True)
        )

    def _belief_of_units(self, key: MatchKey) -> MatchKey:
        """Return a belief with one value for all members of a unit where the variable is of the unit."""
        rows = self.record_of_belief
        if rows is None:
            return key
        if isinstance(key, ExactKey):
            own = key.confidential
            return ExactKey(own[rows] if isinstance(own, np.ndarray) else own.iloc[rows], key.released)
        return WindowKey(key.lower[rows], key.upper[rows], key.released)

    def _match_both(self, matcher: UnitMatcher, *more: str, of_hits: bool = True) -> TwoMatches:
        """Return the matches of all units by the known and synthesised variables, and by the known ones alone.

        With ``of_hits`` the candidates of units that are no hits may be 0, which changes neither risk.
        """
        identified = matcher.match([*self.names, *more], self.everyone, of_hits=of_hits)
        if len(self.names) == len(self.known):
            return identified, identified
        return identified, matcher.match([*self.known, *more], self.everyone, of_hits=True)
