"""Numbers of the intruder's dial for the runs of this session, counted once: the tables of a finished run never change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.engine.studies._knowledge_counts import KnowledgeCounts
    from sfumato.workspace.reporting.intruder_dial import DialNumbers, Reaches


@dataclass
class DialMemory:
    """Numbers of dials by workspace and run.

    numbers: where every variable is known as the plan says or not at all
    unsure: where some are known within half widths
    lock: held while numbers are counted
    """

    numbers: dict[tuple[Path, int], DialNumbers] = field(default_factory=dict)
    unsure: dict[tuple[Path, int], dict[Reaches, KnowledgeCounts]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def count(self, directory: Path, run_id: int, call: Callable[..., Any]) -> DialNumbers:
        """Return the numbers of a run: those in memory, else new ones, counted in another process.

        ``call`` calls a function in a process of its own. Called in a thread. Raises what counting raises.
        """
        from sfumato.workspace.service.intruder_dial import count_for_dial

        with self.lock:
            found = self.numbers.get((directory, run_id))
            if found is None:
                found = call(count_for_dial, directory, run_id, what="the count of who can be found")
                self.numbers[directory, run_id] = found
            return found

    def count_unsure(self, directory: Path, run_id: int, wanted: Sequence[Reaches], call: Callable[..., Any]) -> None:
        """Add the numbers within these half widths to the memory, as far as they are missing."""
        from sfumato.workspace.service.intruder_dial import count_unsure

        with self.lock:
            known = self.unsure.setdefault((directory, run_id), {})
            missing = tuple(one for one in wanted if one not in known)
            if missing:
                counts = call(count_unsure, directory, run_id, missing, what="the count of who can be found")
                # Another thread may read the numbers now.
                self.unsure[directory, run_id] = {**known, **dict(zip(missing, counts, strict=True))}
