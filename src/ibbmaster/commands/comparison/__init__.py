"""Two logs beside each other: which transactions differ, where first, and in what."""
