"""Kinds of columns: each module knows of its types how they are described, read, written and declared."""
