"""Names and values as Spark's SQL has them, and as patterns have them."""

from __future__ import annotations

from collections.abc import Iterable


def named(name: str) -> str:
    """The name of a column."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def array_of(texts: Iterable[str]) -> str:
    """An array of texts, also one without any."""
    return f"CAST(array({', '.join(map(text_literal, texts))}) AS ARRAY<STRING>)"


def struct_of(numbers: Iterable[int]) -> str:
    """A struct of numbers of 64 bits, which is compared field by field."""
    return f"struct({', '.join(f'CAST({number} AS BIGINT)' for number in numbers)})"
