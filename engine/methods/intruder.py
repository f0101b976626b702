"""Parameter types for what an intruder knows and wants to learn."""

from __future__ import annotations

from typing import Annotated, Literal

from .spec import Param, Variant

Known = Annotated[
    tuple[str, ...],
    Param("variables the intruder knows; default: the quasi-identifiers", names="variables", reported=True),
]
KnownUnlessSynthesised = Annotated[
    Known, Variant("variables the intruder knows; default: the quasi-identifiers that are not synthesised")
]
KnownThoughSynthesised = Annotated[
    Known, Variant("synthesised variables whose confidential values the intruder knows; default: all")
]
KeyVariables = Annotated[
    Known, Variant("variables of the key; default: the quasi-identifiers, or else the released variables")
]
QuasiIdentifiers = Annotated[
    Known, Variant("variables that the intruder may know; default: the quasi-identifiers", reported=False)
]
SensitiveVariables = Annotated[
    tuple[str, ...],
    Param("variables the intruder wants to learn; default: the sensitive ones", names="variables"),
]
MissingKeys = Annotated[
    Literal["value", "anything"],
    Param("what a missing quasi-identifier matches: itself, as a value of its own, or anything"),
]
