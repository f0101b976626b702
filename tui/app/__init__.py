"""The terminal app: its first screens, its themes, and its palette of acts."""
