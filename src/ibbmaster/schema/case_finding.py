"""Whether the server of a log tells capitals in names apart, by what its statements do to tables."""

from __future__ import annotations

from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.sqltext.table_name import TableName

SAY_IT = "say which it is with lower_case_table_names (protocol/schema.md)"


class CaseFinder:
    """What is known of `lower_case_table_names` while names are taken as they are written.

    `is_whole`: the log, or a base, has every table that there ever was. Then a statement about a table
    that is there in other letters only says that the letters do not matter; else the table may be one
    from before the log, and it is not known.

    Attributes:
        found: EXACT or LOWER, once a statement has said it. Of KEPT no log says anything.
    """

    def __init__(self, *, is_whole: bool = True) -> None:
        self.found: NameCase | None = None
        self._is_whole = is_whole
        self._spellings: dict[TableName, set[TableName]] = {}  # of tables that are there

    def note(self, name: TableName, *, is_there: bool) -> None:
        """A table has come, or gone."""
        own = self._spellings.setdefault(_key(name), set())
        (own.add if is_there else own.discard)(name)

    def others(self, name: TableName) -> set[TableName]:
        """The tables whose names differ from this one in capitals only."""
        return self._spellings.get(_key(name), set()) - {name}

    def see_missing(self, name: TableName) -> set[TableName]:
        """A statement has changed a table that is not there: those in other letters, if it is not known which it is."""
        others = self.others(name)
        if not others:
            return set()
        if self._is_whole and self.found is not NameCase.EXACT:
            self.found = NameCase.LOWER
            return set()
        return others

    def see_new(self, name: TableName) -> None:
        """A table is made, which was not there."""
        if self.others(name) and self.found is None:
            self.found = NameCase.EXACT

    def see_maybe_gone(self, name: TableName) -> None:
        """DROP … IF EXISTS, which says nothing: whether those in other letters are there is not known."""
        for other in self.others(name):
            self._spellings[_key(name)].discard(other)


def ambiguous(others: set[TableName]) -> str:
    """Why it is not known which table a name is of."""
    shown = ", ".join(map(str, sorted(others)[:3]))
    return f"the log has {shown}, too, and nothing says whether its server takes both for one name; {SAY_IT}"


def _key(name: TableName) -> TableName:
    return TableName(lower_name(name.database), lower_name(name.name))
