"""Types as a server has them, once their character set is known."""

from dataclasses import replace

from ibbmaster.event.rows.charset import character_size, decode_label, encode_text, label_in
from ibbmaster.facts import NULL, rows_of
from ibbmaster.schema.clause import NotUnderstoodError, TypeClause
from ibbmaster.schema.collations import character_sets, charset_of_collation
from ibbmaster.schema.model import SqlType
from ibbmaster.schema.session import SchemaSession
from ibbmaster.schema.type_clause import BINARY_OF, INTEGERS, TEMPORAL, TEXTS
from ibbmaster.sqltext.quoting import quoted

VARCHAR_BYTES_MAX = 65532  # of which a row has room
_SIZES = (("tiny", 0xFF), ("", 0xFFFF), ("medium", 0xFFFFFF), ("long", 0xFFFFFFFF))
_KEY_BYTES = {"tinyint": 1, "year": 1, "smallint": 2, "mediumint": 3, "date": 3, "int": 4, "inet4": 4, "uuid": 16} | {
    "inet6": 16
}
_KEY_BYTES_OF_OTHERS = 8
_ZEROS = {word: zero for word, *_, zero in rows_of(__package__, "types") if zero != NULL}


def resolve_type(clause: TypeClause, table_collation: str, session: SchemaSession) -> SqlType:
    """The type of a column in a table with this collation.

    Raises:
        NotUnderstoodError: its character set or its length cannot be.
    """
    if clause.word not in TEXTS:
        word = clause.word
        if word == "blob" and clause.length:
            word = _blob_of(clause.length, "blob")
        elif word == "varbinary":
            if clause.length is None:
                raise NotUnderstoodError("VARBINARY without a length")
            if clause.length > VARCHAR_BYTES_MAX:
                word = _blob_of(clause.length, "blob")
        return SqlType(
            word=word,
            length=None if word.endswith("blob") else clause.length,
            scale=clause.scale,
            is_unsigned=clause.is_unsigned,
            is_zerofill=clause.is_zerofill,
            is_compressed=clause.is_compressed,
        )
    return _text_type(clause, session.resolve(clause.charset, table_collation))


def _text_type(clause: TypeClause, collation: str) -> SqlType:
    charset = charset_of_collation(collation)
    word, length = clause.word, clause.length
    unit = character_sets()[charset].size_max
    if word == "varchar" and length is None:
        raise NotUnderstoodError("VARCHAR without a length")
    if (word == "text" and length) or (word == "varchar" and (length or 0) * unit > VARCHAR_BYTES_MAX):
        word = _blob_of((length or 0) * unit, "text")
    if charset == "binary" and word in BINARY_OF:
        return SqlType(
            word=BINARY_OF[word],
            length=length if word in ("char", "varchar") else None,
            is_compressed=clause.is_compressed,
        )
    return SqlType(
        word=word,
        length=length if word in ("char", "varchar") else None,
        labels=tuple(label_in(label, charset) for label in clause.labels),
        charset=charset,
        collation=collation,
        is_compressed=clause.is_compressed,
    )


def _blob_of(size: int, kind: str) -> str:
    """The smallest type for values of this number of bytes."""
    return next((prefix for prefix, most in _SIZES if size <= most), "long") + kind


def converted(type_: SqlType, collation: str) -> SqlType:
    """What CONVERT TO CHARACTER SET makes of a type: as many characters as before have room in it."""
    if type_.charset is None:
        return type_
    charset = charset_of_collation(collation)
    word, length = type_.word, type_.length
    if word.endswith("text"):
        size = {f"{prefix}text": most for prefix, most in _SIZES}[word]
        old, new = (character_sets()[name].size_max for name in (type_.charset, charset))
        length = min(size // old * new, 0xFFFFFFFF) if new > old else size
        clause = TypeClause(word="text", length=None, is_compressed=type_.is_compressed)
        found = _text_type(clause, collation)
        wanted = _blob_of(length, "text")
        word = BINARY_OF[wanted] if charset == "binary" else wanted
        return SqlType(word=word, charset=found.charset, collation=found.collation, is_compressed=type_.is_compressed)
    if type_.labels:
        return _converted_labels(type_, charset, collation)
    return _text_type(TypeClause(word=word, length=length, is_compressed=type_.is_compressed), collation)


def _converted_labels(type_: SqlType, charset: str, collation: str) -> SqlType:
    """ENUM and SET: a server leaves the bytes of their labels as they are, whatever letters they are now."""
    assert type_.charset is not None
    try:
        kept = [label.encode("latin-1") for label in type_.label_bytes]
        kept = kept or [encode_text(label, type_.charset) for label in type_.labels]
        labels = tuple(decode_label(label, charset) for label in kept)
    except ValueError:  # of a character set that is not known here
        return replace(type_, charset=charset, collation=collation)
    known = tuple(label.decode("latin-1") for label in kept)
    return replace(type_, labels=labels, label_bytes=known, charset=charset, collation=collation)


def key_bytes(type_: SqlType, length: int | None = None) -> int | None:
    """Bytes that a column has in an index, or that its first characters have; None of a text or blob as a whole."""
    unit = character_size(type_.charset)
    if is_text_or_blob(type_):
        return None if length is None else length * unit
    if type_.word in ("char", "varchar", "binary", "varbinary"):
        return (type_.length or 0 if length is None else length) * unit
    return _KEY_BYTES.get(type_.word, _KEY_BYTES_OF_OTHERS)


def is_text_or_blob(type_: SqlType) -> bool:
    return type_.word.endswith(("text", "blob"))


def has_prefixes(type_: SqlType) -> bool:
    """Whether an index may be of the beginning of such a column."""
    return is_text_or_blob(type_) or type_.word in ("char", "varchar", "binary", "varbinary")


def zero_of(type_: SqlType) -> str:
    """What NOT NULL columns without a default hold in rows that were there before, as SQL."""
    if type_.word == "enum":
        return quoted(type_.labels[0]) if type_.labels else "''"
    if type_.word in INTEGERS:
        return "0"
    zero = _ZEROS.get(type_.word, "''")
    if type_.word in TEMPORAL and type_.scale:
        return f"{zero[:-1]}.{'0' * type_.scale}'"
    return zero
