"""The manual holds what it should, opens at what a reader names, and answers questions by their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace import manual
from sfumato.workspace.gate.gate import CHECKS
from sfumato.workspace.manual import (
    DEVELOPER_TOPICS,
    TOPICS,
    all_sections,
    find_entry,
    page_sections,
    page_summary,
    page_text,
    search,
)
from sfumato.workspace.manual.search import search_manual

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "workspace" / "manual"
PAGES = {topic: FOLDER / f"{topic}.md" for topic in manual.PAGES}
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CHANGELOG = ROOT / "CHANGELOG.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUESTIONS = [
    ("hold-out", "recipe hold-out records"),
    ("waive a finding", "release waive a finding"),
    ("resume after ssh lost", "running resume a run, after a lost ssh connection too"),
    ("what does true match rate mean", "methods risk.identification"),
    ("public key", "operations public key"),
    ("weights of a survey", "recipe survey weights"),
    ("k-anonymity", "methods anonymisation.mondrian"),
    ("export SPSS", "release export the datasets as spss, stata or sas"),
    ("which knowledge of the intruder makes the risk", "methods studies.intruder_knowledge"),
    ("intruder knows", "methods studies.intruder_uncertainty"),
    ("delete a run", "operations delete a run"),
    ("install without a network", "operations install without a network"),
    ("second person approves", "release approval by a second person"),
    ("exit status", "commands exit status"),
    ("what is epsilon", "recipe privacy account: epsilon"),
]

NEWCOMERS = [
    ("draft plan", ("commands sfumato draft", "tutorial draft a recipe")),
    ("why blocked", ("release gate", "release waive a finding")),
    ("waiver", ("release waive a finding",)),
    ("import excel", ("recipe file formats", "commands sfumato import")),
    ("missing values", ("recipe kinds of missing value",)),
    ("resume a killed run", ("running resume a run, after a lost ssh connection too", "commands sfumato resume")),
    ("compare runs", ("commands sfumato compare",)),
    ("change the colours", ("app look: themes, glyphs, colours",)),
    ("csv separator", ("recipe data.format",)),
    ("how much memory", ("running memory",)),
    ("differential privacy", ("recipe privacy account: epsilon", "recipe fully synthetic releases and epsilon")),
    ("write my own method", ("python write a method", "commands sfumato new-method")),
    ("set a limit", ("recipe threshold",)),
    ("random seed", ("recipe release", "recipe seeds of records")),
    ("lost the key", ("operations key",)),
    ("screen reader", ("plain",)),
    ("clipboard", ("app export and copy",)),
    ("cluster of machines", ("running a dask cluster",)),
    ("files of another tool", ("recipe files that other tools made", "tutorial 9. score a release of another tool")),
    ("audit log", ("operations audit and seals", "commands sfumato audit")),
    ("pandas", ("python synthesise a frame",)),
    ("html report", ("commands sfumato report",)),
    ("quasi-identifier", ("recipe roles: quasi-identifier, sensitive, identifier",)),
    ("rules between columns", ("recipe constraints",)),
    ("unique people", ("methods risk.uniqueness",)),
    ("what leaves the building", ("release what leaves: the public package",)),
    ("disk full", ("operations disk",)),
    ("number of datasets", ("recipe release",)),
    ("l-diversity", ("methods anonymisation.mondrian",)),
    ("shortcuts", ("app all keys",)),
    ("age groups", ("app hierarchy", "methods anonymisation.generalisation", "commands sfumato hierarchies")),
    ("second person", ("release approval by a second person",)),
]
"""Questions in the words of a newcomer, with the sections that answer them; written before the ranking was chosen."""
LATER = [
    ("hierarchy of a variable", ("app hierarchy", "commands sfumato hierarchies")),
    ("stata", ("release export the datasets as spss, stata or sas",)),
    ("membership attack", ("methods risk.membership_inference",)),
    ("undo", ("app keys: change",)),
    ("decision trees", ("methods synthesis.cart",)),
    ("delete a workspace", ("operations delete a run",)),
    ("backup of the key", ("operations key",)),
    ("survey design", ("recipe survey weights",)),
    ("impossible combinations", ("recipe impossible combinations (structural zeros)",)),
    ("policy limits", ("release policy",)),
    ("who may approve", ("release approval by a second person", "commands sfumato approve")),
    ("large csv file", ("recipe large files",)),
    ("convergence of chains", ("app diagnostics", "python chains and arviz")),
    ("search for the best plan", ("running search for a plan that may leave", "commands sfumato search")),
    ("smallest sample", ("app smallest sample", "methods studies.minimisation")),
    ("log of tasks", ("app keys: run",)),
    ("offline installation", ("operations install without a network",)),
    ("verify a release", ("commands sfumato verify",)),
    ("plot as svg", ("app export and copy", "commands sfumato figures")),
    ("dates", ("recipe variables",)),
]
"""Written after the ranking was chosen, to see whether it suits other questions too."""


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_a_question_is_answered_by_the_first_section_that_is_found(question: str, answer: str) -> None:
    assert search_manual(question)[0].section.help_path == answer


def places(questions: Sequence[tuple[str, tuple[str, ...]]]) -> list[int]:
    """The place of each answer among what is found, from 1; 99 where it is not found."""
    found = [[hit.section.help_path for hit in search_manual(question)] for question, _ in questions]
    return [
        next((place for place, path in enumerate(paths, start=1) if path in answers), 99)
        for paths, (_, answers) in zip(found, questions, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "first", "three"), [(NEWCOMERS, 28, 32), (LATER, 17, 19)], ids=["before", "later"]
)
def test_a_newcomer_finds_the_answer_first_or_among_three(
    questions: Sequence[tuple[str, tuple[str, ...]]], first: int, three: int
) -> None:
    assert {path for _, answers in questions for path in answers} <= {section.help_path for section in all_sections()}
    found = places(questions)
    assert sum(place == 1 for place in found) >= first
    assert sum(place <= 3 for place in found) >= three


@pytest.mark.slow
def test_without_the_weight_of_headings_fewer_answers_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the test above."""
    monkeypatch.setattr(search, "FIELDS", search.FIELDS | {"heading": (0.0, 0.75)})
    assert sum(place == 1 for place in places(NEWCOMERS)) < 20


