"""What to change in a plan where a number does not meet its limit: texts that several methods share, the strongest lever first."""

from __future__ import annotations

IDENTITY = (
    "synthesise more of the variables that an intruder knows",
    "group rare values of the quasi-identifiers (hierarchies, generalisation)",
    "release fewer datasets (m)",
)
INFERENCE = (
    "synthesise the sensitive variables, with larger leaves or fewer predictors",
    "group rare values of the sensitive variables",
    "release fewer datasets (m)",
)
MEMBERSHIP = (
    "use a model that repeats single records less (larger minbucket, smoothing)",
    "use a differentially private synthesis, or lower its epsilon",
    "release fewer datasets (m)",
)
COPYING = (
    "turn smoothing on, or raise minbucket",
    "synthesise the variables that are kept",
    "group rare values",
)
CLASSES = (
    "raise k, l or p of the anonymisation",
    "generalise the quasi-identifiers further",
    "suppress the records of the smallest groups",
)
POPULATION = (
    "group rare values of the key variables",
    "synthesise the key variables",
    "suppress records with rare combinations",
)
FIDELITY = (
    "give the variable more predictors in its synthesis step",
    "use a more flexible model, such as trees with smaller leaves",
    "keep more variables unchanged",
)
PRIVATE_FIDELITY = ("raise epsilon", "use fewer or coarser variables", "release fewer datasets (m)")
LESS_EPSILON = ("lower epsilon", "release fewer datasets (m)", "release fewer records")
COARSENING = ("lower k", "use finer hierarchies", "name fewer quasi-identifiers")
SAMPLE = ("lower k", "relax the limits of data quality", "name fewer quasi-identifiers")
CONSTRAINTS = ("add the rule to the constraints that are kept during synthesis", "check whether the rule is right")
MORE_DRAWS = ("raise the number of draws", "let the intruder lack fewer records")
OTHER_MEASURE = ("set another threshold", "judge by another measure of data quality")
