"""Reads the statements of triggers and routines, and writes them as SHOW CREATE does."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ibbmaster.schema.clause import NotUnderstoodError, TypeClause
from ibbmaster.schema.reading import expect_name, expect_table, expect_text, fail, takes_collation
from ibbmaster.schema.stored_program import FUNCTION, PACKAGES, StoredProgram
from ibbmaster.schema.type_clause import parse_type
from ibbmaster.sqltext.cursor import Cursor, PlacedCursor
from ibbmaster.sqltext.quoting import quoted_name, quoted_text
from ibbmaster.sqltext.sql_mode import ANSI_QUOTES, ORACLE

CONTAINS_SQL = "CONTAINS SQL"
ORACLE_TEXT_LENGTH = 4000  # of VARCHAR2 as the type of a parameter
_ACCESS = (("CONTAINS", "SQL"), ("NO", "SQL"), ("READS", "SQL", "DATA"), ("MODIFIES", "SQL", "DATA"))
_END = " \t\r\n;"  # what a server cuts off at the end of a statement


def identifier(name: str, sql_mode: int) -> str:
    """A name in the quotes of this sql_mode."""
    return '"' + name.replace('"', '""') + '"' if sql_mode & ANSI_QUOTES else quoted_name(name)


def definer_clause(definer: str, sql_mode: int) -> str:
    """`DEFINER=…` with a blank after it; nothing where it is not known. A role is one without a host."""
    if not definer:
        return ""
    user, at, host = definer.rpartition("@")
    if not at:
        return f"DEFINER={identifier(host, sql_mode)} "
    return f"DEFINER={identifier(user, sql_mode)}@{identifier(host, sql_mode)} "


@dataclass(frozen=True, slots=True)
class ProgramHead:
    """How CREATE or ALTER of a program begins, up to its name. `kind_start` is where its kind stands."""

    definer: str | None
    is_aggregate: bool
    kind_start: int


def take_head(cursor: PlacedCursor, invoker: str) -> ProgramHead:
    """Take `CREATE [OR REPLACE] [DEFINER = …] [AGGREGATE] kind [IF NOT EXISTS] name`, or that of ALTER.

    `definer` is None where the statement names none.
    """
    cursor.take()
    cursor.takes_words("OR", "REPLACE")
    definer = None
    if cursor.takes_words("DEFINER"):
        cursor.takes_sign("=")
        definer = _taken_definer(cursor, invoker)
    is_aggregate = cursor.takes_words("AGGREGATE")
    kind_start = cursor.start
    if cursor.takes_words("PACKAGE"):
        cursor.takes_words("BODY")
    else:
        cursor.take()
    cursor.pass_condition()
    expect_table(cursor, "")
    return ProgramHead(definer, is_aggregate, kind_start)


def _taken_definer(cursor: Cursor, invoker: str) -> str:
    if cursor.peek().is_word("CURRENT_USER", "CURRENT_ROLE"):
        cursor.take()
        cursor.bracketed()
        return invoker
    user = cursor.take().text
    host = cursor.host()
    return user if host is None else f"{user}@{host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerParts:
    """A trigger in the words of information_schema.

    `on` is where ON and the name of the table stand in the text. `ordering` are FOLLOWS or PRECEDES and the trigger
    that it is about, and `row_end` and `body_start` what stands around them.
    """

    definer: str | None
    kind_start: int
    timing: str
    events: str
    on: tuple[int, int]
    row_end: int
    ordering: tuple[str, str] | None
    body_start: int
    body: str


def trigger_parts(text: str, sql_mode: int, invoker: str = "") -> TriggerParts:
    """Read CREATE TRIGGER.

    Raises:
        NotUnderstoodError: it is no such statement.
    """
    cursor = PlacedCursor(text, sql_mode)
    head = take_head(cursor, invoker)
    timing = cursor.take().text.upper()
    events = [cursor.take().text.upper()]
    while cursor.takes_words("OR"):
        events.append(cursor.take().text.upper())
    while not cursor.is_at_end and not cursor.peek().is_word("ON"):
        cursor.take()  # OF columns
    on = cursor.start
    cursor.take()
    expect_table(cursor, "")
    behind = cursor.start
    if not (cursor.takes_words("FOR", "EACH", "ROW") and timing in ("BEFORE", "AFTER")):
        raise fail(cursor, "FOR EACH ROW")
    row_end, ordering = cursor.end, None
    if cursor.peek().is_word("FOLLOWS", "PRECEDES") and not cursor.peek(1).is_sign(":"):
        ordering = (cursor.take().text.upper(), expect_name(cursor))
    return TriggerParts(
        definer=head.definer,
        kind_start=head.kind_start,
        timing=timing,
        events=",".join(events),
        on=(on, behind),
        row_end=row_end,
        ordering=ordering,
        body_start=cursor.end,
        body=text[cursor.start :].rstrip(_END),
    )


def trigger_text(text: str, parts: TriggerParts, definer: str, sql_mode: int) -> str:
    """The statement as SHOW CREATE TRIGGER gives it."""
    rest = (text[parts.kind_start : parts.row_end] + text[parts.body_start :]).rstrip(_END)
    return f"CREATE {definer_clause(definer, sql_mode)}{rest}"


def moved_trigger(trigger: StoredProgram, table: str) -> StoredProgram:
    """A trigger whose table has another name now."""
    try:
        start, end = trigger_parts(trigger.text, trigger.sql_mode).on
    except NotUnderstoodError:
        return replace(trigger, table=table)
    text = f"{trigger.text[:start]}ON {identifier(table, trigger.sql_mode)} {trigger.text[end:]}"
    return replace(trigger, table=table, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Of a routine. `mode` is IN, OUT or INOUT; the value that a function returns has neither it nor a name."""

    mode: str | None
    name: str | None
    type: TypeClause


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutineParts:
    """A routine in the words of information_schema. `parameters` and `returns` are as they were written."""

    definer: str | None
    is_aggregate: bool
    parameters: str
    returns: str
    access: str = CONTAINS_SQL
    is_deterministic: bool = False
    security: str = "DEFINER"
    comment: str = ""
    body: str


