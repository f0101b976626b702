"""Advice on what to change in a plan where a number does not meet its limit, the most effective first; shared by
several methods.

A lever is a phrase. An ``Advice`` also names the settings that it changes, so that the app can change the plan and a
search tries them first; any other lever is left to the analyst. The setting ``kept`` stands for the number of variables
released unchanged, ``method`` for that of the step that makes the variable.
"""

from __future__ import annotations

from typing import Literal

Turn = Literal["more", "less", "on", "other"]
CONSTRAINTS = ("add the rule to the constraints that are kept during synthesis", "check whether the rule is right")
OTHER_MEASURE = ("set another threshold", "judge by another measure of data quality")


class Advice(str):
    """Phrase of advice, with the direction in which each setting of the plan changes."""

    __slots__ = ("turns",)
    turns: dict[str, Turn]

    def __new__(cls, text: str, **turns: Turn) -> Advice:
        """Create the phrase and attach its settings."""
        found = super().__new__(cls, text)
        found.turns = turns
        return found


FEWER_DATASETS = Advice("release fewer datasets (m)", m="less")
LESS_INFLUENCE = Advice("give records at risk less influence on the models ([weights])", weights="more")
COARSER_KEYS = Advice(
    "make the quasi-identifiers coarser, and group their rare values ([release] recode)", recode="more"
)
IDENTITY = (
    Advice("synthesise more of the variables that an intruder knows", kept="less"),
    COARSER_KEYS,
    FEWER_DATASETS,
)
INFERENCE = (
    Advice(
        "synthesise the sensitive variables, with larger leaves or fewer predictors",
        minbucket="more",
        method="other",
    ),
    "group rare values of the sensitive variables",
    LESS_INFLUENCE,
    FEWER_DATASETS,
)
MEMBERSHIP = (
    Advice(
        "use a model that repeats single records less (larger minbucket, smoothing)", minbucket="more", smoothing="on"
    ),
    Advice("use a differentially private synthesis, or lower its epsilon", epsilon="less"),
    LESS_INFLUENCE,
    FEWER_DATASETS,
)
COPYING = (
    Advice("turn smoothing on, or raise minbucket", smoothing="on", minbucket="more"),
    Advice("synthesise the variables that are kept", kept="less"),
    "group rare values",
)
CLASSES = (
    Advice("raise k, l or p of the anonymisation", k="more"),
    "generalise the quasi-identifiers further",
    "suppress the records of the smallest groups",
)
POPULATION = (
    COARSER_KEYS,
    Advice("synthesise the key variables", kept="less"),
    "suppress records with rare combinations",
)
FIDELITY = (
    "give the variable more predictors in its synthesis step",
    Advice("use a more flexible model, such as trees with smaller leaves", minbucket="less", method="other"),
    Advice("keep more variables unchanged", kept="more"),
)
PRIVATE_FIDELITY = (Advice("raise epsilon", epsilon="more"), "use fewer or coarser variables", FEWER_DATASETS)
LESS_EPSILON = (Advice("lower epsilon", epsilon="less"), FEWER_DATASETS, "release fewer records")
COARSENING = (Advice("lower k", k="less"), "use finer hierarchies", "name fewer quasi-identifiers")
SAMPLE = (Advice("lower k", k="less"), "relax the limits of data quality", "name fewer quasi-identifiers")
MORE_DRAWS = (Advice("raise the number of draws", draws="more"), "let the intruder lack fewer records")
