"""Column types out of a CREATE TABLE statement, as a declaration of that table, and what such a type says."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEAD = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temporary\s+)?table\s+(?:if\s+not\s+exists\s+)?"
    r"(?P<table>(?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))?)\s*\(",
    re.IGNORECASE,
)
_QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""  # strings and names
_COMMENT = re.compile(rf"(?P<quoted>{_QUOTED})|/\*.*?\*/|--(?=\s|$)[^\n]*|#[^\n]*", re.DOTALL)
_TOKEN = re.compile(rf"{_QUOTED}|[(),]|[^'`\"(),]+", re.DOTALL)
_STATEMENT_TOKEN = re.compile(rf"{_QUOTED}|;|[^'`\";]+", re.DOTALL)
_ATTRIBUTE_TOKEN = re.compile(rf"{_QUOTED}|(?P<bracket>[()])|(?P<word>[\w$]+)", re.DOTALL)
_COLUMN = re.compile(r"\s*(?P<name>`(?:[^`]|``)+`|[\w$]+)\s+(?P<type>.+)", re.DOTALL)
_NO_COLUMN = re.compile(
    r"\s*(primary|unique|key|index|constraint|foreign|check|fulltext|spatial|period\s+for|vector\s+(index|key))\b",
    re.IGNORECASE,
)
_PRIMARY_KEY = re.compile(r"(?<!\bunique )\bkey\b")  # PRIMARY may be left out
_VERSIONED = re.compile(r"with\s+system\s+versioning", re.IGNORECASE)


def parse_create_table(sql: str, *, database: str = "") -> tuple[str, dict[str, str]] | None:
    """The table as `database.table` and its columns, name to type; None if the statement gives no columns.

    `database` is the one the statement ran in. What a table has beyond its text (LIKE, SELECT)
    is not known; system versioning without columns of its own adds `row_start` and `row_end`.
    """
    text = _without_comments(sql)
    head = _HEAD.match(text)
    if head is None:
        return None
    names = [_unquote(part) for part in re.findall(r"`(?:[^`]|``)+`|[\w$]+", head["table"])]
    columns: dict[str, str] = {}
    parts, rest = _split(text[head.end() :])
    for part in parts:
        match = _COLUMN.fullmatch(part)
        if match is not None and not _NO_COLUMN.match(part):
            columns[_unquote(match["name"])] = match["type"].strip()
    if not columns:
        return None
    if _VERSIONED.search(rest) and not re.search(r"\bperiod\s+for\s+system_time\b", text, re.IGNORECASE):
        columns |= {"row_start": "timestamp(6)", "row_end": "timestamp(6)"}
    return ".".join([database, *names] if len(names) == 1 else names), columns


def _split(text: str) -> tuple[list[str], str]:
    """What stands between the commas up to the closing bracket, and what follows it."""
    parts: list[str] = []
    part, depth = "", 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ")" and not depth:
            return [*parts, part], text[match.end() :]
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += token
    return [*parts, part], ""


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def parse_declarations(sql: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Every CREATE TABLE in a script; its other statements are passed over."""
    statement = ""
    for match in _STATEMENT_TOKEN.finditer(_without_comments(sql)):
        if match[0] != ";":
            statement += match[0]
            continue
        if (found := parse_create_table(statement)) is not None:
            yield found
        statement = ""
    if (found := parse_create_table(statement)) is not None:
        yield found


def attributes_of(declared: str) -> str:
    """The words of a column's type and of its attributes, in lower case, a space between them.

    What stands in strings, in quoted names and in brackets is left out: there it means something
    else, as in COMMENT 'was unsigned' and AS (CAST(a AS UNSIGNED)).
    """
    words = []
    depth = 0
    for match in _ATTRIBUTE_TOKEN.finditer(_without_comments(declared)):
        if match["bracket"]:
            depth += 1 if match["bracket"] == "(" else -1
        elif match["word"] and not depth:
            words.append(match["word"].lower())
    return " ".join(words)


def is_unsigned(declared: str) -> bool:
    """Whether numbers of a declared type have no sign: ZEROFILL and SERIAL say so, too."""
    return not {"unsigned", "zerofill", "serial"}.isdisjoint(attributes_of(declared).split())


def is_primary_key(declared: str) -> bool:
    """Whether a declared column alone is the primary key."""
    return _PRIMARY_KEY.search(attributes_of(declared)) is not None


def is_nullable(declared: str) -> bool:
    """Whether a declared column may be NULL."""
    return "not null" not in attributes_of(declared) and not is_primary_key(declared)


def _without_comments(sql: str) -> str:
    """The text with a space for each comment; in strings nothing is one."""
    return _COMMENT.sub(lambda match: match["quoted"] or " ", sql)
