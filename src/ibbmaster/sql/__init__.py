"""SELECT over the tables whose changes a log holds: their contents, folded, and their rows on the wire."""
