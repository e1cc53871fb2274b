"""The text after PARTITION BY: as SHOW CREATE TABLE prints it, and by partition."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.quoting import quoted_name, quoted_text
from ibbmaster.sqltext.token import Token, TokenKind, tokens
from .clause import AlterPartitions
from .expression_text import expression_text
from .reading import written

PARTITIONS_MAX = 8192
_KINDS = ("HASH", "KEY", "RANGE", "LIST")
_START = Token(TokenKind.SIGN, "")
_IN_LISTS = ("-", ",", "(", ")", ".")


class _UnreadableError(Exception):
    """The text has an unknown form."""


@dataclass(slots=True)
class _Method:
    name: str
    expression: str
    has_columns: bool = False
    count: int | None = None


@dataclass(slots=True)
class _Definition:
    name: str
    values: str = ""
    description: str | None = None
    comment: str = ""
    subpartitions: "list[_Definition]" = field(default_factory=list)


@dataclass(slots=True)
class _Partitioning:
    method: _Method
    sub_method: _Method | None
    definitions: list[_Definition]


class PartitionPart(NamedTuple):
    """As in information_schema."""

    name: str
    sub_name: str | None
    no: int
    sub_no: int | None
    method: str
    sub_method: str | None
    expression: str
    sub_expression: str | None
    description: str | None
    comment: str


def partition_text(written: str, engine: str) -> str:
    """As written where its form is unknown."""
    try:
        read = _read(written)
    except _UnreadableError:
        return f" PARTITION BY {written}"
    text = f" PARTITION BY {_method_text(read.method)}"
    if read.method.count is not None and not read.definitions:
        text += f"\nPARTITIONS {read.method.count}"
    if read.sub_method is not None:
        text += f"\nSUBPARTITION BY {_method_text(read.sub_method)}"
        if read.sub_method.count is not None:
            text += f"\nSUBPARTITIONS {read.sub_method.count}"
    if read.definitions:
        text += "\n(" + ",\n ".join(_definition_text("PARTITION", part, engine) for part in read.definitions) + ")"
    return text


def partitions(written: str) -> Iterator[PartitionPart]:
    """Subpartitions if any; none where the form is unknown."""
    try:
        read = _read(written)
    except _UnreadableError:
        return
    count, sub = min(read.method.count or 1, PARTITIONS_MAX), read.sub_method
    for no, part in enumerate(read.definitions or [_Definition(f"p{no}") for no in range(count)], 1):
        names: list[str | None] = [None]
        if sub is not None:
            made = [f"{part.name}sp{no}" for no in range(min(sub.count or 1, PARTITIONS_MAX))]
            names = [one.name for one in part.subpartitions] or [*made]
        for sub_no, sub_name in enumerate(names, 1):
            yield PartitionPart(
                name=part.name,
                sub_name=sub_name,
                no=no,
                sub_no=None if sub_name is None else sub_no,
                method=read.method.name + (" COLUMNS" if read.method.has_columns else ""),
                sub_method=None if sub is None else sub.name,
                expression=read.method.expression,
                sub_expression=None if sub is None else sub.expression,
                description=part.description,
                comment=part.comment,
            )


def _method_text(method: _Method) -> str:
    if method.has_columns:
        return f"{method.name}  COLUMNS({method.expression})"
    return f"{method.name} ({method.expression})"


def _definition_text(word: str, part: _Definition, engine: str) -> str:
    text = f"{word} {quoted_name(part.name)}{part.values}"
    if part.subpartitions:
        subs = ",\n  ".join(_definition_text("SUBPARTITION", sub, engine) for sub in part.subpartitions)
        return f"{text}\n ({subs})"
    text += f" COMMENT = {quoted_text(part.comment)}" if part.comment else ""
    return f"{text} ENGINE = {engine}"


def _read(written: str) -> _Partitioning:
    found = list(tokens(written))
    _expect(sum(token.is_sign("(") - token.is_sign(")") for token in found) == 0)
    cursor = Cursor(found)
    method = _method(cursor, "PARTITIONS")
    sub_method = _method(cursor, "SUBPARTITIONS") if cursor.takes_words("SUBPARTITION", "BY") else None
    definitions = _definitions(cursor, "PARTITION") if cursor.takes_sign("(") else []
    _expect(cursor.is_at_end)
    return _Partitioning(method, sub_method, definitions)


def _expect(is_so: bool) -> None:
    if not is_so:
        raise _UnreadableError


def _method(cursor: Cursor, counted: str) -> _Method:
    linear = "LINEAR " if cursor.takes_words("LINEAR") else ""
    kind = cursor.take().word
    _expect(kind in _KINDS)
    has_columns = cursor.takes_words("COLUMNS")
    _expect(cursor.peek().is_sign("("))
    inner = cursor.bracketed()
    if kind == "KEY" or has_columns:
        expression = ",".join(quoted_name(token.text) for token in inner if not token.is_sign(","))
    else:
        expression = expression_text(written(inner))
    is_counted = cursor.takes_words(counted) and cursor.peek().text.isdecimal()
    return _Method(linear + kind, expression, has_columns, int(cursor.take().text) if is_counted else None)


def _definitions(cursor: Cursor, word: str) -> list[_Definition]:
    found: list[_Definition] = []
    while not found or not cursor.takes_sign(")"):
        _expect(not found or cursor.takes_sign(","))
        _expect(cursor.takes_words(word) and not cursor.is_at_end)
        found.append(_definition(cursor, word))
    return found


def _definition(cursor: Cursor, word: str) -> _Definition:
    part = _Definition(cursor.take().text)
    if cursor.takes_words("VALUES"):
        part.values, part.description = _values(cursor)
    elif cursor.takes_words("DEFAULT"):
        part.values, part.description = " DEFAULT", "MAXVALUE"
    while not (cursor.is_at_end or cursor.peek().is_sign(",") or cursor.peek().is_sign(")")):
        if word == "PARTITION" and cursor.takes_sign("("):
            part.subpartitions = _definitions(cursor, "SUBPARTITION")
        elif cursor.takes_words("COMMENT"):
            cursor.takes_sign("=")
            part.comment = cursor.take().text
        else:
            _expect(cursor.takes_words("STORAGE") or cursor.peek().is_word("ENGINE"))
            cursor.takes_words("ENGINE")
            cursor.takes_sign("=")
            cursor.take()
    return part


def _values(cursor: Cursor) -> tuple[str, str]:
    is_list = cursor.takes_words("IN")
    _expect(is_list or cursor.takes_words("LESS", "THAN"))
    if not is_list and cursor.takes_words("MAXVALUE"):
        return " VALUES LESS THAN MAXVALUE", "MAXVALUE"
    _expect(cursor.peek().is_sign("("))
    values = _listed(cursor.bracketed())
    if is_list:
        return f" VALUES IN ({values})", values
    return " VALUES LESS THAN " + ("MAXVALUE" if values == "MAXVALUE" else f"({values})"), values


def _listed(tokens: list[Token]) -> str:
    """Computed values are unreadable: their printed form is unknown."""
    for before, after in itertools.pairwise([_START, *tokens]):
        is_value = after.kind in (TokenKind.TEXT, TokenKind.WORD, TokenKind.NUMBER) or after.word in _IN_LISTS
        is_call = after.is_sign("(") and before.word not in ("(", ",", "")
        if not is_value or is_call:
            raise _UnreadableError
    return "".join(quoted_text(token.text) if token.kind is TokenKind.TEXT else token.text.upper() for token in tokens)


def altered_partitions(text: str | None, clause: AlterPartitions) -> str | None:
    """The text after a clause; of counted partitions it changes the count."""
    if clause.verb == "PARTITION BY":
        return clause.text
    if clause.verb == "REMOVE" or text is None:
        return None if clause.verb == "REMOVE" else text
    if clause.verb == "ADD" and text.endswith(")") and clause.text.startswith("(") and clause.text.endswith(")"):
        return f"{text[:-1]}, {clause.text[1:-1].strip()})"
    head, partitions = split_partitions(text)
    cursor = Cursor(tokens(clause.text))
    if not partitions:
        return _counted(head, clause.verb, cursor)
    if clause.verb == "ADD":
        cursor.takes_words("IF", "NOT", "EXISTS")
        added = [written(part).strip() for part in parts_of(cursor.bracketed())]
        return _joined(head, [*partitions, *added])
    if clause.verb == "DROP":
        names = {part[0].text.lower() for part in parts_of(cursor.rest()) if part}
        return _joined(head, [one for one in partitions if partition_name(one) not in names])
    if clause.verb == "REORGANIZE":
        names = set()
        while not cursor.is_at_end and not cursor.takes_words("INTO"):
            names.add(cursor.take().text.lower())
        new = [written(part).strip() for part in parts_of(cursor.bracketed())]
        first = next((number for number, one in enumerate(partitions) if partition_name(one) in names), len(partitions))
        kept = [one for one in partitions if partition_name(one) not in names]
        return _joined(head, [*kept[:first], *new, *kept[first:]])
    return text


def split_partitions(text: str) -> tuple[list[Token], list[str]]:
    """The tokens before the list of partitions, and these."""
    found = list(tokens(text))
    depth = 0
    for number, token in enumerate(found):
        if token.is_sign("(") and not depth and number + 1 < len(found) and found[number + 1].is_word("PARTITION"):
            inside = Cursor(found[number:]).bracketed()
            return found[:number], [written(part).strip() for part in parts_of(inside)]
        depth += token.is_sign("(") - token.is_sign(")")
    return found, []


def partition_name(partition: str) -> str:
    """In lower case, of a definition that begins with PARTITION."""
    cursor = Cursor(tokens(partition))
    cursor.takes_words("PARTITION")
    return (cursor.name() or "").lower()


def _joined(head: Sequence[Token], partitions: Sequence[str]) -> str:
    return f"{written(head).strip()} ({', '.join(partitions)})"


def _counted(head: list[Token], verb: str, cursor: Cursor) -> str:
    """PARTITIONS n with another n: ADD PARTITION PARTITIONS k, COALESCE PARTITION k."""
    numbers = [token.text for token in cursor.rest() if token.text.isdecimal()]
    if verb not in ("ADD", "COALESCE") or not numbers:
        return written(head).strip()
    change = int(numbers[-1][:9]) * (1 if verb == "ADD" else -1)
    for number, token in enumerate(head[:-1]):
        if token.is_word("PARTITIONS") and head[number + 1].text.isdecimal():
            count = int(head[number + 1].text[:9]) + change
            changed = Token(TokenKind.WORD, str(count), True)
            return written([*head[: number + 1], changed, *head[number + 2 :]]).strip()
    return written(head).strip()
