"""The terminal app: its first screens, its theme, its palette of acts."""
