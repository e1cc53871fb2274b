"""The rows of tables as the changes of a log leave them: folded forward, kept in a file, by key."""
