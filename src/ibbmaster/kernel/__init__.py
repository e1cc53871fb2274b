"""Compiled loops over pages; each has a slow, obvious reference elsewhere in this package that says what is right.

`scan` alone knows pages and chunks; the others see its table, and runs of bytes.

Nothing outside imports a module of this folder but `calls`, `fields`, `loading` and `cache`: the
others need Numba, which is optional, and take seconds when they are compiled for the first time.
"""
