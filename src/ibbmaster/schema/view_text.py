"""Views and sequences, as in SHOW CREATE."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ibbmaster.sqltext.cursor import Cursor, PlacedCursor
from ibbmaster.sqltext.quoting import quoted_name, quoted_text
from ibbmaster.sqltext.token import tokens
from .model import TableVersion

_NUMBERED = ("START", "INCREMENT", "CACHE", "MINVALUE", "MAXVALUE")
_FLAGS = ("NOCACHE", "NOCYCLE", "CYCLE")
SEQUENCE_MAX = 9223372036854775806
SEQUENCE_CACHE = 1000
SEQUENCE_DIGITS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewParts:
    query: str
    columns: str = ""  # in brackets, with a blank before
    check_option: str = "NONE"
    definer: str = ""
    security: str = "DEFINER"
    algorithm: str = "UNDEFINED"


def view_parts(table: TableVersion) -> ViewParts:
    """The query stays as written."""
    text = (table.text or "").strip().rstrip(";")
    cursor = PlacedCursor(text)
    parts = ViewParts(query=text)
    if not cursor.takes_words("CREATE"):
        return parts
    cursor.takes_words("OR", "REPLACE")
    while not cursor.takes_words("VIEW"):
        if cursor.takes_words("ALGORITHM"):
            cursor.takes_sign("=")
            parts = replace(parts, algorithm=cursor.take().text.upper())
        elif cursor.takes_words("DEFINER"):
            cursor.takes_sign("=")
            parts = replace(parts, definer=_definer(cursor))
        elif cursor.takes_words("SQL", "SECURITY"):
            parts = replace(parts, security=cursor.take().text.upper())
        else:
            return ViewParts(query=text)
    cursor.pass_condition()
    cursor.table("")
    start = cursor.start
    columns = f" {text[start : cursor.end]}" if cursor.bracketed() else ""
    if not cursor.takes_words("AS"):
        return ViewParts(query=text)
    query, check = _without_check(text[cursor.start :])
    return replace(parts, query=query, columns=columns, check_option=check)


def _definer(cursor: PlacedCursor) -> str:
    user = cursor.take().text
    if (host := cursor.host()) is not None:
        return f"{user}@{host}"
    return f"{user}()" if cursor.peek().is_sign("(") and not cursor.bracketed() else user


def _without_check(query: str) -> tuple[str, str]:
    query = query.strip()
    found = list(tokens(query))
    if not (len(found) > 3 and found[-2].is_word("CHECK") and found[-1].is_word("OPTION")):
        return query, "NONE"
    begin, check = (-3, "CASCADED") if found[-3].is_word("WITH") else (-4, found[-3].word)
    if not found[begin].is_word("WITH") or check not in ("CASCADED", "LOCAL"):
        return query, "NONE"
    return query[: found[begin].start].rstrip(), check


def create_view(table: TableVersion, *, is_qualified: bool = False) -> str:
    """SHOW CREATE VIEW, perhaps with its database; the query as written, which a server rewrites."""
    parts = view_parts(table)
    user, _, host = parts.definer.partition("@")
    definer = f" DEFINER={quoted_name(user)}@{quoted_name(host or '%')}" if user else ""
    database = f"{quoted_name(table.database)}." if is_qualified else ""
    check = "" if parts.check_option == "NONE" else f" WITH {parts.check_option} CHECK OPTION"
    return (
        f"CREATE ALGORITHM={parts.algorithm}{definer} SQL SECURITY {parts.security} VIEW {database}"
        f"{quoted_name(table.name)}"
        f"{parts.columns} AS {parts.query}{check}"
    )


class SequenceOptions(NamedTuple):
    start: int
    minimum: int
    maximum: int
    increment: int
    cache: int
    is_cycling: bool


def sequence_options(table: TableVersion) -> SequenceOptions:
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    cursor = Cursor(tokens(table.text or ""))
    while not cursor.is_at_end:
        name = cursor.take().word
        if name == "NO":
            name += cursor.take().word
        if name in _FLAGS:
            flags.add(name)
        elif name in _NUMBERED:
            cursor.pass_words("WITH", "BY")
            cursor.takes_sign("=")
            sign = -1 if cursor.takes_sign("-") else 1
            if cursor.peek().text.isdecimal():
                numbers[name] = sign * int(cursor.take().text[:SEQUENCE_DIGITS_MAX])
    increment = numbers.get("INCREMENT", 1)
    is_rising = increment >= 0
    minimum = numbers.get("MINVALUE", 1 if is_rising else -SEQUENCE_MAX - 1)
    maximum = numbers.get("MAXVALUE", SEQUENCE_MAX if is_rising else -1)
    start = numbers.get("START", minimum if is_rising else maximum)
    cache = 0 if "NOCACHE" in flags else numbers.get("CACHE", SEQUENCE_CACHE)
    return SequenceOptions(start, minimum, maximum, increment, cache, "CYCLE" in flags)


def create_sequence(table: TableVersion) -> str:
    options = sequence_options(table)
    return (
        f"CREATE SEQUENCE {quoted_name(table.name)} start with {options.start} minvalue {options.minimum} "
        f"maxvalue {options.maximum} increment by {options.increment} "
        f"{f'cache {options.cache}' if options.cache else 'nocache'} "
        f"{'cycle' if options.is_cycling else 'nocycle'} ENGINE={table.options.get('ENGINE', 'InnoDB')}"
        f"{f' COMMENT={quoted_text(comment)}' if (comment := table.comment) else ''}"
    )