def test_every_answer_holds_all_the_words_or_names_those_that_it_lacks() -> None:
    words = {"survey": "survey", "weight": "weight", "stratum": "strat"}
    hits = search_manual("survey weight stratum")
    assert hits[0].missing_words == ()
    assert any(hit.missing_words for hit in hits)
    for hit in hits:
        text = f"{hit.section.page} {hit.section.title} {hit.section.body}".lower()
        assert {word for word, part in words.items() if part not in text} <= set(hit.missing_words) < set(words)
        assert all(word in words for word in hit.missing_words)
        assert hit.lines


def test_words_that_no_section_holds_together_find_those_that_hold_most() -> None:
    hits = search_manual("osc 52 mitra reiter")
    assert all(hit.missing_words for hit in hits)
    assert {"mitra", "reiter"} == set(hits[0].missing_words) or {"osc", "52"} == set(hits[0].missing_words)


def test_words_that_are_nowhere_are_named() -> None:
    with pytest.raises(BadInput, match='"zzyzx" is on no page'):
        search_manual("zzyzx weights")
    with pytest.raises(BadInput, match='"zzyzx" is on no page'):
        search_manual("weights of the zzyzx")
    with pytest.raises(BadInput, match="needs a word"):
        search_manual("  ")


@pytest.mark.parametrize(
    ("one", "other"),
    [("waiver", "waived"), ("planning", "plans"), ("blocked", "blocks"), ("categories", "category"), ("keys", "key")],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert search._word_stem(one) == search._word_stem(other) != search._word_stem("unlike")


@pytest.mark.parametrize(
    ("topic", "page", "section", "term"),
    [
        ("recipe", "recipe", None, ""),
        ("risk.identification", "methods", "risk.identification", ""),
        ("Identification", "methods", "risk.identification", ""),
        ("risk.identification.true_match_rate", "methods", "risk.identification", "true_match_rate"),
        ("risk.identification.known", "methods", "risk.identification", "known"),
        ("sfumato run", "commands", "sfumato run", ""),
        ("audit verify", "commands", "sfumato audit verify", ""),
        ("app runs", "app", "runs", ""),
        ("runs", "commands", "sfumato runs", ""),
        ("[data]", "recipe", "data", ""),
        ("release.epsilon", "recipe", "release", "epsilon"),
        ("kept_weight", "release", "checks of copies and single values", "kept_weight"),
        ("smallest_cell", "release", "policy", "smallest_cell"),
        ("operations the key", "operations", "key", ""),
    ],
)
def test_a_topic_opens_its_page_section_or_term(topic: str, page: str, section: str | None, term: str) -> None:
    found = find_entry(topic)
    assert (found.page, found.section and found.section.name, found.term) == (page, section, term)
    assert found.markdown.strip()


def test_a_name_of_several_sections_names_the_others() -> None:
    assert find_entry("release").other_paths[:1] == ("commands sfumato release",)
    assert "app runs" in find_entry("runs").other_paths
    assert find_entry("risk.identification").other_paths == ()


def test_an_unknown_topic_is_answered_by_the_nearest() -> None:
    with pytest.raises(BadInput, match=r'did you mean "risk\.identification"'):
        find_entry("risk.identificaton")
    with pytest.raises(BadInput, match='did you mean "tutorial"'):
        find_entry("tutoriel")


def test_a_term_shows_its_own_item_and_no_other() -> None:
    text = find_entry("risk.identification.true_match_rate").markdown
    assert "`true_match_rate`" in text
    assert "`false_match_rate`" not in text


def test_every_page_is_listed_and_has_a_title_and_a_line_that_says_what_it_is_about() -> None:
    assert sorted(PAGES.values()) == sorted(FOLDER.glob("*.md"))
    for topic in PAGES:
        assert page_sections(topic)[0].level == 1
        assert sum(one.level == 1 for one in page_sections(topic)) == 1
        assert 20 < len(page_summary(topic)) < 160, topic


def test_no_two_sections_of_a_page_have_one_name() -> None:
    for topic in PAGES:
        names = [one.name for one in page_sections(topic)]
        assert sorted(names) == sorted(set(names))


def wide(text: str) -> list[str]:
    """The lines of prose that are longer than 120 characters."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    return [line for line in prose.splitlines() if len(line) > 120 and not line.startswith(("|", "!"))]


@pytest.mark.parametrize("file", [README, CONTRIBUTING, CHANGELOG, *PAGES.values()], ids=lambda file: file.name)
def test_prose_is_wrapped_at_120_characters(file: Path) -> None:
    assert wide(file.read_text("utf-8")) == []
    assert wide("x" * 121) == ["x" * 121]


@pytest.mark.parametrize("file", [README, CONTRIBUTING, *PAGES.values()], ids=lambda file: file.name)
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(file: Path) -> None:
    for link in LINK.findall(re.sub(r"(?ms)^```.*?^```$", "", file.read_text("utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = file.parent / path
        assert target.is_file(), link
        if anchor:
            heads = re.findall(r"(?m)^#+ (.*)$", target.read_text("utf-8"))
            assert anchor in [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]


def test_the_readme_is_short_and_links_every_page() -> None:
    text = README.read_text("utf-8")
    assert len(text.encode()) < 8_000
    assert set(re.findall(r"\(workspace/manual/(\w+)\.md\)", text)) == set(TOPICS)


def test_the_pages_for_developers_are_short_linked_and_opened_by_name_alone() -> None:
    text = CONTRIBUTING.read_text("utf-8")
    assert len(text.encode()) < 10_000
    assert set(re.findall(r"\(workspace/manual/(\w+)\.md\)", text)) == set(DEVELOPER_TOPICS)
    assert all(PAGES[topic].stat().st_size < 8_000 for topic in DEVELOPER_TOPICS)
    assert find_entry("developers_methods").markdown.startswith("# Developers: methods")
    assert "decorator" in page_text("developers_methods")
    assert {one.page for one in all_sections()} == set(TOPICS)
    with pytest.raises(BadInput, match='"decorator" is on no page'):
        search_manual("synthesis method decorator")


def missing_paths(text: str) -> set[str]:
    """The paths of the checkout that a text names in backticks and that are not there; capitals stand for a name."""
    named = re.findall(r"`((?:engine|workspace|tui|tests|screenshots|\.ci)/[\w./-]+)`", text)
    return {path for path in named if not re.search("NAME|FAMILY|my_measure", path) and not (ROOT / path).exists()}


@pytest.mark.parametrize("topic", ["CONTRIBUTING", *DEVELOPER_TOPICS])
def test_every_path_that_a_developer_reads_is_there(topic: str) -> None:
    assert missing_paths({"CONTRIBUTING": CONTRIBUTING, **PAGES}[topic].read_text("utf-8")) == set()


def test_a_path_that_is_gone_is_found() -> None:
    assert missing_paths("`engine/nowhere` and `engine/risk`, `tests/NAME.py`") == {"engine/nowhere"}


def test_every_check_of_the_gate_is_explained() -> None:
    terms = {term for one in page_sections("release") if one.name.startswith("checks") for term in one.terms}
    declared = {check.key for check in CHECKS}
    assert declared <= terms
    assert terms - declared == set()


def test_no_odd_phrase_of_the_older_manual_is_left() -> None:
    odd = r"held against|\banew\b|nobody|what becomes of|so many|takes? back|taken back|lets? pass"
    prose = re.sub(
        r"(?ms)<!-- generated: .*?<!-- end of generated -->|^```.*?^```$", "", "\n".join(map(page_text, TOPICS))
    )
    assert re.findall(odd, prose) == []
    assert re.findall(odd, "it is held against the limit anew") == ["held against", "anew"]


def test_sections_are_not_split_inside_code() -> None:
    assert "# 175 MB" in "\n".join(one.body for one in page_sections("operations"))
    assert all(not one.heading.startswith("175") for one in all_sections())
    assert manual.page_text("operations").count("# 175 MB") == 1
