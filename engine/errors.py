"""Errors that the engine raises, in one place.

EngineError
├── BadInput        what the user gave cannot be used: names the place and the fix
│   └── NotInstalled    it needs an extra of the package
├── NotComputable   a value that has no answer here: becomes a row with the reason
├── NotConverged    a sampler whose draws must not be used: names the parameter
├── ConstraintsUnmet    records that break a constraint however often they are drawn: names it and counts them
└── Cancelled       the caller asked a computation to stop

An extra is a part that is installed on request: ``pip install 'sfumato[gan]'``.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .wording import count_noun


class EngineError(Exception):
    """Base of every error that the engine raises on purpose."""


class BadInput(EngineError, ValueError):
    """Input that cannot be used. ``place`` says where (``synthesis[1].target``), the message what is wrong and how to fix it."""

    def __init__(self, place: str, message: str) -> None:
        place, message = _shorten_middle(place, PLACE_LETTERS), _shorten_middle(message, MESSAGE_LETTERS)
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place
        self.message = message


PLACE_LETTERS, MESSAGE_LETTERS = 300, 1500


def _shorten_middle(text: str, most: int) -> str:
    """Return a text without its middle where it quotes more than anybody reads; how to fix it stands at its end."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


class NotInstalled(BadInput):
    """A method whose extra is not installed; the message says how to install it."""


class NotComputable(EngineError):
    """A value that cannot be computed, for a reason that the reader should see."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotConverged(EngineError):
    """A sampler that did not converge.

    parameter: the worst parameter
    statistic, value: diagnostic by which it did not converge, and its value
    rule: limit of the diagnostic
    left: the ``Fit`` that the sampler left to look at: its statistics and its trace, without draws to use
    """

    def __init__(self, parameter: str, statistic: str, value: float, rule: str, left: Any = None) -> None:
        super().__init__(f"{parameter} has not converged: {statistic} is {value:.3f}, {rule}")
        self.parameter = parameter
        self.statistic = statistic
        self.value = value
        self.rule = rule
        self.left = left

    def __reduce__(self) -> tuple[type[NotConverged], tuple[str, str, float, str, Any]]:
        return type(self), (self.parameter, self.statistic, self.value, self.rule, self.left)


class ConstraintsUnmet(EngineError):
    """Drawn records that still break constraints after all redraws.

    place: dataset and step
    left: records that break each constraint, by its name
    records: number of records
    redraws: number of redraws
    noun: what was drawn, a record or a unit
    """

    def __init__(self, place: str, left: Mapping[str, int], records: int, redraws: int, noun: str = "record") -> None:
        said = "; ".join(f"constraint {name}: {count:,} of {records:,} {noun}s" for name, count in left.items())
        super().__init__(
            f"{place}: {said}, after {count_noun(redraws, 'redraw')}; make its variables in another order or by a model that draws such values, "
            f'raise redraws under [release], or keep such {noun}s and have them counted, unmet = "keep"'
        )
        self.place = place
        self.left = dict(left)
        self.records = records
        self.redraws = redraws
        self.noun = noun

    def __reduce__(self) -> tuple[type[ConstraintsUnmet], tuple[str, dict[str, int], int, int, str]]:
        return type(self), (self.place, self.left, self.records, self.redraws, self.noun)


class Cancelled(EngineError):
    """A computation that stops because its caller asked it to."""


def near_miss_hint(word: str, known: Iterable[str]) -> str:
    """Return ``'; did you mean "reviews"?'`` for a near miss, else the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


@dataclass(frozen=True, slots=True)
class PackageExtra:
    """An extra of the package.

    name: name of the extra
    modules: modules that it brings
    """

    name: str
    modules: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        """Return whether its modules are there; none is imported."""
        return all(importlib.util.find_spec(module) is not None for module in self.modules)

    @property
    def install_command(self) -> str:
        """Return the command that installs the extra."""
        return f"pip install 'sfumato[{self.name}]'"

    def require_installed(self, place: str) -> None:
        """Raise NotInstalled at ``place`` where it is not installed."""
        if not self.is_installed:
            raise NotInstalled(
                place, f"this method needs the extra [{self.name}], which is not installed: {self.install_command}"
            )


GAN = PackageExtra("gan", ("ctgan", "torch"))
