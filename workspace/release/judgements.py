"""Judgements of people on a release, in ``assessment.toml`` next to the database; the risk assessment prints them.

```toml
owner = "Maria Rossi, data protection officer"    # holds for every run of the workspace
recipients = "accredited researchers, under contract 2026-4"

[run.7]                                           # of one run alone: judgements always are
linkability = "acceptable: no register of the region has these variables"
review = "2027-11-01"
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint

from ..plain_files import read_plain
from ..policy.justification import checked_justification

ASSESSMENT_FILE = "assessment.toml"
MOST_ASSESSMENT_BYTES = 1 << 20
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class JudgementQuestion:
    """Question that only a person can answer.

    key: its key in the file
    title: what the answer is about
    question: the question
    is_per_run: whether it is answered for one run alone
    """

    key: str
    title: str
    question: str
    is_per_run: bool = False

    def key_in_file(self, run_id: int) -> str:
        """Return the question's key in the file, with the table of the run where it is answered for one run alone."""
        return f"{f'run.{run_id}.' if self.is_per_run else ''}{self.key}"


CONTEXT = (
    JudgementQuestion("recipients", "Recipients", "who receives the release, for what purpose, under which agreement?"),
    JudgementQuestion(
        "environment", "Environment", "where will they hold it (open, licensed, secure), with which controls?"
    ),
    JudgementQuestion(
        "motives", "Threats and motives", "who might try to re-identify a person, why, and with what skill and means?"
    ),
    JudgementQuestion("other_data", "Other data", "which other data on these persons could an intruder hold or buy?"),
)
DATA = (
    JudgementQuestion(
        "population", "Population", "whom are the data about; all of a population, or a sample of which size?"
    ),
    JudgementQuestion("harm", "Harm", "what harm would a disclosure do to a person; are vulnerable groups among them?"),
)
JUDGEMENTS = {
    "singling out": JudgementQuestion(
        "singling_out", "Judgement", "is the risk of singling out acceptable, and why?", is_per_run=True
    ),
    "linkability": JudgementQuestion(
        "linkability", "Judgement", "is the risk of linking acceptable, and why?", is_per_run=True
    ),
    "inference": JudgementQuestion(
        "inference", "Judgement", "is the risk of inference acceptable, and why?", is_per_run=True
    ),
    "membership": JudgementQuestion(
        "membership", "Judgement", "is the risk of telling who is in the data acceptable, and why?", is_per_run=True
    ),
}
"""By the question that a measure answers."""
RESIDUAL = JudgementQuestion(
    "residual", "Residual risk", "which risk remains, who accepts it, and why?", is_per_run=True
)
GOVERNANCE = (
    JudgementQuestion("owner", "Owner of the risk", "who answers for the release (name, role)?"),
    JudgementQuestion("review", "Review date", "when will this assessment be looked at again?"),
    JudgementQuestion("monitoring", "Monitoring", "how will new data, new attacks and further releases be watched?"),
    JudgementQuestion("incidents", "Incidents", "what happens, and who is told, if a person is re-identified?"),
    JudgementQuestion("transparency", "Transparency", "what are the data subjects and the public told?"),
)
PUBLICATION = (
    JudgementQuestion("publisher", "Publisher", "who publishes the datasets? It stands in the public documents"),
    JudgementQuestion("licence", "Licence", "under which licence (its address)? It stands in the public documents"),
    JudgementQuestion("address", "Address", "at which address of the web? It stands in the public documents"),
    JudgementQuestion(
        "published",
        "Date of publication",
        "when, such as 2027-01-31? It stands in the public documents",
        is_per_run=True,
    ),
)
"""What the public documents say of the publication; it is published as written."""
ALL_QUESTIONS = (*CONTEXT, *DATA, *JUDGEMENTS.values(), RESIDUAL, *GOVERNANCE, *PUBLICATION)


def read_judgements_of_run(directory: Path, run_id: int) -> Mapping[str, str]:
    """Read the answers for a run, by key; none where the workspace has no such file. Raises BadInput and StrangeFile.

    .
    """
    try:
        content = read_plain(directory / ASSESSMENT_FILE, MOST_ASSESSMENT_BYTES)
    except FileNotFoundError:
        return NOTHING
    except OSError as error:
        raise BadInput(ASSESSMENT_FILE, f"cannot be read: {error.strerror}") from None
    return parse_judgements(content, run_id)


def parse_judgements(content: bytes, run_id: int) -> Mapping[str, str]:
    """Return the answers for a run: those for all runs, replaced by those for this one. Raises BadInput with the place.

    .
    """
    try:
        table = read_toml(content.decode("utf-8"), ASSESSMENT_FILE)
    except UnicodeDecodeError as error:
        raise BadInput(ASSESSMENT_FILE, f"is not TOML: {error}") from None
    runs = table.pop("run", {})
    said = _parse_answers(table, "")
    if not isinstance(runs, dict):
        raise BadInput(f"{ASSESSMENT_FILE}: run", "must be tables by the number of a run, such as [run.7]")
    for number, answers in runs.items():
        if not (number.isdecimal() and number.isascii()) or number.startswith("0"):
            raise BadInput(f"{ASSESSMENT_FILE}: run.{number}", "must be the number of a run, such as [run.7]")
        own = _parse_answers(answers, f"run.{number}.")
        if number == str(run_id):
            said |= own
    return said


def _parse_answers(table: Any, prefix: str) -> dict[str, str]:
    """Parse a table of answers by key; ``prefix`` is its place in the file. Raises BadInput."""
    if not isinstance(table, dict):
        raise BadInput(f"{ASSESSMENT_FILE}: {prefix.rstrip('.')}", "must be a table of keys and words")
    known = {one.key: one for one in ALL_QUESTIONS}
    for key, answer in table.items():
        place = f"{ASSESSMENT_FILE}: {prefix}{key}"
        if key not in known:
            raise BadInput(place, f"unknown key{near_miss_hint(key, known) or '; known: ' + ', '.join(known)}")
        if known[key].is_per_run and not prefix:
            raise BadInput(
                place, f"is a judgement of one run: write it under the number of the run, [run.7] with {key}"
            )
        if not isinstance(answer, str):
            raise BadInput(place, "must be text")
    judged = {one.key for one in (*JUDGEMENTS.values(), RESIDUAL)}
    return {
        # A judgement is a reason, so it must hold words; other answers may be a date or an address.
        key: checked_justification(answer, f"{ASSESSMENT_FILE}: {prefix}{key}") if key in judged else answer.strip()
        for key, answer in table.items()
        if answer.strip()
    }
