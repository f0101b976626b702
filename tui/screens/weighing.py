"""The form that makes, of a finished run, the plan of one in which its records at risk have less influence."""

from __future__ import annotations

from sfumato.tui.fields import Field
from sfumato.workspace.service.reweighting import Weighable

from .form import Form


def weighing_form(found: Weighable) -> Form:
    """Asks by which measure records are at risk, and how much less they say. Its answer is part of ``[weights]``."""
    fields = [
        Field("measure", "records are at risk by this measure of the run; a record of no risk keeps its whole influence",
              choices=found.measures, value=found.measures[0]),
        Field("strength", "what a record of risk 1 loses, above 0 and at most 1; 1 leaves it no influence at all. Measure the new run "
              "as well: others may be at risk then", "value", default=1.0),
    ]  # fmt: skip
    return Form(
        f"Less influence for the records at risk in run {found.run_id}", fields, found.check, topic="recipe weights"
    )
