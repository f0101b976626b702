"""The plans that an edit can go back to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfumato.workspace.plan.drafts import Draft

__all__ = ["PlanHistory"]


@dataclass(frozen=True)
class PlanHistory:
    """The plan ``now``, those before it, the last at the end, and those that undoing left, the next at the end."""

    now: Draft
    past: tuple[Draft, ...] = ()
    future: tuple[Draft, ...] = ()

    def edited(self, draft: Draft) -> PlanHistory:
        """After an edit; nothing where it says the same."""
        return self if _same(draft, self.now) else PlanHistory(draft, (*self.past, self.now))

    def undone(self) -> PlanHistory:
        """One edit back."""
        return PlanHistory(self.past[-1], self.past[:-1], (*self.future, self.now)) if self.past else self

    def redone(self) -> PlanHistory:
        """One edit that was undone done again."""
        return PlanHistory(self.future[-1], (*self.past, self.now), self.future[:-1]) if self.future else self

    def stored(self, revision: int) -> PlanHistory:
        """The same, now stored."""
        return replace(self, now=replace(self.now, revision=revision))


def _same(one: Draft, other: Draft) -> bool:
    return (one.toml, one.dataset_id, one.drawn_from) == (other.toml, other.dataset_id, other.drawn_from)
