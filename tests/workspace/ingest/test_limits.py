"""Files and filters within limits: plain files alone, so much memory, so much time, nothing outside the recipe's folder."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.tui.keys.keymap import BadKeymap, read_keymap
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.ingest import filters, limits
from sfumato.workspace.ingest.files import SourceFile, find_source, read_frame
from sfumato.workspace.ingest.filters import select_where
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.plan.recipe_files import read_recipe_files
from sfumato.workspace.recipes import find_recipe

FRAME = pd.DataFrame({"n": range(3000)})


def trees_of(name: str, beside: Path | None) -> object:
    return read_recipe_files({"anonymisation": [{"hierarchies": {"region": name}}]}, beside)["anonymisation"]


def seeds_of(name: str, beside: Path | None) -> object:
    return read_recipe_files({"synthesis": [{"seeds": name}]}, beside)["synthesis"]


READERS: dict[str, Callable[[Path], object]] = {
    "data": lambda path: find_source(str(path)),
    "recipe": lambda path: find_recipe(str(path)),
    "hierarchy": lambda path: trees_of(path.name, path.parent),
    "seeds": lambda path: seeds_of(path.name, path.parent),
    "keys": read_keymap,
}
KINDS: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a directory": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "given"
    KINDS[kind](path)
    wanted = "outside the folder" if reader in ("hierarchy", "seeds") and kind == "a device" else kind
    started = time.monotonic()
    with pytest.raises((BadInput, BadKeymap), match=wanted):
        READERS[reader](path)
    assert time.monotonic() - started < 5


def test_a_link_to_a_plain_file_that_the_user_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("a\n1\n", "utf-8")
    (tmp_path / "here.csv").symlink_to(tmp_path / "there.csv")
    assert find_source(str(tmp_path / "here.csv")).content == b"a\n1\n"


@pytest.mark.parametrize(("reader", "size"), [("recipe", 1 << 20), ("keys", 100_000)])
def test_texts_have_a_largest_size(tmp_path: Path, reader: str, size: int) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"#" * size + b"\n")
    with pytest.raises((BadInput, BadKeymap), match="larger than"):
        READERS[reader](path)


def test_a_hierarchy_has_a_largest_size(tmp_path: Path) -> None:
    with (tmp_path / "tree.csv").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(BadInput, match="larger than 64 MiB"):
        trees_of("tree.csv", tmp_path)


def test_hierarchies_lie_in_the_recipe_s_folder_or_below(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    (folder / "trees").mkdir(parents=True)
    (folder / "trees" / "region.csv").write_text("a;*\nb;*\n", "utf-8")
    (tmp_path / "secret.csv").write_text("hunter2;*\n", "utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    assert trees_of("trees/region.csv", folder) == [{"hierarchies": {"region": [["a", "*"], ["b", "*"]]}}]
    for name in ("../secret.csv", str(tmp_path / "secret.csv"), "link.csv", "~/secret.csv", "trees/../../secret.csv"):
        with pytest.raises(BadInput) as caught:
            trees_of(name, folder)
        assert caught.value.place == "anonymisation[0].hierarchies.region"
        assert "hunter2" not in str(caught.value)
    with pytest.raises(BadInput, match="give the tree as rows"):
        trees_of("region.csv", None)


def test_a_pool_of_seeds_lies_in_the_recipe_s_folder_or_below_and_is_small(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "pool.csv").write_text("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", "utf-8")
    (tmp_path / "secret.csv").write_text("hunter2\n1\n", "utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "bytes.csv").write_bytes(b"a\n\xff\n")
    (folder / "large.csv").write_bytes(b"a\n" * (300 << 10))
    (folder / "empty.csv").write_text("hunter2\n", "utf-8")
    assert seeds_of("below/pool.csv", folder) == [{"seeds": ["a,b", "1,2", "3,4"]}]
    assert seeds_of("uniform", None) == [{"seeds": "uniform"}]
    refused = {
        "../secret.csv": "outside the folder", str(tmp_path / "secret.csv"): "outside the folder", "link.csv": "outside the folder",
        "bytes.csv": "not text in UTF-8", "large.csv": "larger than 512 KiB", "empty.csv": "has no records",
        "unifrom": 'say "uniform" or "confidential", or name a CSV file', "a\0b": "cannot be read",
    }  # fmt: skip
    for name, message in refused.items():
        with pytest.raises(BadInput, match=message) as caught:
            seeds_of(name, folder)
        assert caught.value.place == "synthesis[0].seeds"
        assert "hunter2" not in str(caught.value)
    with pytest.raises(BadInput, match="this one lies in no folder"):
        seeds_of("pool.csv", None)


@pytest.mark.parametrize("content", [b"Ann Smith,1971-03-02,52000\nBob,1980-01-01,1\n", b"Ann,Ann,52000\nBob,x,1\n"])
def test_a_file_without_a_header_is_not_quoted(content: bytes) -> None:
    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.data.schema import Kind, Schema, Variable

    with pytest.raises(BadInput) as caught:
        conform_to_schema(read_frame(SourceFile("x.csv", content)), Schema((Variable("income", Kind.COUNT),)))
    assert not [value for value in ("Ann", "Smith", "1971", "52000") if value in str(caught.value)]
    assert "first line" in str(caught.value)


def test_columns_have_a_largest_number(tmp_path: Path) -> None:
    header = ",".join(f"c{i}" for i in range(100_000)).encode()
    started = time.monotonic()
    with pytest.raises(BadInput, match="has 100,000 columns; at most 5,000"):
        read_frame(SourceFile("wide.csv", header + b"\n" + b",".join([b"1"] * 100_000) + b"\n"))
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process holds")
def test_reading_stays_within_the_memory_that_a_file_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MIN_READ_BYTES", 1 << 28)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with (
        pytest.raises(BadInput, match=r'"x.csv" does not fit into 0.2 GiB'),
        limits.bounded_memory(100, "x.csv", "FILE"),
    ):
        np.ones(1 << 27)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with limits.bounded_memory(100, "x.csv", "FILE"):
        np.ones(1 << 20)


def test_a_larger_file_may_take_more_and_none_more_than_its_share() -> None:
    assert limits.allowed_read_bytes(1 << 40) == int(0.75 * limits.machine_bytes())
    assert limits.allowed_read_bytes(0) <= 2 << 30


@pytest.mark.slow
def test_a_filter_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FILTER_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(BadInput, match=r"takes longer than 0\.3 s"):
        select_where(FRAME, "list_sum(list_transform(range(3000000), lambda x: (x * n) % 7)) > 0")
    assert time.monotonic() - started < 20


def test_a_filter_has_so_much_memory_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process may hold besides, where DuckDB does not count, is bounded as it is for the file."""
    given = []
    connect = duckdb.connect
    monkeypatch.setattr(
        duckdb, "connect", lambda *where, config: given.append(config) or connect(*where, config=config)
    )
    select_where(FRAME, "n > 5")
    assert given[0]["memory_limit"] == f"{int(0.25 * limits.machine_bytes()) >> 20}MiB"
    with connect(":memory:", config=given[0]) as connection:
        setting = connection.execute(
            "SELECT current_setting('temp_directory'), current_setting('memory_limit')"
        ).fetchone()
    assert setting is not None
    assert setting[0] == ""


def test_a_filter_within_its_limits_selects() -> None:
    """The control of the two above."""
    assert len(select_where(FRAME, "n >= 2990")) == 10


def test_a_call_in_a_process_has_a_deadline() -> None:
    with pytest.raises(WorkspaceError, match=r"took longer than 0\.2 s"):
        call_in_process(time.sleep, 60, what="the import", seconds=0.2)
