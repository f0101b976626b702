"""Record of disclosure control, for programs: policy, rules, thresholds, verdicts, findings, waivers and approval.

``disclosure-control.json`` follows ``disclosure-control.schema.json``, which goes with it. It is bound to what leaves
the building by the hash of the public manifest, which has the hash of every public file (SATRE 2.0, 3.3.09).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from sfumato.engine.methods.labels import to_labelled_json
from sfumato.engine.methods.outputs import QUESTIONS
from sfumato.engine.recipe.steps import RecipeStep

from ..gate.questions import block_limits_by_question
from ..policy.disclosure import MARKING
from ..release.dossier import ReleaseDossier
from ..release.users import privacy_table
from ..reporting.questions import unanswered_questions
from ..store.protected_tables import StoredTables
from .printed_tables import count_hidden_cells
from .written import WrittenFile, json_document

SCHEMA = "urn:sfumato:disclosure-control:1"
SCHEMA_FILE = "disclosure-control.schema.json"


def disclosure_control(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``disclosure-control.json`` and its schema, as bytes by name."""
    schema = files(__package__).joinpath(SCHEMA_FILE).read_bytes()
    return {"disclosure-control.json": json_document(disclosure_control_record(dossier, written)), SCHEMA_FILE: schema}


def disclosure_control_record(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, Any]:
    """Return the record as a JSON object."""
    examination, open_questions = (
        dossier.examination.to_table(),
        unanswered_questions(dossier.rows, dossier.plan.run.recipe, block_limits_by_question(dossier.policy)),
    )
    return {
        "schema": SCHEMA,
        "marking": MARKING,
        "release": _release_table(dossier),
        "bound_to": _bound_hashes(dossier, written),
        "risk_appetite": _policy_table(dossier),
        "perturbation": [_step_table(dossier, step) for step in dossier.plan.run.recipe.synthesis],
        "suppression": _suppression_table(dossier),
        "model_requirements": [asdict(one) for one in dossier.diagnostics if one.rule],
        "thresholds": [one.to_table() for one in dossier.plan.run.recipe.thresholds],
        "verdicts": [to_labelled_json(one) for one in dossier.plan.verdicts],
        "gate": {"status": dossier.examination.status, "findings": examination["findings"]},
        "may_leave": dossier.answer.to_table(),
        "waivers": examination["waivers"],
        **({"approval": examination["approval"]} if "approval" in examination else {}),
        **({} if (privacy := dossier.read_promise()) is None else {"privacy": privacy_table(privacy)}),
        "reason": dossier.reason,
        "questions": {name: "not measured" if name in open_questions else "measured" for name in QUESTIONS},
        "judgements": dict(dossier.judgements),
        "tools": dict(dossier.plan.run.versions),
    }


def _release_table(dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the released datasets and variables, as the record has them."""
    plan = dossier.plan
    return {
        "run": plan.run.id,
        "title": plan.run.title,
        "kind": plan.run.recipe.origin,
        "format": dossier.form,
        "datasets": plan.datasets,
        "records": plan.records,
        "order": plan.run.recipe.form.order,
        "replaced": list(plan.replaced),
        "kept": list(plan.kept),
        "left_out": [name for name in plan.left_out if name not in plan.renumbered_units],
        "renumbered": list(plan.renumbered_units),
        "surrogate_keys": list(plan.run.recipe.form.surrogate_keys),
    }


def _bound_hashes(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, Any]:
    """Return the hashes of the files and tables that the record is about."""
    plan = dossier.plan
    # The public manifest has the hash of every public file: its own hash binds the record to all of them.
    manifest = next((one.sha256 for one in written if (one.package, one.name) == ("public", "manifest.json")), None)
    return {
        "public_manifest_sha256": manifest,
        "policy_sha256": dossier.policy.sha256,
        "recipe_sha256": plan.run.recipe_sha256,
        "data_sha256": dossier.original.source_sha256,
        "tables_sha256": list(plan.released_sha256),
    }


def _policy_table(dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the policy's settings, as the record has them."""
    policy = dossier.policy
    return {
        "name": policy.name,
        "smallest_cell": policy.smallest_cell,
        "rounding": policy.rounding,
        "digits": policy.digits,
        "second_person": policy.second_person,
        "approvers": list(policy.approvers),
        "waivers": list(policy.waivers),
        "findings": {key: asdict(limit) for key, limit in sorted(policy.findings.items())},
    }


def _step_table(dossier: ReleaseDossier, step: RecipeStep) -> dict[str, Any]:
    """Return the change of the data by a step: variables, method and all settings."""
    recipe = dossier.plan.run.recipe
    return {
        "variables": list(step.targets or recipe.released),
        "method": step.method.key,
        "title": step.method.title,
        "source": step.method.source,
        "settings": step.spec.to_reported_table(),
    }


def _suppression_table(dossier: ReleaseDossier) -> dict[str, Any]:
    """Return the variables and records that are left out, and what anonymisation suppresses."""
    plan = dossier.plan
    return {
        "variables_left_out": [name for name in plan.left_out if name not in plan.renumbered_units],
        "records_dropped_for_missing_values": dossier.original.dropped,
        "records_confidential": dossier.original.records,
        "records_released": plan.records,
        "anonymisation": [_step_table(dossier, step) for step in plan.run.recipe.anonymisation],
        **({} if (stored := dossier.read_printed_tables()) is None else {"tables": _printed_tables(dossier, stored)}),
    }


def _printed_tables(dossier: ReleaseDossier, stored: StoredTables) -> dict[str, Any]:
    """Return the rules for printed tables, and how many cells of each are hidden."""
    protection = dossier.plan.run.recipe.table_protection
    return {
        "rules": {} if protection is None else asdict(protection.rules),
        "printed": [
            {
                "name": one.name,
                "variables": list(one.variables),
                "cells": int(one.cells.size),
                "hidden": count_hidden_cells(one, stored),
            }
            for one in stored.printed
        ],
    }
