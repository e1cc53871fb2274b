"""Directories of `.ibb` files that are written: groups, durability, recovery, maintenance."""