def routine_parts(kind: str, text: str, sql_mode: int, invoker: str = "") -> RoutineParts:
    """Read CREATE of a function, a procedure or a package.

    Raises:
        NotUnderstoodError: it is no such statement, or returns a type that is not known.
    """
    cursor = PlacedCursor(text, sql_mode)
    head = take_head(cursor, invoker)
    parameters = returns = ""
    if kind not in PACKAGES:
        start = cursor.start
        if cursor.peek().is_sign("("):
            cursor.bracketed()
            parameters = text[start + 1 : cursor.end - 1]
        start = cursor.start
        if kind == FUNCTION:
            if not (cursor.takes_words("RETURNS") or cursor.takes_words("RETURN")):
                raise fail(cursor, "RETURNS")
            _taken_type(cursor, sql_mode)
            returns = text[start : cursor.end]
    parts = RoutineParts(
        definer=head.definer, is_aggregate=head.is_aggregate, parameters=parameters, returns=returns, body=""
    )
    parts = take_characteristics(cursor, parts)
    return replace(parts, body=text[cursor.start :].rstrip(_END))


def take_characteristics(cursor: Cursor, parts: RoutineParts) -> RoutineParts:
    """The same with what CREATE or ALTER says of it beside its body."""
    while not cursor.is_at_end:
        access = next((words for words in _ACCESS if cursor.takes_words(*words)), None)
        if access is not None:
            parts = replace(parts, access=" ".join(access))
        elif cursor.takes_words("NOT", "DETERMINISTIC"):
            parts = replace(parts, is_deterministic=False)
        elif cursor.takes_words("DETERMINISTIC"):
            parts = replace(parts, is_deterministic=True)
        elif cursor.takes_words("SQL", "SECURITY"):
            parts = replace(parts, security=cursor.take().text.upper())
        elif cursor.takes_words("COMMENT"):
            parts = replace(parts, comment=expect_text(cursor))
        elif not cursor.takes_words("LANGUAGE", "SQL"):
            break
    return parts


def routine_text(kind: str, name: str, parts: RoutineParts, definer: str, sql_mode: int) -> str:
    """The text of SHOW CREATE PROCEDURE and its like."""
    text = f"CREATE {definer_clause(definer, sql_mode)}{'AGGREGATE ' if parts.is_aggregate else ''}{kind} "
    text += identifier(name, sql_mode)
    told = "" if parts.access == CONTAINS_SQL else f"    {parts.access}\n"
    told += "    DETERMINISTIC\n" if parts.is_deterministic else ""
    told += f"    SQL SECURITY {parts.security}\n" if parts.security != "DEFINER" else ""
    told += f"    COMMENT {quoted_text(parts.comment)}\n" if parts.comment else ""
    if kind in PACKAGES:
        return f"{text}{told} {parts.body}"
    returns = f" {parts.returns}" if parts.returns else ""
    return f"{text}({parts.parameters}){returns}\n{told}{parts.body}"


def routine_parameters(parts: RoutineParts, sql_mode: int) -> list[Parameter]:
    """What a function returns, and the parameters of a routine, in order.

    Raises:
        NotUnderstoodError: one is of a type that is not known.
    """
    found = []
    if parts.returns:
        cursor = PlacedCursor(parts.returns, sql_mode)
        cursor.take()
        found.append(Parameter(mode=None, name=None, type=_taken_type(cursor, sql_mode)))
    cursor = PlacedCursor(parts.parameters, sql_mode)
    while not cursor.is_at_end:
        mode = _taken_mode(cursor)
        name = expect_name(cursor)
        mode = mode or _taken_mode(cursor) or "IN"
        found.append(Parameter(mode=mode, name=name, type=_taken_type(cursor, sql_mode)))
        if not cursor.is_at_end and not cursor.takes_sign(","):
            raise fail(cursor, "a comma")
    return found


def _taken_type(cursor: Cursor, sql_mode: int) -> TypeClause:
    """A type with its collation; a text of ORACLE may have no length."""
    found = parse_type(cursor, sql_mode)
    collation = takes_collation(cursor)
    if collation is not None:
        found = replace(found, charset=replace(found.charset, collation=collation))
    if found.word == "varchar" and found.length is None and sql_mode & ORACLE:
        found = replace(found, length=ORACLE_TEXT_LENGTH)
    return found


def _taken_mode(cursor: Cursor) -> str | None:
    """IN, OUT or INOUT, which may stand before a name, or after it."""
    if not cursor.peek().is_word("IN", "OUT", "INOUT") or cursor.peek(1).is_sign(","):
        return None
    mode = cursor.take().text.upper()
    return "INOUT" if mode == "IN" and cursor.takes_words("OUT") else mode
