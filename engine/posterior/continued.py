"""Chains that continue until they have converged, from the state that they are in.

Every sampler of chains runs to a length, is judged by its own rule, and continues to the next length where the rule
fails. Draws of a chain depend on its own random numbers and its length alone, so that an interrupted fit that starts
again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

ChainResult = TypeVar("ChainResult")


def run_until_converged(
    run_to: Callable[[int], ChainResult], converged: Callable[[ChainResult], bool], lengths: Iterable[int]
) -> tuple[ChainResult, int]:
    """Run chains to the first of the ascending ``lengths`` at which they have converged, or to the last.

    Returns their result and that length. ``run_to`` continues the chains to a length. Raises ValueError without any
    length.
    """
    left: ChainResult | None = None
    reached = 0
    for reached in lengths:
        left = run_to(reached)
        if converged(left):
            break
    if left is None:
        raise ValueError("no length to run to")
    return left, reached


def geometric_lengths(first: int, most: int, by: float) -> Iterator[int]:
    """Yield the length ``first``, then each ``by`` times the previous one, and ``most`` as the last."""
    length = min(first, most)
    yield length
    while length < most:
        length = min(int(by * length), most)
        yield length


def doubling_lengths(first: int, most: int) -> Iterator[int]:
    """Yield the length ``first``, then each twice the previous one, while that is at most ``most``."""
    length = first
    yield length
    # Doubled, so that the second half of a chain is what it added last.
    while 2 * length <= most:
        length *= 2
        yield length
