"""Types of columns: as DDL writes them, every alias resolved, and as a server has them in a character set."""

from dataclasses import replace

from ibbmaster.replication.event.column_types.floating import DOUBLE
from ibbmaster.replication.event.column_types.integer import SERIAL, Integer
from ibbmaster.replication.event.column_types.kind import ColumnKind, Grammar
from ibbmaster.replication.event.column_types.registry import BY_DDL, BY_NAME
from ibbmaster.replication.event.column_types.strings import BLOBS, TEXTS, VARBINARY, VARCHAR, LargeStrings, large_kind
from ibbmaster.replication.event.rows.charset import character_size, decode_label, encode_text, label_in
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.sql_mode import ORACLE, REAL_AS_FLOAT
from ibbmaster.sqltext.token import TokenKind
from .clause import CharsetClause, NotUnderstoodError, TypeClause
from .collations import character_sets, charset_of_collation
from .model import SqlType
from .reading import SHOWN, expect_brackets, expect_number, expect_option, fail, takes_charset
from .session import SchemaSession

VARCHAR_BYTES_MAX = 65532


def resolve_type(clause: TypeClause, table_collation: str, session: SchemaSession) -> SqlType:
    """The type in a table of this collation. Raises NotUnderstoodError: its character set or length is impossible."""
    kind = BY_NAME[clause.word]
    if not kind.has_letters:
        if kind is VARBINARY and clause.length is None:
            raise NotUnderstoodError("VARBINARY without a length")
        if (kind.is_large and clause.length) or (kind is VARBINARY and (clause.length or 0) > VARCHAR_BYTES_MAX):
            kind = large_kind(BLOBS, clause.length or 0)
        return SqlType(
            word=kind.word,
            length=None if kind.is_large else clause.length,
            scale=clause.scale,
            is_unsigned=clause.is_unsigned,
            is_zerofill=clause.is_zerofill,
            is_compressed=clause.is_compressed,
        )
    return _text_type(clause, session.resolve(clause.charset, table_collation))


def _text_type(clause: TypeClause, collation: str) -> SqlType:
    charset = charset_of_collation(collation)
    kind, length = BY_NAME[clause.word], clause.length
    unit = character_sets()[charset].size_max
    if kind is VARCHAR and length is None:
        raise NotUnderstoodError("VARCHAR without a length")
    size = (length or 0) * unit
    if (kind.is_large and length) or (kind is VARCHAR and size > VARCHAR_BYTES_MAX):
        kind = large_kind(TEXTS, size)
    if charset == "binary" and kind.twin is not None:
        return SqlType(word=kind.twin, length=length if kind.is_string else None, is_compressed=clause.is_compressed)
    return SqlType(
        word=kind.word,
        length=length if kind.is_string else None,
        labels=tuple(label_in(label, charset) for label in clause.labels),
        charset=charset,
        collation=collation,
        is_compressed=clause.is_compressed,
    )


