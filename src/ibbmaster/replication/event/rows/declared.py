"""A user's knowledge of a table beyond its TABLE_MAP events: names, character sets, UUID, INET, VECTOR, digits.

A declaration has column types as in CREATE TABLE, by column name. Without names in the binlog it names every column in
order, or some as '@1', '@2' and so on. The event goes first: a table may have been altered since."""

import dataclasses
from collections.abc import Mapping

from ibbmaster.errors import ConfigurationError
from ..column_types.kind import read_declared
from ..column_types.registry import BY_WORD
from .attributes import is_primary_key
from .column import TableSchema

Declaration = Mapping[str, str]  # column name -> type


def declare(schema: TableSchema, declaration: Declaration) -> TableSchema:
    """Unknown columns are skipped. Raises ConfigurationError: a type cannot be read, or be that of its column."""
    names = {column.name: number for number, column in enumerate(schema.columns)}
    gives_names = not schema.has_names and not any(name in names for name in declaration)
    if gives_names and len(declaration) != len(schema.columns):
        raise ConfigurationError(
            f"{schema.name} has {len(schema.columns)} columns without names, {len(declaration)} are declared"
        )
    columns = list(schema.columns)
    key = []
    for index, (name, text) in enumerate(declaration.items()):
        number = index if gives_names else names.get(name)
        if number is None:
            continue
        column = dataclasses.replace(columns[number], name=name) if gives_names else columns[number]
        if is_primary_key(text):
            key.append(number)
        declared = read_declared(f"{schema.name} column {column.name}", text)
        kind = BY_WORD.get(declared.word)
        changes = {} if kind is None else kind.declare(column, declared)
        columns[number] = dataclasses.replace(column, **changes)
    found = dataclasses.replace(
        schema,
        columns=tuple(columns),
        primary_key=schema.primary_key or tuple(key),
        has_names=schema.has_names or gives_names,
    )
    return found.with_internal() if gives_names else found
