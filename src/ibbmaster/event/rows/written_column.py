"""Columns of tables that are written: what a TABLE_MAP says of them, and how their values become bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.column_types.kind import StoredText, read_declared
from ibbmaster.event.column_types.registry import BY_WORD
from ibbmaster.event.rows.attributes import attributes_of, is_nullable, named_charset
from ibbmaster.event.rows.column import ColumnType
from ibbmaster.event.rows.value import Encode

UTF8 = "utf8mb4"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumn:
    """One column. `metadata` are its bytes in the metadata block, `encode` takes a value that is not NULL."""

    name: str
    declared: str  # the type as CREATE TABLE has it
    type: ColumnType
    metadata: bytes
    encode: Encode
    is_nullable: bool = True
    is_unsigned: bool | None = None  # None for what is no number
    collation: int | None = None  # None for what is no string
    labels: tuple[bytes, ...] = ()  # of ENUM and SET, as they are stored
    geometry_type: int | None = None


def written_column(
    name: str, declared: str, *, storage: StoredText | None = None, is_compressed: bool = False
) -> WrittenColumn:
    """A column from its type as CREATE TABLE writes it. Without `storage` text is utf8mb4. Raises ConfigurationError:
    the type is unknown, or cannot be written."""
    taken = read_declared(f"column {name}", declared)
    charset = named_charset(declared) if storage is None else None
    if charset not in (None, UTF8):  # also utf8mb3: a replica's column would have other lengths
        raise ConfigurationError(f"column {name}: {declared!r} is text in {charset}, only {UTF8} can be written")
    is_compressed |= "compressed" in attributes_of(declared)
    taken = taken._replace(storage=storage or StoredText(), is_compressed=is_compressed)
    kind = BY_WORD.get(taken.word)
    written = None if kind is None else kind.write(taken)
    if written is None:
        raise ConfigurationError(f"column {name}: columns of type {declared!r} cannot be written")
    return WrittenColumn(name=name, declared=declared.strip(), is_nullable=is_nullable(declared), **written._asdict())
