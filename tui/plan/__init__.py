"""The place Plan: the steps of a project's plan, and how it is drafted, edited and searched for."""
