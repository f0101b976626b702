"""What the contract holds each of our measures to beyond its declaration: one module a measure, ``risk_uniqueness`` for ``risk.uniqueness``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oracles import Answers
from relations import Expected

Settings = tuple[str, dict[str, Any]]
"""What the release is (``test_every_output_has_an_oracle.released_as``), and a table of parameters."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The definition of a measure once more, and what must become of its outputs when both tables change in a known way.

    ``oracle`` answers ``outputs`` on the tables of ``tiny`` and ``larger``, where numbers hardly repeat; ``no_oracle`` says why there can be none:
    one reason for all outputs or one for each. ``expected`` of every output is tried with ``settings``.
    """

    expected: Mapping[str, Expected]
    settings: Mapping[str, Any] = field(default_factory=dict)
    oracle: Callable[..., dict[str, Answers]] | None = None
    outputs: tuple[str, ...] = ()
    tiny: Sequence[Settings] = ()
    larger: Sequence[Settings] = ()
    no_oracle: str | Mapping[str, str] = ""

    def why_none(self, output: str) -> str:
        """Why an output has no oracle; empty where it has one."""
        if isinstance(self.no_oracle, str):
            return self.no_oracle
        return self.no_oracle.get(output, "")
