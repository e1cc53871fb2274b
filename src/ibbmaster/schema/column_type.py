"""Types as a server has them, once their character set is known."""

from dataclasses import replace

from ibbmaster.event.column_types.registry import BY_NAME
from ibbmaster.event.column_types.strings import BLOBS, TEXTS, VARBINARY, VARCHAR, LargeStrings, large_kind
from ibbmaster.event.rows.charset import character_size, decode_label, encode_text, label_in
from ibbmaster.schema.clause import NotUnderstoodError, TypeClause
from ibbmaster.schema.collations import character_sets, charset_of_collation
from ibbmaster.schema.model import SqlType
from ibbmaster.schema.session import SchemaSession

VARCHAR_BYTES_MAX = 65532  # of which a row has room


def resolve_type(clause: TypeClause, table_collation: str, session: SchemaSession) -> SqlType:
    """The type of a column in a table with this collation. Raises NotUnderstoodError: its character set or its length
    cannot be."""
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
    """What CONVERT TO CHARACTER SET makes of a type: as many characters as before have room in it."""
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
    unit, kind = character_size(type_.charset), BY_NAME[type_.word]
    if kind.is_large:
        return None if length is None else length * unit
    if kind.is_string:
        return (type_.length or 0 if length is None else length) * unit
    return kind.key_size
