"""Who may receive a release. Plain names, so that a screen reads a policy without numerical libraries."""

from __future__ import annotations

from typing import Literal

Audience = Literal["public", "contract", "enclave"]
AUDIENCES: tuple[Audience, ...] = ("public", "contract", "enclave")
"""The strictest first: anybody; users bound by a contract; users inside a secure environment."""
