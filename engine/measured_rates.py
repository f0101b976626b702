"""Measured rates of tasks by method: seconds, fixed bytes, bytes for each record, bytes for each value (``task_rates.TaskRate``).

Written by ``tests/benchmarks/task_rates.py --write``; measure anew where a method's computation changes.
"""

from __future__ import annotations

RATES: dict[str, tuple[float, float, float, float]] = {}
"""Of a fit, an anonymisation, one dataset measured, a block, or a point of a study."""

DRAWS: dict[str, tuple[float, float, float, float]] = {}
"""Of a dataset that is drawn."""
