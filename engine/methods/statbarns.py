"""Statbarns: classes of statistics with the risks and checks that an output checker applies.

Statistics of one statbarn have one mathematical form and share their risks (SACRO; the classes and risks are those of
ACRO's ``statbarns.json`` of August 2026, https://w3id.org/statbarnsdc).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Statbarn = Literal[
    "CalculatedRatios",
    "Clusters",
    "CorrelationCoefficients",
    "Endpoints",
    "Frequencies",
    "GiniCoefficient",
    "HazardSurvivalTables",
    "LinearAggregations",
    "LinkedMultilevelTables",
    "Mode",
    "NonLinearConcentrationRatios",
    "Position",
    "Shape",
    "StatisticalHypothesisTests",
    "none",
]
"""``none`` stands for numbers that are no statistic of the records, such as a privacy account."""
STATBARNS: tuple[Statbarn, ...] = get_args(Statbarn)
CONTEXT = "https://w3id.org/statbarnsdc#"
RISKS: Mapping[Statbarn, tuple[str, ...]] = {
    "CalculatedRatios": ("AuxiliaryInformation", "Dominance"),
    "Clusters": (),
    "CorrelationCoefficients": ("LowDOF",),
    "Endpoints": ("ClassDisclosure", "LowCount"),
    "Frequencies": ("ClassDisclosure", "Differencing", "LowCount"),
    "GiniCoefficient": ("LowCount",),
    "HazardSurvivalTables": ("ImplicitTables", "LowDOF"),
    "LinearAggregations": ("Dominance", "Differencing", "LowCount"),
    "LinkedMultilevelTables": (),
    "Mode": ("Differencing", "ClassDisclosure"),
    "NonLinearConcentrationRatios": ("LowCount", "Dominance"),
    "Position": ("ClassDisclosure", "LowCount"),
    "Shape": ("LowDOF",),
    "StatisticalHypothesisTests": ("LowDOF",),
    "none": (),
}
COUNTS = ("records", "share", "values", "classes", "guesses", "predicates", "sets", "expected matches")
"""Units of numbers that count something, or are a share of a count."""


def statbarn_by_unit(unit: str) -> Statbarn:
    """Return the statbarn of a number by its unit: frequencies for counts and shares, else linear aggregations."""
    return "Frequencies" if unit in COUNTS else "LinearAggregations"
