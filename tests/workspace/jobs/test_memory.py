"""How much memory there is for tasks: of the machine, of its control groups, or as somebody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.jobs import memory, settings
from sfumato.workspace.jobs.memory import MemoryLimit, available_bytes, local_memory_limit
from sfumato.workspace.jobs.settings import (
    check_dask_address,
    dask_address,
    memory_setting,
    parse_memory,
    set_computing,
)

GIB = 1 << 30
NEITHER = "9223372036854771712"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 6 GiB available, and no control groups."""
    monkeypatch.delenv(settings.MEMORY_VARIABLE, raising=False)
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    write_file(tmp_path / "proc" / "meminfo", f"MemTotal: 9000000 kB\nMemFree: 10 kB\nMemAvailable: {6 << 20} kB\n")
    return tmp_path


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def group(folder: Path, names: tuple[str, str, str], most: str, used: int, cached: int) -> None:
    write_file(folder / f"memory.{names[0]}", f"{most}\n")
    write_file(folder / f"memory.{names[1]}", f"{used}\n")
    write_file(folder / "memory.stat", f"anon 1\n{names[2]} {cached}\n")


ONE = ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")
TWO = ("max", "current", "inactive_file")


def test_what_the_kernel_says_is_available(machine: Path) -> None:
    assert available_bytes() == 6 * GIB
    assert local_memory_limit() == MemoryLimit(int(0.8 * 6 * GIB), "80% of the free memory of this machine")


def test_a_control_group_of_version_2_bounds_it_and_what_it_caches_counts_as_left(machine: Path) -> None:
    write_file(machine / "proc/self/cgroup", "0::/user.slice/session-1.scope\n")
    group(machine / "cgroup/user.slice", TWO, str(3 * GIB), 2 * GIB, GIB)
    group(machine / "cgroup/user.slice/session-1.scope", TWO, "max", GIB, 0)
    assert available_bytes() == 2 * GIB


def test_in_a_container_the_group_is_the_root_of_what_it_sees(machine: Path) -> None:
    write_file(machine / "proc/self/cgroup", "0::/\n")
    group(machine / "cgroup", TWO, str(2 * GIB), GIB, 0)
    assert available_bytes() == GIB


@pytest.mark.parametrize("path", ["/docker/4711", "/"])
def test_a_control_group_of_version_1_bounds_it_too(machine: Path, path: str) -> None:
    write_file(machine / "proc/self/cgroup", f"9:cpu:/\n4:memory:{path}\n0::/\n")
    group(machine / "cgroup/memory", ONE, str(GIB), GIB // 2, GIB // 4)
    assert available_bytes() == GIB - GIB // 4


def test_a_group_without_a_limit_bounds_nothing(machine: Path) -> None:
    write_file(machine / "proc/self/cgroup", "4:memory:/job\n0::/\n")
    group(machine / "cgroup/memory/job", ONE, NEITHER, GIB, 0)
    assert available_bytes() == 6 * GIB


def test_a_group_that_is_full_leaves_nothing(machine: Path) -> None:
    write_file(machine / "proc/self/cgroup", "0::/job\n")
    group(machine / "cgroup/job", TWO, str(GIB), 2 * GIB, 0)
    assert available_bytes() == 0


def test_without_proc_half_of_the_machine_is_taken_for_available(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "proc/meminfo").unlink()
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_bytes() == 2_048_000


def test_where_nothing_is_known_there_is_no_limit(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> int:
        raise ValueError("unrecognized configuration name")

    (machine / "proc/meminfo").unlink()
    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert local_memory_limit() == MemoryLimit(None)
    assert not local_memory_limit().refuses(1 << 62)


def test_what_somebody_gives_takes_the_place_of_all_that(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.MEMORY_VARIABLE, "8 GB")
    assert local_memory_limit() == MemoryLimit(8_000_000_000, "the limit that was given", is_fixed=True)
    monkeypatch.setenv(settings.MEMORY_VARIABLE, "none")
    assert local_memory_limit().max_bytes is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8_000_000_000),
        ("8 g", 8_000_000_000),
        ("1.5 GiB", 3 * GIB // 2),
        ("700mb", 700_000_000),
        ("2TiB", 2 * 1024 * GIB),
        ("800000000", 800_000_000),
        (" NONE ", None),
    ],
)
def test_sizes_are_read(text: str, size: int | None) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "8 GB or so", "-8GB", "8ib", "8", "100 MB", "1e9", "nan"])
def test_other_texts_are_refused_where_they_stand(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_memory(text)
    assert refused.value.place == "--memory"
    assert '"8 GB"' in refused.value.message


def test_a_small_task_is_refused_nowhere(machine: Path) -> None:
    limit = MemoryLimit(1000)
    assert not limit.refuses(memory.ALWAYS_ALLOWED_BYTES)
    assert limit.refuses(memory.ALWAYS_ALLOWED_BYTES + 1)


@pytest.mark.parametrize(
    "address", ["tls://host:8786", "tcp://127.0.0.1:8786", "host.example:8786", "tls://[::1]:8786", "wss://host:443"]
)
def test_addresses_of_schedulers_are_taken(address: str) -> None:
    check_dask_address(address)


@pytest.mark.parametrize(
    "address", ["host", "http://host:80", "tls://host", "tls://a b:1", "file:///etc/passwd", "tls://h:1/x"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="--dask"):
        check_dask_address(address)


def test_what_is_settled_holds_for_processes_that_are_started_and_bad_input_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(settings.MEMORY_VARIABLE, "")
    monkeypatch.setenv(settings.DASK_VARIABLE, "")
    set_computing("tls://host:8786", "8 GB")
    with pytest.raises(BadInput):
        set_computing("tls://other:8786", "a lot")
    with pytest.raises(BadInput):
        set_computing("nowhere", "9 GB")
    assert (dask_address(), memory_setting()) == ("tls://host:8786", "8 GB")
    set_computing(dask="")
    assert (dask_address(), memory_setting()) == ("", "8 GB")
