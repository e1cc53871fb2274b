"""Statements without their passwords, and the hashes of passwords."""

from __future__ import annotations

import re

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, decode_event_header
from ibbmaster.replication.event.query import FIXED, decode_query, encode_query
from ibbmaster.replication.event.statement.logged import FILE
from ibbmaster.replication.event.types import EventType

SHOWN = b"'***'"  # what is shown in place of a password
_CONTEXT = 200  # bytes before a literal that say what it is
_SECRET_WORD = re.compile(rb"PASSWORD|IDENTIFIED", re.I)
_LITERAL = re.compile(rb"'(?>(?:[^'\\]++|\\(?:.|\Z)|'')*)(?:'|\Z)|\"(?>(?:[^\"\\]++|\\(?:.|\Z)|\"\")*)(?:\"|\Z)", re.S)
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)", re.S)
_HASH = re.compile(rb"\*[0-9A-Fa-f]{40}")
#: The text before a password: PASSWORD('…'), MASTER_PASSWORD = '…'; of an account; SET PASSWORD.
_BEHIND_PASSWORD = re.compile(rb"PASSWORD\w*[`\"]?[\s(:=]*\Z", re.I)
_OF_ACCOUNT = re.compile(rb"\b(?:BY|USING|AS)\s*(?:PASSWORD\s*)?\(?\s*\Z", re.I)
_ASSIGNED = re.compile(rb"=\s*\Z")
_IDENTIFIED = re.compile(rb"\bIDENTIFIED\b", re.I)
_SET_PASSWORD = re.compile(rb"\bSET\s+PASSWORD\s+FOR\b", re.I)
_WITH_TEXT = (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY, EventType.ANNOTATE_ROWS)


def without_secrets(sql: bytes) -> bytes:
    """A statement to show, with `SHOWN` in place of each password and of each text that speaks of one."""
    if not _SECRET_WORD.search(sql):
        return sql
    secrets = _Secrets(sql)
    return _LITERAL.sub(lambda found: SHOWN if secrets.has(found) or _SECRET_WORD.search(found[0]) else found[0], sql)


def event_without_secrets(event: bytes) -> bytes:
    """An event of the same size with other passwords in its statement, which replicas can still run. A compressed
    statement comes back uncompressed."""
    header = decode_event_header(event)
    if header.event_type == EventType.QUERY_COMPRESSED:
        try:
            query = decode_query(event)
        except EventError:
            return event
        if not _SECRET_WORD.search(query.text):
            return event
        event = encode_query(
            query, server_id=header.server_id, timestamp=header.timestamp, log_pos=header.log_pos, flags=header.flags
        )
    elif header.event_type not in _WITH_TEXT or not _SECRET_WORD.search(event):
        return event
    start = _text_offset(event, header.event_type)
    text = event[start:]
    secrets = _Secrets(text)
    return event[:start] + _LITERAL.sub(lambda found: _as_long(found[0]) if secrets.has(found) else found[0], text)


class _Secrets:
    def __init__(self, sql: bytes) -> None:
        self._sql = sql
        self._identified = _IDENTIFIED.search(sql)
        self._set_password = _SET_PASSWORD.search(sql)

    def has(self, literal: re.Match[bytes]) -> bool:
        start = literal.start()
        context = _COMMENT.sub(b" ", self._sql[max(0, start - _CONTEXT) : start])
        if _BEHIND_PASSWORD.search(context):
            return True
        if self._identified is not None and self._identified.end() <= start and _OF_ACCOUNT.search(context):
            return True
        return self._set_password is not None and self._set_password.end() <= start and bool(_ASSIGNED.search(context))


def _as_long(literal: bytes) -> bytes:
    """Another password of the same size; a hash becomes one that no password has."""
    quote, content = literal[:1], literal[1:-1]
    other = b"*" + b"0" * 40 if _HASH.fullmatch(content) else b"x" * len(content)
    return quote + other + (quote if len(literal) > 1 else b"")


def _text_offset(event: bytes, event_type: int) -> int:
    if event_type == EventType.ANNOTATE_ROWS:
        return EVENT_HEADER_SIZE
    if len(event) < EVENT_HEADER_SIZE + FIXED.size:
        return len(event)
    _, _, database_size, _, status_size = FIXED.unpack_from(event, EVENT_HEADER_SIZE)
    extra = FILE.size if event_type == EventType.EXECUTE_LOAD_QUERY else 0
    return EVENT_HEADER_SIZE + FIXED.size + extra + int(status_size) + int(database_size) + 1
