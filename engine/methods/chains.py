"""Limits on storing all draws of a sampler's chains, where a step asks for it (``keep_chains``).

The draws are ``sfumato.engine.methods.results.SamplerDraws``. A trace is a thinned picture of them; these are for other
tools that judge a sampler by themselves.
"""

from __future__ import annotations

from ..errors import BadInput

MOST_BYTES = 4_000_000_000
"""Most that the chains of one step may take."""
NUMBER_BYTES = 8
KEEP_CHAINS = "keep all draws of every chain in the workspace; what that takes is said before a run"
"""What the parameter ``keep_chains`` of a method is for."""


def chain_storage_bytes(chains: int, steps: int, parameters: int) -> int:
    """Return the bytes that the draws take before compression, with the density of each step."""
    # One number more a step for its log density.
    return chains * steps * (parameters + 1) * NUMBER_BYTES


def require_room_for_chains(needed: int, place: str) -> None:
    """Raise BadInput at ``place.keep_chains`` where the draws would take more than ``MOST_BYTES``."""
    if needed > MOST_BYTES:
        raise BadInput(
            f"{place}.keep_chains",
            f"up to {needed / 1e9:,.1f} GB of draws would be kept, more than {MOST_BYTES / 1e9:,.0f} GB; ask for fewer steps or chains",
        )
