"""Names say what they name: no new function or class is called by a single participle, adverb, preposition or pronoun.

``bare_names_left.toml`` counts those that are still there, by room. It only shrinks: a count that is too high fails as well.
To count again: ``SFUMATO_COUNT_NAMES=1 pytest tests/test_bare_names.py``; it refuses to raise a number.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

ROOT = Path(__file__).parents[1]
LEFT = ROOT / "tests" / "bare_names_left.toml"
LAYERS = ("engine", "workspace", "tui")
ADVERBS_AND_PRONOUNS = frozenset((
    "about", "above", "across", "after", "again", "against", "ahead", "alike", "all", "alone", "along", "also", "always", "among",
    "anew", "another", "any", "apart", "around", "as", "aside", "at", "away", "back", "before", "behind", "below", "beneath",
    "beside", "besides", "best", "between", "beyond", "both", "but", "by", "each", "either", "else", "elsewhere", "enough", "ever",
    "every", "everyone", "everything", "few", "first", "from", "further", "here", "how", "if", "in", "inside", "instead", "into",
    "is", "it", "its", "last", "later", "least", "less", "likewise", "lone", "many", "more", "most", "much", "near", "nearer",
    "nearest", "neither", "never", "next", "no", "nobody", "none", "nor", "not", "nothing", "now", "of", "off", "often", "on", "once",
    "one", "only", "onto", "other", "others", "otherwise", "our", "out", "outside", "over", "own", "perhaps", "rather", "same",
    "several", "short", "side", "since", "so", "some", "somebody", "something", "soon", "still", "such", "than", "that", "the",
    "theirs", "then", "there", "these", "they", "this", "those", "though", "through", "thus", "till", "to", "together", "too",
    "toward", "twice", "under", "until", "up", "upon", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who",
    "whole", "whose", "why", "with", "within", "without", "yet",
))  # fmt: skip
PARTICIPLES = frozenset((
    "added", "agreed", "allocated", "answered", "asked", "assigned", "audited", "begun", "believed", "bounded", "broken", "brought",
    "built", "called", "carried", "caught", "changed", "chosen", "claimed", "coded", "come", "committed", "compared", "completed",
    "copied", "counted", "cut", "dealt", "decided", "declared", "declined", "delivered", "derived", "described", "determined",
    "disguised", "divided", "done", "drafted", "drawn", "drilled", "driven", "duplicated", "ended", "entered", "examined", "excused",
    "explained", "exposed", "failed", "fallen", "felt", "fitted", "followed", "forced", "found", "given", "gone", "grown", "guessed",
    "held", "helped", "hidden", "hit", "indexed", "joined", "judged", "kept", "known", "laid", "lacked", "learned", "led", "left",
    "let", "lifted", "listed", "located", "locked", "looked", "lost", "made", "marked", "matched", "meant", "measured", "met",
    "mixed", "moved", "named", "narrowed", "noted", "offered", "opened", "ordered", "owed", "paired", "parted", "passed", "pasted",
    "picked", "placed", "pulled", "put", "quoted", "raised", "ranked", "recorded", "redrawn", "refused", "related", "released",
    "removed", "renamed", "repeated", "reported", "resized", "rested", "revealed", "run", "said", "sampled", "saved", "scored",
    "sealed", "seen", "selected", "sent", "separated", "set", "settled", "shifted", "shown", "sifted", "solved", "sought", "spared",
    "split", "spoken", "standing", "stored", "swept", "taken", "targeted", "tested", "told", "took", "touched", "traced", "tried",
    "turned", "typed", "understood", "undone", "used", "varied", "verified", "viewed", "waited", "waived", "wanted", "warned",
    "watched", "weighed", "withheld", "won", "worked", "written", "says", "tells", "reads", "asks", "holds", "stands", "goes",
    "gives", "takes", "makes", "lets", "leads", "knows", "finds", "keeps", "sees", "waits", "wants", "does",
))  # fmt: skip
WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def is_bare(name: str) -> bool:
    words = [word.lower() for word in WORD.findall(name.strip("_"))]
    return len(words) == 1 and words[0] in ADVERBS_AND_PRONOUNS | PARTICIPLES


def definitions(layer: str) -> Iterator[tuple[str, str]]:
    """The room and the name of every function and class."""
    for path in sorted((ROOT / layer).rglob("*.py")):
        room = "/".join(path.relative_to(ROOT).parts[:2]) if path.parent != ROOT / layer else layer
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield room, node.name


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS)
def test_no_new_name_is_bare(layer: str) -> None:
    left = tomllib.loads(LEFT.read_text("utf-8"))
    counts = Counter(room for room, name in definitions(layer) if is_bare(name))
    before = {room: count for room, count in left.items() if room.split("/")[0] == layer}
    if os.environ.get("SFUMATO_COUNT_NAMES"):
        assert all(count <= before.get(room, 0) for room, count in counts.items())
        whole = {room: count for room, count in left.items() if room not in before} | counts
        LEFT.write_text(tomli_w.dumps(dict(sorted(whole.items()))), "utf-8")
        return
    assert dict(counts) == before


def test_a_participle_alone_is_bare_and_a_phrase_is_not() -> None:
    assert [is_bare(name) for name in ("_told", "Held", "_but", "held_out_records", "Node", "split_node")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
