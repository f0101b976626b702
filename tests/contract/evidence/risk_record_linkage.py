"""What ``risk.record_linkage`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from relations import Expected, equals, free, lower, not_higher, same
from tables import RADIUS

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle=(
        "its weights are learned step by step; tests/engine/matching/test_splink.py compares them with splink's, and "
        "tests/engine/risk/test_record_linkage.py learns them again by loops, links by loops, and deals the records of small tables in every order"
    ),
    settings={"radius": RADIUS},
    expected={
        **dict.fromkeys(
            ("linked_share", "linked_share_informed", "uniquely_linked", "recall"),
            Expected(
                doubled=free("twice as many pairs, half as many of them true, teach other weights"),
                copy=same,
                permuted=lower,
                noise=lower,
            ),
        ),
        # Who compares nothing picks a record of the block at random, whatever is dealt or drawn.
        "largest_linked_share": Expected(
            doubled=free("twice as many pairs, half as many of them true, teach other weights"),
            copy=same,
            permuted=not_higher,
            noise=not_higher,
        ),
        "precision": Expected(
            doubled=free("twice as many pairs, half as many of them true, teach other weights"),
            copy=same,
            permuted=free("where little agrees hardly a link is made, right or wrong"),
            noise=free("where little agrees hardly a link is made, right or wrong"),
        ),
        "blocked_away": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=equals(0)),
    },
)
