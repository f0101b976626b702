"""Base classes and mixins of screens that several places share: tables, forms, dialogs and explanations."""
