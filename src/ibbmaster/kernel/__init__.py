"""Compiled loops over pages and rows; each has a slow, obvious reference elsewhere that says what is right.

`native` has them in C. `calls` and `fields` say what they take and give; `building` makes a library of them, `entries`
has its functions, and `loading` says whether there are any.

May import: storage.
"""
