"""Whether values that rows had before an ALTER TABLE are known after it, too."""

from __future__ import annotations

from ibbmaster.schema.model import SqlType

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_SIZES = ("tinytext", "text", "mediumtext", "longtext")
_BLOB_SIZES = ("tinyblob", "blob", "mediumblob", "longblob")
_UNICODE = frozenset(("utf8mb3", "utf8mb4", "utf16", "utf16le", "utf32"))  # texts of other sets survive in these
_CLOCKS = frozenset(("time", "datetime", "timestamp"))


def keeps_values(old: SqlType, new: SqlType) -> bool:
    """Whether each value of a type is shown by the other one as what a server makes of it: the same value."""
    if old == new:
        return True
    if old.charset != new.charset and not (old.charset and new.charset in _wider(old.charset)):
        return False
    if old.word in _INTEGER_BITS and new.word in _INTEGER_BITS:
        return _range(old)[0] >= _range(new)[0] and _range(old)[1] <= _range(new)[1]
    if old.word == new.word == "decimal":
        old_scale, new_scale = old.scale or 0, new.scale or 0
        is_signed_still = not new.is_unsigned or old.is_unsigned
        wider = (new.length or 10) - new_scale >= (old.length or 10) - old_scale
        return new_scale >= old_scale and wider and is_signed_still
    if old.word in _CLOCKS and old.word == new.word:
        return (new.scale or 0) >= (old.scale or 0)
    if old.word in ("enum", "set") and old.word == new.word:
        return new.labels[: len(old.labels)] == old.labels
    if old.word in ("char", "varchar", "varbinary", "binary", "bit") and old.word == new.word:
        return (new.length or 1) >= (old.length or 1)
    if old.word in ("char", "varchar") and new.word == "varchar":
        return (new.length or 1) >= (old.length or 1)
    for sizes in (_TEXT_SIZES, _BLOB_SIZES):
        if old.word in sizes and new.word in sizes:
            return sizes.index(new.word) >= sizes.index(old.word)
    return old.word == new.word and old.length == new.length and old.scale == new.scale and not old.labels


def _wider(charset: str) -> frozenset[str]:
    return _UNICODE - {"utf8mb3"} if charset in _UNICODE - {"utf8mb3"} else _UNICODE


def _range(kind: SqlType) -> tuple[int, int]:
    bits = _INTEGER_BITS[kind.word]
    return (0, (1 << bits) - 1) if kind.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
