"""Statements that are understood but refused: raised where that shows, answered in one place."""

from ibbmaster.work import BreakReason
from .response import EndedRowsError, Err

NOT_SUPPORTED = 1235


class RefusedError(EndedRowsError):
    def __init__(self, code: int, sqlstate: str, text: str) -> None:
        super().__init__(Err(code=code, sqlstate=sqlstate, text=text))


def unknown_variable(name: str) -> RefusedError:
    return RefusedError(1193, "HY000", f"Unknown system variable '{name}'")


def unknown_column(name: str, where: str = "SELECT") -> RefusedError:
    return RefusedError(1054, "42S22", f"Unknown column '{name}' in '{where}'")


def unknown_database(name: str) -> RefusedError:
    return RefusedError(1049, "42000", f"Unknown database '{name}'")


def no_database() -> RefusedError:
    return RefusedError(1046, "3D000", "No database selected")


def unknown_table(database: str, name: str) -> RefusedError:
    return RefusedError(1146, "42S02", f"Table '{database}.{name}' doesn't exist")


def not_supported(what: str) -> RefusedError:
    return RefusedError(NOT_SUPPORTED, "42000", f"This version of ibbmaster doesn't yet support '{what}'")


def missing_privilege(privilege: str) -> RefusedError:
    text = f"Access denied; you need (at least one of) the {privilege} privilege(s) for this operation"
    return RefusedError(1227, "42000", text)


def out_of_memory(what: str) -> RefusedError:
    return RefusedError(1041, "HY000", f"Out of memory: {what}")


def broken_off(reason: BreakReason) -> RefusedError:
    """A server's words about a statement that it ends early."""
    match reason:
        case BreakReason.TIMED_OUT:
            return RefusedError(1969, "70100", "Query execution was interrupted (max_statement_time exceeded)")
        case BreakReason.TOO_LONG:
            text = "Query execution was interrupted (max_statement_time exceeded): a statement may work for so long on "
            text += "this server; ask for less at a time, or have it served with a larger --max-statement-time"
            return RefusedError(1969, "70100", text)
        case BreakReason.STOPPED:
            return RefusedError(1053, "08S01", "Server shutdown in progress")
        case _:
            return RefusedError(1317, "70100", "Query execution was interrupted")
