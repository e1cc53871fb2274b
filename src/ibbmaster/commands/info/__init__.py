"""What is in a log, counted without Java: times, GTIDs, tables, largest groups, files with their states."""
