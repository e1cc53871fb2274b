"""Types and defaults of columns in the words of SHOW CREATE TABLE and information_schema."""

import re
from decimal import Decimal

from ibbmaster.replication.event.column_types.kind import Grammar, Literal
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.sqltext.literals import VariableValueError, literal_value
from ibbmaster.sqltext.quoting import quoted_text
from .expression_text import default_expression_text
from .model import SqlType, TableColumn

_NOW = re.compile(r"(?:current_timestamp|now|localtime|localtimestamp)\s*(?:\(\s*(\d?)\s*\))?", re.IGNORECASE)


def type_text(column_type: SqlType) -> str:
    """COLUMN_TYPE: `int(10) unsigned`, `enum('a','b')`."""
    text, grammar = column_type.word, BY_NAME[column_type.word].grammar
    if grammar is Grammar.LABELS:
        text += "(" + ",".join(map(quoted_text, column_type.labels)) + ")"
    elif grammar is Grammar.CLOCK:
        text += f"({column_type.scale})" if column_type.scale else ""
    elif column_type.length is not None:
        scale = "" if column_type.scale is None else f",{column_type.scale}"
        text += f"({column_type.length}{scale})"
    text += " unsigned" if column_type.is_unsigned else ""
    text += " zerofill" if column_type.is_zerofill else ""
    return text + (" /*M!100301 COMPRESSED*/" if column_type.is_compressed else "")


def default_text(column: TableColumn, version: int) -> str | None:
    """After DEFAULT, also COLUMN_DEFAULT; None without any."""
    if column.default is None or column.period is not None:
        return None
    written = column.default.strip()
    if written.upper() == "NULL":
        return "NULL"
    if (match := _NOW.fullmatch(written)) is not None:
        return _now(match[1])
    found, kind = _value(written), BY_NAME[column.type.word]
    try:
        if kind.is_large:
            return quoted_text(found) if isinstance(found, str) else default_expression_text(written)
        return default_expression_text(written) if found is None else kind.literal(column.type, found, version)
    except (ValueError, ArithmeticError):
        return written


def kept_literal(column_type: SqlType, written: str) -> str:
    """As a column keeps it; as written where that is the same, or unknown."""
    found = _value(written.strip())
    try:
        if found is None or isinstance(found, bytes):
            return written
        return BY_NAME[column_type.word].kept_literal(column_type, found, written)
    except (ValueError, ArithmeticError):
        return written


def on_update_text(written: str) -> str:
    match = _NOW.fullmatch(written.strip())
    return written if match is None else _now(match[1])


def _now(digits: str | None) -> str:
    return f"current_timestamp({'' if digits in (None, '0') else digits})"


def _value(written: str) -> Literal | None:
    if written.startswith("("):
        return None
    try:
        found = literal_value(written)
    except VariableValueError:
        return None
    return Decimal(written.replace(" ", "")) if isinstance(found, float) else found