def converted(type_: SqlType, collation: str) -> SqlType:
    """After CONVERT TO CHARACTER SET: it has room for as many characters as before."""
    if type_.charset is None:
        return type_
    charset = charset_of_collation(collation)
    kind, is_compressed = BY_NAME[type_.word], type_.is_compressed
    if isinstance(kind, LargeStrings):
        old, new = (character_sets()[name].size_max for name in (type_.charset, charset))
        size = kind.bytes_max
        wanted = large_kind(TEXTS, min(size // old * new, TEXTS[-1].bytes_max) if new > old else size)
        return _text_type(TypeClause(word=wanted.word, is_compressed=is_compressed), collation)
    if type_.labels:
        return _converted_labels(type_, charset, collation)
    return _text_type(TypeClause(word=type_.word, length=type_.length, is_compressed=is_compressed), collation)


def _converted_labels(type_: SqlType, charset: str, collation: str) -> SqlType:
    """A server keeps the bytes of labels, whatever letters they are now."""
    assert type_.charset is not None
    try:
        kept = [label.encode("latin-1") for label in type_.label_bytes]
        kept = kept or [encode_text(label, type_.charset) for label in type_.labels]
        labels = tuple(decode_label(label, charset) for label in kept)
    except ValueError:
        return replace(type_, charset=charset, collation=collation)
    known = tuple(label.decode("latin-1") for label in kept)
    return replace(type_, labels=labels, label_bytes=known, charset=charset, collation=collation)


def key_bytes(type_: SqlType, length: int | None = None) -> int | None:
    """Bytes of a column in an index, or of its first characters; None for a whole text or blob."""
    unit, kind = character_size(type_.charset), BY_NAME[type_.word]
    if kind.is_large:
        return None if length is None else length * unit
    if kind.is_string:
        return (type_.length or 0 if length is None else length) * unit
    return kind.key_size


_NATIONAL = ("nchar", "nvarchar", "national")
_SCHEMAS = ("MARIADB_SCHEMA", "ORACLE_SCHEMA", "MAXDB_SCHEMA")
FLOAT_DIGITS_MAX = 24  # of FLOAT(p); with more it is a DOUBLE
_DECIMAL = (10, 0)


def parse_type(cursor: Cursor, sql_mode: int = 0) -> TypeClause:
    """Up to attributes that are not part of the type. Raises NotUnderstoodError: no such type."""
    is_oracle = bool(sql_mode & ORACLE)
    if cursor.peek().is_word(*_SCHEMAS) and cursor.peek(1).is_sign("."):
        is_oracle = cursor.take().is_word("ORACLE_SCHEMA")
        cursor.take()
    if cursor.peek().kind is not TokenKind.WORD:
        raise fail(cursor, "a type")
    token = cursor.take().text
    word = token.lower()
    is_national = word in _NATIONAL
    if word == "national":
        word = cursor.take().text.lower()
        if word not in ("char", "character", "varchar", "varcharacter"):
            raise NotUnderstoodError(f"'{token} {word[:SHOWN]}' where a type was expected")
    if word == "long":
        return _long(cursor)
    if word == "double":
        cursor.takes_words("PRECISION")
    is_varying = word in ("char", "character", "nchar") and cursor.takes_words("VARYING")
    if is_varying or (word == "nchar" and (cursor.takes_words("VARCHAR") or cursor.takes_words("VARCHARACTER"))):
        word = "varchar"
    if word == "real":
        word = "float" if sql_mode & REAL_AS_FLOAT else "double"
    kind = BY_DDL.get(word)
    if kind is None or word == SERIAL:
        raise NotUnderstoodError(f"{token[:SHOWN]!r} where a type was expected")
    kind = BY_NAME[kind.in_oracle] if is_oracle and kind.in_oracle else kind
    name = kind.word
    if word in ("bool", "boolean"):
        return TypeClause(word=name, length=1)
    match kind.grammar:
        case Grammar.NUMBER:
            return _number(cursor, kind, _length(cursor), None)
        case Grammar.FRACTION:
            return _fraction(cursor, kind, is_oracle=word == "number")
        case Grammar.CLOCK:
            return TypeClause(word=name, scale=_length(cursor) or None)
        case Grammar.LABELS:
            return _attributes(cursor, TypeClause(word=name, labels=_labels(cursor)))
        case Grammar.SPATIAL:
            _length(cursor)
            if cursor.takes_words("REF_SYSTEM_ID"):
                expect_option(cursor)
            return TypeClause(word=name)
    length = kind.length_of(_length(cursor))
    found = _attributes(cursor, TypeClause(word=name, length=length))
    if is_national:
        charset = CharsetClause(charset="utf8mb3", is_binary=found.charset.is_binary)
        found = TypeClause(word=name, length=length, charset=charset, is_compressed=found.is_compressed)
    return found


def _length(cursor: Cursor) -> int | None:
    if not cursor.peek().is_sign("("):
        return None
    inside = Cursor(expect_brackets(cursor))
    return None if inside.is_at_end else expect_number(inside)


def _number(cursor: Cursor, kind: ColumnKind, length: int | None, scale: int | None) -> TypeClause:
    is_unsigned = is_zerofill = False
    while cursor.peek().is_word("UNSIGNED", "SIGNED", "ZEROFILL"):
        token = cursor.take()
        is_zerofill = is_zerofill or token.is_word("ZEROFILL")
        is_unsigned = is_unsigned or not token.is_word("SIGNED")
    if isinstance(kind, Integer) and not length:
        length = kind.widths[is_unsigned]
    return TypeClause(word=kind.word, length=length, scale=scale, is_unsigned=is_unsigned, is_zerofill=is_zerofill)


def _fraction(cursor: Cursor, kind: ColumnKind, *, is_oracle: bool) -> TypeClause:
    length = scale = None
    if cursor.peek().is_sign("("):
        inside = Cursor(expect_brackets(cursor))
        length = expect_number(inside)
        scale = expect_number(inside) if inside.takes_sign(",") else None
    if kind.has_scale:
        if is_oracle and length is None:
            return TypeClause(word=DOUBLE.word)
        length, scale = length or _DECIMAL[0], scale or 0
    elif scale is None:  # FLOAT(p) only says how large it is
        kind = DOUBLE if length is not None and length > FLOAT_DIGITS_MAX else kind
        length = None
    elif not length:  # FLOAT(0,0)
        length = scale = None
    return _number(cursor, kind, length, scale)


def _long(cursor: Cursor) -> TypeClause:
    if cursor.takes_words("VARBINARY"):
        return TypeClause(word="mediumblob")
    if cursor.peek().is_word("CHAR", "CHARACTER") and cursor.peek(1).is_word("VARYING"):
        cursor.take(), cursor.take()
    else:
        cursor.takes_words("VARCHAR")
    return _attributes(cursor, TypeClause(word="mediumtext"))


def _labels(cursor: Cursor) -> tuple[str, ...]:
    found = []
    for part in parts_of(expect_brackets(cursor)):
        texts = [token.text for token in part if token.kind is TokenKind.TEXT]
        if len(texts) == 2 and part[0].text.lower() == "x":
            raise NotUnderstoodError("a label in hexadecimal digits")
        if not texts:
            raise NotUnderstoodError(f"{part[0].text[:SHOWN] if part else ''!r} where a label was expected")
        found.append("".join(texts).rstrip(" "))
    return tuple(found)


def _attributes(cursor: Cursor, found: TypeClause) -> TypeClause:
    charset, is_binary = None, False
    while True:
        if (name := takes_charset(cursor)) is not None:
            charset = name
        elif cursor.takes_words("BINARY"):
            is_binary = True
        elif cursor.takes_words("ASCII"):
            charset = "latin1"
        elif cursor.takes_words("UNICODE"):
            charset = "ucs2"
        elif cursor.takes_words("BYTE"):
            charset = "binary" if found.labels else charset
            found = replace(found, word=BY_NAME[found.word].twin or found.word)
        elif cursor.takes_words("COMPRESSED"):
            found = replace(found, is_compressed=True)
            if cursor.takes_sign("="):
                expect_option(cursor)
        else:
            return replace(found, charset=CharsetClause(charset=charset, is_binary=is_binary))
