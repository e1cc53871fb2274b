"""Names and values as Spark's SQL has them."""

from __future__ import annotations

from ibbmaster.lake.text import array_of, named, struct_of, text_literal


def test_quotes_and_backslashes_are_escaped():
    assert named("a`b") == "`a``b`"
    assert text_literal("it's \\ x") == "'it\\'s \\\\ x'"


def test_arrays_have_a_type_also_without_elements():
    assert array_of(["a", "b'"]) == "CAST(array('a', 'b\\'') AS ARRAY<STRING>)"
    assert array_of([]) == "CAST(array() AS ARRAY<STRING>)"


def test_structs_are_of_large_numbers():
    assert struct_of([1, -2]) == "struct(CAST(1 AS BIGINT), CAST(-2 AS BIGINT))"
