"""ConstraintPlan all draws of a sampler's chains, where a step asks for it (``keep_chains``): what for, and what it takes.

The draws are ``sfumato.engine.methods.results.Chains``. A trace is a thinned picture of them; these are for other tools that judge a sampler by themselves.
"""

from __future__ import annotations

from ..errors import BadInput

MOST_BYTES = 4_000_000_000
"""Most that the chains of one step may take."""
NUMBER_BYTES = 8
KEEP_CHAINS = "keep all draws of every chain in the workspace; what that takes is said before a run"
"""What the parameter ``keep_chains`` of a method is for."""


def bytes_of_chains(chains: int, steps: int, parameters: int) -> int:
    """What the draws of so many chains, steps and parameters take, with the density of each step, before they are compressed."""
    return chains * steps * (parameters + 1) * NUMBER_BYTES


def require_room_for_chains(needed: int, place: str) -> None:
    """BadInput at ``place.keep_chains`` where they would take more than ``MOST_BYTES``."""
    if needed > MOST_BYTES:
        raise BadInput(
            f"{place}.keep_chains",
            f"up to {needed / 1e9:,.1f} GB of draws would be kept, more than {MOST_BYTES / 1e9:,.0f} GB; ask for fewer steps or chains",
        )
