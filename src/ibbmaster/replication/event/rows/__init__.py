"""Rows of row events as values: what was inserted, updated, deleted. Layout: protocol/event/rows.md."""
