"""VIRTUAL columns over a TIMESTAMP: a log has the values that the writer saw, a server computes them in the time zone
of each reader. The common forms are computed here; others are refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sqltext.cursor import END
from ibbmaster.sqltext.token import Token, TokenKind, tokens, words

Change = Callable[[bytes], bytes]
"""Makes the text of a VIRTUAL column of that of a TIMESTAMP in the session's time zone."""

#: Functions whose values depend on the session or the time, whatever their arguments.
OF_THE_SESSION = words(
    "NOW CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP SYSDATE CURDATE CURRENT_DATE CURTIME CURRENT_TIME UTC_DATE "
    "UTC_TIME UTC_TIMESTAMP FROM_UNIXTIME USER CURRENT_USER SESSION_USER SYSTEM_USER CURRENT_ROLE DATABASE SCHEMA "
    "CONNECTION_ID RAND UUID UUID_SHORT SYS_GUID"
)
_WITHOUT_BRACKETS = words("CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP CURRENT_DATE CURRENT_TIME CURRENT_USER")
_PARTS = {  # of a moment, and where they are in its text
    "YEAR": slice(0, 4),
    "MONTH": slice(5, 7),
    "DAY": slice(8, 10),
    "DAYOFMONTH": slice(8, 10),
    "HOUR": slice(11, 13),
    "MINUTE": slice(14, 16),
    "SECOND": slice(17, 19),
}
_DATE = slice(0, 10)


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """None: it is not known here."""

    source: TableColumn | None = None
    change: Change | None = None


def local_columns(table: TableVersion) -> Mapping[int, LocalColumn]:
    """The VIRTUAL columns whose values each reader sees otherwise, by their ids."""
    names = {column.name.lower(): column for column in table.columns}
    found: dict[int, LocalColumn] = {}
    computed = [column for column in table.columns if column.expression is not None and not column.is_stored]
    for _ in computed:  # one may be over any other
        before = len(found)
        for column in computed:
            parts = list(tokens(column.expression or ""))
            if column.id not in found and _is_local(parts, names, found):
                found[column.id] = _read(parts, column, names)
        if len(found) == before:
            break
    return found


def _is_local(parts: Sequence[Token], names: Mapping[str, TableColumn], found: Mapping[int, object]) -> bool:
    for number, (part, following) in enumerate(zip(parts, [*parts[1:], END], strict=True)):
        if part.kind is TokenKind.WORD and part.text.upper() in OF_THE_SESSION:
            if following.is_sign("(") or part.text.upper() in _WITHOUT_BRACKETS:
                return True
        elif part.kind in (TokenKind.WORD, TokenKind.NAME) and (column := names.get(part.text.lower())) is not None:
            if column.id in found:
                return True
            is_same_everywhere = number > 1 and parts[number - 2].is_word("UNIX_TIMESTAMP") and following.is_sign(")")
            if BY_NAME[column.type.word].is_zoned and not is_same_everywhere:
                return True
    return False


def _read(parts: list[Token], target: TableColumn, names: Mapping[str, TableColumn]) -> LocalColumn:
    while len(parts) > 1 and parts[0].is_sign("(") and parts[-1].is_sign(")"):
        parts = parts[1:-1]
    function = ""
    if len(parts) == 4 and parts[1].is_sign("(") and parts[3].is_sign(")"):
        function, parts = parts[0].text.upper(), parts[2:3]
    source = names.get(parts[0].text.lower()) if len(parts) == 1 else None
    if source is None or not BY_NAME[source.type.word].is_zoned:
        return LocalColumn()
    change = _change(function, source, target)
    return LocalColumn() if change is None else LocalColumn(source, change)


def _change(function: str, source: TableColumn, target: TableColumn) -> Change | None:
    kind = BY_NAME[target.type.word]
    if not function and kind.has_day and kind.is_clock:
        return bytes if (source.type.scale or 0) == (target.type.scale or 0) else None
    if function in ("", "DATE") and kind.has_day and not kind.is_clock:
        return lambda text: text[_DATE]
    if function in _PARTS and kind.is_integer and not target.type.is_zerofill:
        place = _PARTS[function]
        return lambda text: b"%d" % int(text[place])
    return None
