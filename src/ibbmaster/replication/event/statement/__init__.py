"""Statements of QUERY events: their tokens, and what they do to tables and their rows."""
