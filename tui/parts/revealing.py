"""Dialogs that show values of the data only after a question, and discard them when they are hidden again."""

from __future__ import annotations

from .dialogs import ConfirmDialog
from .page import Dialog

CONSEQUENCE = "They are confidential: whoever can see this screen will see them. v hides them again."


class RevealsValues(Dialog[None]):
    """Dialog whose action ``values`` asks the user and then shows values of the data, or hides them again."""

    revealed = False
    """Whether the user has confirmed that values are to be shown."""

    @property
    def question(self) -> str:
        """Return the question that is asked before values are shown."""
        raise NotImplementedError

    def read_values(self) -> None:
        """Read what is shown, with values if they are ``revealed``, and show it."""
        raise NotImplementedError

    def forget_values(self) -> None:
        """Discard the values that were read, at once."""
        raise NotImplementedError

    async def action_values(self) -> None:
        """Hide the values, or ask and show them."""
        if self.revealed:
            self._set_revealed(False)
            return
        await self.sfumato.open(ConfirmDialog(self.question, CONSEQUENCE, "Show"), self._set_revealed)

    def _set_revealed(self, yes: bool | None) -> None:
        """Show values, or hide them and discard what was read."""
        if bool(yes) == self.revealed:
            return
        self.revealed = bool(yes)
        # Hidden values are discarded at once, not only when the answer without them arrives.
        if not yes:
            self.forget_values()
        self.read_values()
