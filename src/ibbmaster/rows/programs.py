"""The tables that a change of rows in statement format reaches by views, triggers and functions.

Nothing of these is run, or read as a statement: they may change each table whose name is in their text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.schema.programs import FUNCTION, PACKAGES, TRIGGER
from ibbmaster.sqltext.table_name import TableName

_ROUTINES = (FUNCTION, *PACKAGES)
_WORD = re.compile(r"[\w$]+")
_HEAD_OF_TRIGGER = re.compile(r"\bfor\s+each\s+row\b")


def tables_reached(
    catalog: SchemaCatalog, tables: Iterable[TableName], text: str | None
) -> frozenset[TableName] | None:
    """The tables whose rows a statement on these may change by what it runs, as the catalog calls them; None: any.

    `text` is the statement's, where it is known: then only those functions run that it names.
    """
    routines = [program.name for program in catalog.programs.values() if program.kind in _ROUTINES]
    if routines and (text is None or _is_any_in(routines, _words(text))):
        return None
    found = set[TableName]()
    waiting = [TableName(*catalog.case.table_key(*table)) for table in tables]
    seen = set(waiting)
    while waiting:
        for words in map(_words, _run_by(catalog, waiting.pop())):
            if not words or "call" in words or _is_any_in(routines, words):
                return None
            found |= {TableName(*key) for key in catalog.tables if _is_in(key[1], words)}
        waiting += found - seen
        seen |= found
    return frozenset(found)


def _run_by(catalog: SchemaCatalog, table: TableName) -> Iterator[str]:
    """What a change of a table is, if it is a view, and what it runs."""
    known = catalog.tables.get(table)
    if isinstance(known, TableVersion) and known.kind is TableKind.VIEW:
        yield known.text or ""
    for program in catalog.programs.values():
        if program.kind == TRIGGER and catalog.case.table_key(program.database, program.table) == table:
            yield _HEAD_OF_TRIGGER.split((program.text or "").lower(), maxsplit=1)[-1]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _is_in(name: str, words: Collection[str]) -> bool:
    """Whether words that a text has may be a name."""
    return _words(name) <= set(words)


def _is_any_in(names: Iterable[str], words: Collection[str]) -> bool:
    return any(_is_in(name, words) for name in names)
