"""Compiled loops over pages; each has a slow, obvious twin elsewhere in this package that says what is right.

Nothing outside imports a module of this folder but `loading`, `cache` and `fields`: the others need
Numba, which is optional, and take seconds when they are compiled for the first time.
"""
