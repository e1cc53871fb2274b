"""The start of a dump, and the dump: every decision, and no socket, file or clock."""
