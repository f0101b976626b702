"""What shows values of the data only after a question, and forgets them when they are hidden again."""

from __future__ import annotations

from .dialogs import Confirm
from .page import Dialog

CONSEQUENCE = "They are confidential: whoever can see this screen will see them. v hides them again."


class Revealing(Dialog[None]):
    """The action ``values`` asks, and then shows values; again, it hides them. Nothing says yes but the user."""

    revealed = False
    """Whether the user has said that values are to be shown."""

    @property
    def question(self) -> str:
        """What is asked before values are shown."""
        raise NotImplementedError

    def read_values(self) -> None:
        """Read what is shown, with values where they are ``revealed``, and show it."""
        raise NotImplementedError

    def forget_values(self) -> None:
        """Let go of the values that were read, at once."""
        raise NotImplementedError

    async def action_values(self) -> None:
        """Hide the values, or ask and show them."""
        if self.revealed:
            self._reveal(False)
            return
        await self.sfumato.open(Confirm(self.question, CONSEQUENCE, "Show"), self._reveal)

    def _reveal(self, yes: bool | None) -> None:
        """Show values, or hide them: at once, what has been read is forgotten."""
        if bool(yes) == self.revealed:
            return
        self.revealed = bool(yes)
        if not yes:
            self.forget_values()
        self.read_values()
