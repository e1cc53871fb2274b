"""What is left of a statement that failed on the server, and which that logged because it had changed something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ibbmaster.event.statement.altering import ChangeRows
from ibbmaster.event.statement.operations import Alter, Create, Drop, Operation, Rename, Truncate

BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW = 1051, 1347, 1965, 4092
DROPS_THE_REST = frozenset((BAD_TABLE, WRONG_OBJECT, IS_VIEW, UNKNOWN_VIEW))
"""Errors of a DROP of which some tables or views were missing, or something else: the others are gone."""


def failed(verb: str, error_code: int) -> str:
    """How a reason calls a statement of which nobody knows what it has done."""
    return f"{verb} that failed with error {error_code} on the server"


def left_by_failure(operations: Iterable[Operation], error_code: int) -> list[Operation]:
    """What statements have done all the same that failed with an error code.

    CREATE OR REPLACE has dropped what was there before; a plain CREATE has done nothing.
    """
    return [left for operation in operations for left in _left(operation, error_code)]


def _left(operation: Operation, error_code: int) -> Iterator[Operation]:
    match operation:
        case Create(replaces=True):
            yield Drop(table=operation.table, is_temporary=operation.is_temporary)
        case Create():
            pass
        case Drop() if error_code not in DROPS_THE_REST:
            yield _doubt(operation.table, "DROP TABLE", error_code)
        case Truncate():
            yield _doubt(operation.table, "TRUNCATE TABLE", error_code)
        case Rename():
            yield _doubt(operation.table, "RENAME TABLE", error_code)
            yield _doubt(operation.to, "RENAME TABLE", error_code)
        case Alter():
            yield _doubt(operation.table, "ALTER TABLE", error_code)
        case _:
            yield operation


def _doubt(table: str, verb: str, error_code: int) -> Alter:
    return Alter(table=table, clauses=(ChangeRows(what=failed(verb, error_code)),))
