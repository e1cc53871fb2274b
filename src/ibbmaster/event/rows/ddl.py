"""Column types out of a CREATE TABLE statement, as a declaration of that table, and what such a type says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_HEAD = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temporary\s+)?table\s+(?:if\s+not\s+exists\s+)?"
    r"(?P<table>(?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))?)\s*\(",
    re.IGNORECASE,
)
_QUOTES = "'\"`"
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
_TABLE_KEY = re.compile(r"\s*(?:constraint\b[^(]*)?\bprimary\s+key\b[^(]*\(", re.IGNORECASE)
_KEY_COLUMN = re.compile(r"\s*(?P<name>`(?:[^`]|``)+`|[\w$]+)")
KEY_MARK = " PRIMARY KEY"
_VERSIONED = re.compile(r"with\s+system\s+versioning", re.IGNORECASE)
_USE = re.compile(r"\s*use\s+(?P<database>`(?:[^`]|``)+`|[^\s`]+)[^\S\n]*(?:\n|$)", re.IGNORECASE)
_ROUTINES = re.compile(  # a client reads up to another delimiter there, and runs nothing of it
    r"^\s*delimiter\s+(?!;\s*$)\S+[^\S\n]*$.*?(?:^\s*delimiter\s+;[^\S\n]*$|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_TEXT = re.compile(r"(?:(?:tiny|medium|long)?text|(?:var)?char)\b", re.IGNORECASE)
_CHARSET = re.compile(r"\b(?:charset|char(?:acter)? set) '?(?P<name>\w+)")
_COLLATION = re.compile(r"\bcollate '?(?P<name>[a-z0-9]+)")
_NO_CHARSETS = {"default", "uca1400"}  # DEFAULT, and collations that each Unicode character set has


def parse_create_table(sql: str, *, database: str = "") -> tuple[str, dict[str, str]] | None:
    """The table as `database.table` and its columns, name to type; None if the statement gives no columns.

    `database` is the one the statement ran in. What a table has beyond its text (LIKE, SELECT)
    is not known; system versioning without columns of its own adds `row_start` and `row_end`,
    which is part of the key, too.
    The table's character set is added to columns that name none, unless it is utf8mb4, which
    a type without character set stands for; KEY_MARK is added to those of a key of the table.
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
    charset = named_charset(rest)
    if charset not in (None, "utf8mb4"):
        for name, declared in columns.items():
            if _TEXT.match(declared) and named_charset(declared) is None:
                columns[name] = f"{declared} CHARACTER SET {charset}"
    for name in _table_key(parts):
        if name in columns and not is_primary_key(columns[name]):
            columns[name] += KEY_MARK
    if _VERSIONED.search(rest) and not re.search(r"\bperiod\s+for\s+system_time\b", text, re.IGNORECASE):
        has_key = any(map(is_primary_key, columns.values()))
        columns |= {"row_start": "timestamp(6)", "row_end": "timestamp(6)" + KEY_MARK * has_key}
    return ".".join([database, *names] if len(names) == 1 else names), columns


def _table_key(parts: Iterable[str]) -> Iterator[str]:
    """The columns of the primary key that stands among the columns."""
    for part in parts:
        head = _TABLE_KEY.match(part)
        for column in _split(part[head.end() :])[0] if head is not None else ():
            if (match := _KEY_COLUMN.match(column)) is not None:
                yield _unquote(match["name"])


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
    """Every CREATE TABLE in a script, in the database of the last USE; other statements are skipped."""
    database = ""
    for statement in _statements(sql):
        text = statement
        while (use := _USE.match(text)) is not None:  # it may also end with its line
            database, text = _unquote(use["database"]), text[use.end() :]
        if (found := parse_create_table(text, database=database)) is not None:
            yield found


def _statements(sql: str) -> Iterator[str]:
    """What stands between the semicolons, without comments and stored routines."""
    statement = ""
    for match in _STATEMENT_TOKEN.finditer(_ROUTINES.sub(" ", _without_comments(sql))):
        if match[0] == ";":
            yield statement
            statement = ""
        else:
            statement += match[0]
    yield statement


def attributes_of(declared: str) -> str:
    """The words of a column's type and of its attributes, in lower case, a space between them.

    What stands in strings, in quoted names and in brackets is left out: there it means something
    else, as in COMMENT 'was unsigned' and AS (CAST(a AS UNSIGNED)).
    """
    return " ".join(token for token in _tokens(declared) if token[0] not in _QUOTES)


def named_charset(text: str) -> str | None:
    """The character set that a column's type, or the options of a table, name: itself, or by a collation.

    None if they name none, as `COLLATE uca1400_ai_ci`, which goes with several.
    """
    # Names may be strings, too; a longer string is a comment or a value.
    words = " ".join(
        f"'{token[1:-1]}'" if token[0] in _QUOTES else token
        for token in _tokens(text)
        if token[0] not in _QUOTES or token[1:-1].isidentifier()
    )
    for pattern in (_CHARSET, _COLLATION):
        match = pattern.search(words)
        if match is not None and match["name"] not in _NO_CHARSETS:
            return "utf8mb3" if match["name"] == "utf8" else match["name"]
    return None


def _tokens(text: str) -> Iterator[str]:
    """The words, strings and quoted names outside of brackets, in lower case."""
    depth = 0
    for match in _ATTRIBUTE_TOKEN.finditer(_without_comments(text)):
        if match["bracket"]:
            depth += 1 if match["bracket"] == "(" else -1
        elif not depth:
            yield match[0].lower()


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
