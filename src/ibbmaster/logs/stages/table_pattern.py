"""Choices of tables by patterns as `shop.*`, compared as the log's server compares names."""

import functools
from collections.abc import Callable, Iterable

from ibbmaster.errors import ConfigurationError
from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.sqltext.table_name import TableName, TablePattern, matches

TABLES_SHOWN = 8


class TableChoice:
    """The tables that some patterns name, without those that others name. Threads share it. It asks `find_case`, how
    the log's server compares names, once, where that makes a difference."""

    def __init__(
        self, only: Iterable[TablePattern], leaves_out: Iterable[TablePattern], find_case: Callable[[], NameCase]
    ) -> None:
        self.only = tuple(only)
        self.leaves_out = tuple(leaves_out)
        self._find_case = functools.cache(find_case)
        self.known: dict[TableName, bool] = {}

    def has_table(self, table: TableName) -> bool:
        found = self.known.get(table)
        if found is None:
            found = self.known[table] = self._judge(lambda key: self._has(key(table.database), key(table.name), key))
        return found

    @property
    def unmatched(self) -> list[TablePattern]:
        return [one for one in (*self.only, *self.leaves_out) if not any(map(self._is_matched_by(one), self.known))]

    def _is_matched_by(self, pattern: TablePattern) -> Callable[[TableName], bool]:
        alone = TableChoice((pattern,), (), self._find_case)
        return alone.has_table

    def may_have_of(self, database: str) -> bool:
        return self._judge(lambda key: self._may_have_of(key(database), key))

    def has_all_of(self, database: str) -> bool:
        return self._judge(lambda key: self._has_all_of(key(database), key))

    def _judge(self, judge: Callable[[Callable[[str], str]], bool]) -> bool:
        exact, folded = judge(str), judge(lower_name)
        return exact if exact == folded else judge(self._find_case().key)

    def _has(self, database: str, table: str, key: Callable[[str], str]) -> bool:
        def is_in(patterns: tuple[TablePattern, ...]) -> bool:
            return any(matches(key(one.database), database) and matches(key(one.name), table) for one in patterns)

        return (not self.only or is_in(self.only)) and not is_in(self.leaves_out)

    def _may_have_of(self, database: str, key: Callable[[str], str]) -> bool:
        if any(one.name == "*" and matches(key(one.database), database) for one in self.leaves_out):
            return False
        return not self.only or any(matches(key(one.database), database) for one in self.only)

    def _has_all_of(self, database: str, key: Callable[[str], str]) -> bool:
        if any(matches(key(one.database), database) for one in self.leaves_out):
            return False
        return not self.only or any(one.name == "*" and matches(key(one.database), database) for one in self.only)


def unmatched_error(log: object, pattern: object, names: Iterable[str]) -> ConfigurationError:
    """A pattern matches no table of a log, which has tables of these names."""
    known = sorted(names)
    more = f" and {len(known) - TABLES_SHOWN} more" if len(known) > TABLES_SHOWN else ""
    there = f"it has {', '.join(known[:TABLES_SHOWN])}{more}" if known else "nothing in it names a table"
    return ConfigurationError(f"no table of {log} matches {pattern}: {there}")
