"""Everything that reads a log, run on one: `python readers.py DIR SCRATCH`. Ends with 0 if all of it could be done.

Says what is done in a line that begins with `DONE`, and goes on when it is given a line, or the end of its input.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pymysql
from pymysqlreplication import BinLogStreamReader

import ibbmaster
from ibbmaster.commands.cli.main import main
from ibbmaster.errors import DamageError

DONE = "done with"
STATEMENTS = ("SHOW DATABASES", "SELECT * FROM information_schema.tables", "SHOW BINARY LOGS", "SHOW MASTER STATUS")


def read_by_commands(path: Path, scratch: Path) -> None:
    first = sorted(one for one in path.iterdir() if one.name[-1].isdigit() or one.suffix == ".ibb")[0]
    is_ibb = first.suffix == ".ibb"
    commands = [["verify", path], ["seek", path, ""], ["demo", path, "--no-replica"]]
    if is_ibb:
        commands += [["inspect", first], ["inspect", first, "--page", 1], ["backup", path, "--to", scratch / "copy"]]
    else:
        commands += [["verify", first], ["convert", path, scratch / "imported"]]
    for command in commands:
        assert main([*map(str, command)]) == 0, command


def read_by_library(path: Path) -> None:
    """Rows, also by the names of later columns, and as Arrow tables."""
    with ibbmaster.open(path) as log:
        for mode in ("asWritten", "latest"):
            rows = [change for group in log.groups(schema_mode=mode) for change in group.rows()]
            assert rows
        with contextlib.suppress(DamageError):  # groups that are in a redo log alone are refused here
            assert log.to_arrow().num_rows == len(rows)


def read_by_clients(path: Path) -> None:
    with ibbmaster.serve(path, password="secret") as primary:
        account = {"host": primary.host, "port": primary.port, "user": primary.user, "password": primary.password}
        with pymysql.connect(**account) as connection, connection.cursor() as cursor:
            for statement in STATEMENTS:
                cursor.execute(statement)
                assert cursor.fetchall(), statement
        stream = BinLogStreamReader(
            connection_settings=account, server_id=4711, is_mariadb=True, auto_position="", blocking=False
        )
        assert sum(1 for _ in stream) > 1
        stream.close()


def read_all(path: Path, scratch: Path) -> Iterator[str]:
    """Each way to read; its name when it is done."""
    read_by_commands(path, scratch)
    yield "commands"
    read_by_library(path)
    yield "library"
    read_by_clients(path)
    yield "clients"


if __name__ == "__main__":
    for done in read_all(Path(sys.argv[1]), Path(sys.argv[2])):
        print(DONE, done, flush=True)
        sys.stdin.readline()
