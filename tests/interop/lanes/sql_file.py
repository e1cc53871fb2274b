"""Statements in a .sql file beside a module: a line `-- [name]` begins a section, `;;` and a new line end one."""

import re
from pathlib import Path


def sql_beside(module: str) -> dict[str, tuple[str, ...]]:
    """The sections of the .sql file of a module, given as `__file__`."""
    _, *parts = re.split(r"^-- \[(.+)\]\n", Path(module).with_suffix(".sql").read_text(), flags=re.MULTILINE)
    texts = zip(parts[::2], parts[1::2], strict=True)
    return {name: tuple(text.removesuffix(";;\n").split(";;\n")) for name, text in texts}
