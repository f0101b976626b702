"""The risk assessment: which question is answered by what, what is said of those that nothing answers, and what people fill in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from prepared_tables import variables_of
from prepared_workspaces import run_recipe

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.outputs import QUESTIONS
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.documents.actors import risk_actors
from sfumato.workspace.documents.risk_assessment import ANNEX, NOT_MEASURED, OPEN, assessment_document, risk_assessment
from sfumato.workspace.gate.checks import Status
from sfumato.workspace.gate.gate import Examination, Finding, Waiver
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.dossier import ReleaseDossier
from sfumato.workspace.release.judgements import (
    ALL_QUESTIONS,
    ASSESSMENT_FILE,
    parse_judgements,
    read_judgements_of_run,
)
from sfumato.workspace.reporting.document import (
    BulletList,
    Chapter,
    DefinitionList,
    Document,
    DocumentPart,
    OpenQuestion,
    Paragraph,
    escape_markdown,
)
from sfumato.workspace.reporting.questions import coverage_lines
from sfumato.workspace.reporting.tables import DisplayTable, full_cell_text
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
pytestmark = pytest.mark.slow


def chapter(document: Document | Chapter, *titles: str) -> Chapter:
    found = next(part for part in document.parts if isinstance(part, Chapter) and part.title == titles[0])
    return chapter(found, *titles[1:]) if titles[1:] else found


def kinds(part: Chapter, kind: type[Any]) -> list[Any]:
    return [one for one in part.parts if isinstance(one, kind)]


def lines(table: DisplayTable) -> list[dict[str, str]]:
    titles = [column.title for column in table.columns]
    return [dict(zip(titles, map(full_cell_text, row), strict=True)) for row in table.rows]


def question(document: Document, name: str) -> Chapter:
    return chapter(document, ANNEX, "Measurements by question", name)


def test_a_question_that_nothing_answers_is_called_not_measured_and_never_safe(
    done_run: int, dossier_for: Read, workspace: Workspace, enter: Callable[..., int]
) -> None:
    made = assessment_document(dossier_for(done_run))
    for name in ("Inference", "Membership"):
        assert Paragraph(NOT_MEASURED, is_strong=True) in question(made, name).parts
        assert (
            f"{name}: NOT MEASURED."
            in kinds(chapter(made, "8 Identifiability assessment and mitigation"), BulletList)[0].items
        )
    for name in ("Singling out", "Linkability"):
        assert Paragraph(NOT_MEASURED, is_strong=True) not in question(made, name).parts
    attribute = {"method": "risk.attribute", "known": ["region"], "radius": {"visits": 1, "income": "5%"}}
    measured = enter(measure=[attribute], threshold=[])
    run_worker(workspace.directory, idle=0)
    made = assessment_document(dossier_for(measured))
    why = "Attribute risk assumes an intruder who does not know age"
    assert Paragraph(f"OPEN: {why}. {OPEN}", is_strong=True) in question(made, "Inference").parts
    assert (
        f"Inference: OPEN: {why}."
        in kinds(chapter(made, "8 Identifiability assessment and mitigation"), BulletList)[0].items
    )
    assert Paragraph(NOT_MEASURED, is_strong=True) in question(made, "Linkability").parts


def test_a_question_whose_every_number_could_not_be_computed_is_not_measured(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    without = [replace(row, value=None, status="not computed", reason="no record matches") for row in dossier.rows]
    changed = replace(dossier, rows=tuple(without))
    assert [str(one) for one in coverage_lines(changed.rows, dossier.plan.run.recipe)[:2]] == [
        "Singling out: OPEN: Identification risk was not computed (no record matches).",
        "Linkability: OPEN: Identification risk was not computed (no record matches).",
    ]
    line = lines(kinds(question(assessment_document(changed), "Linkability"), DisplayTable)[0])[0]
    assert (line["release"], line["verdict"]) == ("not computed: no record matches", "no threshold")


def test_each_number_stands_beside_the_confidential_one_its_worst_dataset_its_limit_and_its_verdict(
    workspace: Workspace, enter: Callable[..., int], dossier_for: Read
) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 0.0}])
    run_worker(workspace.directory, idle=0)
    dossier = dossier_for(run_id)
    told = lines(kinds(question(assessment_document(dossier), "Linkability"), DisplayTable)[0])
    line = next(one for one in told if one["measure"].startswith(measure_name("risk.identification.true_match_rate")))
    rows = [row for row in dossier.rows if row.key == "risk.identification.true_match_rate"]
    own, average = (
        next(r for r in rows if r.draw is None and (r.dataset == "confidential") is it) for it in (True, False)
    )
    worst = max(row.value or 0.0 for row in rows if row.draw is not None)

    def people(shown: str) -> float:
        """Of ``88 of 20,190 people (0.44 %)`` the share."""
        found = re.fullmatch(r"([\d.,]+) of ([\d,]+) people \(.*\)", shown)
        assert found is not None, shown
        count, of = (float(one.replace(",", "")) for one in found.groups())
        return count / of

    assert people(line["confidential data"]) == pytest.approx(own.value, rel=1e-3)
    assert people(line["release"]) == pytest.approx(average.value, rel=1e-3)
    assert people(line["worst dataset"]) == pytest.approx(worst, rel=1e-3)
    assert worst > (average.value or 0.0)
    assert (line["threshold"], line["verdict"]) == ("at most 0 %", "✗ not met")
    unset = next(
        one for one in told if one["measure"].startswith(measure_name("risk.identification.expected_match_risk"))
    )
    assert (unset["threshold"], unset["verdict"]) == ("none set", "no threshold")


def test_a_verdict_counts_for_the_series_it_is_of_and_no_other(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    value = "risk.identification.true_match_rate"
    other = Verdict(value, "", None, "max", 0.5, 0.1, 0.4, "met", params={"known": ["nothing"]})
    changed = replace(dossier, plan=replace(dossier.plan, verdicts=(other,)))
    for line in lines(kinds(question(assessment_document(changed), "Linkability"), DisplayTable)[0]):
        assert line["verdict"] == "no threshold"


def test_of_a_sweep_the_worst_level_is_shown(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    points = tuple(
        Row("studies", "intruder_uncertainty", "true_match_rate", "age", "synthetic", None, level, value)
        for level, value in ((0.0, 0.2), (0.1, 0.3), (0.2, 0.1))
    )
    made = assessment_document(replace(dossier, rows=points))
    line = lines(kinds(question(made, "Linkability"), DisplayTable)[0])[0]
    assert line["release"] == "24 of 80 people (30 %)"
    assert line["scenario"] == "age; worst of 3 levels: 0.1"


def test_a_risk_of_an_unknown_method_is_listed_and_answers_no_question(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    row = Row("risk", "somebody_elses", "share_found", "", "synthetic", None, None, 0.25)
    made = assessment_document(replace(dossier, rows=(row,)))
    for name in QUESTIONS:
        assert Paragraph(NOT_MEASURED, is_strong=True) in question(made, name.capitalize()).parts
    told = lines(kinds(question(made, "Other measurements"), DisplayTable)[0])
    assert [line["release"] for line in told] == ["0.25"]


def test_every_risk_of_our_own_says_which_question_it_answers() -> None:
    for method in registry().values():
        if method.family == "risk" and method.package == "sfumato":
            assert any(output.risk.questions for output in method.result_outputs), method.key
        for output in method.outputs:
            assert set(output.risk.questions) <= set(QUESTIONS)
            assert not output.risk.questions or method.family in ("risk", "studies"), output.name


def test_what_only_people_can_say_is_marked_until_they_have_said_it(
    done_run: int, dossier_for: Read, workspace: Workspace
) -> None:
    assert len(open_places(assessment_document(dossier_for(done_run)).parts)) == len(ALL_QUESTIONS)
    (workspace.directory / ASSESSMENT_FILE).write_text(
        f'owner = "Maria Rossi"\nrecipients = "a university"\n[run.{done_run}]\nlinkability = "low, since *nobody* knows"\n'
        f'[run.{done_run + 1}]\nmembership = "of another run"\n',
        "utf-8",
    )
    files = risk_assessment(dossier_for(done_run), ())
    text = files["risk-assessment.md"].decode()
    assert "Maria Rossi" in text
    assert r"low, since \*nobody\* knows" in text
    assert "of another run" not in text
    assert "low, since *nobody* knows" in files["risk-assessment.html"].decode()
    assert len(open_places(assessment_document(dossier_for(done_run)).parts)) == len(ALL_QUESTIONS) - 3


def open_places(parts: Any) -> list[str]:
    found: list[str] = []
    for part in parts:
        if isinstance(part, Chapter):
            found += open_places(part.parts)
        if isinstance(part, DefinitionList):
            found += [words.answer_place for _, words in part.pairs if isinstance(words, OpenQuestion)]
    return found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('linkability = "fine"', "assessment.toml: linkability"),
        ('[run.1]\nlinkability = "\u200b"', "assessment.toml: run.1.linkability"),
        ('[run.1]\nresidual = "7"', "assessment.toml: run.1.residual"),
        ('owners = "x"', "assessment.toml: owners"),
        ("owner = 3", "assessment.toml: owner"),
        ('[run.x]\nowner = "x"', "assessment.toml: run.x"),
        ('[run.07]\nowner = "x"', "assessment.toml: run.07"),
        ("run = 3", "assessment.toml: run"),
        ("[run]\n7 = 3", "assessment.toml: run.7"),
        ("owner = ", "assessment.toml"),
        ("owner = " + "[" * 5000, "assessment.toml"),
    ],
)
def test_what_is_written_wrongly_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_judgements(text.encode(), 7)
    assert refused.value.place == place


def test_a_workspace_without_the_file_has_said_nothing(workspace: Workspace) -> None:
    assert read_judgements_of_run(workspace.directory, 1) == {}


def test_findings_of_the_gate_stand_under_adversarial_testing(done_run: int, dossier_for: Read) -> None:
    found = Finding("equal_records", "warn", "released rows equal a confidential one", "3 of 80", 0.0375, 0.01, 0.05,
        compared_value=0.0278, unit="excess (0 as an independent sample, 1 as a copy)", people=3)  # fmt: skip
    dossier = dossier_for(done_run)
    made = assessment_document(replace(dossier, examination=Examination(done_run, "0" * 64, (found,))))
    chapter_of = chapter(made, ANNEX, "Findings of the gate")
    assert lines(kinds(chapter_of, DisplayTable)[0])[0] == {
        "check": "released rows equal a confidential one", "state": "! to be judged", "found": "3 of 80", "value": "0.0375",
        "baseline": "0.01", "compared value": "0.0278 above an independent sample", "limit": "at most 0.05", "people": "3",
        "how to fix it": "", "limit from": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("waivers", "answer"),
    [
        ((), "NO"),
        ((Waiver("one", "known", "maria"),), "NO"),
        ((Waiver("one", "known", "maria"), Waiver("two", "known", "maria")), "NO, unless a person overrules it"),
        ((Waiver("*", "it is needed", "maria"),), "NO, unless a person overrules it"),
    ],
)
def test_the_first_lines_are_the_answer_with_the_waivers(
    waivers: tuple[Waiver, ...], answer: str, done_run: int, dossier_for: Read
) -> None:
    found = tuple(Finding(key, "block", "copies", "3 of 80") for key in ("one", "two"))
    dossier = replace(dossier_for(done_run), examination=Examination(done_run, "0" * 64, found, waivers))
    first, second = kinds(chapter(assessment_document(dossier), "Summary"), Paragraph)[:2]
    assert first == Paragraph(f"May this leave into an enclave? {answer}", is_strong=True)
    assert second.content == dossier.answer.sentence
    assert ("waived by maria" in str(second.content)) == (len(waivers) > 0 and answer != "NO")
    clean = replace(dossier, examination=Examination(done_run, "0" * 64, ()))
    assert (
        kinds(chapter(assessment_document(clean), "Summary"), Paragraph)[0].content
        == "May this leave into an enclave? YES"
    )


@pytest.mark.parametrize(
    ("status", "waived", "step", "people"),
    [
        ("block", False, "do not sign", "35 of 80 people (43.75 %) stand in the release."),
        ("block", True, "a person overrules it", "35 of 80 people (43.75 %) stand in the release."),
        ("warn", False, "judge the findings", "35 of 80 people (43.75 %) stand in the release."),
        ("pass", False, "confirm that the actors", ""),
        ("not checked", False, "nothing was found against", ""),
    ],
)
def test_the_summary_says_in_people_what_was_found_and_what_to_do(
    status: Status, waived: bool, step: str, people: str, done_run: int, dossier_for: Read
) -> None:
    found = (
        Finding("copies", "block" if status == "block" else "pass", "copies", "3 of 80", advice="coarser values"),
        Finding(
            "people", status, "people", "35 of 80 people", advice="larger leaves", unit="people beyond", compared_value=35,
            people=35 if status in ("block", "warn") else None, headline="stand in the release",
        ),
    )  # fmt: skip
    waivers = (Waiver("*", "known", "maria"),) if waived else ()
    made = assessment_document(
        replace(dossier_for(done_run), examination=Examination(done_run, "0" * 64, found, waivers))
    )
    summary = chapter(made, "Summary")
    said = [str(one) for one in kinds(summary, BulletList)[0].items]
    assert sum(one.startswith("What to do: ") and step in one for one in said) == 1
    answer = [str(one.content) for one in kinds(summary, Paragraph)]
    assert (people in answer[1]) if people else "35" not in answer[1]
    assert "more often than chance" not in " ".join([*answer, *said])
    if status == "block":
        table = kinds(summary, DisplayTable)[0]
        assert [line["finding"] for line in lines(table)] == ["people", "copies"], "people first"
        assert {line["state"] for line in lines(table)} == {"✗ blocks, waived" if waived else "✗ blocks"}
        actors = lines(kinds(summary, DisplayTable)[1])
        assert "how to fix it" in [
            column.title for column in kinds(chapter(made, ANNEX, "Findings of the gate"), DisplayTable)[0].columns
        ]
        assert all("stand in the release" not in line["worst finding"] for line in actors), "the page says it once"


def test_the_first_page_says_how_many_people_unique_columns_find_and_no_line_of_an_actor_is_greener(
    workspace: Workspace, dossier_for: Read
) -> None:
    """Columns that tell everybody apart are released unchanged, and only the income is drawn."""
    rng = np.random.default_rng(5)
    n = 120
    frame = pd.DataFrame(
        {
            "birth": rng.permutation(np.arange(20_000, 20_000 + n)),
            "region": rng.choice(["a", "b"], n),
            "income": np.exp(rng.normal(7, 0.4, n)),
        }
    )
    recipe = Recipe.from_table(
        {
            "title": "Kept",
            "variables": variables_of(
                "birth: count other", "region: categorical quasi_identifier", "income: continuous sensitive"
            ),
            "release": {"m": 2, "seed": 1},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region"]}],
            "measure": [{"method": "risk.identification", "radius": {"income": "5%"}}, {"method": "utility.ecdf"}],
        }
    )
    run_id = run_recipe(workspace, recipe, frame, "kept.csv")
    dossier = dossier_for(run_id)
    made = assessment_document(dossier)
    title, sentence = (str(one.content) for one in kinds(chapter(made, "Summary"), Paragraph)[:2])
    assert title == "May this leave to the public? NO"
    assert sentence.startswith("120 of 120 people (100 %) can be found by ")
    assert "more often than chance does" not in made.to_markdown()
    rows = {line["actor"]: line["verdict"] for line in lines(kinds(chapter(made, "Summary"), DisplayTable)[1])}
    assert rows["The public"] == rows["Motivated intruder"] == "✗ above the limits"


def test_an_actor_of_whom_nothing_was_measured_is_not_safe(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    bare = replace(dossier, rows=(), examination=Examination(done_run, "0" * 64, ()))
    assert [one.status for one in risk_actors(bare)] == ["not checked"] * 4
    table = kinds(chapter(assessment_document(bare), "Summary"), DisplayTable)[0]
    assert [line["verdict"] for line in lines(table)] == ["? not measured"] * 4


def test_the_public_knows_few_variables_and_the_holder_all(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    people = dossier.original.records
    lattice = tuple(
        Row(
            "studies",
            "intruder_knowledge",
            "expected_match_risk",
            "",
            "synthetic",
            None,
            None,
            value,
            params={"variables": names},
        )
        for names, value in (
            (("region",), 0.01 * people),
            (("region", "age"), 0.1 * people),
            (("a", "b", "c", "d"), 0.9 * people),
        )
    )
    beliefs = Finding("guessed_beyond_prior", "block", "guessed", "half are guessed", compared_value=0.5)
    judged = replace(dossier, rows=lattice, examination=Examination(done_run, "0" * 64, (beliefs,)))
    holder, intruder, recipient, public = risk_actors(judged)
    assert (holder.status, intruder.status, recipient.status, public.status) == (
        "block",
        "not checked",
        "not checked",
        "warn",
    )
    assert public.worst_finding is not None
    assert "by region, age" in public.worst_finding.message
    alone = risk_actors(replace(judged, rows=lattice[:1]))[3]
    assert alone.status == "pass"


def test_the_worst_dataset_is_never_better_than_the_release(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    key = ("risk", "identification", "true_match_rate", "", "synthetic")
    rows = (Row(*key, None, None, 0.4), *(Row(*key, draw, None, value) for draw, value in ((1, 0.1), (2, 0.3))))
    line = lines(kinds(question(assessment_document(replace(dossier, rows=rows)), "Linkability"), DisplayTable)[0])[0]
    assert (line["release"], line["worst dataset"]) == ("32 of 80 people (40 %)", "32 of 80 people (40 %)")


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_words_are_words_in_both_forms(hostile: int, dossier_for: Read, workspace: Workspace) -> None:
    (workspace.directory / ASSESSMENT_FILE).write_text('owner = "<img src=x> \\u202e | [a](http://x.example)"', "utf-8")
    files = risk_assessment(dossier_for(hostile, reason="</p><script>x</script>\n# no heading"), ())
    for content in files.values():
        shown = content.decode()
        assert not [char for char in shown if char != "\n" and not char.isprintable()]
    page = Tags()
    page.feed(files["risk-assessment.html"].decode())
    assert not page.tags & {"script", "img", "b", "a", "iframe", "link"}
    assert not page.attributes & {"onerror", "src", "href"}
    assert "<script>alert(1)</script>" in page.text
    rendered = MarkdownIt("gfm-like").render(files["risk-assessment.md"].decode())
    shown = Tags()
    shown.feed(rendered)
    assert not shown.tags & {"script", "img", "a", "iframe", "b", "code", "blockquote"}
    assert "no heading" in shown.text
    assert "<h1>no heading" not in rendered


def test_escaped_markdown_reads_as_it_was_written() -> None:
    for text in (
        "1. one",
        "- one",
        "+ one",
        "= one",
        "a | b",
        "# a",
        "> a",
        "www.example.org",
        "http://x.org",
        "a_b_c",
        "\\*",
    ):
        rendered = MarkdownIt("gfm-like").render(escape_markdown(text))
        shown = Tags()
        shown.feed(rendered)
        assert shown.tags == {"p"}, text
        assert shown.text.strip() == text
    rendered = MarkdownIt("gfm-like").render("www.example.org and\n\n1. one")
    assert "<a " in rendered
    assert "<ol" in rendered


def test_a_part_of_every_kind_is_written_in_both_forms() -> None:
    parts: list[DocumentPart] = [
        Paragraph("words", is_strong=True),
        BulletList([OpenQuestion("who?")]),
        Chapter("In", [Paragraph("it")]),
    ]
    made = Document("Title", "INTERNAL", parts)
    assert made.to_markdown() == (
        "# Title\n\n**INTERNAL**\n\n**words**\n\n- **To be completed:** who?\n\n## In\n\nit\n"
    )
    assert "To be completed: who?" in made.to_html()
