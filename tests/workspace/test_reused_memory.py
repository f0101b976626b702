"""Large arrays use the same memory again inside the block, and the system has it back after the last of several."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from sfumato.workspace import process as module
from sfumato.workspace.process import reused_memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")

MEASURED = """
import contextlib, ctypes, resource, sys
import numpy as np
from sfumato.workspace.process import reused_memory

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: pages of one size, so that faults count memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def compute():
    for _ in range(2):
        for megabytes in (80, 48, 40):
            np.full(megabytes << 17, 1.0).sum()

compute()
before = resident()
with reused_memory() if sys.argv[1] == "reused" else contextlib.nullcontext():
    compute()
    first = faults()
    compute()
    inside, held = faults() - first, resident() - before
first = faults()
compute()
print(inside, held, resident() - before, faults() - first)
"""


def measure_memory(how: str) -> list[int]:
    """Page faults inside, bytes resident beyond those before, inside and afterwards, and page faults afterwards."""
    done = subprocess.run([sys.executable, "-c", MEASURED, how], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.slow
def test_arrays_reuse_memory_inside_and_give_it_back_afterwards() -> None:
    inside, held, after, again = measure_memory("reused")
    fresh, _, _, _ = measure_memory("fresh")
    assert fresh > 20, "the negative control: every array has fresh pages"
    assert inside < fresh / 10
    assert held > 40 << 20, "memory stays with the process inside"
    assert after < 4 << 20, "and goes back"
    assert again > fresh / 2, "arrays are given back one by one again"


def test_the_settings_are_those_of_the_system_after_the_last_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(module, "_set_malloc_options", lambda _, options: calls.append(options))

    def two_blocks() -> None:
        with reused_memory():
            with reused_memory():
                pass
            assert calls[-1] is module.MALLOC_KEEPING_MEMORY
            with reused_memory(of_blocks=True):
                assert calls[-1] is module.MALLOC_KEEPING_BLOCKS
            raise KeyError

    with pytest.raises(KeyError):
        two_blocks()
    assert calls[-1] is module.MALLOC_DEFAULTS
    assert calls.count(module.MALLOC_DEFAULTS) == 1


def test_nothing_happens_with_another_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(module, "_set_malloc_options", lambda _, options: calls.append(options))
    monkeypatch.setattr(module, "_glibc", lambda: None)
    with reused_memory():
        pass
    assert not calls
