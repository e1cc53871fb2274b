"""The conversation before a dump, and the dump: every decision, and no socket, file or clock."""
