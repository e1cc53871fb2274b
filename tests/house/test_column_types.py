"""A column type is one file of `replication/event/column_types`; who reads columns asks there, and names no type."""

import ast
import functools
from collections import defaultdict
from pathlib import Path

import pytest

from ibbmaster.replication.event.column_types.registry import KINDS
from ibbmaster.replication.event.rows.column import ColumnType, ValueKind

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
FILES_MAX = 4  # that name a type, its own among them
ALIASES = {"_Kind": "ValueKind"}  # what modules call the enumerations
ANYTHING = frozenset(("binary", "text", "time", "timestamp"))  # words that are everywhere, for other things
#: Words of types that other languages have, too, and where they are written: folders and files.
OTHERWISE = {
    "Spark's names of types": (
        frozenset(("bigint", "date", "decimal", "double", "float", "int")),
        (
            "tables/arrow/",
            "lake/",
            "spark/",
            "commands/printing/line_formats.py",
            "replication/event/column_types/labels.py",
        ),
    ),
    "what CAST and functions are called, and families of values in SQL": (
        frozenset(("bigint", "char", "date", "datetime", "decimal", "double", "int", "year")),
        ("rows/expr/", "sqltext/"),
    ),
    "types of Python": (frozenset(("int",)), ("kernel/entries.py",)),
}


@functools.cache
def marks() -> dict[str, set[str]]:
    """Each type's word, and the enumerators that stand for it alone."""
    owners: dict[str, set[str]] = defaultdict(set)
    for kind in KINDS:
        found: set[ColumnType | ValueKind] = {*kind.codes, *kind.values.values()}
        found |= set() if kind.content is None else {kind.content}
        for one in found:
            owners[f"{type(one).__name__}.{one.name}"].add(kind.word)
    found_marks = {kind.word: {kind.word} for kind in KINDS}
    for enumerator, words in owners.items():
        if len(words) == 1:
            found_marks[min(words)].add(enumerator)
    return found_marks


@functools.cache
def said() -> dict[str, set[str]]:
    """Whole texts, and enumerators, with the modules that have them."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Constant(value=str() as text):
                    found[text].add(name)
                case ast.Attribute(value=ast.Name(id=of), attr=attribute):
                    found[f"{ALIASES.get(of, of)}.{attribute}"].add(name)
    return found


def means_otherwise(word: str, module: str) -> bool:
    return word in ANYTHING or any(word in words and module.startswith(places) for words, places in OTHERWISE.values())


def files_of(word: str) -> set[str]:
    named = {module for module in said()[word] if not means_otherwise(word, module)}
    return named.union(*(said()[mark] for mark in marks()[word] - {word}))


@pytest.mark.parametrize("word", marks())
def test_few_files_name_a_type(word: str) -> None:
    assert len(files_of(word)) <= FILES_MAX, files_of(word)


def test_each_exception_is_one() -> None:
    for words, places in OTHERWISE.values():
        found = {word: {one for one in said()[word] if one.startswith(places)} for word in words}
        assert [word for word in words if not found[word]] == []
        assert [
            place for place in places if not any(one.startswith(place) for one in set().union(*found.values()))
        ] == []


def test_a_type_that_many_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = {**said(), "uuid": {f"room/{number}.py" for number in range(FILES_MAX + 1)}}
    monkeypatch.setitem(globals(), "said", lambda: defaultdict(set, everywhere))
    assert len(files_of("uuid")) > FILES_MAX
