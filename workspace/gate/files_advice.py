"""Advice on findings about files that another tool made: their reader has no recipe to change, so no setting is named."""

from __future__ import annotations

MAKER = "ask whoever made the files"
SMOOTHER = f"{MAKER} for a model that follows single people less, coarser values, or fewer datasets"
OTHERS = f"{MAKER} to synthesise the columns, or to leave them out"
ROUNDER = f"{MAKER} for rounded values, or top and bottom codes"
CLASSES = f"{MAKER} for larger classes, of more than one sensitive value"

ADVICE_BY_CHECK = {
    "unmet_thresholds": f"{MAKER} to make them again until they are met",
    "exposed_variables": OTHERS,
    "newly_certain": SMOOTHER,
    "guessed_beyond_prior": SMOOTHER,
    "risk_above_confidential": SMOOTHER,
    "singling_out_excess": SMOOTHER,
    "linkability_excess": SMOOTHER,
    "inference_excess": SMOOTHER,
    "membership_excess": SMOOTHER,
    "membership_evidence": SMOOTHER,
    "disguised_columns": OTHERS,
    "own_values": SMOOTHER,
    "unanimous_classes": CLASSES,
    "units_unclear": f"{MAKER} whether several records are of one person or household",
    "roles_elsewhere": OTHERS,
    "memorised": SMOOTHER,
    "equal_records": SMOOTHER,
    "extremes": ROUNDER,
    "agreed_values": SMOOTHER,
    "kept_keys": OTHERS,
    "kept_tables": f"{MAKER} to round the tables to a larger limit, or to publish fewer of them",
    "table_changes": f"{MAKER} to protect the tables together with those that were released before",
    "table_rules": f"{MAKER} to protect the tables by stricter rules",
    "joined_releases": OTHERS,
    "public_figures": "publish no figures of utility with these files",
    "kept_weight": f"{MAKER} to round the weight",
    "identifying_columns": OTHERS,
    "small_classes": CLASSES,
    "constraints": f"{MAKER} to keep to the rule, or fix the rule",
}


def advice_for_files(check: str, advice: str) -> str:
    """Return the advice of a check for files of another tool; empty where ``advice`` is."""
    return ADVICE_BY_CHECK.get(check, advice) if advice else ""
