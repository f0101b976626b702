"""Audiences of a release.

The module loads no numerical library, so that a policy is read without one.
"""

from __future__ import annotations

from typing import Literal

Audience = Literal["public", "contract", "enclave"]
AUDIENCES: tuple[Audience, ...] = ("public", "contract", "enclave")
"""Who may receive a release, the strictest first: anybody; users bound by a contract; users inside a secure environment."""
