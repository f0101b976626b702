"""What several places share: screens around tables, forms, dialogs, explanations."""
