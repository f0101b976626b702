"""Screens around tables, forms, dialogs and explanations that several places share."""
