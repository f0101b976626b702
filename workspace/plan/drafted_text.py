"""A drafted plan as TOML: the plan that was there, with the drafted steps in place of its own, each below the reason for it."""

from __future__ import annotations

import re
from textwrap import wrap

from sfumato.engine.data.toml import read_toml

from ..visible_text import replace_unprintable
from .drafting import DraftedPlan
from .drafts import plan_text
from .rewrite import rewritten

WIDTH = 110
NEXT = re.compile(r"\n# next:[^\n]*\n*\Z")
"""What an import writes below a plan without steps."""
HELD_OUT = re.compile(r"^# holdout = [^\n]*\n", re.MULTILINE)
"""What it writes of records that may be held out, which a draft decides."""
RECODE = re.compile(r"^(?:#[^\n]*\n)*(?=recode = )", re.MULTILINE)
"""The comments above public rules: a draft writes the rules, and why each."""


def drafted_toml(toml: str, plan: DraftedPlan) -> str:
    """``toml`` made to say the plan: comments on what stays are kept, each drafted step has its reason above it. Raises BadInput."""
    before = read_toml(toml)
    kept = {
        key: plan.tables[key]
        for key in (*(key for key in before if key in plan.tables), *(key for key in plan.tables if key not in before))
    }
    text = NEXT.sub("\n", rewritten(RECODE.sub("", HELD_OUT.sub("", toml)), kept)).rstrip("\n")
    rules = [line for why in plan.rule_reasons for line in _comment(why)]
    text = RECODE.sub(lambda _: "".join(f"{line}\n" for line in rules), text, count=1)
    blocks = []
    for number, step in enumerate(plan.steps):
        lead = [
            line
            for note in ((*plan.notes[:1], *plan.warnings, *plan.notes[1:]) if not number else ())
            for line in _comment(note)
        ]
        block = plan_text({step.section: [step.table]}).rstrip("\n")
        blocks.append("\n".join([*lead, *(["#"] if lead else []), *_comment(step.why), block]))
    return "\n\n".join([text, *blocks]) + "\n"


def _comment(text: str) -> list[str]:
    """Lines of a comment; names of variables may hold anything, and end no line."""
    return [f"# {line}" for line in wrap(replace_unprintable(" ".join(text.split())), WIDTH)]
