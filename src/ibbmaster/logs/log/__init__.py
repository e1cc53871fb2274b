"""Directories of `.ibb` files as a log: pages, groups, positions, verification. Reads only."""
