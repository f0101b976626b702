"""Chains that continue until they have converged, from the state that they are in.

Every sampler of chains runs to a length, is judged by its own rule, and continues to the next length where the rule fails. Chains that
converge at the first length have the same draws as if there were no other. What a chain draws depends on its own random numbers
and its length alone, so that an interrupted fit that starts again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Left = TypeVar("Left")


def run_until_converged(
    run_to: Callable[[int], Left], converged: Callable[[Left], bool], lengths: Iterable[int]
) -> tuple[Left, int]:
    """What the chains left at the first of the ascending ``lengths`` where they have converged, or at the last, and that length.

    ``run_to`` continues the chains to a length. Raises ValueError without any length.
    """
    left: Left | None = None
    reached = 0
    for reached in lengths:
        left = run_to(reached)
        if converged(left):
            break
    if left is None:
        raise ValueError("no length to run to")
    return left, reached


def grown(first: int, most: int, by: float) -> Iterator[int]:
    """The length ``first``, then each ``by`` times the one before, and ``most`` as the last."""
    length = min(first, most)
    yield length
    while length < most:
        length = min(int(by * length), most)
        yield length


def doubled(first: int, most: int) -> Iterator[int]:
    """The length ``first``, then each twice the one before, as long as that is at most ``most``.

    The second half of a chain is then what it added last.
    """
    length = first
    yield length
    while 2 * length <= most:
        length *= 2
        yield length
