"""A statement that is understood, and not carried out: raised where that shows, answered in one place."""

from __future__ import annotations

from ibbmaster.wire.response import Err


class RefusedError(Exception):
    """The statement gets this error; the session continues."""

    def __init__(self, code: int, sqlstate: str, text: str) -> None:
        super().__init__(text)
        self.err = Err(code=code, sqlstate=sqlstate, text=text)


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
    return RefusedError(1235, "42000", f"This version of ibbmaster doesn't yet support '{what}'")


def missing_privilege(privilege: str) -> RefusedError:
    text = f"Access denied; you need (at least one of) the {privilege} privilege(s) for this operation"
    return RefusedError(1227, "42000", text)
