"""Text of a drafted plan: the old plan's text, with the drafted steps in place of its own, each below its reason."""

from __future__ import annotations

import re
from textwrap import wrap

from sfumato.engine.data.toml import read_toml

from ..visible_text import replace_unprintable
from .drafting import DraftedPlan
from .drafts import write_plan
from .rewrite import rewrite_plan

COMMENT_WIDTH = 110
NEXT_COMMENT = re.compile(r"\n# next:[^\n]*\n*\Z")
"""Comment that an import writes below a plan without steps."""
HOLDOUT_COMMENT = re.compile(r"^# holdout = [^\n]*\n", re.MULTILINE)
"""Comment on a hold-out that an import writes; a draft decides on it."""
RECODE_COMMENTS = re.compile(r"^(?:#[^\n]*\n)*(?=recode = )", re.MULTILINE)
"""The comments above public rules: a draft writes the rules, and why each."""


def write_drafted_plan(toml: str, plan: DraftedPlan) -> str:
    """Rewrite ``toml`` with the drafted plan; comments on what stays are kept. Raises BadInput."""
    before = read_toml(toml)
    kept = {
        key: plan.tables[key]
        # The order of the keys that the text had is kept.
        for key in (*(key for key in before if key in plan.tables), *(key for key in plan.tables if key not in before))
    }
    text = NEXT_COMMENT.sub("\n", rewrite_plan(RECODE_COMMENTS.sub("", HOLDOUT_COMMENT.sub("", toml)), kept)).rstrip(
        "\n"
    )
    rules = [line for why in plan.rule_reasons for line in _comment_lines(why)]
    text = RECODE_COMMENTS.sub(lambda _: "".join(f"{line}\n" for line in rules), text, count=1)
    blocks = []
    for number, step in enumerate(plan.steps):
        lead = [
            line
            # The first note says what was drafted; the warnings come directly after it, where they are read.
            for note in ((*plan.notes[:1], *plan.warnings, *plan.notes[1:]) if not number else ())
            for line in _comment_lines(note)
        ]
        block = write_plan({step.section: [step.table]}).rstrip("\n")
        blocks.append("\n".join([*lead, *(["#"] if lead else []), *_comment_lines(step.reason), block]))
    return "\n\n".join([text, *blocks]) + "\n"


def _comment_lines(text: str) -> list[str]:
    """Return the lines of a TOML comment."""
    # Names of variables may hold line ends: unescaped, one would end the comment and its rest be read as TOML.
    return [f"# {line}" for line in wrap(replace_unprintable(" ".join(text.split())), COMMENT_WIDTH)]
