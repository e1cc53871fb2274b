"""Partitions of a table, as the text after PARTITION BY."""

from __future__ import annotations

from collections.abc import Sequence

from ibbmaster.schema.clause import AlterPartitions
from ibbmaster.schema.reading import written
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.token import Token, TokenKind, tokens


def altered_partitions(text: str | None, clause: AlterPartitions) -> str | None:
    """The text after a clause; what it does to partitions that are only counted stays in the count."""
    if clause.verb == "PARTITION BY":
        return clause.text
    if clause.verb == "REMOVE" or text is None:
        return None if clause.verb == "REMOVE" else text
    if clause.verb == "ADD" and text.endswith(")") and clause.text.startswith("(") and clause.text.endswith(")"):
        return f"{text[:-1]}, {clause.text[1:-1].strip()})"  # there may be thousands before
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
    """What stands before the list of partitions, and the partitions."""
    found = list(tokens(text))
    depth = 0
    for number, token in enumerate(found):
        if token.is_sign("(") and not depth and number + 1 < len(found) and found[number + 1].is_word("PARTITION"):
            inside = Cursor(found[number:]).bracketed()
            return found[:number], [written(part).strip() for part in parts_of(inside)]
        depth += token.is_sign("(") - token.is_sign(")")
    return found, []


def partition_name(partition: str) -> str:
    """Its name in lower case, of a definition that begins with PARTITION."""
    cursor = Cursor(tokens(partition))
    cursor.takes_words("PARTITION")
    return (cursor.name() or "").lower()


def _joined(head: Sequence[Token], partitions: Sequence[str]) -> str:
    return f"{written(head).strip()} ({', '.join(partitions)})"


def _counted(head: list[Token], verb: str, cursor: Cursor) -> str:
    """PARTITIONS n with other than n: ADD PARTITION PARTITIONS k, COALESCE PARTITION k."""
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
