"""What ``utility.units`` must answer, and how its outputs change with its tables.

The tables of the contract have no units. The measure is tried on tables that have in tests/engine/utility/test_units.py.
"""

from __future__ import annotations

from relations import OF_UNITS, Expected, not_computed, same

from evidence import Evidence

EVIDENCE = Evidence(
    no_oracle="no table of the contract has units; tests/engine/utility/test_units.py counts those of tables that have",
    expected={
        "size_distance": Expected(doubled=same, copy=not_computed, permuted=not_computed, noise=not_computed),
        **dict.fromkeys(
            (
                "type_distance",
                "correlation",
                "correlation_difference",
                "broken_units",
                "transition_distance",
                "trajectory_distance",
                "entry_distance",
                "exit_distance",
            ),
            OF_UNITS,
        ),
    },
)
