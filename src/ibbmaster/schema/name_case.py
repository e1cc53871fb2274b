"""How a server compares names of databases and tables: its `lower_case_table_names`.

Statements are logged as typed, keys in TABLE_MAP events in lower case, unless the server is case-sensitive. No event
shows which; the effect of statements may."""

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext.table_name import TableName
from .clause import CreateDatabase, DdlStatement, NameProgram, RemoveDatabase

# Letters that `utf8mb3_general_ci` lowers, of a newer Unicode: first and last.
_CASED = (
    *((0x41, 0x21F), (0x222, 0x233), (0x386, 0x3AF), (0x3DA, 0x3EF), (0x400, 0x481), (0x48C, 0x4BF), (0x4C1, 0x4C4)),
    *((0x4C7, 0x4C8), (0x4CB, 0x4CC), (0x4D0, 0x4F5), (0x4F8, 0x4F9), (0x531, 0x556), (0x1E00, 0x1E95)),
    *((0x1EA0, 0x1EF9), (0x1F08, 0x212B), (0x2160, 0x216F), (0x24B6, 0x24CF), (0xFF21, 0xFF3A)),
)
_DOTTED_I = 0x130
SAY_IT = "say which it is with lower_case_table_names (protocol/schema.md)"


def _lower_letters() -> Mapping[int, str]:
    found = {}
    for first, last in _CASED:
        for code in range(first, last + 1):
            letter = chr(code).lower()
            if len(letter) == 1 and ord(letter) != code:
                found[code] = letter
    return found | {_DOTTED_I: "i"}


_LOWER = _lower_letters()


def lower_name(name: str) -> str:
    """As with `lower_case_table_names` 1 or 2. Source: MariaDB 11.8, my_casedn_str() with files_charset_info."""
    return name.lower() if name.isascii() else name.translate(_LOWER)


class NameCase(enum.IntEnum):
    """`lower_case_table_names`."""

    EXACT = 0  # Orders and orders are two tables
    LOWER = 1  # names are kept in lower case
    KEPT = 2  # as first written, compared in lower case

    @property
    def folds(self) -> bool:
        """Whether names that differ only in capitals are the same."""
        return self is not NameCase.EXACT

    def key(self, name: str) -> str:
        return lower_name(name) if self.folds else name

    def table_key(self, database: str, name: str) -> TableName:
        return TableName(self.key(database), self.key(name))

    def keys_of(self, statement: DdlStatement) -> DdlStatement:
        """A statement with keys for its names of databases and tables."""
        return _with_lower_names(statement) if self.folds else statement


def parse_name_case(where: str, value: int | str | None) -> NameCase | None:
    """`where` is for the error. Raises ConfigurationError: the value is none of them."""
    if value is None:
        return None
    text = str(int(value)) if isinstance(value, int) else value.strip()
    found = next((one for one in NameCase if text == str(int(one))), None)
    if found is None:
        raise ConfigurationError(f"{where} is {text[:60]!r}, expected 0, 1 or 2")
    return found


def _with_lower_names(found: Any) -> Any:
    match found:
        case TableName():
            return _key(found)
        case CreateDatabase() | RemoveDatabase():
            return found._replace(name=lower_name(found.name))
        case NameProgram():
            name = TableName(lower_name(found.name.database), found.name.name)
            return found._replace(name=name, table=_with_lower_names(found.table))
        case tuple():
            parts = map(_with_lower_names, found)
            return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    if not is_dataclass(found):
        return found
    return replace(found, **{one.name: _with_lower_names(getattr(found, one.name)) for one in fields(found)})  # type: ignore[type-var]


class CaseFinder:
    """Finds out `lower_case_table_names` while names are compared exactly. `is_whole`: log, or base, have every table
    that ever existed; then a statement about a missing table that exists in other letters is proof."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.found: NameCase | None = None
        self._is_whole = is_whole
        self._spellings: dict[TableName, set[TableName]] = {}  # of existing tables

    def note(self, name: TableName, *, is_there: bool) -> None:
        own = self._spellings.setdefault(_key(name), set())
        (own.add if is_there else own.discard)(name)

    def others(self, name: TableName) -> set[TableName]:
        return self._spellings.get(_key(name), set()) - {name}

    def see_missing(self, name: TableName) -> set[TableName]:
        """A statement changed a missing table: returns those in other letters, if it may mean them."""
        others = self.others(name)
        if not others:
            return set()
        if self._is_whole and self.found is not NameCase.EXACT:
            self.found = NameCase.LOWER
            return set()
        return others

    def see_new(self, name: TableName) -> None:
        if self.others(name) and self.found is None:
            self.found = NameCase.EXACT

    def see_maybe_gone(self, name: TableName) -> None:
        """DROP … IF EXISTS proves nothing: those in other letters may be gone or not."""
        for other in self.others(name):
            self._spellings[_key(name)].discard(other)


def ambiguous(others: set[TableName]) -> str:
    shown = ", ".join(map(str, sorted(others)[:3]))
    return f"the log has {shown}, too, and nothing says whether its server takes both for one name; {SAY_IT}"


def _key(name: TableName) -> TableName:
    return TableName(lower_name(name.database), lower_name(name.name))
